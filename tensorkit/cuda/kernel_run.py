"""A kernel on the simulated device: every thread of it is run, in one Python thread.

Block by block, each thread runs up to the next barrier, in an order drawn from a seed. What it does
with elements of arrays is noted in the log. An index out of bounds raises at once, and so do
threads that do not reach a barrier when the others of their block have.

A *phase* is what the threads of a block do between two barriers. Within it their order is not
known; between blocks it never is. So two threads race if they touch one element in one phase of
their block, or at any time if their blocks differ, and one of them writes. Atomic additions do not
race with each other.

A *warp* is 32 threads with neighbouring numbers. When they come to an access together, the memory
is asked once for each piece of 128 bytes that they touch: a *transaction*. Shared memory has 32
*banks* of 4 bytes: for each further word that a warp wants of one bank it waits once more (CUDA C++
Programming Guide, Device Memory Accesses and Shared Memory).
"""

import itertools
import math
import operator
import random
from collections import Counter, defaultdict
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tensorkit.base import storage_of
from tensorkit.cuda.kernel_source import Source, as_single, number
from tensorkit.errors import KernelError
from tensorkit.overrides import replaced
from tensorkit.thread_state import state

LOAD, STORE, ATOMIC = "reads", "writes", "adds to"
WARP, PIECE, BANKS, WORD = 32, 128, 32, 4


