"""Which files a learner's process may open where namespaces are refused: the kernel's Landlock."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import ClassVar

from course.sandbox import linux

_READ_FILE, _READ_DIRECTORY = 1 << 2, 1 << 3
_FILE_RIGHTS = (1 << 0) | (1 << 1) | _READ_FILE | (1 << 14) | (1 << 15)  # what a file itself has


class _Ruleset(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("files", "net", "scoped"))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_: ClassVar = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """The version of Landlock that this kernel has; 0 for none."""
    try:
        return linux.call("landlock_create_ruleset", None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """From now on this process opens these files and folders, and no others.

    No connection by TCP, no signal and no abstract socket reaches out either, as far as the kernel
    knows how to refuse them (versions 4 and 6).

    Raises OSError where the kernel has no Landlock.
    """
    has = version()
    files = (1 << 13) - 1
    for since, bit in ((2, 13), (3, 14), (5, 15)):
        files |= (has >= since) << bit
    wanted = _Ruleset(files, 3 if has >= 4 else 0, 3 if has >= 6 else 0)
    size = 8 if has < 4 else 16 if has < 6 else 24
    rules = linux.call("landlock_create_ruleset", ctypes.byref(wanted), ctypes.c_size_t(size), 0)
    read = _READ_FILE | _READ_DIRECTORY
    try:
        for paths, rights in ((readable, read), (writable, files & ~(1 << 0))):
            for path in paths:
                _allow(rules, path, rights)
        linux.prctl(linux.NO_NEW_PRIVS, 1)
        linux.call("landlock_restrict_self", rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):  # noqa: PTH112  # without a second module in the sandbox
            rights &= _FILE_RIGHTS
        beneath, path_beneath = _Beneath(rights, opened), 1
        linux.call("landlock_add_rule", rules, path_beneath, ctypes.byref(beneath), 0)
    finally:
        os.close(opened)
