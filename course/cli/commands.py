"""The command `course`: one verb per function, each a thin layer over the module of its name.

Modules are imported inside the verbs, so that `course --help` answers at once.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from course.shared import extras
from course.shared.errors import CourseError

if TYPE_CHECKING:
    from typer.models import CommandInfo

    from course.authoring.build import Watch
    from course.cli.doctor import Finding

app = typer.Typer(
    help="The tensorkit course: learn in JupyterLab, write chapters, release them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ChapterName = Annotated[
    str, typer.Argument(metavar="CHAPTER", help="A chapter: 01_tensors, 1 or tensors.")
]
LEARN, TEACH = "Learn", "Write and teach"


def main() -> None:
    """Run the command; an error that a person can mend is a sentence without a traceback."""
    # jsonschema would spend a second on the grammar of an address format that nothing here uses;
    # None makes its import fail as if the optional package were not installed
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    from course.shared import paths

    if find_spec("course.authoring") is None:  # learners' bundles leave out what these verbs run
        for verb in app.registered_commands:
            verb.hidden = verb.rich_help_panel == TEACH
        for group in app.registered_groups:
            group.hidden = group.rich_help_panel == TEACH
    with suppress(CourseError):  # a verb that needs the course says what is missing
        paths.tell_of_another(paths.course_root())
    try:
        app()
    except CourseError as problem:
        print(f"course: {problem}", file=sys.stderr)
        sys.exit(1)
    except ImportError as missing:
        if not missing.name:
            raise
        print(f"course: {_not_installed(missing)}", file=sys.stderr)
        sys.exit(1)
    except OSError as problem:
        if problem.errno not in _NOT_WRITABLE:
            raise
        where = problem.filename or "The disk"
        again = "Mend that, and use the same command again."
        print(f"course: {where} cannot be written ({problem.strerror}). {again}", file=sys.stderr)
        sys.exit(1)


_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
"""What a machine says of a home or a course that is read-only, and of a disk that is full."""


def _not_installed(missing: ImportError) -> str:
    """Which installation the command needs, whose module or package is missing."""
    verb = " ".join(["course", *sys.argv[1:2]])
    module = str(missing.name).partition(".")[0]
    if module == "course":
        # what learners get holds the checks, not the modules that write, release and grade
        return f"`{verb}` is for authors; learners' bundles leave it out."
    called = next(
        (command for command in app.registered_commands if _name(command) in sys.argv[1:2]), None
    )
    extra = "lab" if called is not None and called.rich_help_panel == LEARN else "teach"
    return extras.missing(module, extra, f"`{verb}`")


def _name(command: CommandInfo) -> str:
    return str(command.name or getattr(command.callback, "__name__", ""))


@app.command(rich_help_panel=LEARN)
def lab(
    port: Annotated[
        str | None, typer.Option(help="The port; by default the next free one.")
    ] = None,
    browser: Annotated[
        str | None, typer.Option(help="The browser to open, or 'none' to open none.")
    ] = None,
    ip: Annotated[
        str, typer.Option(help="Where it listens; 0.0.0.0 in a container.")
    ] = "127.0.0.1",
) -> None:
    """Open the course in JupyterLab, with your own copies of the chapters in work/."""
    from course.cli.lab import start

    start(port=port, browser=browser, ip=ip)


@app.command(rich_help_panel=LEARN)
def reset(
    chapter: ChapterName,
    exercise: Annotated[str, typer.Argument(metavar="ID", help='The exercise in check("...").')],
) -> None:
    """Begin one exercise again; your text is kept in a file beside the notebook."""
    from course.cli import copies
    from course.shared import paths

    root = paths.course_root()
    kept = copies.reset(root, copies.chapter_in_work(root, chapter), exercise)
    print(f"The exercise {exercise} is as it was released." + _kept_in(kept))
    print(RELOAD)


@app.command(rich_help_panel=LEARN)
def update(
    chapter: Annotated[
        str | None, typer.Argument(metavar="[CHAPTER]", help="A chapter; by default all you have.")
    ] = None,
) -> None:
    """Take over a chapter's newer release; your answers move along, your notebook is kept."""
    from course.cli import copies
    from course.shared import paths

    root = paths.course_root()
    chapters = copies.chapters(root) if chapter is None else [copies.chapter_in_work(root, chapter)]
    copies.any_folder(root)  # says what to do where there is none
    updated = {name: done for name in chapters if (done := copies.update(root, name)) is not None}
    for name, done in updated.items():
        answers = ", ".join(done.carried) or "none"
        print(f"The new release of {name} is in work/, with your answers to: {answers}.")
        if done.left_behind:
            gone = ", ".join(done.left_behind)
            print(f"No longer in the chapter, only in the old notebook: {gone}.")
        if done.n_other_cells:
            print(
                f"{done.n_other_cells} more cells are only in the old notebook: your own, and "
                "what the new release left out."
            )
        print(f"The old notebook is {done.kept}.")
    others = [name for name in chapters if copies.is_released_otherwise(root, name)]
    if others:
        print(
            f"Your class's exchange has another release of {', '.join(others)} than this course "
            "folder. Get the newer course first (git pull, or the newer bundle), then run this "
            "again."
        )
    if updated or not others:
        print(RELOAD if updated else "You have the newest release already; nothing was changed.")


