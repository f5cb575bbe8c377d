"""A learner's answer as the checker holds it: calls go over the wire, plain data comes back.

An `Answer` is called like the function that it stands for. Its arguments cross as copies; what the
other side writes into them is written here too, and a result that shares their memory is rebuilt on
that memory. Other objects stay on the learner's side: a `Handle` has their methods and
attributes, can be iterated, entered and indexed, and has no truth value, no order, no arithmetic.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tensorkit as tk
from course.grading.session import Died, MachineFault, Session
from course.notebook import compare
from course.notebook.exercise import Case, Exercise
from course.notebook.limited import limited
from course.notebook.plain import Opaque, plain
from course.notebook.quiet import NotAllowed
from course.notebook.runner import Budget, Outcome, changed
from course.sandbox.values import Decoder, Encoder, bytes_of, update_copy
from course.sandbox.wire import Message, WireError
from course.shared.errors import TimeLimit
from tensorkit import errors as tk_errors
from tensorkit.cuda import note, unrecorded

MOST_RECEIVED, MOST_RECORDS = 128 << 20, 10_000
LONGEST_LOOK = 3.0
"""Seconds that looking at what came back may take on this side."""
LONGEST_SOURCE = 100_000
"""Characters of a function's text."""


class Ended(Exception):
    """Stands in a report where the learner's process was gone."""


class TimeLimitThere(TimeLimit):
    """An answer's time was up, and the other side stopped it."""


@dataclass(frozen=True)
class Looked:
    """What a name of the notebook means."""

    exists: bool = False
    value: Any = None
    source: str | None = None
    """The text of a function."""
    overwritten: Sequence[str] = ()
    """The names of the library, of those asked for, that no longer mean a function or a module."""


