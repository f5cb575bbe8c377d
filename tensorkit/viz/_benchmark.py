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
    if not sizes:
        return text_picture("Nothing was measured", "The table of times is empty.")
    title = f"Time of a call over {size}: {', '.join(measured)}"

    def draw(axes: Any) -> None:
        for name, each in measured.items():
            points = sorted((at, it) for at, it in each.items() if at > 0 and it > 0)
            axes.plot(
                [at for at, _ in points], [it for _, it in points], marker="o", label=legible(name)
            )
        axes.set(xscale="log", yscale="log", xlabel=size, title="time of a call")
        for axis, in_words in ((axes.xaxis, short), (axes.yaxis, duration)):
            low, high = (math.log10(it) for it in axis.get_data_interval())
            axis.set_view_interval(10 ** math.floor(low), 10 ** math.ceil(high), ignore=True)
            axis.set_major_formatter(lambda value, _, in_words=in_words: in_words(value))
        axes.minorticks_off()
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))

    rows = [
        [f"{at:,.0f}", *(duration(each[at]) if at in each else "" for each in measured.values())]
        for at in sizes
    ]
    alt = "\n".join([title, *table([size, *measured], rows)])
    return chart(title, alt, draw, size=(660, 310))