class Pair(NamedTuple):
    """Sizes or positions along x and y."""

    x: int
    y: int

    def place(self, number: int) -> "Pair":
        """The position with this number, where these are the sizes."""
        return Pair(number % self.x, number // self.x)

    def shown(self, number: int) -> str:
        """That position in words: one number where there is one dimension."""
        return str(number if self.y == 1 else tuple(self.place(number)))


class Counts(NamedTuple):
    """What a launch asked of the memory; loads, stores, transactions are of global memory."""

    loads: int = 0
    stores: int = 0
    transactions: int = 0
    bank_conflicts: int = 0
    idle_threads: int = 0
    barriers: int = 0


class Access(NamedTuple):
    """What a thread did, mostly with an element."""

    block: int
    thread: int
    kind: str  # LOAD, STORE or ATOMIC; in words if it did something else
    place: tuple[int, ...]  # in the text of the kernel; its line comes first
    memory: Any = None  # a Memory
    element: tuple[int, ...] = ()
    address: int = 0  # below 0 in shared memory

    @property
    def text(self) -> str:
        """The element as it is written: ``out[3]``."""
        return f"{self.memory.name}[{', '.join(map(str, self.element))}]" if self.memory else ""


class Memory:
    """An array as the threads see it: each access has its bounds checked and is noted."""

    def __init__(self, name: str, host: Any, start: int, log: "Log") -> None:
        self.name, self.host, self.start, self.log = name, host, start, log

    def at(self, kind: str, index: Any) -> tuple[int, ...]:
        """The index of an element; the access is noted, and its bounds are checked."""
        index = tuple(map(operator.index, index if type(index) is tuple else (index,)))
        address = self.start + sum(map(operator.mul, index, self.host.strides))
        place = self.log.positions[self.log.running.gi_frame.f_lasti // 2]  # where the kernel is
        access = Access(self.log.block, self.log.thread, kind, place, self, index, address)
        self.log.accesses.append(access)
        if min(index) < 0 or not all(map(operator.lt, index, self.host.shape)):
            sizes = " x ".join(map(str, self.host.shape))
            what = f"reaches {access.text}, which is outside of {self.name}"
            rest = f"; {self.name} has {sizes} elements, and none is counted from the end"
            self.log.refuse(what, rest, "a guard around it, if i < n:, or another index", access)
        return index

    def __getitem__(self, index: Any) -> Any:
        return number(self.host[self.at(LOAD, index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        # no float into integers, and no integer that has no place there
        np.copyto(self.host[(*self.at(STORE, index), ...)], number(value))

    def add(self, index: Any, value: Any) -> Any:
        """Add to an element as one step; gives what was there before."""
        at = self.at(ATOMIC, index)
        before = number(self.host[at])
        np.copyto(self.host[(*at, ...)], number(before + number(value)))
        return before


def run(source: Source, blocks: Pair, threads: Pair, given: dict[str, Any], seed: int) -> "Log":
    """Run all blocks with these arguments, and give what they did."""
    log, order = Log(source, blocks, threads), random.Random(seed)
    given = {name: as_single(value) for name, value in given.items()}
    starts = dict[int, int]()  # addresses are as if the storages lay far from one another
    for name in source.arrays:
        x = given[name]
        start = starts.setdefault(storage_of(x).data_ptr(), len(starts) << 40)
        start += x.storage_offset() * x._array.itemsize
        given[name] = Memory(name, x._array._host, start, log)
    n_blocks = math.prod(blocks)
    with replaced(state, closes_path=False, words=None):  # of each thread in its turn
        for block in order.sample(range(n_blocks), n_blocks):
            run_block(log, block, given, order)
    log.finish()
    return log


def run_block(log: "Log", block: int, given: dict[str, Any], order: random.Random) -> None:
    """Run the threads of a block, phase by phase."""
    log.block, log.written = block, set()
    arrays = enumerate(log.source.shared.items(), start=1)
    shared = {name: Memory(name, x.copy(), -at << 40, log) for at, (name, x) in arrays}
    threads = [(log.source.thread(**given), _words(log, n, shared)) for n in range(log.n_threads)]
    reached = dict[int, int]()  # the line of each barrier, 0 for the end: the lowest thread there
    while 0 not in reached:
        reached = {}
        for n in order.sample(range(log.n_threads), log.n_threads):
            log.thread, (log.running, state.words) = n, threads[n]
            try:
                line = next(log.running)
            except (ArithmeticError, AttributeError, NameError, TypeError, ValueError) as error:
                line = error.__traceback__.tb_next.tb_lineno  # type: ignore[union-attr]
                here = Access(block, n, "was there", (line,))
                log.refuse(f"stopped: {error}", "", "int(...), or a number set above the if", here)
            reached[line] = min(n, reached.get(line, n))
        log.check_barrier(reached)
        log.phase_ends(is_barrier=0 not in reached)


def _words(log: "Log", thread: int, shared: dict[str, Memory]) -> dict[str, Any]:
    """What CUDA's words mean to a thread of the block."""
    block, own = log.blocks.place(log.block), log.threads.place(thread)
    x, y = (before * n + at for before, n, at in zip(block, log.threads, own, strict=True))
    calls = {"grid": {1: x, 2: (x, y)}.get, "atomic_add": Memory.add, "shared": shared.get}
    sizes = {"gridDim": lambda: log.blocks, "blockDim": lambda: log.threads}
    return {**calls, **sizes, "blockIdx": lambda: block, "threadIdx": lambda: own}


class Log:
    """What a launch did: its ``counts``, the ``least`` that its arguments allow, ``shown``.

    The least: each element that was touched is read, written and added to once at most.

    Accesses are kept until all threads of the block have come to the end of the phase, and looked
    at then. ``touched`` has accesses of all blocks to global memory: of each address the last one
    of each block and kind. ``shown`` is what block 0 did, for a picture: for each phase and place
    of the source the accesses of each warp there, in the order of its turns.
    """

    def __init__(self, source: Source, blocks: Pair, threads: Pair) -> None:
        self.source, self.blocks, self.threads = source, blocks, threads
        self.n_threads = math.prod(threads)
        self.block = self.thread = 0  # those that run
        self.running: Any = None  # the generator of the thread
        self.shown = list[dict[Any, list[list[Access]]]]()
        self._numbers = Counter[str]()
        # the place in the text of each instruction, and what the threads did since the last barrier
        self.positions: list[Any] = [*source.thread.__code__.co_positions()]
        self.accesses = list[Access]()
        self.written = set[int]()  # addresses in the shared memory of the block
        self.touched = defaultdict[int, dict[Any, Access]](dict)

    def phase_ends(self, is_barrier: bool) -> None:
        """All threads of a block have come to a barrier, or to their end."""
        turns, elements, warps = defaultdict[Any, int](int), defaultdict(list), defaultdict(list)
        for access in self.accesses:
            elements[access.address].append(access)
            came = access.thread, access.place, access.kind
            warps[turns[came], access.thread // WARP, *came[1:]].append(access)
            turns[came] += 1
        self._check_races(elements, "thread")
        for address, accesses in elements.items():
            if address >= 0:
                self.touched[address] |= {(self.block, each.kind): each for each in accesses}
            elif accesses[0].kind != STORE and address not in self.written:
                what = f"reads {accesses[0].text} before any thread has written it"
                rest = ". Shared memory begins with no meaning, in each block anew"
                repair = "a line above that fills the whole array, then cuda.syncthreads()"
                self.refuse(what, rest, repair, accesses[0])
            else:  # without a race a thread wrote first what it reads here
                self.written.add(address)
        sites, numbers = defaultdict(list), self._numbers
        for (_, warp, place, kind), accesses in sorted(warps.items()):
            sites[place[0], kind != LOAD, place].append(accesses)
            n, more = len(accesses), asked(accesses)
            if accesses[0].address < 0:
                numbers["bank_conflicts"] += more - 1
            else:
                numbers["loads"] += n * (kind != STORE)
                numbers["stores"] += n * (kind != LOAD)
                numbers["transactions"] += more
            numbers["idle_threads"] += min(WARP, self.n_threads - warp * WARP) - n
        if self.block == 0 and sites:
            self.shown.append(sites)
        numbers["barriers"] += is_barrier
        self.accesses = []

    def finish(self) -> None:
        """All blocks have run: look for races between them, and add up."""
        self._check_races({at: [*kinds.values()] for at, kinds in self.touched.items()}, "block")
        self.counts = Counts(**self._numbers)
        # each element that was touched is read once, written once, added to once
        once = {(at, kind) for at, kinds in self.touched.items() for _, kind in kinds}
        loads, stores = (sum(kind != other for _, kind in once) for other in (STORE, LOAD))
        self.least = Counts(loads, stores, len({(at // PIECE, kind) for at, kind in once}))

    # What goes wrong

    def _check_races(self, elements: dict[int, list[Access]], who: str) -> None:
        """KernelError if two threads of a phase, or two blocks, race for an element."""
        for _, accesses in sorted(elements.items()):
            several = len({getattr(each, who) for each in accesses}) > 1
            if not several or {each.kind for each in accesses} in ({LOAD}, {ATOMIC}):
                continue
            # the write of the lowest one, and the lowest other one: in whatever order they ran
            accesses = sorted(accesses, key=lambda a: (a.kind == LOAD, a.block, a.thread))
            one, other = next(
                (a, b)
                for a, b in itertools.permutations(accesses, 2)
                if getattr(a, who) != getattr(b, who) and {a.kind, b.kind} not in ({LOAD}, {ATOMIC})
            )
            low, high = sorted((one.place[0], other.place[0]))
            repair = f"if cuda.{who}Idx.x == 0: around the line, or an element for each {who}"
            if {each.kind for each in accesses} != {STORE}:
                repair = f"cuda.atomic_add({one.memory.name}, i, value), or an element each"
            if who == "thread" and low != high and one.memory is other.memory:
                repair = f"cuda.syncthreads() between line {low} and line {high}"
                if any("syncthreads()" in self.source.at(at) for at in range(low + 1, high)):
                    repair = f"cuda.syncthreads() after line {high}, before the loop goes round"
            elif other.kind == LOAD and one.address < 0:  # such as the rounds of a tree
                repair = "cuda.syncthreads() after each round, or between reading and writing"
            elif other.kind == LOAD:
                repair = f"another tensor than {one.memory.name} to write into"
            what = f"races: two {who}s touch {one.text}, and one of them writes"
            rest = ", with no barrier between: the result depends on who is first"
            self.refuse(what, rest, repair, one, other)

    def check_barrier(self, reached: dict[int, int]) -> None:
        """KernelError if threads of the block have come to different barriers, or to their end.

        A barrier is a line of the kernel. In which round of a loop a thread comes there does not
        matter: a GPU counts the threads that have come.
        """
        if len(reached) > 1:
            acts = []
            for line, n in sorted(reached.items(), key=lambda pair: pair[0] or math.inf)[:2]:
                what = f"waits in line {line}" if line else "has ended"
                acts.append(Access(self.block, n, what, (line,)))
            rest = ". On a GPU they would wait for ever, or go on with wrong numbers"
            repair = "cuda.syncthreads() outside of if, and of loops that differ between threads"
            self.refuse("has a barrier that not all threads of a block reach", rest, repair, *acts)

    def refuse(self, what: str, rest: str, repair: str, *acts: Access) -> NoReturn:
        """KernelError about what threads do; ``rest`` follows the list of what they did."""
        did = "Here " + ", ".join(
            f"thread {self.threads.shown(each.thread)} of block {self.blocks.shown(each.block)} "
            f"{each.kind} {each.text}".rstrip()
            for each in acts
        )
        lines = map(self.source.at, sorted({each.place[0] for each in acts} - {0}))
        one, who = acts[0], tuple(self.threads.place(each.thread) for each in acts)
        at = {"line": one.place[0], "block": self.blocks.place(one.block), "element": one.element}
        head = f"Kernel {self.source.name} {what}"
        raise KernelError(head, *lines, f"{did}{rest}.", repair=repair, threads=who, **at) from None


def asked(accesses: list[Access]) -> int:
    """What a warp asks of the memory: the transactions, or the most words of one bank."""
    if accesses[0].address >= 0:
        return len({each.address // PIECE for each in accesses})
    return max(Counter(word % BANKS for word in {x.address // WORD for x in accesses}).values())
