"""``viz.timeline``: what a cell asked of a CUDA device, when, and at which lines."""

from collections import Counter
from itertools import groupby
from typing import Any

from tensorkit.cuda.ledger import Ledger, Record, bytes_of
from tensorkit.viz import words
from tensorkit.viz.charts import chart, short
from tensorkit.viz.drawing import SERIES
from tensorkit.viz.picture import Explanation, Picture

MOST_RECORDS, MOST_LINES = 40, 12
KINDS = {"transfer": "transfers", "launch": "launches", "synchronise": "synchronisations"}
LANES = {
    "host to device": "host to device",
    "device to device": "host to device",
    "launch": "launch: running",
    "synchronise": "synchronise",
    "device to host": "device to host",
}


def timeline(ledger: Ledger, other: Ledger | None = None) -> Picture:
    """Transfers, launches and synchronisations over time; a second ledger below, on one scale.

    A ledger is what ``tk.cuda.record()`` opens. Two are called as the caller's variables are. Below
    the chart stands what each line of code asked for. Times begin at the first record; those of a
    simulated device are a model's, the same on every machine.

    >>> from tensorkit import viz
    >>> with tk.cuda.simulate(), tk.cuda.record() as ledger:
    ...     total = tk.ones(3).cuda().sum().item()
    >>> viz.timeline(ledger).alt.splitlines()[2]
    '2 transfers (16 bytes in all), 1 launch, 1 synchronisation, over 30 µs'
    """
    ledgers = [ledger] if other is None else [ledger, other]
    for each in ledgers:
        if not isinstance(each, Ledger):
            raise TypeError(
                f"viz.timeline() wants a ledger, not {type(each).__name__}. "
                "Try: with tk.cuda.record() as ledger: ..."
            )
    if not any(map(len, ledgers)):
        return Explanation("Nothing happened", "The ledger is empty: it has no record.")
    title, names = "Timeline of the device", [""]
    if other is not None:
        known = {id(value): name.replace("_", " ") for name, value in words.named_values().items()}
        names = [known.get(id(ledger), "first"), known.get(id(other), "second")]
        title += f": {' and '.join(names)}"
    running = "A bar of a launch is the device running it; the host does not wait for that."
    note = running if any(each.launches for each in ledgers) else ""
    longest = max(map(_duration, ledgers))
    unit, per_second = words.time_unit(longest)
    headings, text, below = [], [title, *filter(None, [note])], []
    for name, each in zip(names, ledgers, strict=True):
        summary = f"{each}, over {words.duration(_duration(each))}"
        headings.append(f"{name}: {summary}" if name else summary)
        rows = _by_line(each)
        text += [headings[-1], *words.table(("line", *KINDS.values()), rows), *_in_words(each)]
        shown = [[words.shortened(line, 54), *counts] for line, *counts in rows[:MOST_LINES]]
        below += [*words.table((name or "line", *KINDS.values()), shown), ""]

    def draw(*panels: Any) -> None:
        lanes = list(dict.fromkeys(LANES.values()))
        for axes, each, heading in zip(panels, ledgers, headings, strict=True):
            for n, (lane, (colour, _)) in enumerate(zip(lanes, SERIES, strict=False)):
                spans = [(at * per_second, time * per_second) for at, time in _spans(each, lane)]
                axes.broken_barh(spans, (n - 0.35, 0.7), color=colour, linewidth=1.5)
            axes.set(
                title=heading, xlim=(0, longest * per_second or 1), ylim=(len(lanes) - 0.5, -0.5)
            )
            axes.set_yticks(range(len(lanes)), lanes)
            axes.xaxis.set_major_formatter(lambda value, _: f"{short(value)} {unit}")

    size = (760, 165 * len(ledgers))
    panels = (len(ledgers), 1)
    return chart(title, "\n".join(text), draw, note=note, panels=panels, size=size, lines=below)


def _since(ledger: Ledger, moment: float) -> float:
    """Seconds from the first record to a moment; without the last digits, where clocks differ."""
    return round(moment - ledger.records[0].start, 12)


def _duration(ledger: Ledger) -> float:
    return max((_since(ledger, record.start + record.duration) for record in ledger), default=0.0)


def _spans(ledger: Ledger, lane: str) -> list[tuple[float, float]]:
    """Start and duration of the records in a lane; those that would not be seen are left out."""
    found = [(0.0, -1.0)]
    for record in ledger:
        if LANES[record.direction or record.kind] == lane:
            start = _since(ledger, record.start)
            if start + record.duration > sum(found[-1]) + _duration(ledger) / 600:
                found.append((start, record.duration))
    return found[1:]


def _moved(records: list[Record]) -> str:
    return f", {bytes_of(records)}" if any(record.bytes for record in records) else ""


def _by_line(ledger: Ledger) -> list[list[str]]:
    """What each line of code asked for: the line, then the number of records of each kind."""
    rows = []
    for line in dict.fromkeys(record.line for record in ledger):
        row = [words.code_line(*line)]
        for kind in KINDS:
            records = [record for record in ledger if record.line == line and record.kind == kind]
            row.append(f"{len(records):,}{_moved(records)}" if records else "")
        rows.append(row)
    return rows


def _in_words(ledger: Ledger) -> list[str]:
    """The records in words; neighbours of one kind and line together."""
    lines = []
    for (kind, line, way), group in groupby(ledger, lambda r: (r.kind, r.line, r.direction)):
        records = list(group)
        start = words.duration(_since(ledger, records[0].start))
        counts = Counter(record.name for record in records).items()
        names = ", ".join(name if n == 1 else f"{n:,} times {name}" for name, n in counts)
        moved = f", {way}{_moved(records)}" if way else ""
        lines.append(f"at {start}: {kind} {names}{moved} ({words.code_line(*line)})")
    more = [f"and {len(lines) - MOST_RECORDS:,} more"] if len(lines) > MOST_RECORDS else []
    return [*lines[:MOST_RECORDS], *more]
