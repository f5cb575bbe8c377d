"""``viz.timeline``: what a cell asked of a CUDA device, when, and at which lines."""

from collections import Counter
from itertools import groupby
from typing import Any

from tensorkit.ledger import Ledger, Record
from tensorkit.viz import table, words
from tensorkit.viz.chart import short, ticks
from tensorkit.viz.drawing import Canvas, Picture, heading, said, text_width
from tensorkit.viz.palette import EDGE, INK, SERIES, SOFT

KINDS = {"transfer": "transfers", "launch": "launches", "synchronise": "synchronisations"}
LANES = ("host to device", "launch", "synchronise", "device to host")
_LABELS = {"launch": "launch: running"}
_RUNNING = "A bar of a launch is the device running it; the host does not wait for that."
_SAME_LANE = {"host to device": "device to device"}
LANE, WIDTH, LEFT, MOST_TOLD, MOST_LINES = 26.0, 720.0, 130.0, 40, 12

Scale = tuple[float, str, float]
"""The length of the time axis, its unit, and how many of the unit are a second."""


def timeline(ledger: Ledger, other: Ledger | None = None) -> Picture:
    """Transfers, launches and synchronisations over time; a second ledger below, on one scale.

    A ledger is what ``tk.cuda.record()`` opens. Two are called as the caller's variables are. Below
    each stands what its lines of code asked for. Times begin at the first record; those of a
    simulated device are a model's, the same on every machine.

    >>> from tensorkit import viz
    >>> with tk.cuda.simulate(), tk.cuda.record() as ledger:
    ...     total = tk.ones(3).cuda().sum().item()
    >>> viz.timeline(ledger).alt.splitlines()[2]
    '2 transfers, 16 bytes in all; 1 launch; 1 synchronisation; over 30 µs'
    """
    ledgers = [("", ledger)] if other is None else _named(ledger, other)
    for _, it in ledgers:
        if not isinstance(it, Ledger):
            raise TypeError(
                f"viz.timeline() wants a ledger, not {type(it).__name__}. "
                "Try: with tk.cuda.record() as ledger: ..."
            )
    if not any(map(len, (it for _, it in ledgers))):
        return said("Nothing happened", "The ledger is empty: nothing was asked of a CUDA device.")
    title = "Timeline of the device"
    if other is not None:
        title += f": {' and '.join(name for name, _ in ledgers)}"
    end = max(_duration(it) for _, it in ledgers)
    unit, per_second = words.time_unit(end)
    scale = (end * per_second or 1.0, unit, per_second)
    canvas = Canvas()
    below = _RUNNING if any(it.launches for _, it in ledgers) else ""
    text = [title, *filter(None, [below])]
    low = heading(canvas, title, below)
    for name, it in ledgers:
        summary = _summary(it)
        right_end = canvas.text(18, low + 14, name, 12.5, bold=True) + 10 if name else 18
        canvas.text(right_end, low + 14, summary, 12.5, INK)
        low = _draw(canvas, it, low + 24, scale)
        header, rows = ("line", *KINDS.values()), _by_line(it)
        shown = rows[:MOST_LINES]
        if len(rows) > MOST_LINES:
            shown.append([f"and {len(rows) - MOST_LINES} more lines", "", "", ""])
        low = table.draw(canvas, 18, low + 8, header, shown, widest=480) + 22
        text += [f"{name}: {summary}" if name else summary, *table.text(header, rows)]
        text += _told(it)
    return Picture(title, canvas, "\n".join(text))


def _named(*ledgers: Ledger) -> list[tuple[str, Ledger]]:
    """Each ledger with the name that it has where the picture is asked for."""
    frame = words.caller()
    known = {**frame.f_globals, **frame.f_locals}
    names = {id(it): name for name, it in known.items() if not name.startswith("_")}
    return [
        (names.get(id(it), word).replace("_", " "), it)
        for it, word in zip(ledgers, ("first", "second"), strict=True)
    ]


def _since(ledger: Ledger, moment: float) -> float:
    """Seconds from the first record to a moment; without the last digits, where clocks differ."""
    return round(moment - ledger.records[0].start, 12)


def _duration(ledger: Ledger) -> float:
    return max((_since(ledger, it.start + it.duration) for it in ledger), default=0.0)


def _summary(ledger: Ledger) -> str:
    counts = [
        words.count(len(ledger.transfers), "transfer") + _moved(ledger.transfers),
        words.count(len(ledger.launches), "launch")
        if ledger.sees_launches
        else "launches not seen",
        words.count(len(ledger.synchronisations), "synchronisation"),
    ]
    return f"{'; '.join(counts)}; over {words.duration(_duration(ledger))}"


def _moved(records: list[Record]) -> str:
    n = sum(it.bytes for it in records)
    return f", {words.n_bytes(n)}{' in all' if len(records) > 1 else ''}" if n else ""


def _by_line(ledger: Ledger) -> list[list[str]]:
    """What each line of code asked for: the line, then the number of records of each kind."""
    by_line: dict[Any, list[Record]] = {}
    for it in ledger:
        by_line.setdefault(it.line, []).append(it)
    rows = []
    for line, records in by_line.items():
        row = [words.place(*line)]
        for kind in KINDS:
            own = [it for it in records if it.kind == kind]
            row.append(f"{len(own):,}{_moved(own)}" if own else "")
        rows.append(row)
    return rows


def _draw(canvas: Canvas, ledger: Ledger, top: float, scale: Scale) -> float:
    most, unit, per_second = scale
    bottom = top + LANE * len(LANES)
    for tick in ticks(0, most):
        x = LEFT + WIDTH * tick / most
        canvas.line([(x, top), (x, bottom)], EDGE, width=0.8)
        canvas.text(x, bottom + 14, f"{short(tick)} {unit}", 11, SOFT, anchor="middle")
    for number, lane in enumerate(LANES):
        y = top + LANE * number
        canvas.text(18, y + 17, _LABELS.get(lane, lane), 12, SOFT)
        canvas.line([(LEFT, y + LANE), (LEFT + WIDTH, y + LANE)], EDGE, width=0.8)
        reached = 0.0
        for it in ledger:
            if (it.direction or it.kind) not in (lane, _SAME_LANE.get(lane)):
                continue
            x = LEFT + WIDTH * _since(ledger, it.start) * per_second / most
            width = max(WIDTH * it.duration * per_second / most - 1, 1.5)
            if x + width > reached + 1:  # else it would not be seen
                reached = x + width
                fill, ink = SERIES[number]
                canvas.rect(x, y + 4, width, LANE - 8, fill, radius=2)
                if text_width(it.name, 11) < width - 6:
                    canvas.text(x + width / 2, y + 17, it.name, 11, ink, anchor="middle")
    return bottom + 14


def _told(ledger: Ledger) -> list[str]:
    """The records in words; neighbours of one kind and line together."""
    told = []
    for (kind, line, direction), group in groupby(
        ledger, lambda it: (it.kind, it.line, it.direction)
    ):
        records = list(group)
        start = words.duration(_since(ledger, records[0].start))
        names = ", ".join(
            name if n == 1 else f"{n:,} times {name}"
            for name, n in Counter(it.name for it in records).items()
        )
        way = f", {direction}{_moved(records)}" if direction else ""
        told.append(f"at {start}: {kind} {names}{way} ({words.place(*line)})")
    more = [f"and {len(told) - MOST_TOLD:,} more"] if len(told) > MOST_TOLD else []
    return [*told[:MOST_TOLD], *more]
