"""``viz.benchmark``: times over sizes, a curve per device."""

import math
from collections.abc import Mapping
from typing import Any

from tensorkit.viz import table
from tensorkit.viz.chart import Axes, span
from tensorkit.viz.drawing import Canvas, Picture, heading, said
from tensorkit.viz.words import duration

Times = dict[str, dict[float, float]]


def benchmark(times: Any, *, size: str = "elements") -> Picture:
    """The CPU/GPU chart: seconds over sizes, both axes logarithmic, and where curves cross.

    ``times`` is ``{"cpu": {1000: 2e-5, ...}, "cuda": {...}}``, or a list of records with the keys
    ``device``, ``size`` and ``seconds``. Nothing is measured here.

    >>> from tensorkit import viz
    >>> viz.benchmark({"cpu": {1: 1e-6, 100: 1e-4}, "cuda": {1: 1e-5, 100: 2e-5}})
    Time of a call over elements: cpu, cuda
    cuda is faster than cpu from 100 elements on, there 5 times.
    elements  cpu     cuda
    1         1 µs    10 µs
    100       100 µs  20 µs
    """
    measured = _times(times)
    sizes = sorted({at for each in measured.values() for at in each})
    if not sizes:
        return said("Nothing was measured", "The table of times is empty.")
    title = f"Time of a call over {size}: {', '.join(measured)}"
    crossings = _crossings(measured, size)
    canvas = Canvas()
    low = heading(canvas, title, " ".join(crossings))
    y = span([seconds for each in measured.values() for seconds in each.values()], log=True)
    x = span(sizes, log=True)
    axes = Axes(canvas, (80, low + 24, 440, 260), x, y, log_x=True, log_y=True)
    axes.draw(size, "time of a call", duration)
    axes.curves([(name, sorted(each.items())) for name, each in measured.items()])
    rows = [
        [f"{at:,.0f}", *(duration(each[at]) if at in each else "" for each in measured.values())]
        for at in sizes
    ]
    text = [title, *crossings, *table.text([size, *measured], rows)]
    return Picture(title, canvas, "\n".join(text))


def _times(times: Any) -> Times:
    try:
        if isinstance(times, Mapping):
            pairs = [(name, at, it) for name, each in times.items() for at, it in each.items()]
        else:
            pairs = [(row["device"], row["size"], row["seconds"]) for row in times]
        found: Times = {}
        for name, at, seconds in pairs:
            found.setdefault(str(name), {})[float(at)] = float(seconds)
    except (TypeError, IndexError, KeyError, AttributeError, ValueError):
        raise TypeError(
            'viz.benchmark() wants {"cpu": {1000: seconds}, ...} or records with device, size and '
            'seconds. Try: viz.benchmark({"cpu": {1000: 2e-5}})'
        ) from None
    return found


def _crossings(measured: Times, size: str) -> list[str]:
    """From which size on another device is faster than the first one."""
    first, *others = measured
    told = []
    for name in others:
        both = sorted(set(measured[first]) & set(measured[name]))
        faster = [at for at in both if measured[name][at] < measured[first][at]]
        lasting = [at for at in faster if all(it in faster for it in both if it >= at)]
        if lasting:
            at = lasting[0]
            ratio = measured[first][at] / measured[name][at] if measured[name][at] else math.inf
            told.append(
                f"{name} is faster than {first} from {at:,.0f} {size} on, there {ratio:.3g} times."
            )
        elif both:
            told.append(f"{name} is not faster than {first} at the largest size.")
    return told