@dataclass
class Caller:
    """Makes the calls of one check on one session."""

    session: Session
    without: tuple[str, ...] = ()
    probes: bool = False
    """Whether claims about shared memory are tried out, for exercises about shared memory."""
    budget: Budget = field(default_factory=lambda: Budget(5.0))
    outcome: Outcome = field(default_factory=Outcome)
    """Notes what the calls of a case printed, warned of and left changed."""
    received: int = 0
    """Bytes of memory that came with replies, and of the arrays that look at it."""
    _functions: list[Any] = field(default_factory=list)

    def look(self, name: str, library: Iterable[str] = ()) -> Looked:
        """What a name of the notebook means, and which of these names of the library changed."""
        try:
            reply = self.call("look", name, list(library))
        except BaseException as error:
            if isinstance(error, TimeLimitThere) or is_from_there(error):
                return Looked()
            raise
        if type(reply) is not tuple or len(reply) != 3:
            raise WireError("What a name means is damaged.")
        value, source, overwritten = reply
        text = source[:LONGEST_SOURCE] if type(source) is str else None
        return Looked(True, value, text, _texts(overwritten))

    def call(self, function: int | str, /, *args: Any, **options: Any) -> Any:
        """What a function there returns; what it wrote into its arguments is written here, too.

        function: the number of a learner's, or the name of one in `Learner.functions`.
        """
        if not self.budget.left:  # many short calls, of an iterator without end
            raise TimeLimitThere
        with unrecorded():  # what crosses the wire is not what the answer asked of a device
            value, records = self._called(function, args, options)
        for kind, direction, size in records:
            note(kind, "the answer", 0.0, 0.0, direction, size)
        return value

    def _called(
        self, function: int | str, args: Iterable[Any], options: Message
    ) -> tuple[Any, list[Any]]:
        encoder = Encoder(self._keep, is_checker=True)
        message = {
            "do": "call",
            "function": function,
            "args": [encoder.encode(arg) for arg in args],
            "options": {name: encoder.encode(option) for name, option in options.items()},
            "without": self.without,
            "cuda": tk.cuda.is_available(),
            "seconds": max(self.budget.left, 0.001),
        }
        reply, blocks = self.session.ask(
            message, encoder.blocks, seconds=self.budget.left, called_back=self._call_back
        )
        self.received += sum(block.nbytes for block in blocks)
        if self.received > MOST_RECEIVED:
            raise WireError("This is more data than a check looks at.")
        outcome = self.outcome
        outcome.printed = (outcome.printed + _sound_text(reply, "printed"))[:2000]
        outcome.left_changed += _texts(reply.get("left_changed"))
        if reply.get("ended") == "timed out":
            raise TimeLimitThere
        try:
            value, error = self._returned(reply, blocks, encoder)
            records = [
                (str(kind), direction and str(direction), int(size))
                for kind, direction, size in reply.get("ledger", [])[:MOST_RECORDS]
            ]
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            raise WireError("A reply is damaged.") from problem
        if error is not None:
            raise error
        if self.probes and encoder.owners:
            self._try_out(encoder.owners, value)
        return value, records

    def _returned(
        self, reply: Message, blocks: list[np.ndarray], encoder: Encoder
    ) -> tuple[Any, BaseException | None]:
        """What the answer returned, or the exception that it raised."""
        self.outcome.warned += _texts(reply["warned"])
        shared = _shared(reply["same"], blocks, encoder.owners)
        for received, sent in shared.items():
            memory = bytes_of(encoder.owners[sent])
            if memory.flags.writeable:
                memory[:] = blocks[received]
                blocks[received] = memory
        for on_cpu, on_device in encoder.moved:
            update_copy(on_device, on_cpu)
        objects = encoder.objects
        inputs = [(objects[n], handle) for n, handle in reply["inputs"]]
        decoder = Decoder(blocks, lambda coded: self._remote_object(coded, inputs), objects)
        # in the order in which they were encoded, as their numbers are
        value = decoder.decode(reply["value"]) if reply["ended"] == "returned" else None
        for argument, state in zip(objects, reply["state"], strict=True):
            _apply_changes(argument, state, decoder)
        self.received += decoder.shown  # the value is kept until all cases are compared
        return value, _rebuilt(reply["error"]) if reply["ended"] == "raised" else None

    def _try_out(self, owners: list[np.ndarray], value: Any) -> None:
        """Write other numbers through the arguments on both sides; both results must show them."""
        memories = [bytes_of(owner) for owner in owners]
        before = [memory.copy() for memory in memories]
        bits = [np.frombuffer(os.urandom(len(memory)), np.uint8) & 1 for memory in memories]
        sent = [content.tobytes() for content in bits]
        reply, blocks = self.session.ask({"do": "probe"}, sent, seconds=1.0)
        once_more = Decoder(blocks, self._remote_object).decode(reply.get("value"))
        for memory, content in zip(memories, bits, strict=True):
            memory[:] = content
        shown = _numbers(value)
        for memory, content in zip(memories, before, strict=True):
            memory[:] = content
        if _numbers(once_more) != shown:
            raise WireError("Memory is shared otherwise than was said.")

    def _keep(self, function: Any) -> int:
        self._functions.append(function)
        return len(self._functions) - 1

    def _call_back(self, message: Message, blocks: list[np.ndarray]) -> tuple[Message, list[Any]]:
        """A function that was an argument is called by the answer."""
        encoder = Encoder(self._keep, is_checker=True)
        try:
            function = self._functions[message["callback"]]
            args = [Decoder(blocks, self._remote_object).decode(arg) for arg in message["args"]]
            value = encoder.encode(function(*args))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:500]}, []
        return {"value": value}, encoder.blocks

    def _remote_object(self, coded: Message, inputs: Sequence[tuple[Any, int]] = ()) -> Any:
        if coded["k"] == "history":
            return self._with_history(coded["tensor"], coded["h"], inputs)
        kind, text = _sound_text(coded, "kind"), _sound_text(coded, "text")
        if coded["k"] == "opaque":
            return Opaque(kind, text)
        made = Answer if coded.get("callable") is True else Handle
        number = coded["h"]
        if type(number) is not int:
            raise WireError("A handle is damaged.")
        return made(kind, text, self, number)

    def _with_history(
        self, result: tk.Tensor, number: int, inputs: Sequence[tuple[Any, int]]
    ) -> tk.Tensor:
        """A result whose gradient, should it be asked for, is asked of the other side."""
        if not inputs:
            return result
        held = result.detach()
        handles = tuple(Handle("a tensor", "", self, handle) for _, handle in inputs)

        class Answered(tk.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *tensors: tk.Tensor) -> tk.Tensor:
                return held.clone()

            @staticmethod
            def backward(ctx: Any, *upstream: tk.Tensor) -> Any:
                result = Handle("a tensor", "", self, number)
                options = {"retain_graph": True, "allow_unused": True}
                return self.call("grad", result, handles, grad_outputs=upstream[0], **options)

        answered: tk.Tensor = Answered.apply(*(tensor for tensor, _ in inputs))
        return answered


@dataclass(frozen=True, eq=False, repr=False)
class Handle(Opaque):
    """An object that stayed on the learner's side."""

    caller: Caller
    number: int

    def number_there(self) -> int:
        """The number by which the learner's side knows this object."""
        return self.number

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.caller.call("getattr", self, name)

    def __iter__(self) -> Iterator[Any]:
        iterator = self.caller.call("iter", self)
        while True:
            try:
                yield next(iterator)
            except StopIteration:
                return

    def __next__(self) -> Any:
        return self.caller.call("next", self)

    def __getitem__(self, key: Any) -> Any:
        return self.caller.call("getitem", self, key)

    def __len__(self) -> int:
        length = self.caller.call("len", self)
        return length if type(length) is int else 0

    def __enter__(self) -> Any:
        return self.caller.call("getattr", self, "__enter__")()

    def __exit__(self, *_: object) -> None:
        self.caller.call("getattr", self, "__exit__")(None, None, None)

    def _refuses(self, *_: object) -> Any:
        raise TypeError(
            f"{self.kind[:1].upper()}{self.kind[1:]} of the learner's has no value here: "
            f"check what its methods and attributes return."
        )

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuses
    __add__ = __sub__ = __mul__ = __truediv__ = __int__ = __float__ = _refuses
    __hash__ = object.__hash__


