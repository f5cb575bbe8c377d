"""What crosses between a learner's process and the checker: JSON and raw numbers, never pickle.

A *message* is a JSON object with *blocks* of memory beside it; its size is bounded in every
respect. Anything else that arrives raises a `WireError`, and has no other effect.

What a message says of values is in `values`.
"""

from __future__ import annotations

import json
import math
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

MOST_JSON = 8 << 20
MOST_BYTES = 64 << 20
MOST_BLOCKS = 4096
MOST_PARTS = 300_000
"""Lists and objects in one message: each takes a hundred times its two characters."""
_HEAD = struct.Struct("<4sII")
_MARK = b"tkw1"


class WireError(Exception):
    """What arrived is no message."""


class Closed(Exception):
    """The other side is gone."""


Message = dict[str, Any]


class Wire:
    """One end of a connection, used by read and write: the filter refuses what `socket` calls."""

    def __init__(self, descriptor: int, watch: Callable[[], object] | None = None) -> None:
        self.descriptor = descriptor
        self.watch = watch
        """Called every tenth of a second while this side waits for the other; may raise."""
        self._next_watch = 0.0
        self.waited = 0.0
        """Seconds in which this side waited for the other."""
        self._arrived = bytearray()
        os.set_blocking(descriptor, False)

    def send(self, message: Message, blocks: list[Any], *, until: float = math.inf) -> None:
        """Send one message; Closed if the other side is gone, TimeoutError if `until` passes."""
        text = json.dumps(message).encode()
        sizes = [len(block) for block in blocks]
        if len(text) > MOST_JSON or sum(sizes) > MOST_BYTES or len(blocks) > MOST_BLOCKS:
            raise WireError("This is too large to be sent.")
        head = _HEAD.pack(_MARK, len(text), len(blocks)) + struct.pack(f"<{len(sizes)}I", *sizes)
        # a small message in one piece, so that the other side wakes up once
        parts = (
            [b"".join([head, text, *blocks])] if sum(sizes) < 1 << 16 else [head + text, *blocks]
        )
        for part in parts:
            unsent = memoryview(part)
            while unsent:
                try:
                    unsent = unsent[os.write(self.descriptor, unsent) :]
                except BlockingIOError:
                    self._wait(select.POLLOUT, until)
                except OSError as problem:
                    raise Closed from problem

    def receive(self, *, until: float = math.inf) -> tuple[Message, list[np.ndarray]]:
        """The next message; WireError, Closed or TimeoutError if there is none."""
        mark, length, count = _HEAD.unpack(self._read(_HEAD.size, until))
        if mark != _MARK or length > MOST_JSON or count > MOST_BLOCKS:
            raise WireError("The head of a message is damaged.")
        sizes = struct.unpack(f"<{count}I", self._read(4 * count, until))
        if sum(sizes) > MOST_BYTES:
            raise WireError("A message is too large.")
        text = self._read(length, until)
        blocks = [np.frombuffer(self._read(size, until), np.uint8) for size in sizes]
        try:
            if text.count(b"{") + text.count(b"[") > MOST_PARTS:
                raise WireError("A message holds more lists and objects than any does.")
            message = json.loads(text.decode())
            if b"\\ud" in text.lower():  # perhaps half of a surrogate pair, which no file can hold
                whole = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
                message = json.loads(whole)
        except (ValueError, RecursionError) as problem:
            raise WireError("A message is not JSON.") from problem
        if type(message) is not dict:
            raise WireError("A message is not an object.")
        return message, blocks

    def _read(self, size: int, until: float) -> bytearray:
        while len(self._arrived) < size:
            self._wait(select.POLLIN, until)  # raises also where bytes arrive without end
            try:
                piece = os.read(self.descriptor, 1 << 18)
            except OSError as problem:
                raise Closed from problem
            if not piece:
                raise Closed
            self._arrived += piece
        # not self._arrived[:size]: after a MemoryError there CPython keeps all of it for ever
        taken = bytearray(memoryview(self._arrived)[:size])
        del self._arrived[:size]
        return taken

    def _wait(self, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(self.descriptor, event)
        while (left := min(until - time.monotonic(), 0.1)) > 0:
            begun = time.monotonic()
            is_ready = poll.poll(max(1, int(left * 1000)))
            # a longer wait means that this process was stopped meanwhile: that time does not count
            self.waited += min(time.monotonic() - begun, left + 0.1)
            # also while bytes arrive without end
            if self.watch is not None and begun >= self._next_watch:
                self.watch()
                self._next_watch = time.monotonic() + 0.1
            if is_ready:
                return
        raise TimeoutError
