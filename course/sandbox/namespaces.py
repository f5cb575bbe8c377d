"""The sandbox made of namespaces: a root of its own, no network, no other processes.

`make_root` makes the root of the warm process, in which only the wanted files exist; `fork_inside`
forks one submission's process from there, in new namespaces with a folder of its own in that root.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

from course.sandbox import linux

EVERY = linux.NEW_NS | linux.NEW_USER | linux.NEW_OTHERS
HOME = "/learner"
"""The only folder that can be written inside; /tmp may hold the environment."""
UID_INSIDE = 1000
"""The user and group as a learner's process sees them."""


def make_root(readable: Iterable[str], folder: str, uid: int) -> None:
    """Give this process a root with `readable` alone, at their own paths, and drop its rights.

    folder: an empty one. uid: the user to become, where the grader is root.
    Raises OSError where the kernel refuses.
    """
    current = os.getuid()
    if current == 0:
        linux.unshare(linux.NEW_NS)
    else:
        _unshare(linux.NEW_USER | linux.NEW_NS, current, os.getgid())
    linux.keep_mounts_private()
    os.umask(0o022)  # root owns these folders, and another user must be able to enter them
    linux.tmpfs(folder, "mode=755,size=1m")
    for path in _outermost([*readable, *linux.DEVICES]):
        _show(path, folder + path)
    for path in (HOME, "/proc"):
        Path(folder + path).mkdir()
    if not Path(folder, "tmp").exists():
        Path(folder, "tmp").symlink_to(HOME)
    linux.make_read_only(folder)
    linux.tmpfs(folder + HOME, "mode=777,size=64m")
    linux.bind("/proc", folder + "/proc")  # for its children's uid_map; their own root has no /proc
    linux.pivot(folder)
    if current == 0:
        linux.become(uid)
        linux.prctl(linux.DUMPABLE, 1)  # otherwise /proc/self/uid_map belongs to root
    else:
        linux.drop_capabilities()


def try_out() -> None:
    """Ask of the kernel what `fork_inside` needs, in a process that ends afterwards.

    Raises OSError where the kernel refuses: some allow new namespaces, but no mount in them.
    """
    linux.prctl(linux.DUMPABLE, 1)
    _unshare(EVERY, UID_INSIDE, UID_INSIDE)
    linux.keep_mounts_private()
    linux.tmpfs("/", "size=1m")


def fork_inside(size: int) -> int | None:
    """Fork into new namespaces: None in the child, in its parent the child's pid.

    size: bytes that the child may write, in HOME.
    """
    _unshare(EVERY, UID_INSIDE, UID_INSIDE)
    child = os.fork()
    if child:
        return child
    linux.prctl(linux.PDEATHSIG, signal.SIGKILL)
    socket.sethostname("grading")
    linux.keep_mounts_private()
    linux.tmpfs("/proc", "mode=000,size=4k")  # hides the machine's own
    linux.tmpfs(HOME, f"mode=700,size={size},nr_inodes=4096")
    linux.drop_capabilities()
    return None


def _unshare(flags: int, inside_uid: int, inside_group: int) -> None:
    """Leave namespaces for new ones, and map this process's user and group into them."""
    uid, group = os.getuid(), os.getgid()
    linux.unshare(flags)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside_uid} {uid} 1"),
        ("gid_map", f"{inside_group} {group} 1"),
    ):
        # os.open: a file object writes to so many shared pages that it takes ten times as long
        opened = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(opened, text.encode())
        os.close(opened)


def _outermost(paths: Iterable[str]) -> Sequence[str]:
    """The paths that do not lie inside another of these paths."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not kept or not (path + "/").startswith(kept[-1] + "/"):
            kept.append(path)
    return kept


def _show(path: str, target: str) -> None:
    """The file or folder `path` at `target`; a link, such as /lib, as a link."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    if Path(path).is_symlink():
        Path(target).symlink_to(Path(path).readlink())
        return
    Path(target).mkdir() if Path(path).is_dir() else Path(target).touch()
    linux.bind(path, target)
