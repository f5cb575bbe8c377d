"""The learner's side of the wire: runs cells, and calls answers with arguments of the checker.

It knows nothing of exercises: only the checker knows what is right and which numbers come next.
These are the requests. Each has one reply with the same `n`; `cells` has one for each cell:

    files    {files: [name, ...]} and a block each: the chapter's data, written beside the notebook
    cells    {sources, seconds: for each}
    call     {function, args, options, without, cuda, seconds}, function: a number, or a name in
             `functions`; cuda: whether there is such a device, if need be a simulated one; while it
             runs, functions that stayed with the checker are called back: {callback, args}
    probe    blocks: other numbers, which are written into the arguments of the last call; the reply
             has that call's result as it is then, for it may be a view of them; afterwards the
             arguments have their own numbers again
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import partial
from operator import getitem
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tensorkit as tk
from course.engine import assembly
from course.engine.measuring import MEASURES
from course.notebook.plain import source_of, str_of
from course.notebook.quiet import NotAllowed, run_quietly
from course.notebook.state import put_names_back, random_state, set_random_state
from course.sandbox.shell import Shell, place_of, without_addresses
from course.sandbox.values import Decoder, Encoder, address, update_copy
from course.sandbox.wire import Closed, Message, Wire
from course.shared.errors import TimeLimit

Reply = tuple[Message, list[Any]]

MOST_RECORDS, LONGEST_PATH = 10_000, 1000
SPARE = 16 << 20
"""Bytes that must be free after each request: the next one needs some."""


class Learner:
    """Answers the checker's requests until the checker closes the connection."""

    def __init__(self, wire: Wire, shell: Shell) -> None:
        self.wire, self.shell = wire, shell
        self.home = Path.cwd()
        self.functions = {known.__name__: known for known in _FUNCTIONS}
        self.functions["look"] = self._look
        self.objects: list[Any] = []
        self.memory: list[np.ndarray] = []
        self.result: Any = None
        self.random_state_before: list[Any] | None = None
        """The states of random generators when checks began; the next cell starts from them."""

    def serve(self) -> None:
        """Answer requests until the checker closes the connection."""
        with contextlib.suppress(Closed):
            while True:
                message, blocks = self.wire.receive()
                self._reply(message, *getattr(self, f"_do_{message['do']}")(message, blocks))

    def _reply(self, message: Message, reply: Message, blocks: list[Any]) -> None:
        np.empty(SPARE, np.uint8)  # a MemoryError ends this process now, not in the next cell
        self.wire.send({**reply, "n": message["n"]}, blocks)

    def _keep(self, value: Any) -> int:
        self.objects.append(value)
        return len(self.objects) - 1

    def _do_files(self, message: Message, blocks: list[np.ndarray]) -> Reply:
        for name, content in zip(message["files"], blocks, strict=True):
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.tobytes())
        return {}, []

    def _do_cells(self, message: Message, blocks: list[np.ndarray]) -> Reply:
        if self.random_state_before is not None:
            set_random_state(self.random_state_before)
            self.random_state_before = None
        *before, last = message["sources"]
        for source in before:
            self._reply(message, self._run_cell(source, message["seconds"]), [])
        return self._run_cell(last, message["seconds"]), []

    def _run_cell(self, source: str, seconds: float) -> Message:
        begun = time.thread_time()  # process_time moves in steps under RLIMIT_CPU
        ran = self.shell.run(source, seconds)
        put_names_back()
        self._leave_unusable_folder()
        return {**vars(ran), "cpu": time.thread_time() - begun}

    def _leave_unusable_folder(self) -> None:
        """Leave a working directory that is gone, or so deep that each check takes long to ask."""
        with contextlib.suppress(OSError):
            if len(os.getcwd()) < LONGEST_PATH:  # noqa: PTH109  # Path.cwd() does more
                return
        os.chdir(self.home)

    def _do_call(self, message: Message, blocks: list[np.ndarray]) -> Reply:
        self.random_state_before = self.random_state_before or random_state()
        simulates = message["cuda"] and not tk.cuda.is_available()
        with tk.cuda.simulate() if simulates else contextlib.nullcontext():
            return self._called(message, blocks)

    def _called(self, message: Message, blocks: list[np.ndarray]) -> Reply:
        self.memory, self.result = blocks, None
        before = [block.tobytes() for block in blocks]
        decoder = Decoder(blocks, self._checker_object, trusts=True)
        args = [decoder.decode(arg) for arg in message["args"]]
        options = {name: decoder.decode(option) for name, option in message["options"].items()}
        known = message["function"]
        function = self.functions[known] if type(known) is str else self.objects[known]
        objects = list(decoder.objects)
        places = [_place(value) for value in objects]
        encoder = Encoder(self._keep, objects)
        encoder.memory = blocks
        reply: Message = {"ended": "returned"}

        def run() -> None:
            try:
                with tk.cuda.record() as ledger:
                    self.result = function(*args, **options)
                reply["ledger"] = [
                    [record.kind, record.direction, record.bytes] for record in ledger
                ][:MOST_RECORDS]
                reply["value"] = encoder.encode(self.result)
                reply["state"] = [*map(partial(_state, encoder), objects, places)]
            except (KeyboardInterrupt, TimeLimit):
                raise
            except BaseException as error:
                reply["ended"] = "raised"
                reply["error"] = _described(error)
                reply["errno"] = getattr(error, "errno", None)
                reply["state"] = [*map(partial(_state, encoder), objects, places)]

        noted = run_quietly(run, message["seconds"], message["without"], compares_all=False)
        if noted.is_late:
            reply = {"ended": "timed out"}
        reply["warned"] = [without_addresses(text[:500]) for text in noted.warned]
        reply["printed"] = without_addresses(noted.printed)
        reply["left_changed"] = noted.left_changed[:20]
        needed = ((n, argument) for n, argument in enumerate(objects) if _requires_grad(argument))
        reply["inputs"] = [[n, self._keep(argument)] for n, argument in needed]
        for on_cpu, on_device in decoder.moved:  # a kernel may have written to the device
            with contextlib.suppress(RuntimeError):  # where several elements share memory
                update_copy(on_cpu, on_device)
        for block, content in zip(blocks, before, strict=True):
            if block.tobytes() != content:  # the call has changed it: so must the checker
                encoder.share(block)
        reply["same"] = _shared(encoder.owners, blocks)
        return reply, encoder.blocks

    def _look(self, name: str, library: list[str]) -> tuple[Any, str | None, list[str]]:
        """A value, its text if it is a function, and which of the library's names were replaced.

        They come in one reply, because each check asks for all of them.
        """
        names = self.shell.user_ns
        value = names[name]
        meant = {known: names[known] for known in library if known in names}
        changed = [n for n, v in meant.items() if not (callable(v) or type(v) is ModuleType)]
        return value, source_of(value), changed

    def _do_probe(self, message: Message, blocks: list[np.ndarray]) -> Reply:
        before = [block.copy() for block in self.memory]
        for block, content in zip(self.memory, blocks, strict=True):
            block[:] = content
        encoder = Encoder(self._keep)
        encoder.memory = self.memory
        reply, shown = {"value": encoder.encode(self.result)}, [*map(bytes, encoder.blocks)]
        for block, content in zip(self.memory, before, strict=True):
            block[:] = content
        return reply, shown

    def _checker_object(self, coded: Message) -> Any:
        """The learner's own object of a handle, or a function that calls the checker back."""
        if coded["k"] == "handle" and coded.get("yours"):
            return self.objects[coded["h"]]
        number = coded["h"]

        def call_back(*args: Any) -> Any:
            encoder = Encoder(self._keep)
            values = [encoder.encode(arg) for arg in args]
            self.wire.send({"callback": number, "args": values}, encoder.blocks)
            reply, blocks = self.wire.receive()
            if "error" in reply:
                raise ValueError(reply["error"])
            return Decoder(blocks, self._checker_object, trusts=True).decode(reply["value"])

        return call_back


