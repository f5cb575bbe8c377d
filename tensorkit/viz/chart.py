"""Axes with ticks, and curves upon them."""

import math
from collections.abc import Callable, Sequence

from tensorkit.viz.drawing import Canvas
from tensorkit.viz.palette import DASHES, EDGE, INK, SERIES, SOFT, WHITE
from tensorkit.viz.words import number

Range = tuple[float, float]
Points = Sequence[tuple[float, float]]


def span(values: Sequence[float], *, log: bool = False) -> Range:
    """The range of the values that can be drawn; (0, 1), or (1, 10), if there are none."""
    good = [it for it in values if math.isfinite(it) and (it > 0 or not log)]
    if not good:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(good), max(good)
    if low == high:
        margin = abs(low) / 2 + 0.5
        return (low / 2, high * 2) if log else (low - margin, high + margin)
    return low, high


def ticks(low: float, high: float, *, log: bool = False) -> list[float]:
    """Four to seven round numbers between; on a logarithmic axis powers of ten."""
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        every = max(1, -(-(last - first) // 6))
        powers = [10.0**power for power in range(first, last + 1, every)]
        return powers if len(powers) > 1 else [low, high]
    rough = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * it for it in (1, 2, 2.5, 5, 10) if unit * it >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * it for it in range(first, last + 1)]


def short(value: float) -> str:
    """A number on an axis."""
    if value == int(value) and 1000 <= abs(value) < 1e8:
        return f"{value:,.0f}"
    text = number(float(f"{value:.6g}"))
    return text.removesuffix(".")


class Axes:
    """A frame in which numbers have a place."""

    def __init__(
        self,
        canvas: Canvas,
        frame: tuple[float, float, float, float],
        x: Range,
        y: Range,
        *,
        log_x: bool = False,
        log_y: bool = False,
    ) -> None:
        self.canvas, self.frame = canvas, frame
        self._ranges = (x, y)
        self._log = (log_x, log_y)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point."""
        left, top, width, height = self.frame
        return left + width * self._share(0, x), top + height * (1 - self._share(1, y))

    def _share(self, axis: int, value: float) -> float:
        low, high = self._ranges[axis]
        if self._log[axis]:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)

    def draw(self, x_label: str, y_label: str, told: Callable[[float], str] = short) -> None:
        """Draw the frame, the grid of ticks, and what the axes are. ``told`` is for y's ticks."""
        left, top, width, height = self.frame
        self.canvas.rect(left, top, width, height, WHITE, SOFT, line=1)
        for tick in ticks(*self._ranges[0], log=self._log[0]):
            x, _ = self.at(tick, self._ranges[1][0])
            self.canvas.line([(x, top), (x, top + height)], EDGE, width=0.8)
            self.canvas.text(x, top + height + 15, short(tick), 11, SOFT, anchor="middle")
        for tick in ticks(*self._ranges[1], log=self._log[1]):
            _, y = self.at(self._ranges[0][0], tick)
            self.canvas.line([(left, y), (left + width, y)], EDGE, width=0.8)
            self.canvas.text(left - 6, y + 4, told(tick), 11, SOFT, anchor="end")
        middle = left + width / 2
        self.canvas.text(middle, top + height + 33, x_label, 12, SOFT, anchor="middle")
        self.canvas.text(left, top - 8, y_label, 12, INK, bold=True)

    def curves(self, named: Sequence[tuple[str, Points]]) -> None:
        """Draw curves, told apart by colour, dashes and the name at their end."""
        left, top, width, height = self.frame
        ends: list[tuple[float, str, str, str]] = []
        for place, (name, points) in enumerate(named):
            colour, dash = SERIES[place % 6][0], DASHES[place % 6]
            good = [it for it in points if self._fits(it)]
            for piece in self._pieces(points):
                at = [self.at(*it) for it in piece]
                self.canvas.line(at, colour, width=2, dash=dash)
                for x, y in at if len(points) <= 40 else at[:1] if len(at) == 1 else []:
                    self.canvas.dot(x, y, 2.6, colour)
            y = self.at(*good[-1])[1] if good else top + height
            ends.append((y, name, colour, dash))
        lowest = 0.0
        for y, name, colour, dash in sorted(ends, key=lambda end: end[0]):
            y = lowest = max(y, lowest)  # names keep a line's distance
            lowest += 16
            x = left + width + 8
            self.canvas.line([(x, y), (x + 22, y)], colour, width=2, dash=dash)
            self.canvas.text(x + 28, y + 4, name, 12, INK)

    def _fits(self, point: tuple[float, float]) -> bool:
        return all(
            math.isfinite(value) and (value > 0 or not log)
            for value, log in zip(point, self._log, strict=True)
        )

    def _pieces(self, points: Points) -> list[list[tuple[float, float]]]:
        """The points, interrupted where one cannot be drawn."""
        pieces: list[list[tuple[float, float]]] = [[]]
        for point in points:
            if self._fits(point):
                pieces[-1].append(point)
            elif pieces[-1]:
                pieces.append([])
        return [piece for piece in pieces if piece]
