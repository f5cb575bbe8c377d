"""A kernel on the simulated device: every thread of it is run, in one Python thread.

Block by block, each thread runs up to the next barrier, in an order drawn from a seed. An index out
of bounds raises at once, and so do threads that do not reach a barrier when the others of their
block have; what else a GPU would not notice is found in the log (``kernel_log``).
"""

import math
import random
import sys
import traceback
from functools import partial
from operator import index as integer
from typing import Any, NoReturn

from tensorkit.cuda.kernel_log import ATOMIC, LOAD, STORE, Access, Log, Pair
from tensorkit.cuda.kernel_source import Source


class Memory:
    """An array as the threads see it: each access has its bounds checked and is noted."""

    def __init__(self, name: str, host: Any, start: int, log: Log) -> None:
        self.name, self.host, self.start, self.log = name, host, start, log
        self.is_shared, self.dims = start < 0, [*zip(host.shape, host.strides, strict=True)]

    def at(self, kind: str, index: Any) -> tuple[int, ...]:
        """The index of an element; the access is noted, and its bounds are checked."""
        index = tuple(map(integer, index if type(index) is tuple else (index,)))
        address, is_inside, log = self.start, True, self.log
        for at, (size, step) in zip(index, self.dims, strict=True):
            address += at * step
            is_inside = is_inside and 0 <= at < size
        place = log.positions[sys._getframe(2).f_lasti // 2]  # where the kernel is
        access = Access(log.block, log.thread, place, self, kind, index, address)
        log.accesses.append(access)
        if not is_inside:
            log.refuse_outside(access)
        return index

    def __getitem__(self, index: Any) -> Any:
        return self.host[self.at(LOAD, index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.host[self.at(STORE, index)] = value


def atomic_add(memory: Memory, index: Any, value: Any) -> Any:
    """Add to an element as one step; gives what was there before."""
    at = memory.at(ATOMIC, index)
    before = memory.host[at]
    memory.host[at] = before + memory.host.dtype.type(value)
    return before


def run(
    source: Source, blocks: Pair, threads: Pair, arrays: dict[str, tuple[Any, int]],
    numbers: dict[str, Any], seed: int,
) -> Log:  # fmt: skip
    """Run all blocks, and give what they did.

    ``arrays``: NumPy's arrays of the tensors, with the addresses of their first elements;
    ``numbers``: the other arguments.
    """
    log = Log(source, blocks, threads)
    memory = {name: Memory(name, *array, log) for name, array in arrays.items()}
    for number, (name, array) in enumerate(source.shared.items(), start=1):
        memory[name] = Memory(name, array.copy(), -number << 40, log)
    words = {"_blockDim": threads, "_gridDim": blocks, "_atomic_add": atomic_add}
    call = partial(source.thread, **numbers, **memory, **words)
    order, numbers_of_blocks = random.Random(seed), [*range(math.prod(blocks))]
    order.shuffle(numbers_of_blocks)
    for block in numbers_of_blocks:
        run_block(log, block, call, order)
    log.finish()
    return log


def run_block(log: Log, block: int, call: Any, order: random.Random) -> None:
    """Run the threads of a block, phase by phase."""
    log.block = block
    threads = {n: call(**_position(log, n)) for n in range(log.n_threads)}
    waiting, is_running = [*threads], True
    while is_running:
        order.shuffle(waiting)
        reached: dict[int, int] = {}  # the lines of barriers, 0 for the end: the lowest thread
        for n in waiting:
            log.thread = n
            try:
                line = next(threads[n])
            except (ArithmeticError, NameError, TypeError, ValueError) as error:
                _explain(log, error)
            reached[line] = min(n, reached.get(line, n))
        if len(reached) > 1:
            _refuse_split(log, reached)
        is_running = 0 not in reached
        log.phase_ends(is_running)


def _position(log: Log, thread: int) -> dict[str, Any]:
    """What CUDA's words mean to a thread of the block."""
    block, own = log.blocks.place(log.block), log.threads.place(thread)
    x, y = (before * n + at for before, n, at in zip(block, log.threads, own, strict=True))
    return {"_blockIdx": block, "_threadIdx": own, "_grid": {1: x, 2: (x, y)}.get}


# What goes wrong


def _explain(log: Log, error: Exception) -> NoReturn:
    """The error of a thread, with the line of the kernel and who was there."""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == log.source.file]
    acts = [(lines[-1], log.block, log.thread, "was there")]
    if "cannot be interpreted as an integer" in str(error):
        log.refuse(acts, "has an index that is no whole number", repair="//, not /")
    log.refuse(acts, f"stopped: {error}")


def _refuse_split(log: Log, reached: dict[int, int]) -> NoReturn:
    line, other = sorted(reached, key=lambda line: line or math.inf)[:2]
    does = f"waits in line {other}" if other else "has ended"
    acts = (line, log.block, reached[line], "waits there"), (line, log.block, reached[other], does)
    what = "has a barrier that not all threads of a block reach"
    why = ". On a GPU they would wait for ever, or go on with wrong numbers"
    repair = "cuda.syncthreads() outside of if, and of loops that differ between threads"
    log.refuse([*acts], what, why, repair)
