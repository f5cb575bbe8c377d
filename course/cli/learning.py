"""The verbs of the command `course` that learners use, and the program that all verbs belong to.

Each verb is a thin layer over the module of its name. Modules are imported inside the verbs, so
that `course --help` answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from course.shared.errors import CourseError

if TYPE_CHECKING:
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
    updated, broken, unlike = False, False, []
    for name in chapters:
        try:
            done = copies.update(root, name)
            unlike += [name] if copies.is_released_otherwise(root, name) else []
        except CourseError as problem:  # the other chapters go on
            print(problem)
            broken = True
            continue
        if done is None:
            continue
        updated = True
        answers = ", ".join(done.carried) or "none"
        print(f"The new release of {name} is in work/, with your answers to: {answers}.")
        if done.left_behind:
            gone = ", ".join(done.left_behind)
            print(f"No longer in the chapter, now in cells of your own: {gone}.")
        if done.n_own:
            print(f"Cells of your own, or that you had changed, where they stood: {done.n_own}.")
        print(f"The old notebook is {done.kept}.")
    if unlike:
        print(
            f"Your class's exchange has another release of {', '.join(unlike)} than this course "
            "folder. Get the newest course (git pull, or the newest bundle), then run this again. "
            "If that changes nothing, your instructor has not released the newer one yet: go on "
            "with your notebook, there is nothing to do."
        )
    if updated or not (unlike or broken):
        print(RELOAD if updated else "You have the newest release already; nothing was changed.")
    raise typer.Exit(1 if unlike or broken else 0)


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
    from course.cli.doctor import from_own_folder, from_submission, source_for
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
    read = from_submission if learner or submitted else from_own_folder
    is_wrong = False
    for name in chapters:
        if learner or submitted:
            from course.grading.batch import submissions

            folders = submissions(root, name, learner or ())
        else:
            folders = [("", folder) for folder in [paths.work(root) / name] if folder.is_dir()]
            if chapter is not None and not folders:
                copies.chapter_in_work(root, name)  # says what to do
        source = source_for(root, name) if folders else None
        examined = [
            (name, examine_notebook(place, source, read)) for name, place in folders if source
        ]
        is_wrong = _print_findings(name, examined, is_class=submitted) or is_wrong
    if submitted:
        from course.grading.batch import left_out

        for sentence in dict.fromkeys(
            sentence for name in chapters for sentence in left_out(root, name)
        ):
            print(sentence)
            is_wrong = True
    raise typer.Exit(1 if is_wrong else 0)


def _print_findings(
    chapter: str, examined: list[tuple[str, list[Finding]]], *, is_class: bool
) -> bool:
    """Print what was found about each notebook; whether one costs points."""
    wrong = [
        notebook for notebook in examined if any(finding.kind == "wrong" for finding in notebook[1])
    ]
    shown = examined
    if is_class:  # only what is remarkable, the worst next to the prompt
        shown = [notebook for notebook in examined if notebook[1] and notebook not in wrong] + wrong
    for learner, findings in shown:
        named = f"{chapter}, {learner}" if learner else chapter
        print(f"{named}:{'' if findings else ' nothing is wrong.'}")
        for finding in findings:
            print(f"  {finding}")
    if is_class and examined:
        counts = f"{len(wrong)} with something wrong, {len(shown) - len(wrong)} with remarks"
        print(f"{chapter}: {len(examined)} submission{'s' * (len(examined) != 1)}, {counts}.")
    return bool(wrong)


RELOAD = "If the notebook is open in JupyterLab, choose File > Reload Notebook from Disk."


def _kept_in(path: object) -> str:
    return f" Your text is kept in {path}." if path else ""
