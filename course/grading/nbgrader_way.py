"""The same grading where nbgrader is asked: `nbgrader autograde`, Formgrader's button, `collect`.

The configuration puts `GradedNotebook` in the place of nbgrader's exporter and preprocessors, and
`Collect`, `ReleaseAssignment` and `ReleaseFeedback` in those of its exchange. A button does what
`course grade` does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbgrader.exchange import default
from nbgrader.utils import notebook_hash, parse_utc

from course.grading import agreement, batch, intake
from course.grading.feedback import check_or_exit, older_than_grades
from course.grading.result import autograded_file, stored
from course.grading.session import remove
from course.grading.writer import write_page
from course.notebook import matching
from course.shared import files, paths
from course.shared.errors import CourseError
from course.shared.words import listed

_log = logging.getLogger("nbgrader")
TOLERANCE = timedelta(minutes=5)
"""How far a learner's own note of the time may lie before the moment that the server noted."""


class GradedNotebook(NotebookExporter):
    """Grades a submission when nbgrader reads it, and gives nbgrader the graded notebook."""

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **more: Any
    ) -> tuple[Any, dict[str, Any]]:
        """The autograded notebook. Raises CourseError where there is none."""
        root, names = paths.course_root(), (resources or {})["nbgrader"]
        learner, chapter = str(names["student"]), str(names["assignment"])
        if root / "course" / "submitted" in Path(filename).parents:
            earlier = stored(root, learner, chapter)
            try:
                (result,) = batch.grade(
                    root, chapter, learners=[learner], workers=1, config=self.config
                )
            except (CourseError, KeyboardInterrupt) as problem:
                # nbgrader removed the earlier page before this; after any other exception it also
                # prints a traceback and removes the new page
                if earlier is None:
                    remove(autograded_file(root, learner, chapter).parent)
                else:
                    with contextlib.suppress(CourseError):  # of a chapter that is not built
                        write_page(root, matching.source_of(root, chapter), earlier)
                raise SystemExit(
                    f"course: {str(problem) or 'Stopped.'}\n{learner} has the grade of before, and "
                    f"others may be left. Then run: course grade {chapter}"
                ) from None
            for sentence in filter(None, (result.sentence, *result.troubles, *result.repaired)):
                _log.warning("%s: %s", learner, sentence)
        page = autograded_file(root, learner, chapter)
        _, resources = super().from_filename(str(page), resources, **more)
        return page.read_text(encoding="utf-8"), resources


def prepare_folders(assignment: str, student: str, notebooks: list[str]) -> None:
    """What nbgrader sees of a submission: no links, and a notebook under the chapter's name."""
    without_links(assignment, student, notebooks)
    folders = {Path(notebook).parent for notebook in notebooks}
    named = [str(folder / f"{folder.name}.ipynb") for folder in folders]
    if not set(named) & set(notebooks):
        notebooks[:] = named  # nbgrader skips every other name; `batch.grade` finds it


