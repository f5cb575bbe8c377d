"""nbgrader's configuration, installed into <environment>/etc/jupyter.

There every nbgrader command, Formgrader, Assignment List, Course List and Validate find it, from
whatever folder they are started. What an instructor may switch stands in `course/settings.toml`.
"""

import contextlib
import importlib.util
import logging
import warnings

from course.shared import paths
from course.shared.errors import CourseError
from course.shared.settings import settings

c = get_config()  # noqa: F821  # traitlets puts it into this file's namespace

paths.scripts_on_path()

# nbgrader's own use of its database, told to whoever grades, several lines for each submission
warnings.filterwarnings("ignore", message="Object of type <Submitted.* not in session")

# a cell's answer becomes the exercise's own stub, which runs without an exception
c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.InstantiateTests",
    "nbgrader.preprocessors.LockCells",
    "course.authoring.release.ReleaseStubs",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "course.authoring.release.SaveChapterCells",  # in the place of nbgrader's SaveCells
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# learners' code runs in a sandbox and is judged apart from it, also where a button is pressed;
# a learner's own installation has nothing to grade with
if importlib.util.find_spec("course.grading") is not None:
    from nbgrader.apps import api

    from course.grading import formgrader

    c.Autograde.sanitize_preprocessors = []
    c.Autograde.autograde_preprocessors = []
    c.Autograde.exporter_class = "course.grading.nbgrader_way.GradedNotebook"
    c.Autograde.pre_convert_hook = "course.grading.nbgrader_way.prepare_folders"
    c.ExportApp.plugin_class = "course.grading.export.CsvExport"
    c.ExchangeFactory.collect = "course.grading.nbgrader_way.Collect"
    c.ExchangeFactory.release_assignment = "course.grading.nbgrader_way.ReleaseAssignment"
    c.ExchangeFactory.release_feedback = "course.grading.nbgrader_way.ReleaseFeedback"
    # formulas are drawn without a network, and the feedback's page may run no script
    formulas = "course.grading.feedback.Formulas"
    c.GenerateFeedback.preprocessors = ["course.grading.feedback.Heading", formulas]
    c.GenerateFeedback.exporter_class = "course.grading.feedback.FeedbackPage"
    c.HTMLExporter.preprocessors = [formulas]  # of Formgrader
    # there is no setting for what Formgrader's buttons show
    api.capture_log = formgrader.run

c.CourseDirectory.course_id = settings().course_id
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.submitted_directory = "course/submitted"
c.CourseDirectory.autograded_directory = "course/autograded"
c.CourseDirectory.feedback_directory = "course/feedback"
c.CourseDirectory.solution_directory = "course/solution"
# nbgrader's own list, and the folder where `course reset` and `course update` keep older texts
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "older"]

# the panel with this configuration on Formgrader's first page, which warns on every visit
c.FormgradeExtension.debug = False

try:
    root = paths.course_root()
except CourseError as problem:
    logging.getLogger("nbgrader").warning("%s", problem)
else:
    paths.tell_of_another(root)
    c.CourseDirectory.root = str(root)
    c.CourseDirectory.db_url = f"sqlite:///{root / 'course' / 'gradebook.db'}"
    # joined to the root; an absolute path stays as it is
    exchange = root / settings().exchange
    c.Exchange.root = str(exchange)
    c.Exchange.assignment_dir = str(paths.work(root))
    # names and grades: below `course/`, where git ignores them
    c.ExportPlugin.to = str(root / "course" / "grades.csv")
    # nbgrader makes none of these, and each of its programs fails where one is missing
    for folder in (root / "course", exchange, paths.work(root)):
        with contextlib.suppress(OSError):  # a hub's folders may be read-only
            folder.mkdir(parents=True, exist_ok=True)
    # the instructor's own, from whatever folder a command is started; it has the last word
    load_subconfig("nbgrader_config.py", path=str(root))  # noqa: F821  # traitlets' too
