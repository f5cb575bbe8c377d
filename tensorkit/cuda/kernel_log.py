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
from array import array
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tensorkit.errors import KernelError

Pair = tuple[int, int]
LOAD, STORE, ATOMIC = 1, 2, 4
WARP, PIECE, BANKS = 32, 128, 32
_SHARED = 1 << 33  # where the addresses of shared memory begin
_FLUSH, _MOST_SHOWN = 1 << 17, 20_000  # accesses: kept until they are looked at; kept for a picture
_ELEMENT = (1 << 34) - 1


class Counts(NamedTuple):
    """What a launch asked of the memory; loads, stores, transactions are of global memory."""

    loads: int = 0
    stores: int = 0
    transactions: int = 0
    bank_conflicts: int = 0
    idle_threads: int = 0
    barriers: int = 0


class Log:
    """Accesses of a launch: ``counts``, and ``shown``, those of block 0 for a picture.

    A record is an integer: place in the function's code, array, kind, element. A *site* is an
    access in the text: its line, array and kind stand in ``sites``. ``shown`` has a column for each
    access: phase, thread, site, element, address.
    """

    def __init__(
        self, source: Any, blocks: Pair, threads: Pair, arrays: Any, shared: Any, starts: Any
    ) -> None:
        self.source, self.blocks, self.threads = source, blocks, threads
        self.n_threads = threads[0] * threads[1]
        self.names, self.hosts = [*arrays, *shared], [*arrays.values(), *shared.values()]
        self.starts = [*starts.values(), *(_SHARED + (n << 17) for n in range(len(shared)))]
        self.records, self.ends, self.who = array("q"), array("q"), array("q")
        self.early: list[int] = []  # records that read shared memory which nobody has written
        self.phases: list[tuple[int, int]] = []  # of each: its block, and how many threads ran
        self.counts, self.least = Counts(), _least(source, arrays)
        self.sites: dict[tuple[Any, int, int], int] = {}  # position in the text, array, kind
        self.shown = np.empty((5, 0), np.int64)
        self._positions = [*source.thread.__code__.co_positions()]
        self._touched: list[Any] = []

    def code(self, name: str, kind: int) -> int:
        """The record of an access of this kind, without its element and place."""
        return (self.names.index(name) * 8 + kind) << 34

    def ran(self, block: int, thread: int) -> None:
        """A thread has come to its next barrier, or to its end."""
        self.ends.append(len(self.records))
        self.who.append(block * self.n_threads + thread)

    def phase(self, block: int, is_barrier: bool) -> None:
        """All threads of a block have."""
        self.phases.append((block, len(self.ends)))
        self.counts = self.counts._replace(barriers=self.counts.barriers + is_barrier)
        if len(self.records) > _FLUSH:
            self.read()

    def read(self) -> None:
        """Count the accesses of whole phases, look for races, and forget the accesses."""
        codes, ends, who = (np.array(it) for it in (self.records, self.ends, self.who))
        early, phases, self.early[:], self.phases = [*self.early], self.phases, [], []
        for each in (self.records, self.ends, self.who):
            del each[:]
        if not len(codes):
            return
        turn = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        phase = np.repeat(np.arange(len(phases)), np.diff([n for _, n in phases], prepend=0))[turn]
        rows = np.stack([phase, who[turn], self._sites(codes >> 34), codes & _ELEMENT])
        rows = np.concatenate([rows, self._addresses(codes)[None]])
        self._find_race(rows, phase, rows[1])
        if early:
            self._refuse_early(rows[:, early])
        self._count(rows, _ranks(turn * len(self.sites) + rows[2]))
        is_global, block = rows[4] < _SHARED, rows[1] // self.n_threads
        keys = ((rows[4] * len(phases) + block) * len(self.sites) + rows[2])[is_global]
        self._touched.append(rows[:, is_global][:, np.unique(keys, return_index=True)[1]])
        self.shown = np.concatenate([self.shown, rows[:, block == 0]], axis=1)[:, :_MOST_SHOWN]

    def finish(self) -> None:
        """All blocks have run: look for races between them."""
        self.read()
        if self._touched:
            rows = np.concatenate(self._touched, axis=1)
            self._find_race(rows, np.zeros_like(rows[0]), rows[1] // self.n_threads)

    def _sites(self, keys: Any) -> Any:
        """The number of each access's site. Python may tell one place in two ways."""
        known, which = np.unique(keys, return_inverse=True)
        places = [
            (self._positions[(it >> 8) // 2], (it & 255) // 8, it & 7) for it in known.tolist()
        ]
        return np.array([self.sites.setdefault(it, len(self.sites)) for it in places])[which]

    def _addresses(self, codes: Any) -> Any:
        number, element, address = (codes >> 37) & 31, codes & _ELEMENT, np.empty_like(codes)
        for n, host in enumerate(self.hosts):
            here = number == n
            index = np.unravel_index(element[here], host.shape)
            address[here] = self.starts[n] + np.dot(host.strides, index)
        return address

    def _kinds(self, rows: Any) -> Any:
        return np.array([kind for _, _, kind in self.sites])[rows[2]]

    def _count(self, rows: Any, before: Any) -> None:
        """Group the accesses that the threads of a warp make together: the n-th at one site."""
        phase, thread, site, _, address = rows
        kind, is_global, number = self._kinds(rows), address < _SHARED, thread % self.n_threads
        group = ((phase * WARP + number // WARP) * len(self.sites) + site) * (before.max() + 1)
        _, first, group = np.unique(group + before, return_index=True, return_inverse=True)
        pieces = np.unique(group[is_global] * (1 << 34) + address[is_global] // PIECE)
        words = np.unique(group[~is_global] * (1 << 34) + address[~is_global] // 4)
        banks, wanted = np.unique((words >> 34) * BANKS + words % BANKS, return_counts=True)
        conflicts = np.zeros(len(first), np.int64)
        np.maximum.at(conflicts, banks // BANKS, wanted - 1)
        in_warp = np.minimum(WARP, self.n_threads - number[first] // WARP * WARP)
        more = (
            int((is_global & (kind != STORE)).sum()),
            int((is_global & (kind != LOAD)).sum()),
            len(pieces),
            int(conflicts.sum()),
            int(in_warp.sum()) - len(group),
            0,
        )
        self.counts = Counts(*map(sum, zip(self.counts, more, strict=True)))

    def _find_race(self, rows: Any, scope: Any, who: Any) -> None:
        """KernelError if two of ``who`` touch an element in one ``scope``, and one writes it."""
        order = np.lexsort((rows[4], scope))
        is_new = (np.diff(rows[4][order], prepend=-1) != 0) | (
            np.diff(scope[order], prepend=-1) != 0
        )
        starts, who, kinds = np.flatnonzero(is_new), who[order], self._kinds(rows)[order]
        several = np.minimum.reduceat(who, starts) != np.maximum.reduceat(who, starts)
        found = np.bitwise_or.reduceat(kinds, starts)
        races = several & ((found & STORE > 0) | (found == LOAD | ATOMIC))
        if not races.any():
            return
        ends = [*starts[1:], len(order)]
        # of them the one at the lowest address; in it the write of the lowest thread, and the
        # lowest other one: the same in whatever order the threads ran
        at = min(np.flatnonzero(races), key=lambda it: tuple(rows[4:0:-3, order[starts[it]]]))
        group = range(starts[at], ends[at])
        ordered = sorted(group, key=lambda it: (kinds[it] & LOAD, rows[1, order[it]]))
        one, other = next(
            pair
            for pair in itertools.permutations(ordered, 2)
            if who[pair[0]] != who[pair[1]] and not kinds[pair[0]] & kinds[pair[1]] & ~STORE
        )
        self._refuse_race(rows[:, order[one]], rows[:, order[other]])

    def _refuse_race(self, one: Any, other: Any) -> NoReturn:
        (position, _, kind), (other_position, _, other_kind) = map(self._site, (one, other))
        lines = sorted({position[0], other_position[0]})
        text, place = self.source.at(lines[0]).partition(": ")[2], self._element(one)[0]
        of_blocks = one[1] // self.n_threads != other[1] // self.n_threads
        does = {LOAD: "reads", STORE: "writes", ATOMIC: "adds to"}
        target, is_sum, value = text.partition(" += ")
        if is_sum and len(lines) == 1:
            repair = f"cuda.atomic_add({target.strip(' ]').replace('[', ', ', 1)}, {value})"
        elif of_blocks:
            repair = "another element for each block, or cuda.atomic_add"
        elif len(lines) == 2:
            repair = f"cuda.syncthreads() between line {lines[0]} and line {lines[1]}"
        else:
            repair = "another element for each thread, or one thread that writes"
        self._refuse(
            f"races: two {'blocks' if of_blocks else 'threads'} touch {place}, and one of them "
            "writes",
            one, other,
            details=f"{self._who(one[1]).capitalize()} {does[kind]} it, {self._who(other[1])} "
            f"{does[other_kind]} it, with no barrier between: the result depends on who is first.",
            repair=repair,
        )  # fmt: skip

    def _refuse_early(self, rows: Any) -> NoReturn:
        first = min(rows.T, key=lambda it: (it[4], it[1]))
        name = self.names[self._site(first)[1]]
        self._refuse(
            f"reads {self._element(first)[0]} before any thread has written it",
            first,
            details=f"It was {self._who(first[1])}. Shared memory begins with no meaning, in each "
            "block anew.",
            repair=f"{name}[...] = 0.0 in every thread, then cuda.syncthreads(), before this line",
        )

    def _refuse(self, what: str, *rows: Any, details: str, repair: str) -> NoReturn:
        lines = sorted({self._site(it)[0][0] for it in rows})
        numbers = [divmod(int(it[1]), self.n_threads) for it in rows]
        raise KernelError(
            f"Kernel {self.source.name} {what}",
            *map(self.source.at, lines),
            details,
            repair=repair,
            line=self._site(rows[0])[0][0],
            block=_pair(numbers[0][0], self.blocks),
            threads=tuple(_pair(it, self.threads) for _, it in numbers),
            element=self._element(rows[0])[1],
        )

    def _site(self, row: Any) -> Any:
        return [*self.sites][row[2]]

    def _element(self, row: Any) -> tuple[str, tuple[int, ...]]:
        """The element of an access, as it is written and as an index."""
        number = self._site(row)[1]
        index = tuple(map(int, np.unravel_index(row[3], self.hosts[number].shape)))
        return f"{self.names[number]}[{', '.join(map(str, index))}]", index

    def _who(self, number: int) -> str:
        block, thread = divmod(int(number), self.n_threads)
        own = in_words("thread", _pair(thread, self.threads), self.threads)
        return f"{own} of {in_words('block', _pair(block, self.blocks), self.blocks)}"


def _least(source: Any, arrays: dict[str, Any]) -> Counts:
    """Each argument that is read is read once, each that is written once."""
    read = [it for name, it in arrays.items() if name in source.read]
    written = [it for name, it in arrays.items() if name in source.written]
    pieces = sum(-(-it.size * it.itemsize // PIECE) for it in read + written)
    return Counts(sum(it.size for it in read), sum(it.size for it in written), pieces)


def _ranks(keys: Any) -> Any:
    """Of each entry, how often its key came before."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(starts, append=len(keys)))
    return ranks


def _pair(number: int, sizes: Pair) -> Pair:
    return number % sizes[0], number // sizes[0]


def in_words(noun: str, at: Pair, sizes: Pair) -> str:
    """``thread 3``; ``thread (3, 1)`` where there are two dimensions."""
    return f"{noun} {at[0]}" if sizes[1] == 1 else f"{noun} ({at[0]}, {at[1]})"
