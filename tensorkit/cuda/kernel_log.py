"""What the threads of a launch did: accesses counted, and races found.

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
from collections import Counter, defaultdict
from typing import Any, NamedTuple, NoReturn

from tensorkit.cuda.kernel_source import Source
from tensorkit.errors import KernelError

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


Act = tuple[int, int, int, str]  # what a thread does: the line, its block, its number, in words


class Access(NamedTuple):
    """What a thread did with an element."""

    block: int
    thread: int
    place: tuple[int, ...]  # in the text of the kernel; its line comes first
    memory: Any  # the array, a ``kernel_run.Memory``
    kind: str  # LOAD, STORE or ATOMIC
    element: tuple[int, ...]
    address: int  # below 0 in shared memory

    @property
    def line(self) -> int:
        """Where the kernel does so."""
        return self.place[0]

    @property
    def text(self) -> str:
        """The element as it is written: ``out[3]``."""
        return f"{self.memory.name}[{', '.join(map(str, self.element))}]"


class Together(NamedTuple):
    """Accesses of the threads of a warp at one place, to which all came as often before.

    ``asked`` is what they asked the memory for: the transactions, or the most words of one bank.
    """

    turn: int  # how often they came here before in this phase
    accesses: list[Access]
    asked: int


class Log:
    """What a launch did: its ``counts``, the ``least`` that its arguments allow, ``shown``.

    Accesses are kept until all threads of the block have come to the end of the phase, and looked
    at then. ``shown`` is what the threads of block 0 did together, phase by phase, for a picture.
    """

    def __init__(self, source: Source, blocks: Pair, threads: Pair) -> None:
        self.source, self.blocks, self.threads = source, blocks, threads
        self.n_threads = math.prod(threads)
        self.block = self.thread = 0  # those that run
        self.counts = self.least = Counts()
        self.shown = list[list[Together]]()
        self._numbers = Counter[str]()
        # the place in the text of each instruction, and what the threads did since the last barrier
        self.positions: list[Any] = [*source.thread.__code__.co_positions()]
        self.accesses = list[Access]()
        self._written = set[tuple[int, int]]()  # blocks and addresses in shared memory
        # of each address in global memory: an access for each block and kind
        self._touched = defaultdict[int, dict[Any, Access]](dict)

    def phase_ends(self, is_barrier: bool) -> None:
        """All threads of a block have come to a barrier, or to their end."""
        turns, elements, warps = defaultdict[Any, int](int), defaultdict(list), defaultdict(list)
        for access in self.accesses:
            elements[access.address].append(access)
            came = access.thread, access.place, access.kind
            warps[access.thread // WARP, *came[1:], turns[came]].append(access)
            turns[came] += 1
        self._check_races(elements, "thread")
        for address, accesses in elements.items():
            first, at = accesses[0], (self.block, address)
            if not first.memory.is_shared:
                self._touched[address] |= {(self.block, each.kind): each for each in accesses}
            elif first.kind != STORE and at not in self._written:
                self._refuse_unwritten(first)
            else:  # without a race a thread wrote first what it reads here
                self._written.add(at)
        found = [self._count(warp, turn, them) for (warp, _, _, turn), them in warps.items()]
        if self.block == 0 and found:
            self.shown.append(found)
        self._numbers["barriers"] += is_barrier
        self.accesses = []

    def finish(self) -> None:
        """All blocks have run: look for races between them, and add up."""
        self._check_races({at: [*them.values()] for at, them in self._touched.items()}, "block")
        self.counts = Counts(**self._numbers)
        # each argument that is read is read once, each that is written once
        accesses = [each for found in self._touched.values() for each in found.values()]
        read = [x.host for x in {each.memory for each in accesses if each.kind != STORE}]
        written = [x.host for x in {each.memory for each in accesses if each.kind != LOAD}]
        pieces = sum(-(-x.nbytes // PIECE) for x in read + written)
        self.least = Counts(sum(x.size for x in read), sum(x.size for x in written), pieces)

    def _count(self, warp: int, turn: int, accesses: list[Access]) -> Together:
        """Count what the threads of a warp access together."""
        n, memory, kind = len(accesses), accesses[0].memory, accesses[0].kind
        if memory.is_shared:
            words = {each.address // WORD for each in accesses}
            asked = max(Counter(word % BANKS for word in words).values())
            found = {"bank_conflicts": asked - 1}
        else:
            asked = len({each.address // PIECE for each in accesses})
            found = {"loads": n * (kind != STORE), "stores": n * (kind != LOAD)}
            found["transactions"] = asked
        found["idle_threads"] = min(WARP, self.n_threads - warp * WARP) - n
        for name, more in found.items():  # Counter.update takes three times as long
            self._numbers[name] += more
        return Together(turn, accesses, asked)

    # What goes wrong

    def _check_races(self, elements: dict[int, list[Access]], who: str) -> None:
        """KernelError if two threads of a phase, or two blocks, race for an element."""
        for _, accesses in sorted(elements.items()):
            several = len({getattr(each, who) for each in accesses}) > 1
            if several and {each.kind for each in accesses} not in ({LOAD}, {ATOMIC}):
                self._refuse_race(accesses, who)

    def _refuse_race(self, accesses: list[Access], who: str) -> NoReturn:
        # the write of the lowest one, and the lowest other one: in whatever order they ran
        ordered = sorted(accesses, key=lambda each: (each.kind == LOAD, each.block, each.thread))
        one, other = next(
            (a, b)
            for a, b in itertools.permutations(ordered, 2)
            if getattr(a, who) != getattr(b, who) and {a.kind, b.kind} not in ({LOAD}, {ATOMIC})
        )
        lines = sorted({one.line, other.line})
        repair = f"cuda.atomic_add({one.memory.name}, i, value), or another element for each {who}"
        if who == "thread" and len(lines) == 2:
            repair = f"cuda.syncthreads() between line {lines[0]} and line {lines[1]}"
        what = f"races: two {who}s touch {one.text}, and one of them writes"
        why = ", with no barrier between: the result depends on who is first"
        acts = [(each.line, each.block, each.thread, f"{each.kind} it") for each in (one, other)]
        self.refuse(acts, what, why, repair, one.element)

    def refuse_outside(self, access: Access) -> NoReturn:
        """KernelError for an index outside of its array."""
        name, sizes = access.memory.name, " x ".join(map(str, access.memory.host.shape))
        what = f"reaches {access.text}, which is outside of {name}"
        why = f"; {name} has {sizes} elements, and none is counted from the end"
        self._refuse_access(access, what, why, "a guard around the line: if i < n:")

    def _refuse_unwritten(self, access: Access) -> NoReturn:
        what = f"reads {access.text} before any thread has written it"
        why = ". Shared memory begins with no meaning, in each block anew"
        repair = f"{access.memory.name}[...] = 0.0 in every thread, then cuda.syncthreads()"
        self._refuse_access(access, what, why, repair)

    def _refuse_access(self, access: Access, what: str, why: str, repair: str) -> NoReturn:
        acts = [(access.line, access.block, access.thread, "was there")]
        self.refuse(acts, what, why, repair, access.element)

    def refuse(
        self,
        acts: list[Act],
        what: str,
        why: str = "",
        repair: str | None = None,
        element: Any = (),
    ) -> NoReturn:
        """KernelError about what threads do."""
        threads, blocks = self.threads, self.blocks
        told = ", ".join(
            f"thread {threads.shown(thread)} of block {blocks.shown(block)} {does}"
            for _, block, thread, does in acts
        )
        lines = map(self.source.at, sorted({line for line, *_ in acts}))
        first = f"Kernel {self.source.name} {what}"
        error = KernelError(first, *lines, f"{told.capitalize()}{why}.", repair=repair)
        error.line, error.block = acts[0][0], blocks.place(acts[0][1])
        error.threads = tuple(threads.place(thread) for _, _, thread, _ in acts)
        error.element = element
        raise error from None
