"""JupyterLab's configuration, installed into <environment>/etc/jupyter.

JupyterLab opens on the course from whatever folder it is started, since Formgrader serves only
what lies below the server's root; and nothing asks the network for news, updates or extensions.
"""

import contextlib

from course import paths
from course.errors import CourseError

c = get_config()  # noqa: F821  # traitlets puts it into this file's namespace

with contextlib.suppress(CourseError):  # then the server's root is the current folder, as usual
    c.ServerApp.root_dir = str(paths.course_root())

c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"

# the default, three times the interval between two pings, is refused aloud at every start
c.ServerApp.tornado_settings = {"ws_ping_timeout": 30_000}  # milliseconds