@app.command(rich_help_panel=LEARN)
def progress(
    chapter: Annotated[
        str | None, typer.Argument(metavar="[CHAPTER]", help="A chapter; by default all of them.")
    ] = None,
) -> None:
    """Show your points: chapter by chapter, or one chapter exercise by exercise."""
    import contextlib

    from course.cli import copies
    from course.notebook.record import progress as show
    from course.shared import paths

    root = paths.course_root()
    with contextlib.chdir(copies.any_folder(root)):  # the notes lie beside the chapters' folders
        print(show(chapter))


@app.command(rich_help_panel=LEARN)
def doctor(
    chapter: Annotated[
        str | None, typer.Argument(metavar="[CHAPTER]", help="A chapter; by default all you have.")
    ] = None,
    learner: Annotated[
        list[str] | None, typer.Option(help="For instructors: what this learner handed in.")
    ] = None,
    submitted: Annotated[
        bool, typer.Option("--submitted", help="For instructors: everything that was handed in.")
    ] = False,
    server: Annotated[
        bool, typer.Option("--server", help="For instructors: what this machine has for grading.")
    ] = False,
) -> None:
    """Say what is wrong with your notebook before you hand it in; nothing is changed."""
    from course.cli import copies
    from course.cli.doctor import examine as examine_notebook
    from course.cli.doctor import from_own_folder, source_for
    from course.shared import paths

    root = paths.course_root()
    if server:
        from course.grading.server import NO_SANDBOX, examine

        works = True
        for sentence in examine(root):
            print(sentence, flush=True)  # each sandbox takes seconds
            works = works and sentence != NO_SANDBOX
        raise typer.Exit(0 if works else 1)
    chapters = paths.released_chapters(root)
    if chapter is not None:
        chapters = [paths.chapter_named(chapter, chapters)]
    elif not (learner or submitted):
        copies.any_folder(root)  # says what to do where there is none
    is_wrong, read = False, from_own_folder
    for name in chapters:
        if learner or submitted:
            from course.grading.batch import submissions
            from course.grading.intake import handed_in as read

            folders = submissions(root, name, learner or ())
        else:
            folders = [("", folder) for folder in [paths.work(root) / name] if folder.is_dir()]
            if chapter is not None and not folders:
                copies.chapter_in_work(root, name)  # says what to do
        source = source_for(root, name) if folders else None
        found = [(who, examine_notebook(folder, source, read)) for who, folder in folders if source]
        is_wrong = _print_findings(name, found, is_class=submitted) or is_wrong
    raise typer.Exit(1 if is_wrong else 0)


def _print_findings(
    chapter: str, found: list[tuple[str, list[Finding]]], *, is_class: bool
) -> bool:
    """Print what was found about each notebook; whether one costs points."""
    wrong = [
        notebook for notebook in found if any(finding.kind == "wrong" for finding in notebook[1])
    ]
    shown = found
    if is_class:  # only what is remarkable, the worst next to the prompt
        shown = [notebook for notebook in found if notebook[1] and notebook not in wrong] + wrong
    for who, findings in shown:
        print(f"{chapter}{f', {who}' if who else ''}:{'' if findings else ' nothing is wrong.'}")
        for finding in findings:
            print(f"  {finding}")
    if is_class and found:
        counts = f"{len(wrong)} with something wrong, {len(shown) - len(wrong)} with remarks"
        print(f"{chapter}: {len(found)} submission{'s' * (len(found) != 1)}, {counts}.")
    return bool(wrong)