class Answer(Handle):
    """A function or a class of the learner's: a handle that can be called."""

    @property
    def is_class(self) -> bool:
        return self.kind == "a type"

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.caller.call(self.number, *args, **options)

    def call_there(self, name: str, *args: Any) -> Any:
        """What a function of the course, one of `learner._FUNCTIONS`, gives for the answer."""
        return self.caller.call(name, self, *args)


def run_case(
    caller: Caller, exercise: Exercise, answer: Any, given: Case, untouched: Case, budget: Budget
) -> Outcome:
    """The outcome of a case, as `runner.run_case` has it, with the answer on the other side.

    Where the learner's process ends in it, `Session.death` says why, and no other case is run.
    """
    if caller.session.death or not budget.left:
        return Outcome("not run")
    # what another cell had replaced was put back, and said, at the look for the answer
    outcome = Outcome(left_changed=[*caller.outcome.left_changed])
    caller.budget, caller.outcome = budget, outcome
    arguments: list[Any] = []

    def run() -> None:
        outcome.value = plain(exercise.run(answer, *given.args))
        arguments[:] = [plain(arg) for arg in given.args]

    try:
        limited(run, budget.left + LONGEST_LOOK)
    except TimeLimitThere:
        outcome.ended = "timed out"
    except (Died, WireError, TimeLimit) as problem:  # perhaps within a message
        reason = str(problem) or "What it returned could not be looked at in time."
        caller.session.end_because(reason)
        return Outcome("raised", error=Ended(), message=(reason, ""))
    except BaseException as error:
        if is_ours(error):
            raise
        outcome.ended, outcome.error = "raised", error
        # any other error was raised in the definition, by what the answer gave back
        outcome.message, outcome.place = words_of(error)
    if outcome.ended == "returned" and not exercise.changes_arguments:
        outcome.changed = changed(arguments, untouched)
    return outcome


def _sound_text(message: Message, name: str) -> str:
    text = message.get(name, "")
    if type(text) is not str:
        raise WireError("A text is damaged.")
    return text[:2000]


def _texts(values: Any) -> list[str]:
    """The first texts of what should be a list of them."""
    texts = values[:20] if type(values) is list else []
    return [text[:500] for text in texts if type(text) is str]


def _shared(pairs: Any, blocks: list[np.ndarray], owners: list[np.ndarray]) -> dict[int, int]:
    """Which received blocks are which sent ones, by position, as far as the sizes allow it."""
    places = {int(received): int(sent) for received, sent in pairs}
    for received, sent in places.items():
        if received < 0 or sent < 0 or blocks[received].nbytes != owners[sent].nbytes:
            raise WireError("Memory is damaged.")
    return places


def _apply_changes(argument: Any, state: Any, decoder: Decoder) -> None:
    """Do to an argument what the answer did to it; arrays share their memory already."""
    if state is None:
        return
    if type(argument) in (list, dict):
        decoder.fill(argument, state)
    elif type(argument) is tk.Tensor and argument.is_leaf:
        if "data" in state:
            argument.data = decoder.decode(state["data"])
        if argument.requires_grad is not state["requires_grad"]:
            argument.requires_grad_(state["requires_grad"] is True)
        grad = decoder.decode(state["grad"])
        if grad is not argument.grad:
            argument.grad = grad


def _numbers(value: Any) -> Any:
    """The bytes of all arrays in a value."""
    if isinstance(value, tk.Tensor):
        return value.detach().cpu().numpy().tobytes()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, list | tuple):
        return [_numbers(item) for item in value]
    if isinstance(value, dict):
        return [_numbers(item) for item in value.values()]
    return None


def _rebuilt(coded: Message) -> BaseException:
    """The exception that was raised, of its class if both sides know it, else of a new one."""
    name, module = _sound_text(coded, "type"), _sound_text(coded, "module")
    text = _sound_text(coded, "text").strip()
    modules = {"builtins": builtins, "tensorkit.errors": tk_errors}
    kind: Any = vars(modules[module]).get(name) if module in modules else None
    if module == "course":
        kind = NotAllowed
    is_known = isinstance(kind, type) and issubclass(kind, BaseException)
    # the first is for this program; the exceptions of the other stayed on the other side
    if not is_known or issubclass(kind, KeyboardInterrupt | BaseExceptionGroup):
        kind = type(name if name.isidentifier() else "Exception", (Exception,), {})
    error: BaseException = kind.__new__(kind, text)
    error.__dict__["_words"] = compare.first_and_rest(text), _sound_text(coded, "where")
    return error


def is_from_there(error: BaseException) -> bool:
    """Whether the learner's process raised this, even where it named no line of the answer."""
    return hasattr(error, "_words")


def is_ours(error: BaseException) -> bool:
    """Whether this process, or what it starts, and not an answer is why this was raised."""
    kinds = (Died, WireError, MachineFault, KeyboardInterrupt, OSError, MemoryError)
    return isinstance(error, kinds) and not is_from_there(error)


def words_of(error: BaseException) -> tuple[tuple[str, str], str]:
    """The message of an exception and the line that raised it, as the other side described them."""
    words: tuple[tuple[str, str], str] = getattr(error, "_words", (compare.text_of(error), ""))
    return words
