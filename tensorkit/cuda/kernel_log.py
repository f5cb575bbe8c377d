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
from array import array
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tensorkit.cuda.kernel_source import ATOMIC, LOAD, STORE, Source
from tensorkit.errors import KernelError

WARP, PIECE, BANKS = 32, 128, 32
_FLUSH, _MOST_SHOWN = 1 << 17, 20_000  # accesses: kept until they are looked at; for a picture
_ELEMENT = (1 << 40) - 1


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


class Log:
    """Accesses of a launch: ``counts``, and ``shown``, those of block 0 for a picture.

    ``shown`` has a column for each access: phase, thread, number of the site, element, address, how
    often the thread came there before in the phase, and what its warp asked for together: the
    transactions, or in shared memory the most words of one bank.

    A record is an integer: the number of the site, and that of the element. ``turns`` says whose
    records they are: phase, thread, and how many there were when its turn ended.
    """

    def __init__(
        self, source: Source, blocks: Pair, threads: Pair, arrays: Any, shared: Any, starts: Any
    ) -> None:
        self.source, self.blocks, self.threads = source, blocks, threads
        self.n_threads, self.hosts = math.prod(threads), arrays | shared
        self.records, self.turns = array("q"), list[tuple[int, int, int]]()
        self.n_phases, self.counts, self.least = 0, Counts(), _least(source, arrays)
        self.shown, self._touched = np.empty((7, 0), np.int64), list[Any]()
        starts = starts | {name: n << 50 for n, name in enumerate(shared, start=1)}
        # of each site: kind, whether it is of shared memory; where its array begins, its columns,
        # and the bytes from one row and one column to the next
        rows = []
        for _, name, kind in source.sites:
            columns, steps = (*self.hosts[name].shape, 1)[1], (*self.hosts[name].strides, 0)
            rows.append((kind, name in shared, starts[name], columns, *steps[:2]))
        self._sites = np.array(rows or [(0,) * 6]).T

    def turn_ends(self, block: int, thread: int) -> None:
        """A thread has come to its next barrier, or to its end."""
        self.turns.append((self.n_phases, block * self.n_threads + thread, len(self.records)))

    def phase_ends(self, is_barrier: bool) -> None:
        """All threads of a block have."""
        self.n_phases += 1
        self.counts = self.counts._replace(barriers=self.counts.barriers + is_barrier)

    def finish(self) -> None:
        """All blocks have run: look for races between them."""
        self.read(most=0)
        if self._touched:
            rows = np.concatenate(self._touched, axis=1)
            self._find_race(rows, np.zeros_like(rows[0]), rows[1] // self.n_threads)

    def read(self, most: int = _FLUSH) -> None:
        """Look at the accesses of whole blocks, if there are more than that, and forget them."""
        if len(self.records) <= most:
            return
        records, (phase, thread, ends) = np.array(self.records), np.array(self.turns).T
        self.records[:], self.turns[:] = array("q"), []
        turn = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        site, element = records >> 40, records & _ELEMENT
        _, is_shared, start, columns, row_step, column_step = self._sites[:, site]
        address = start + element // columns * row_step + element % columns * column_step
        rows = np.stack([phase[turn], thread[turn], site, element, address])
        self._find_race(rows, rows[0], rows[1])
        block = rows[1] // self.n_threads
        self._find_early(rows[:, is_shared > 0], block[is_shared > 0])
        self._count(rows, is_shared > 0)
        touched, at = rows[:, is_shared == 0], block[is_shared == 0]
        self._touched.append(touched[:, _groups(touched[4], at, touched[2]).first])

    def _kinds(self, rows: Any) -> Any:
        return self._sites[0][rows[2]]

    def _count(self, rows: Any, is_shared: Any) -> None:
        """Group the accesses that the threads of a warp make together: the n-th at one site."""
        phase, thread, site, _, address = rows
        number, kind = thread % self.n_threads, self._kinds(rows)[~is_shared]
        before = _groups(phase, thread, site).rank
        together = _groups(phase, number // WARP, site, before)
        group, first = together.number, together.first
        pieces = group[~is_shared][_groups(group[~is_shared], address[~is_shared] // PIECE).first]
        word, bank_of = address[is_shared] // 4, group[is_shared]
        words = _groups(bank_of, word).first
        wanted = _groups(bank_of[words], word[words] % BANKS)
        asked = np.bincount(pieces, minlength=len(first))
        np.maximum.at(asked, bank_of[words][wanted.first], np.bincount(wanted.number))
        in_warp = np.minimum(WARP, self.n_threads - number[first] // WARP * WARP)
        conflicts = np.where(is_shared[first], asked - 1, 0)
        more = (
            int((kind != STORE).sum()),
            int((kind != LOAD).sum()),
            len(pieces),
            int(conflicts.sum()),
            int(in_warp.sum()) - len(group),
            0,
        )
        self.counts = Counts(*map(sum, zip(self.counts, more, strict=True)))
        shown = np.concatenate([rows, [before, asked[group]]])[:, thread < self.n_threads]
        self.shown = np.concatenate([self.shown, shown[:, :_MOST_SHOWN]], axis=1)

    def _find_race(self, rows: Any, scope: Any, who: Any) -> None:
        """KernelError if two of ``who`` touch an element in one ``scope``, and one writes it."""
        group, _, first = _groups(scope, rows[4])
        lowest, highest, kinds = who[first], who[first], np.zeros_like(first)
        np.minimum.at(lowest, group, who)
        np.maximum.at(highest, group, who)
        np.bitwise_or.at(kinds, group, self._kinds(rows))
        races = (lowest != highest) & ((kinds & STORE > 0) | (kinds == LOAD | ATOMIC))
        if not races.any():
            return
        # of them the one at the lowest address; in it the write of the lowest thread, and the
        # lowest other one: the same in whatever order the threads ran
        at = min(np.flatnonzero(races), key=lambda it: tuple(rows[4:0:-3, first[it]]))
        own, who = rows[:, group == at], who[group == at]
        kinds = self._kinds(own)
        ordered = sorted(range(len(who)), key=lambda it: (kinds[it] & LOAD, own[1, it]))
        one, other = next(
            pair
            for pair in itertools.permutations(ordered, 2)
            if who[pair[0]] != who[pair[1]] and not kinds[pair[0]] & kinds[pair[1]] & ~STORE
        )
        self._refuse_race(own[:, one], own[:, other])

    def _refuse_race(self, *pair: Any) -> NoReturn:
        lines = sorted({self.source.sites[it[2]].line for it in pair})
        blocks = {it[1] // self.n_threads for it in pair}
        target, is_sum, value = self.source.at(lines[0]).partition(": ")[2].partition(" += ")
        who = "thread" if len(blocks) == 1 else "block"
        repair = f"another element for each {who}, or cuda.atomic_add"
        if is_sum and len(lines) == 1:
            repair = f"cuda.atomic_add({target.strip(' ]').replace('[', ', ', 1)}, {value})"
        elif len(lines) == 2 and len(blocks) == 1:
            repair = f"cuda.syncthreads() between line {lines[0]} and line {lines[1]}"
        kinds = [self.source.sites[it[2]].kind for it in pair]
        words = [{LOAD: "reads", STORE: "writes"}.get(it, "adds to") for it in kinds]
        self._refuse_access(
            f"races: two {who}s touch {{}}, and one of them writes",
            {tuple(row): f" {word} it" for row, word in zip(pair, words, strict=True)},
            ", with no barrier between: the result depends on who is first",
            repair,
        )

    def _find_early(self, rows: Any, block: Any) -> None:
        """KernelError if shared memory is read before its block has written it."""
        first = _groups(block, rows[4]).first  # in the order in which the threads ran
        early = rows[:, first[self._kinds(rows)[first] != STORE]].T
        if len(early):
            row = min(early, key=lambda it: (it[4], it[1]))
            name = self.source.sites[row[2]].array
            repair = f"{name}[...] = 0.0 in every thread, then cuda.syncthreads(), before this line"
            why = ". Shared memory begins with no meaning, in each block anew"
            first = "reads {} before any thread has written it"
            self._refuse_access(first, {tuple(row): " was there"}, why, repair)

    def _refuse_access(
        self, what: str, rows: dict[tuple[Any, ...], str], why: str, repair: str
    ) -> NoReturn:
        """``refuse`` with the element in ``what``, which all of these accesses touch."""
        acts = [(self.source.sites[it[2]].line, int(it[1]), does) for it, does in rows.items()]
        _, _, site, element, _ = next(iter(rows))
        name = self.source.sites[site].array
        index = tuple(map(int, np.unravel_index(element, self.hosts[name].shape)))
        what = what.format(f"{name}[{', '.join(map(str, index))}]")
        self.refuse(what, acts, why, repair=repair, element=index)

    def refuse(
        self, what: str, acts: list[tuple[int, int, str]], why: str, **more: Any
    ) -> NoReturn:
        """KernelError about what threads do: at which line, the number of the thread, in words."""
        told = ", ".join(f"{self.who(number)}{does}" for _, number, does in acts)
        numbers = [divmod(number, self.n_threads) for _, number, _ in acts]
        raise KernelError(
            f"Kernel {self.source.name} {what}",
            *map(self.source.at, sorted({line for line, _, _ in acts})),
            f"{told[:1].upper()}{told[1:]}{why}.",
            line=acts[0][0],
            block=tuple(self.blocks.place(numbers[0][0])),
            threads=tuple(tuple(self.threads.place(it)) for _, it in numbers),
            **more,
        ) from None

    def who(self, number: int) -> str:
        """``thread 3 of block 0``; ``thread (3, 1)`` where there are two dimensions."""
        block, thread = divmod(number, self.n_threads)
        return f"thread {self.threads.shown(thread)} of block {self.blocks.shown(block)}"


def _least(source: Source, arrays: dict[str, Any]) -> Counts:
    """Each argument that is read is read once, each that is written once."""
    read, written = (
        [it for name, it in arrays.items() if name in source.touched(kinds)]
        for kinds in (LOAD | ATOMIC, STORE | ATOMIC)
    )
    pieces = sum(-(-it.size * it.itemsize // PIECE) for it in read + written)
    return Counts(sum(it.size for it in read), sum(it.size for it in written), pieces)


class _Groups(NamedTuple):
    number: Any  # of each entry: the number of its group
    rank: Any  # of each entry: how many of its group come before
    first: Any  # of each group: its first entry


def _groups(*keys: Any) -> _Groups:
    """Entries whose keys are all equal belong together."""
    order = np.lexsort(keys[::-1])  # equal ones stay in their order
    is_new = np.arange(len(order)) == 0
    is_new[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    first, number, rank = np.flatnonzero(is_new), np.empty_like(order), np.empty_like(order)
    number[order] = np.cumsum(is_new) - 1
    rank[order] = np.arange(len(order)) - first[number[order]]
    return _Groups(number, rank, order[first])