@app.command(rich_help_panel=TEACH)
def build(
    chapters: Annotated[
        list[str] | None, typer.Argument(metavar="[CHAPTER]...", help="Chapters; by default all.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; say which notebooks are not built.")
    ] = False,
) -> None:
    """Build notebooks from the texts solutions/NN_topic.py: execute, then release."""
    from course.authoring import build as builder
    from course.shared import paths

    root = _own_root()
    written = paths.written_chapters(root)
    chosen = [paths.chapter_named(chapter, written) for chapter in chapters or []] or written
    if check:
        found = builder.differences(root, chosen) + builder.without_text(root)
        found += builder.differing_pages(root)
        if found:
            raise CourseError("\n".join(found))
        print(f"Built as their texts say: {', '.join(chosen) or 'no chapter'}.")
        return
    with _progress_bars() as watch:
        changed = builder.build(root, chosen, watch=watch)
    if not chapters:
        changed += builder.build_pages(root)
    _written(root, changed)
    print(f"{len(chosen)} built, {len(changed)} files changed.")
    from course.authoring.audit import lacking

    if found := [sentence for name in chosen for sentence in lacking(name)]:
        print("The notebooks are built. Before they are released, mend this:")
        for sentence in found:
            print(f"  {sentence}")
        raise typer.Exit(1)


def _own_root() -> Path:
    """The root of the course whose sources, grades or files are to be written.

    Raises CourseError if one stands in another checkout: that one's are meant.
    """
    from course.shared import paths

    root = paths.course_root()
    if paths.tell_of_another(root):
        raise CourseError(
            "Nothing was written. Use that `export` first, or change into the course named first."
        )
    return root


def _own_chapter(name: str) -> tuple[Path, str]:
    """That root, and the chapter that a name or number means, among those that are built."""
    from course.shared import paths

    root = _own_root()
    return root, paths.chapter_named(name, paths.released_chapters(root))


def _written(root: Path, changed: Iterable[Path]) -> None:
    for path in changed:
        print(f"written: {path.relative_to(root).as_posix()}")


new = typer.Typer(help="Write the files of a new chapter, or the places of a new exercise.")
app.add_typer(new, name="new", rich_help_panel=TEACH, no_args_is_help=True)


@new.command("chapter")
def new_chapter(
    name: Annotated[str, typer.Argument(metavar="NN_topic", help="Its name, such as 11_shapes.")],
) -> None:
    """Write the text, the folder of exercises and the module of tests of a new chapter."""
    from course.authoring import new as writer

    root = _own_root()
    _written(root, writer.new_chapter(root, name))
    print(f"Next: course new exercise ID --chapter {name}, then course build {name}.")


@new.command("exercise")
def new_exercise(
    id: Annotated[str, typer.Argument(metavar="ID", help="Its name in check(...): strides-of.")],
    chapter: Annotated[str, typer.Option(help="Its chapter: 03_memory, 3 or memory.")],
) -> None:
    """Write the definition of a new exercise, its place in the text, its rows in the tests."""
    from course.authoring import new as writer
    from course.shared import paths

    root = _own_root()
    name = paths.chapter_named(chapter, paths.written_chapters(root))
    _written(root, writer.new_exercise(root, id, name))
    print(f"Fill these places in; course build {name} says what is still missing.")
    print("If it is to give points, change `points=0` and remove `further=True`.")


@app.command(rich_help_panel=TEACH)
def audit(
    chapter: Annotated[
        str | None, typer.Argument(metavar="[CHAPTER]", help="A chapter; by default all.")
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Small changes of each reference that pass its check.")
    ] = False,
) -> None:
    """Say what the definitions of the exercises lack, or which wrong answers they let through."""
    from course.authoring.audit import faults
    from course.authoring.mutants import survivors
    from course.notebook import exercise
    from course.shared import paths

    chosen = None if chapter is None else paths.chapter_named(chapter, list(exercise.chapters()))
    n_found = 0
    for definition in exercise.load(chosen).values():
        found = (
            [str(each) for each in survivors(definition)]
            if mutants
            else faults(definition, range(20))
        )
        n_found += len(found)
        for sentence in found:
            print(sentence)
    what = "wrong answers pass" if mutants else "faults"
    print(f"{n_found} {what}.")
    raise typer.Exit(1 if n_found else 0)


