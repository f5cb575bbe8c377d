"""Limits a learner's process to some files by the kernel's Landlock, where it has no namespaces."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from course.sandbox import linux

_READ_FILE, _READ_DIRECTORY = 1 << 2, 1 << 3
_FILE_RIGHTS = (1 << 0) | (1 << 1) | _READ_FILE | (1 << 14) | (1 << 15)
"""The rights that exist for a file; the others are for folders only."""


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
    handled = (files, *[3] * (has >= 4), *[3] * (has >= 6))  # of files, the network, signals
    wanted = struct.pack(f"{len(handled)}Q", *handled)
    rules = linux.call("landlock_create_ruleset", wanted, ctypes.c_size_t(len(wanted)), 0)
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
        if not os.path.isdir(path):  # noqa: PTH112  # pathlib would be one more module
            rights &= _FILE_RIGHTS
        path_beneath = 1
        linux.call("landlock_add_rule", rules, path_beneath, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)