def without_links(assignment: str, student: str, notebooks: list[str]) -> None:
    """Remove from the folders of submissions what nbgrader would follow, wait for or fail at."""
    for folder in {Path(notebook).parent for notebook in notebooks}:
        waiting = [(folder, 0)]
        while waiting:
            path, depth = waiting.pop()
            for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False) and depth < intake.DEEPEST:
                    waiting.append((Path(entry.path), depth + 1))
                elif entry.is_dir(follow_symlinks=False):
                    _log.warning("%r is deeper than anyone needs and was removed.", entry.path)
                    remove(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    _log.warning("%r is a link or no file; it was removed.", entry.path)
                    Path(entry.path).unlink()
        intake.set_aside_timestamp(folder)


class Collect(default.ExchangeCollect):
    """nbgrader's collector, which follows no link, and notes owner and time itself.

    A folder of the exchange is named LEARNER+CHAPTER+TIME+RANDOM, by whoever made it. So it counts
    only if it belongs to the account of that name, with all that is in it, or to whoever collects:
    on a hub where all have one user, that is everybody. `check_owner` switches this off.
    """

    src_records: list[dict[str, Any]]

    def init_src(self) -> None:
        """Find the submission of each learner that is to be collected."""
        super().init_src()
        self.src_records = [record for record in self.src_records if record["username"]]

    def _path_to_record(self, path: str) -> dict[str, Any]:
        name = Path(path).name
        moment = _noted(name) or datetime.fromtimestamp(0, UTC)  # nbgrader needs one
        timestamp = moment.replace(tzinfo=None)
        return {"username": name.rsplit("+", 3)[0], "filename": name, "timestamp": timestamp}

    def _sort_by_timestamp(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Of the submissions in one learner's name those that are the learner's, newest first."""
        own_records = [record for record in records if self._is_own(record)]
        newest_first: list[dict[str, Any]] = super()._sort_by_timestamp(own_records)
        return newest_first or [{**records[0], "username": ""}]

    def _is_own(self, record: dict[str, Any]) -> bool:
        learner = record["username"]
        if not learner:
            self.log.error("%r is not collected: it names no learner.", record["filename"])
            return False
        entry = Path(self.inbound_path, record["filename"])
        try:
            owning = intake.owners_of(entry)
        except OSError as problem:  # a link, a file, a closed folder, or nothing any more
            with contextlib.suppress(OSError):  # then there is nothing to name
                owner = intake.account(entry.lstat().st_uid)
                self.log.error("%r of %s is not collected: %s", entry.name, owner, problem)
            return False
        owners = self._owners(learner)
        strangers = sorted(owning - (owning if owners is None else owners))
        if strangers:
            self.log.error(
                "%r is not collected: it is in the name of %r and belongs to %r. (If accounts are "
                "named otherwise than learners: c.ExchangeCollect.check_owner = False.)",
                *(record["filename"], learner, ", ".join(map(intake.account, strangers))),
            )
        return not strangers

    def _owners(self, learner: str) -> set[int] | None:
        """The users to whom a submission of this learner's may belong; None if anybody."""
        owners = {os.getuid()}
        with contextlib.suppress(KeyError):
            owners.add(pwd.getpwnam(learner).pw_uid)
        return owners if self.check_owner else None

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy the regular files of a submission, and the time at which it arrived."""
        beside = Path(f"{dest}.links")
        shutil.rmtree(beside, ignore_errors=True)
        try:
            arrived = datetime.fromtimestamp(Path(src).lstat().st_ctime, UTC)
            ignored = shutil.ignore_patterns(*self.coursedir.ignore)
            owners = self._owners(Path(src).name.rsplit("+", 3)[0])
            left_out = intake.collect(Path(src), beside, ignored, owners)
        except (OSError, matching.Refused) as problem:  # a link, a file, a folder that is closed
            self.log.warning("%s is not collected: %s", src, problem)
            shutil.rmtree(beside, ignore_errors=True)
            return
        for sentence in left_out:
            self.log.warning("%s: left out: %s", src, sentence)
        moment = _noted(Path(src).name)
        if moment is None or abs(arrived - moment) > TOLERANCE:
            self.log.warning("%s says %s, but arrived %s; that counts.", src, moment, arrived)
            moment = arrived
        files.write(beside / "timestamp.txt", moment.strftime("%Y-%m-%d %H:%M:%S.%f UTC"))
        beside.rename(dest)


class ReleaseAssignment(default.ExchangeReleaseAssignment):
    """nbgrader's release of a chapter, which refuses points that are not those of definitions."""

    def copy_files(self) -> None:
        """Release the chapter, after the check."""
        root, chapter = Path(self.coursedir.root), str(self.coursedir.assignment_id)
        try:
            agreement.check_notebooks(matching.source_of(root, chapter))
        except CourseError as problem:
            self.fail(str(problem))  # ends the command with 1
        super().copy_files()


class ReleaseFeedback(default.ExchangeReleaseFeedback):
    """nbgrader's release of feedback, which by itself loses the page of a renamed notebook."""

    def copy_files(self) -> None:
        """Release the pages, each also under the name by which its learner looks for it."""
        chapter, root = str(self.coursedir.assignment_id), Path(self.coursedir.root)
        feedback = root / self.coursedir.feedback_directory
        pages = list(feedback.glob(f"{self.coursedir.student_id}/{chapter}/{chapter}.html"))
        learners = {page.parents[1].name for page in pages}
        check_or_exit(root, chapter, learners, self.config)
        if older := sorted(learners.intersection(older_than_grades(root, chapter, self.config))):
            raise SystemExit(
                "course: Feedback is older than the grade or comments of "
                f"{listed(older, intake.MOST_NAMED)}: "
                f"nbgrader generate_feedback {chapter} --force. Nothing was released."
            )
        if waiting := sorted(learners.intersection(batch.not_graded(root, chapter))):
            names = listed(waiting, intake.MOST_NAMED)
            self.log.warning("Handed in anew, with the page of the submission before: %s", names)
        super().copy_files()
        for page in pages:
            secret = (page.parent / "submission_secret.txt").read_text(encoding="ascii")
            submitted = page.parents[3] / "submitted" / page.parts[-3] / chapter
            released = Path(
                self.dest_path, f"{notebook_hash(secret=secret, notebook_id=chapter)}.html"
            )
            for notebook in sorted(submitted.glob("*.ipynb"))[: intake.MOST_NAMED]:
                if notebook.stem != chapter and released.is_file():
                    name = notebook_hash(secret=secret, notebook_id=notebook.stem)
                    shutil.copy(released, released.with_name(f"{name}.html"))


def _noted(folder: str) -> datetime | None:
    """The time in the name of a folder of the exchange: NAME+CHAPTER+TIME+..."""
    try:
        moment = parse_utc(folder.rsplit("+", 3)[2])
    except (IndexError, ValueError, AttributeError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment is not None else None