@app.command(rich_help_panel=TEACH)
def demo(
    chapter: Annotated[
        str | None,
        typer.Argument(metavar="[CHAPTER]", help="A chapter; by default the first long one."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="A new folder for everything; by default a temporary one.")
    ] = None,
) -> None:
    """Rehearse a whole class with nbgrader, from release to feedback, in a temporary folder."""
    from course.cli.demo import rehearse

    rehearse(chapter, keep)


@app.command(rich_help_panel=TEACH)
def grade(
    chapter: ChapterName,
    learner: Annotated[
        list[str] | None, typer.Option(help="Only this learner; may be given several times.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many at once; by default one for each core.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Grade on the workers of this dask scheduler: tcp://...")
    ] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Without a sandbox: learners' code can do anything.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Also what is graded already.")] = False,
) -> None:
    """Grade what was collected: learners' code in a sandbox, points into nbgrader's gradebook."""
    from course.authoring.release import nbgrader_config
    from course.grading import batch
    from course.grading.feedback import older_than_grades
    from course.grading.gradebook import roster

    root, name = _own_chapter(chapter)
    config = nbgrader_config(own=True)
    known = set(roster(root, config))
    with _grading_bar("begins again" if force else "goes on") as watch:
        fault: batch.Ungraded | None = None
        try:
            results = batch.grade(
                root,
                name,
                learners=learner or (),
                workers=workers,
                cluster=cluster,
                unsafe=unsafe,
                force=force,
                watch=watch,
            )
        except batch.Ungraded as ungraded:
            fault, results = ungraded, ungraded.results
    for result in sorted(results, key=lambda result: result.learner):
        for sentence in filter(None, [result.sentence, *result.troubles]):
            print(f"{result.learner}: {sentence}")
    left_out = batch.left_out(root, name)
    for sentence in left_out:
        print(sentence)
    new = sorted({result.learner for result in results} - known) if known else []
    if new:
        print(
            f"New in the gradebook: {', '.join(new)}. Is a name mistyped? Rename its folder in "
            "course/submitted/, then: rm -rf course/{graded,autograded,feedback}/NAME; "
            "nbgrader db student remove NAME --force"
        )
    if old := older_than_grades(root, name, config):
        print(
            f"Feedback is older than the grade or comments of {', '.join(old)}: "
            f"nbgrader generate_feedback {name} --force"
        )
    graded = sum(result.status == "graded" for result in results)
    others = f", {len(results) - graded} not (0 points, see above)" * (graded < len(results))
    print(f"{len(results)} submission{'s' * (len(results) != 1)}, {graded} graded{others}.")
    if fault is not None:
        raise fault
    if left_out:
        raise typer.Exit(1)


@app.command(rich_help_panel=TEACH)
def extend(
    chapter: ChapterName,
    learner: Annotated[str, typer.Argument(help="The learner's id in the gradebook.")],
    days: Annotated[
        float, typer.Option(min=0, help="From the due date on; 0 takes an extension back.")
    ],
) -> None:
    """Give one learner more time, before or after they hand in."""
    from course.authoring.release import nbgrader_config
    from course.grading.gradebook import ChapterEntries

    root, name = _own_chapter(chapter)
    with closing(ChapterEntries(root, name, nbgrader_config(own=True))) as entries:
        entries.extend(learner, days)
    print(f"{learner} has {days:g} day{'s' * (days != 1)} more.")


class Platform(StrEnum):
    """The platforms whose columns `course export` writes."""

    CANVAS = "canvas"
    MOODLE = "moodle"
    GRADESCOPE = "gradescope"
    CSV = "csv"


@app.command(rich_help_panel=TEACH)
def export(
    chapter: ChapterName,
    to: Annotated[Platform, typer.Option(help="The platform whose columns the file has.")],
    output: Annotated[
        Path | None,
        typer.Option(help="By default course/CHAPTER-PLATFORM.csv; of csv, CHAPTER-grades.csv."),
    ] = None,
    identities: Annotated[
        Path | None,
        typer.Option(help="A CSV file: who each learner is there, by the platform's columns."),
    ] = None,
    column: Annotated[
        str, typer.Option(help="What the chapter is called there; for Canvas: Name (4711).")
    ] = "",
) -> None:
    """Write the grades of a chapter in the columns of Canvas, Moodle or Gradescope."""
    from course.authoring.release import nbgrader_config
    from course.grading.export import export as write

    root, name = _own_chapter(chapter)
    kind = "grades" if to is Platform.CSV else to
    file = output or root / "course" / f"{name}-{kind}.csv"
    config = nbgrader_config(own=True)
    open_ones = write(root, name, to, file, identities=identities, column=column, config=config)
    if open_ones:
        print(f"Not graded by hand yet, so with fewer points: {', '.join(open_ones)}.")
    print(file)


