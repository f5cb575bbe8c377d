"""JupyterLab's configuration, installed into <environment>/etc/jupyter.

JupyterLab opens on the course from whatever folder it is started, since Formgrader serves only
what lies below the server's root; and nothing asks the network for news, updates or extensions.
Learners do not see the tools of instructors, however JupyterLab was started.
"""

import contextlib
import logging
import os

from course.cli import lab
from course.shared import paths
from course.shared.errors import CourseError

c = get_config()  # noqa: F821  # traitlets puts it into this file's namespace

with contextlib.suppress(CourseError):  # then the server's root is the current folder, as usual
    c.ServerApp.root_dir = str(paths.course_root())

c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
c.ServerApp.tornado_settings = {"page_config_hook": lab.page_config}
# JupyterLab's terminal would otherwise be a login shell where the server's own output goes to a
# file or a service, and Debian's /etc/profile takes this environment's programs off the PATH
if os.name != "nt":
    c.ServerApp.terminado_settings = {"shell_command": [os.environ.get("SHELL") or "/bin/sh"]}

# tornado warns at every start of a timeout that Jupyter sets and tornado does not use; a shorter
# one would end connections that have only just been opened
logging.getLogger("tornado.general").addFilter(
    lambda record: "websocket_ping_timeout" not in record.getMessage()
)
# every copy of a chapter is new to Jupyter, which trusts a notebook once it was run
logging.getLogger("ServerApp").addFilter(
    lambda record: not record.getMessage().endswith("is not trusted")
)
