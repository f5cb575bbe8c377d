"""The system calls of Linux that Python has no name for, by ctypes. Each raises OSError."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Any

MACHINE = platform.machine()
KNOWN = MACHINE in ("x86_64", "aarch64")
"""Whether the numbers below, and those in `seccomp`, are those of this machine."""

_NUMBERS = {
    # name: (x86_64, aarch64)
    "capset": (126, 91),
    "pivot_root": (155, 41),
    "seccomp": (317, 277),
    "mount_setattr": (442, 442),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}

DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
"""The devices that exist in a sandbox; only the first can be written."""
NEW_NS, NEW_USER = 0x00020000, 0x10000000
NEW_OTHERS = 0x6E000000
"""Namespaces: of mounts; of users; of processes, the network, IPC, the host's name and cgroups."""

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def call(name: str, *arguments: Any) -> int:
    """A system call by its number."""
    number = _NUMBERS[name][MACHINE == "aarch64"]
    return _checked(name, int(_libc.syscall(ctypes.c_long(number), *arguments)))


def unshare(flags: int) -> None:
    """Leave the namespaces that `flags` names for new ones."""
    _checked("unshare", _libc.unshare(flags))


_READ_ONLY, _NOSUID = 1, 2
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000


def bind(source: str, target: str) -> None:
    """Show `source`, with all that is mounted in it, at `target`."""
    _mount(source, target, None, _BIND | _REC, None)


def tmpfs(target: str, options: str) -> None:
    """Mount an empty file system in memory."""
    _mount("tmpfs", target, "tmpfs", _NOSUID, options)


def keep_mounts_private() -> None:
    """Let what is mounted from now on be seen in this namespace only."""
    _mount("none", "/", None, _REC | _PRIVATE, None)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    done = _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])
    _checked(f"mount {target}", done)


def make_read_only(path: str) -> None:
    """Make all that is mounted at `path` and below read-only."""
    recursive, attributes = 0x8000, struct.pack("4Q", _READ_ONLY | _NOSUID, 0, 0, 0)
    call("mount_setattr", -1, path.encode(), recursive, attributes, len(attributes))


def pivot(root: str) -> None:
    """Make `root` the root, and forget what was there before."""
    os.chdir(root)
    call("pivot_root", b".", b".")
    detach = 2
    _checked("umount", _libc.umount2(b".", detach))
    os.chdir("/")


PDEATHSIG, DUMPABLE, KEEPCAPS, NO_NEW_PRIVS = 1, 4, 8, 38


def prctl(option: int, *arguments: int) -> int:
    """See prctl(2)."""
    values = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked("prctl", _libc.prctl(option, *values))


def become(uid: int) -> None:
    """Become the user of this number, in the group of the same number and no other."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def set_capabilities(mask: int) -> None:
    """Keep these capabilities, effective and permitted, and no others."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    call("capset", header, (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0))


def drop_capabilities(keep: int = 0) -> None:
    """Give up all capabilities but `keep`, for good."""
    prctl(NO_NEW_PRIVS, 1)  # no program that it starts has any again
    set_capabilities(keep)
