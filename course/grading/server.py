"""What this machine has for grading, and what to ask its administrator for."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from course.grading.session import MachineFault, Warm
from course.sandbox import landlock, profiles
from course.sandbox.profiles import Limits
from course.shared.errors import CourseError

_ASK = {
    "user.max_user_namespaces": ("0", "sysctl user.max_user_namespaces=15000"),
    "kernel.unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
    "kernel.apparmor_restrict_unprivileged_userns": (
        "1",
        "an AppArmor profile that allows `userns` to this Python",
    ),
}
"""Settings of the kernel: the value that refuses namespaces, and what to ask for."""

NO_SANDBOX = "Nothing is graded on this machine, until that is mended."


def examine(root: Path | None = None) -> Iterator[str]:
    """A sentence for each thing that grading needs, the sandboxes first."""
    yield f"{platform.system()} {platform.release()}, Python {platform.python_version()}."
    works: dict[str, bool] = {}
    for profile in profiles.SAFE:
        reason = profiles.why_not(profile)
        if reason is None:
            works[profile], reason = _tried(profile)
        yield f"{profile}: {reason}"
    yield _best(works)
    if profiles.NAMESPACES not in works:
        yield from _asked_for()
    if any(works.values()) and not landlock.version():
        yield "Landlock is not switched on: add it to `lsm=` on the kernel's command line."
    if sys.platform == "linux" and os.getuid() == 0:
        yield "You are root. It works; a user of its own for grading is the better habit."
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    yield f"{cores} cores: as many submissions at once, with up to 400 MB each."
    if root is not None:
        yield from _course(root)


def _best(works: dict[str, bool]) -> str:
    """What grading does. works: whether each sandbox that the kernel allows starts, best first."""
    profile = next(iter(works), "")  # grading tries this one only
    if not works.get(profile):
        return NO_SANDBOX
    if profile == profiles.NAMESPACES:
        return f"Grading uses {profile}, the stronger one."
    return f"Grading uses {profile}; docs/grading.md says what it does not promise."


def _tried(profile: str) -> tuple[bool, str]:
    """Whether a sandbox that the kernel allows works: it is started and entered once, and why."""
    try:
        with Warm(profile, Limits(), number=99) as warm:
            warm.fork().end()
    except (CourseError, MachineFault, OSError) as problem:
        return False, f"the kernel allows it, but it does not start: {problem}"
    return True, "works."


def _asked_for() -> Iterator[str]:
    """What to ask for where namespaces are refused."""
    asked = False
    for name, (refusing, wanted) in _ASK.items():
        file = Path("/proc/sys", *name.split("."))
        if file.is_file() and file.read_text(encoding="ascii").strip() == refusing:
            asked = True
            yield f"Ask your administrator for: {wanted}. ({name} is {refusing}.)"
    if not asked and sys.platform == "linux":
        yield (
            "Ask your administrator whether a container refuses namespaces: Docker needs "
            "`--security-opt seccomp=` a profile that allows unshare and mount, Kubernetes "
            "`hostUsers: false`."
        )


def _course(root: Path) -> Iterator[str]:
    """What makes grades unsafe in silence; what is missing, the commands that need it say."""
    gradebook = root / "course" / "gradebook.db"
    kind = _file_system(gradebook.parent)
    if kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"):
        yield f"The gradebook lies on {kind}, where SQLite loses data: use PostgreSQL or move it."
    if gradebook.exists() and _is_open(gradebook.parent):
        yield (
            "Everybody on this machine can read what was handed in, feedback and grades: "
            f"chmod o-rwx {root}, with the exchange outside of it (COURSE_EXCHANGE)."
        )


def _is_open(folder: Path) -> bool:
    """Whether every user of this machine may enter a folder and all folders above it."""
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.absolute().parents))


def _file_system(folder: Path) -> str:
    """The kind of the file system under a folder, as Linux names it."""
    mounts = Path("/proc/mounts")
    lines = mounts.read_text(encoding="utf-8").splitlines() if mounts.exists() else []
    kinds = {place: kind for _, place, kind, *_ in map(str.split, lines)}
    above = map(str, (folder.absolute(), *folder.absolute().parents))
    return next((kinds[path] for path in above if path in kinds), "")
