"""``viz.timeline``: what a cell asked of a CUDA device, and when."""

from collections.abc import Iterable, Sequence
from typing import Any

from tensorkit.viz import words
from tensorkit.viz.chart import short, ticks
from tensorkit.viz.drawing import Canvas, Picture, heading, said, text_width
from tensorkit.viz.palette import EDGE, INK, SERIES, SOFT

KINDS = ("transfer", "launch", "synchronise")
LANE, WIDTH, LEFT, MOST_TOLD = 26.0, 720.0, 130.0, 40


def timeline(ledger: Iterable[Any], right: Iterable[Any] | None = None) -> Picture:
    """Transfers, launches and synchronisations over time; a second ledger below, on one scale.

    A ledger is an iterable of records with ``kind`` ("transfer", "launch" or "synchronise"),
    ``name``, ``start`` and ``duration`` in seconds; and, where they apply, ``direction``, ``bytes``
    and ``line`` (file, line). The first is the naive version, ``right`` the right one.

    >>> from tensorkit import viz
    >>> viz.timeline([])
    Nothing happened
    The ledger is empty: nothing was asked of the device.
    """
    ledgers = [("", list(ledger))] if right is None else [
        ("naive", list(ledger)), ("right", list(right))
    ]  # fmt: skip
    if not any(events for _, events in ledgers):
        return said("Nothing happened", "The ledger is empty: nothing was asked of the device.")
    title = "Timeline of the device" if right is None else "Timeline of the device: naive and right"
    end = max(it.start - _first(events) + it.duration for _, events in ledgers for it in events)
    unit, per_second = next(
        ((u, n) for u, n in (("s", 1), ("ms", 1e3), ("µs", 1e6)) if end * n >= 1), ("ns", 1e9)
    )
    scale = (end * per_second or 1.0, per_second)
    canvas = Canvas()
    text = [title]
    low = heading(canvas, title)
    for name, events in ledgers:
        summary = f"{name}: {_summary(events)}" if name else _summary(events)
        canvas.text(18, low + 14, summary, 12.5, INK, bold=bool(name))
        text.append(summary)
        low = _draw(canvas, events, low + 24, scale)
        text += _told(events, scale, unit)
    for tick in ticks(0, scale[0]):
        x = LEFT + WIDTH * tick / scale[0]
        canvas.text(x, low + 8, f"{short(tick)} {unit}", 11, SOFT, anchor="middle")
    return Picture(title, canvas, "\n".join(text))


def _first(events: Sequence[Any]) -> float:
    return min((it.start for it in events), default=0.0)


def _summary(events: Sequence[Any]) -> str:
    moved = sum(getattr(it, "bytes", 0) or 0 for it in events if it.kind == "transfer")
    counts = [
        words.count(sum(it.kind == kind for it in events), noun)
        for kind, noun in zip(KINDS, ("transfer", "launch", "synchronisation"), strict=True)
    ]
    return f"{counts[0]} of {words.n_bytes(moved)}, {counts[1]}, {counts[2]}"


def _draw(canvas: Canvas, events: Sequence[Any], top: float, scale: tuple[float, float]) -> float:
    most, per_second = scale
    bottom = top + LANE * len(KINDS)
    for tick in ticks(0, most):
        x = LEFT + WIDTH * tick / most
        canvas.line([(x, top), (x, bottom)], EDGE, width=0.8)
    first = _first(events)
    for lane, kind in enumerate(KINDS):
        y = top + LANE * lane
        canvas.text(18, y + 17, kind, 12, SOFT)
        canvas.line([(LEFT, y + LANE), (LEFT + WIDTH, y + LANE)], EDGE, width=0.8)
        for event in events:
            if event.kind == kind:
                x = LEFT + WIDTH * (event.start - first) * per_second / most
                width = max(WIDTH * event.duration * per_second / most, 2.0)
                fill, ink = SERIES[lane]
                canvas.rect(x, y + 4, width, LANE - 8, fill, radius=2)
                if text_width(event.name, 11) < width - 6:
                    canvas.text(x + width / 2, y + 17, event.name, 11, ink, anchor="middle")
    return bottom + 14


def _told(events: Sequence[Any], scale: tuple[float, float], unit: str) -> list[str]:
    _, per_second = scale
    first = _first(events)
    lines = []
    for event in events[:MOST_TOLD]:
        facts = [event.kind, event.name]
        if getattr(event, "direction", None):
            facts.append(str(event.direction))
        if getattr(event, "bytes", None):
            facts.append(words.n_bytes(event.bytes))
        start, duration = (event.start - first) * per_second, event.duration * per_second
        began, took = words.number(float(start)), words.number(float(duration))
        told = f"  at {began} {unit} for {took} {unit}"
        line = getattr(event, "line", None)
        where = f" ({words.place(*line)})" if line else ""
        lines.append(f"{told}: {' '.join(facts)}{where}")
    if len(events) > MOST_TOLD:
        lines.append(f"  and {len(events) - MOST_TOLD:,} more")
    return lines
