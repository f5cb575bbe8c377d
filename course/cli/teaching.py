"""The verbs of the command `course` that authors and instructors use, beside those of learners."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from course.cli.learning import TEACH, ChapterName, app
from course.shared.errors import CourseError
from course.shared.words import listed

if TYPE_CHECKING:
    from course.authoring.build import Watch

__all__ = ["app"]
"""The command with all verbs: those of learners, and those that are added here."""


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
    from course.authoring.form import departures

    found = [sentence for name in chosen for sentence in (*departures(root, name), *lacking(name))]
    if found:
        print("The notebooks are built. Before they are released, mend this:")
        for sentence in found:
            print(f"  {sentence}")
        raise typer.Exit(1)


def _own_root() -> Path:
    """The root of the course, for a verb that writes sources, grades or files.

    Raises CourseError if the current folder is in another checkout: its files may be meant.
    """
    from course.shared import paths

    root = paths.course_root()
    if paths.tell_of_another(root):
        raise CourseError(
            "Nothing was written. Use that `export` first, or change into the course named first."
        )
    return root


def _built_root() -> Path:
    """As `_own_root`; raises CourseError if a notebook has other points than the definitions."""
    from course.grading import agreement
    from course.notebook import matching
    from course.shared import paths

    root = _own_root()
    for chapter in paths.released_chapters(root):
        agreement.check_notebooks(matching.source_of(root, chapter))
    return root


def _own_chapter(name: str) -> tuple[Path, str]:
    """The root of `_own_root`, and the built chapter that a name or a number means."""
    from course.shared import paths

    root = _own_root()
    built = paths.released_chapters(root)
    chapter = paths.chapter_named(name, sorted({*built, *paths.written_chapters(root)}))
    if chapter not in built:
        raise CourseError(f"{chapter} is not built: course build {chapter}.")
    return root, chapter


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
    written = writer.new_chapter(root, name)
    _written(root, written)
    print("The way back: remove these files.")
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
    written = writer.new_exercise(root, id, name)
    _written(root, written)
    print(f"The way back: remove {written[0].name}, and from the other files what names {id}.")
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
        sentences = (
            [str(survivor) for survivor in survivors(definition)]
            if mutants
            else faults(definition, range(20))
        )
        n_found += len(sentences)
        for sentence in sentences:
            print(sentence)
    nouns = ("wrong answer passes", "wrong answers pass") if mutants else ("fault", "faults")
    print(f"{n_found} {nouns[n_found != 1]}.")
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
    from course.grading import batch, intake
    from course.grading.feedback import older_than_grades
    from course.grading.gradebook import class_list

    root, name = _own_chapter(chapter)
    config = nbgrader_config(own=True)
    known = class_list(root, config)
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
    unknown = [
        result.learner
        for result in results
        if any(note.startswith(intake.NO_MOMENT) for note in result.repaired)
    ]
    if unknown:
        print(
            f"They count as in time, because their {intake.TIMESTAMP} names no moment: "
            f"{listed(sorted(unknown), intake.MOST_NAMED)}. Write it anew, such as "
            f"'2027-03-01 22:10:00 UTC', then: course grade {name}"
        )
    new = sorted({result.learner for result in results} - known) if known else []
    if new:
        names = listed([shlex.quote(learner) for learner in new], intake.MOST_NAMED)
        print(
            f"New in the gradebook, or there without a name: {names}. Is it mistyped? Rename its "
            "folder in course/submitted/, then: rm -rf course/{graded,autograded,feedback}/NAME; "
            "nbgrader db student remove NAME --force"
        )
    if old := older_than_grades(root, name, config):
        print(
            "Feedback is older than the grade or comments of "
            f"{listed(old, intake.MOST_NAMED)}: nbgrader generate_feedback {name} --force"
        )
    graded = sum(result.status == "graded" for result in results)
    not_graded = f", {len(results) - graded} not (0 points, see above)" * (graded < len(results))
    print(f"{len(results)} submission{'s' * (len(results) != 1)}, {graded} graded{not_graded}.")
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
    from course.grading import intake
    from course.grading.export import export as write

    root, name = _own_chapter(chapter)
    kind = "grades" if to is Platform.CSV else to
    file = output or root / "course" / f"{name}-{kind}.csv"
    config = nbgrader_config(own=True)
    open_ones = write(root, name, to, file, identities=identities, column=column, config=config)
    if open_ones:
        names = listed(open_ones, intake.MOST_NAMED)
        print(f"For a person to grade, or to look at again after a regrade: {names}.")
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
    page, class_report = class_files.write(root, name, names=names)
    print(
        f"Need help: {len(class_report.need_help)}. Handed nothing in: {len(class_report.absent)}."
    )
    if class_report.not_graded:
        print(f"Handed in and not graded: {len(class_report.not_graded)}: course grade {name}")
    if class_report.exercises and class_report.hardest[0].lost:
        print(f"Most points were lost in: {class_report.hardest[0].title}")
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

    make(_built_root())


@app.command(rich_help_panel=TEACH)
def hosted() -> None:
    """Make the folder from which Colab and other hosted notebooks open the chapters."""
    from course.authoring.hosted import write

    write(_built_root())


@contextmanager
def _progress_bars() -> Iterator[Watch]:
    """One bar for each thing that is being built."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn()) as bars:
        tasks: dict[str, int] = {}

        def watch(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done)  # type: ignore[arg-type]

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