@app.command(rich_help_panel=TEACH)
def comment(
    chapter: ChapterName,
    exercise: Annotated[str, typer.Argument(metavar="ID", help="The exercise.")],
    text: Annotated[str, typer.Argument(help="The comment; Markdown, formulas included.")],
    like: Annotated[str, typer.Option(help="A learner whose answer is wrong in this way.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Also in place of other comments by hand.")
    ] = False,
) -> None:
    """Write one comment to all answers that are wrong in the same way."""
    from course.authoring.release import nbgrader_config
    from course.grading.comments import comment as write

    root, name = _own_chapter(chapter)
    config = nbgrader_config(own=True)
    written, kept = write(root, name, exercise, like, text, replace=replace, config=config)
    print(f"This comment is now with: {', '.join(written) or 'nobody'}.")
    if kept:
        print(f"They have another one by hand; --replace takes its place: {', '.join(kept)}.")
    if written:
        print(f"For the learners: nbgrader generate_feedback {name} --force")


@app.command(rich_help_panel=TEACH)
def report(
    chapter: ChapterName,
    names: Annotated[
        bool, typer.Option("--names", help="Learners' own names in place of pseudonyms.")
    ] = False,
) -> None:
    """Write a page about the class: what went wrong where, who needs help."""
    from course.grading import class_files

    root, name = _own_chapter(chapter)
    page, found = class_files.write(root, name, names=names)
    print(f"Need help: {len(found.need_help)}. Handed nothing in: {len(found.absent)}.")
    if found.not_graded:
        print(f"Handed in and not graded: {len(found.not_graded)}: course grade {name}")
    if found.exercises and found.hardest[0].lost:
        print(f"Most points were lost in: {found.hardest[0].title}")
    print(page)


@app.command(rich_help_panel=TEACH)
def watch(
    chapter: ChapterName,
    once: Annotated[bool, typer.Option("--once", help="Print it once and end.")] = False,
    minutes: Annotated[
        float, typer.Option(min=1, help="How far back it looks for who needs help.")
    ] = 15,
) -> None:
    """Show who is where while a class works, until Ctrl-C."""
    from course.grading.watch import show
    from course.notebook.exercise import chapters
    from course.shared import paths

    show(paths.chapter_named(chapter, list(chapters())), minutes=minutes, once=once)


@app.command(rich_help_panel=TEACH)
def bundle() -> None:
    """Make the folder that learners get: a wheel and the released notebooks."""
    from course.authoring.bundle import bundle as make

    make(_own_root())


@app.command(rich_help_panel=TEACH)
def hosted() -> None:
    """Make the folder from which Colab and other hosted notebooks open the chapters."""
    from course.authoring.hosted import write

    write(_own_root())


RELOAD = "If the notebook is open in JupyterLab, choose File > Reload Notebook from Disk."


def _kept_in(path: object) -> str:
    return f" Your text is kept in {path}." if path else ""


@contextmanager
def _progress_bars() -> Iterator[Watch]:
    """One bar for each thing that is being built."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn()) as bars:
        tasks: dict[str, int] = {}

        def watch(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)  # type: ignore[arg-type]

        yield watch


@contextmanager
def _grading_bar(next_time: str) -> Iterator[Callable[[Any, int, int], None]]:
    """A bar with rate and time left; after Ctrl-C a sentence says what the command does next."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Left())
    with Progress(*columns, TextColumn("{task.fields[rate]}")) as bar:
        task = bar.add_task("grading", total=None, rate="")

        def watch(result: Any, done: int, total: int) -> None:
            speed = bar.tasks[task].speed
            rate = f"{speed:.1f} a second" if speed else ""
            bar.update(task, completed=done, total=total, description=result.learner, rate=rate)

        try:
            yield watch
        except BaseException as problem:
            now = bar.tasks[task]
            bar.remove_task(task)  # the sentence that follows says how far it came
            if not isinstance(problem, KeyboardInterrupt):
                raise
            kept = f" Graded and kept: {now.completed:g} of {now.total:g}." if now.total else ""
            raise CourseError(f"Stopped.{kept} The same command {next_time}.") from None


if __name__ == "__main__":
    main()
