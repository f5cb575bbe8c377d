"""What a CUDA device was asked to do: transfers, launches, synchronisations, one record each.

``record()`` opens a ledger that notes them until its block ends. Backends note: the simulated
device everything, a real one what passes through the library. Times are those of the backend's
clock, in seconds.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tensorkit.thread_state import of_user


class Record(NamedTuple):
    """One thing asked of a device."""

    kind: str  # transfer, launch or synchronise
    name: str  # what asked for it: to, item, print; or the function that was launched
    direction: str | None  # of a transfer: "host to device", "device to host", "device to device"
    bytes: int
    line: tuple[str, int]  # file and line of the caller outside of the library
    start: float
    duration: float

    def __repr__(self) -> str:
        moved = f", {self.direction}, {_counted(self.bytes, 'byte', 's')}" if self.direction else ""
        return f"<{self.kind}: {self.name}{moved}>"


class Ledger:
    """The records of a block, in order.

    >>> with tk.cuda.simulate(), tk.cuda.record() as ledger:
    ...     total = tk.ones(3).cuda().sum().item()
    >>> ledger
    2 transfers (16 bytes in all), 1 launch, 1 synchronisation
    >>> ledger.transfers[0]
    <transfer: to, host to device, 12 bytes>
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.sees_launches = True  # not a GPU's, which CuPy starts by itself

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def _of(self, kind: str) -> list[Record]:
        return [each for each in self.records if each.kind == kind]

    @property
    def transfers(self) -> list[Record]:
        """Copies between the host's memory and the device's, or between devices."""
        return self._of("transfer")

    @property
    def launches(self) -> list[Record]:
        """Kernels that were started."""
        return self._of("launch")

    @property
    def synchronisations(self) -> list[Record]:
        """Places where the host waited for the device."""
        return self._of("synchronise")

    def counts(self, kind: str = "launch") -> dict[str, int]:
        """How often each name occurs among the records of one kind."""
        return dict(Counter(each.name for each in self._of(kind)))

    def __repr__(self) -> str:
        parts = [
            f"{_counted(len(self.transfers), 'transfer', 's')} ({bytes_of(self.transfers)})",
            _counted(len(self.launches), "launch", "es")
            if self.sees_launches
            else "launches not seen",
            _counted(len(self.synchronisations), "synchronisation", "s"),
        ]
        return ", ".join(parts)


def _counted(count: int, noun: str, plural: str) -> str:
    return f"{count} {noun}{'' if count == 1 else plural}"


def bytes_of(records: list[Record]) -> str:
    """How many bytes these moved, in words."""
    return _counted(sum(x.bytes for x in records), "byte", "s") + " in all" * (len(records) > 1)


_open: list[Ledger] = []


class record:
    """``with tk.cuda.record() as ledger:`` notes what the CUDA devices are asked to do."""

    def __init__(self) -> None:
        self.ledger = Ledger()

    def __enter__(self) -> Ledger:
        _open.append(self.ledger)
        return self.ledger

    def __exit__(self, *_: object) -> None:
        # by identity: two ledgers may hold the same records
        _open[:] = [each for each in _open if each is not self.ledger]


class unrecorded:
    """``with unrecorded():`` what devices are asked to do within stands in no ledger."""

    def __enter__(self) -> None:
        self._before = _open[:]
        _open.clear()

    def __exit__(self, *_: object) -> None:
        _open[:] = self._before


def note(
    kind: str,
    name: str,
    start: float,
    duration: float,
    direction: str | None = None,
    size: int = 0,
    *,
    sees_launches: bool = True,
) -> None:
    """Write a record into every open ledger; who notes says whether it would note launches."""
    if _open:
        user = of_user(sys._getframe(1))
        line = user.f_code.co_filename, user.f_lineno
        made = Record(kind, name, direction, size, line, start, duration)
        for each in _open:
            each.records.append(made)
            each.sees_launches &= sees_launches
