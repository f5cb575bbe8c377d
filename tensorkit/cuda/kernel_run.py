"""A kernel on the simulated device: every thread of it is run, in one Python thread.

Block by block, each thread runs up to the next barrier, in an order drawn from a seed. An index out
of bounds raises at once, and so do threads that do not reach a barrier when the others of their
block have; what else a GPU would not notice is found in the log (``kernel_log``).
"""

import math
import random
import traceback
from functools import partial
from operator import index
from typing import Any, NoReturn

import numpy as np

from tensorkit.cuda.kernel_log import Log, Pair
from tensorkit.cuda.kernel_source import Source


class _Outside(Exception):
    """An index outside of its array."""


class Memory:
    """An array as the threads see it: each access has its bounds checked and is noted."""

    def __init__(self, name: str, host: Any, log: Log) -> None:
        self.name, self.host, self.note = name, host, log.records.append
        self.table = host[:, None] if host.ndim == 1 else host  # in two dimensions in any case
        self.rows, self.columns = self.table.shape

    def at(self, site: int, i: int, j: int) -> tuple[int, int]:
        """The position of an element; the access is noted as its number and that of the site."""
        if not (0 <= i < self.rows and 0 <= j < self.columns):
            raise _Outside(self, (i, j)[: self.host.ndim])
        self.note(site << 40 | index(i * self.columns + j))
        return i, j

    def load(self, site: int, i: int, j: int = 0) -> Any:
        """The element at an index."""
        return self.table[self.at(site, i, j)]

    def store(self, site: int, value: Any, i: int, j: int = 0) -> None:
        """Write an element."""
        self.table[self.at(site, i, j)] = value

    def add(self, site: int, value: Any, i: int, j: int = 0) -> Any:
        """Add to an element as one step; gives what was there before."""
        at = self.at(site, i, j)
        before = self.table[at]
        self.table[at] = before + self.host.dtype.type(value)
        return before


def run(
    source: Source, blocks: Pair, threads: Pair, arrays: dict[str, Any], starts: Any,
    numbers: dict[str, Any], seed: int,
) -> Log:  # fmt: skip
    """Run all blocks, and give what they did.

    ``arrays``: NumPy's arrays of the tensors; ``starts``: their addresses; ``numbers``: the other
    arguments.
    """
    shared = {name: np.empty(shape, dtype) for name, (shape, dtype) in source.shared.items()}
    log = Log(source, blocks, threads, arrays, shared, starts)
    memory = {name: Memory(name, host, log) for name, host in (arrays | shared).items()}
    call = partial(source.thread, **numbers, **memory, _blockDim=threads, _gridDim=blocks)
    order, numbers_of_blocks = random.Random(seed), [*range(math.prod(blocks))]
    order.shuffle(numbers_of_blocks)
    for block in numbers_of_blocks:
        for array in shared.values():
            array.fill(0)  # whoever reads it unwritten is refused in the end
        run_block(log, block, partial(call, _blockIdx=blocks.place(block)), order)
        log.read()
    log.finish()
    return log


def run_block(log: Log, block: int, call: Any, order: random.Random) -> None:
    """Run the threads of a block, phase by phase."""
    threads = {n: call(_threadIdx=log.threads.place(n)) for n in range(log.n_threads)}
    waiting, is_running = [*threads], True
    while is_running:
        order.shuffle(waiting)
        reached: dict[int, int] = {}  # the lines of barriers, 0 for the end: the lowest thread
        for n in waiting:
            try:
                line = next(threads[n])
            except Exception as error:
                _explain(log, error, block, n)
            reached[line] = min(n, reached.get(line, n))
            log.turn_ends(block, n)
        is_running = 0 not in reached
        log.phase_ends(is_running)
        if len(reached) > 1:
            _refuse_split(log, block, reached)


# What goes wrong


def _explain(log: Log, error: Exception, block: int, thread: int) -> NoReturn:
    """The error of a thread, with the line of the kernel and who was there."""
    source, frames = log.source, traceback.walk_tb(error.__traceback__)
    own = [line for frame, line in frames if frame.f_code.co_filename == source.file]
    first, why, more = f"stopped: {error}", "", dict[str, Any]()
    if isinstance(error, _Outside):
        memory, at = error.args
        sizes = " x ".join(map(str, memory.host.shape))
        first = f"reaches {memory.name}{[*at]}, which is outside of {memory.name}"
        why = f"; {memory.name} has {sizes} elements, and none is counted from the end"
        more = {"element": at, "repair": "a guard around the line: if i < n:"}
    elif "cannot be interpreted as an integer" in str(error):
        first, more["repair"] = "has an index that is no whole number", "//, not /"
    act = own[-1] if own else source.first, block * log.n_threads + thread, " was there"
    log.refuse(first, [act], why, **more)


def _refuse_split(log: Log, block: int, reached: dict[int, int]) -> NoReturn:
    line, other = sorted(reached, key=lambda it: it or 1 << 30)[:2]
    numbers = [block * log.n_threads + reached[it] for it in (line, other)]
    does = f" waits in line {other}" if other else " has ended"
    log.refuse(
        "has a barrier that not all threads of a block reach",
        [(line, numbers[0], " waits there"), (line, numbers[1], does)],
        ". On a GPU they would wait for ever, or go on with wrong numbers",
        repair="cuda.syncthreads() outside of if, and of loops that differ between threads",
    )