def _requires_grad(value: Any) -> bool:
    return type(value) is tk.Tensor and value.requires_grad


def _place(value: Any) -> Any:
    """The address and the shape of a tensor, which `x.data = y` changes."""
    return (value.data_ptr(), value.shape) if type(value) is tk.Tensor else None


def _state(encoder: Encoder, value: Any, place: Any) -> Any:
    """What the call changed of an argument, apart from its numbers: their memory is sent anyway.

    place: its `_place` before the call. If that has changed, the numbers are sent, too.
    """
    if type(value) in (list, dict):
        return encoder.contents(type(value), value)
    if type(value) is tk.Tensor and value.is_leaf:
        state = {"requires_grad": value.requires_grad, "grad": encoder.encode(value.grad)}
        is_moved = _place(value) != place
        return state | {"data": encoder.encode(value.detach())} if is_moved else state
    return None


_FUNCTIONS = (
    getattr,
    getitem,
    iter,
    next,
    len,
    tk.autograd.grad,
    assembly.tried,
    *MEASURES,
)
"""What the checker calls beside the learner's own functions."""


def _described(error: BaseException) -> Message:
    kind = type(error)
    module, name = kind.__module__, kind.__name__
    if kind is NotAllowed:
        module = "course"
    named = {"type": str(name)[:200], "module": str(module)[:200]}
    return {**named, "text": without_addresses(str_of(error)[:5000]), "where": place_of(error)}


def _shared(owners: list[np.ndarray], blocks: list[np.ndarray]) -> list[list[int]]:
    """Pairs of positions: memory that is sent, and the received memory that is the same."""
    known = {(address(block), block.nbytes): n for n, block in enumerate(blocks) if block.size}
    places = [(address(owner), owner.nbytes) for owner in owners]
    return [[n, known[place]] for n, place in enumerate(places) if place in known]
