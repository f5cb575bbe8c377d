"""Who works in this process: the name under which nbgrader hands a learner's notebook in."""

from __future__ import annotations

import getpass
import os


def learner() -> str:
    """The login, as `nbgrader submit` takes it; on a hub of containers the name on the hub."""
    try:
        import pwd

        name = pwd.getpwuid(os.getuid()).pw_name
    except ImportError:  # Windows
        name = getpass.getuser()
    except KeyError:  # a container that has no entry for its user
        name = str(os.getuid())
    return os.environ.get("JUPYTERHUB_USER", name) if name == "jovyan" else name
