"""Writing files so that nothing is ever lost: whole or not at all, and never over an older text."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Write a file in one step: whoever reads it sees the old content or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read(path: Path) -> bytes:
    """The content of a file; OSError for what is none, such as a pipe, at which others wait."""

    def open_at_once(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has none

    with open(path, "rb", opener=open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "It is no file", str(path))
        return file.read()


def keep(content: str | bytes, folder: Path, name: str) -> Path:
    """Put an older text into `folder` under the next free number; the path that it got.

    name: a file name such as "strides-of.py", which becomes "strides-of.1.py".
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = folder / f"{Path(name).stem}.{number}{Path(name).suffix}"
        try:
            # "x": made here or not at all, even if two commands keep a text at once
            with path.open("xb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
            return path
        except FileExistsError:
            number += 1
