"""``viz.benchmark``: times over sizes, a curve per device."""

import math
from collections.abc import Mapping
from typing import Any

from tensorkit.viz.charts import chart, short
from tensorkit.viz.drawing import legible
from tensorkit.viz.picture import Picture, text_picture
from tensorkit.viz.words import duration, table


def benchmark(times: Mapping[str, Mapping[float, float]], *, size: str = "elements") -> Picture:
    """The CPU/GPU chart: seconds over sizes, both axes logarithmic.

    ``times`` is ``{"cpu": {1000: 2e-5, ...}, "cuda": {...}}``. Nothing is measured here.

    >>> from tensorkit import viz
    >>> viz.benchmark({"cpu": {1: 1e-6, 100: 1e-4}, "cuda": {1: 1e-5, 100: 2e-5}})
    Time of a call over elements: cpu, cuda
    elements  cpu     cuda
    1         1 µs    10 µs
    100       100 µs  20 µs
    """
    try:
        measured = {
            name: {float(at): float(it) for at, it in times[name].items()} for name in times
        }
    except (TypeError, AttributeError, ValueError):
        raise TypeError(
            'viz.benchmark() wants {"cpu": {1000: seconds}, ...}. '
            'Try: viz.benchmark({"cpu": {1000: 2e-5}})'
        ) from None
    sizes = sorted({at for each in measured.values() for at in each})
    drawn = [(at, it) for each in measured.values() for at, it in each.items() if min(at, it) > 0]
    if not drawn:
        return text_picture("Nothing was measured", "The table holds no time above 0.")
    title = f"Time of a call over {size}: {', '.join(measured)}"

    def draw(axes: Any) -> None:
        for name, each in measured.items():
            points = sorted(each.items())
            axes.plot(
                [at for at, _ in points], [it for _, it in points], marker="o", label=legible(name)
            )
        axes.set(xscale="log", yscale="log", xlabel=size, title="time of a call")
        columns = zip(
            (axes.xaxis, axes.yaxis), (short, duration), zip(*drawn, strict=True), strict=True
        )
        for axis, in_words, values in columns:
            first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
            axis.set_view_interval(10**first, 10 ** max(last, first + 1), ignore=True)
            axis.set_major_formatter(lambda value, _, in_words=in_words: in_words(value))
        axes.minorticks_off()
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))

    rows = [
        [f"{at:,.0f}", *(duration(each[at]) if at in each else "" for each in measured.values())]
        for at in sizes
    ]
    alt = "\n".join([title, *table([size, *measured], rows)])
    return chart(title, alt, draw, size=(660, 310))
