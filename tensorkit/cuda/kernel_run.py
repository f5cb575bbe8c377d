"""A kernel on the simulated device: every thread of it is run, in one Python thread.

Block by block, each thread runs up to the next barrier, in an order drawn from a seed. An index out
of bounds raises at once, and so do threads that do not reach a barrier when the others of their
block have; what else a GPU would not notice is found in the log (``kernel_log``).
"""

import random
import traceback
from sys import _getframe
from typing import Any, NoReturn

import numpy as np

from tensorkit.cuda import kernel_source as words
from tensorkit.cuda.kernel_log import ATOMIC, LOAD, STORE, Log, Pair, in_words
from tensorkit.errors import KernelError


class _Outside(Exception):
    """An index outside of its array."""


class Memory:
    """An array as the threads see it: each access has its bounds checked and is noted."""

    def __init__(self, name: str, host: Any, log: Log, is_shared: bool) -> None:
        self.name, self.host, self.log, self.note = name, host, log, log.records.append
        self.shape, self.is_flat = host.shape, host.ndim == 1
        self.load, self.store, self.add = (log.code(name, it) for it in (LOAD, STORE, ATOMIC))
        self.unwritten = bytearray(host.size) if is_shared else None

    def begin(self) -> None:
        """Shared memory as a block finds it: what is in it has no meaning."""
        assert self.unwritten is not None
        self.unwritten[:] = b"\1" * len(self.unwritten)
        self.host.fill(np.nan if self.host.dtype.kind == "f" else 111)

    def inside(self, index: Any) -> int:
        """The number of the element at an index."""
        if self.is_flat:
            if 0 <= index < self.shape[0]:
                return index
        else:
            row, column = index
            if 0 <= row < self.shape[0] and 0 <= column < self.shape[1]:
                return row * self.shape[1] + column
        raise _Outside(self, index)

    def _read(self, at: int) -> None:
        if self.unwritten is not None and self.unwritten[at]:
            self.log.early.append(len(self.log.records))

    def __getitem__(self, index: Any) -> Any:
        at = self.inside(index)
        if self.unwritten is not None:
            self._read(at)
        self.note(self.load + (_getframe(1).f_lasti << 42) + at)
        return self.host[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self.inside(index)
        if self.unwritten is not None:
            self.unwritten[at] = 0
        self.note(self.store + (_getframe(1).f_lasti << 42) + at)
        self.host[index] = value

    def atomic_add(self, index: Any, value: Any) -> Any:
        """Add to an element as one step; gives what was there before."""
        at = self.inside(index)
        self._read(at)
        self.note(self.add + (_getframe(3).f_lasti << 42) + at)
        before = self.host[index]
        self.host[index] = before + self.host.dtype.type(value)
        return before


class Run:
    """One launch. ``arrays``: NumPy's arrays of the tensors; ``starts``: their addresses."""

    def __init__(
        self, source: Any, blocks: Pair, threads: Pair, arrays: dict[str, Any], starts: Any
    ) -> None:
        self.source, self.sizes = source, (blocks, threads)
        made = {name: np.empty(shape, dtype) for name, (shape, dtype, _) in source.shared.items()}
        self.log = Log(source, blocks, threads, arrays, made, starts)
        self.arrays = {name: Memory(name, it, self.log, False) for name, it in arrays.items()}
        shared = {name: Memory(name, it, self.log, True) for name, it in made.items()}
        self.shared = {source.shared[name][2]: it for name, it in shared.items()}
        self.order: Any = None

    def run(self, arguments: dict[str, Any], seed: int) -> Log:
        """Run all blocks, and give what they did."""
        self.order = random.Random(seed)
        (columns, rows), (wide, high) = self.sizes
        blocks = [(x, y) for y in range(rows) for x in range(columns)]
        self.order.shuffle(blocks)
        self.threads = [(x, y) for y in range(high) for x in range(wide)]
        _place(words.gridDim, self.sizes[0])
        _place(words.blockDim, self.sizes[1])
        words.grid.now = _index
        words.shared.now = lambda *_: self.shared[_getframe(2).f_lineno]
        words.atomic_add.now = lambda memory, *args: memory.atomic_add(*args)
        try:
            for block in blocks:
                _place(words.blockIdx, block)
                for each in self.shared.values():
                    each.begin()
                self._block(block, {**arguments, **self.arrays})
        finally:
            for word in words.POSITIONS:
                vars(word).pop("x", None), vars(word).pop("y", None)
            for word in (words.grid, words.shared, words.atomic_add):
                word.now = word._misplaced
        self.log.finish()
        return self.log

    def _block(self, block: Pair, arguments: dict[str, Any]) -> None:
        """Run the threads of a block, phase by phase."""
        n_block, waiting = block[1] * self.sizes[0][0] + block[0], [*enumerate(self.threads)]
        call, running = self.source.thread, {}
        if self.source.has_barriers:  # then the calls give generators
            running = {n: call(**arguments) for n, _ in waiting}
        while waiting:
            self.order.shuffle(waiting)
            reached: dict[Any, Pair] = {}
            for number, thread in waiting:
                words.threadIdx.x, words.threadIdx.y = thread
                try:
                    line = next(running[number], None) if running else call(**arguments)
                except Exception as error:
                    self._explain(error, block, thread)
                reached[line] = min(thread[::-1], reached.get(line, (1024, 0)))
                self.log.ran(n_block, number)
            self.log.phase(n_block, None not in reached)
            if len(reached) > 1:
                self._refuse_split(block, {line: it[::-1] for line, it in reached.items()})
            if None in reached:
                break

    # What goes wrong

    def _refuse(self, first: str, line: int, block: Pair, *threads: Pair, **more: Any) -> NoReturn:
        """KernelError at a line: who was there, with ``why``, the repair and the element."""
        who = in_words("block", block, self.sizes[0]).capitalize()
        who += f", {in_words('thread', threads[0], self.sizes[1])}{more.pop('why', '')}."
        raise KernelError(
            f"Kernel {self.source.name} {first}",
            self.source.at(line),
            who,
            **more, line=line, block=block, threads=threads,
        ) from None  # fmt: skip

    def _explain(self, error: Exception, block: Pair, thread: Pair) -> NoReturn:
        """The error of a thread, with the line of the kernel and who was there."""
        frames = traceback.walk_tb(error.__traceback__)
        own = [line for frame, line in frames if frame.f_code.co_filename == self.source.file]
        line = own[-1] if own else self.source.first
        more: dict[str, Any] = {}
        if isinstance(error, _Outside):
            memory, index = error.args
            place = str(list(index) if isinstance(index, tuple) else [index])
            sizes = " x ".join(map(str, memory.host.shape))
            more["element"], more["repair"] = index, "a guard around the line: if i < n:"
            more["why"] = f"; {memory.name} has {sizes} elements, and none is counted from the end"
            error = IndexError(f"reaches {memory.name}{place}, which is outside of {memory.name}")
        elif "cannot be interpreted as an integer" in str(error):
            error, more["repair"] = IndexError("has an index that is no whole number"), "//, not /"
        else:
            error = RuntimeError(f"stopped: {error}")
        self._refuse(str(error), line, block, thread, **more)

    def _refuse_split(self, block: Pair, reached: dict[Any, Pair]) -> NoReturn:
        line, *others = sorted(reached, key=lambda it: it or 1 << 30)
        one, other = reached[line], reached[others[0]]
        where = f"waits in line {others[0]}" if others[0] else "has ended"
        self._refuse(
            "has a barrier that not all threads of a block reach",
            line, block, one, other,
            why=f" waits there, and {in_words('thread', other, self.sizes[1])} {where}. On a GPU "
            "they would wait for ever, or go on with wrong numbers",
            repair="cuda.syncthreads() outside of if, and of loops that differ between threads",
        )  # fmt: skip


def _place(word: Any, pair: Pair) -> None:
    word.x, word.y = pair


def _index(n_dims: int) -> Any:
    block, size, thread = words.blockIdx, words.blockDim, words.threadIdx
    x = block.x * size.x + thread.x
    return x if n_dims == 1 else (x, block.y * size.y + thread.y)
