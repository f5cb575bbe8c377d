"""How a tensor prints: PyTorch's text, character for character.

The text is made in three steps: choose the elements to show (all, or the edges of a large
tensor), choose one number format for them, write the nested rows and break lines at the width.
"""

import math
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.autograd.node import NO_GRAD_VIEW, edge_of
from tensorkit.base import TensorBase
from tensorkit.direct_path import without_warnings

# what ``set_printoptions`` sets
_options: dict[str, Any] = {
    "precision": 4,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 80,
    "sci_mode": None,
}
_PROFILES: dict[str | None, dict[str, Any]] = {
    "default": _options,
    "short": {**_options, "precision": 2, "edgeitems": 2},
    "full": {**_options, "threshold": math.inf},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose digits, line width and when large tensors are shortened.

    ``profile`` is "default", "short" or "full". ``sci_mode`` forces scientific notation on or
    off; it returns to automatic whenever it is not given.

    >>> tk.set_printoptions(precision=2)
    >>> tk.tensor([1 / 3])
    tensor([0.33])
    >>> tk.set_printoptions(profile="default")
    """
    global _options
    given = zip(_options, (precision, threshold, edgeitems, linewidth), strict=False)
    chosen = {name: value for name, value in given if value is not None}
    _options = {**_PROFILES.get(profile, _options), **chosen, "sci_mode": sci_mode}


def get_printoptions() -> dict[str, Any]:
    """The options in force, as ``tk.set_printoptions`` takes them.

    >>> from tensorkit import printing
    >>> printing.get_printoptions()["precision"]
    4
    """
    return _options.copy()


def text(x: TensorBase) -> str:
    """The text that ``repr`` and ``str`` give for a tensor."""
    prefix = "tensor("
    array = x.device.backend.to_host(x._array, "print")
    suffixes = [] if x.device.type == "cpu" else [f"device='{x.device}'"]
    shorten = array.size > _options["threshold"]
    body = "[]"
    if array.size:
        number = _Format(_edges(array) if shorten else array, x.dtype)
        body = _rows(array, len(prefix), shorten, number)
    if not _options["edgeitems"] if array.size else array.ndim != 1:
        suffixes.append(f"size={tuple(x.shape)}")
    implied = (dtypes.int64, dtypes.bool_) if array.size else ()
    if x.dtype not in (dtypes.get_default_dtype(), *implied):
        suffixes.append(f"dtype={x.dtype}")
    edge = None if x._node is NO_GRAD_VIEW else edge_of(x)
    if edge is not None:
        suffixes.append("requires_grad=True" if edge is x else f"grad_fn={edge!r}")
    body = prefix + body
    width = len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if width + len(suffix) + 2 > _options["linewidth"]:
            body += ",\n" + " " * len(prefix) + suffix
            width = len(prefix) + len(suffix)
        else:
            body += ", " + suffix
            width += len(suffix) + 2
    return body + ")"


def _edges(array: Any) -> Any:
    """The elements that a shortened text shows, in the same number of dimensions."""
    edge = _options["edgeitems"]
    if not edge:
        return array if array.ndim < 2 else array[:0]
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            array = array.take([*range(edge), *range(-edge, 0)], axis)
    return array


class _Format:
    """One number format for all elements shown: integer, fixed or scientific, and its width."""

    def __init__(self, array: Any, dtype: dtypes.DType) -> None:
        self.is_floating = dtype.is_floating_point
        self.whole_numbers, self.scientific = True, False
        values = array.ravel()
        if self.is_floating:
            values = without_warnings(values.astype, np.float64)
            values = values[np.isfinite(values) & (values != 0)]
        if self.is_floating and values.size:  # else zeros, infinities and nans: the width is 1
            largest, smallest = float(np.abs(values).max()), float(np.abs(values).min())
            self.whole_numbers = bool((values == np.ceil(values)).all())
            spread = without_warnings(np.divide, largest, smallest)
            self.scientific = bool(spread > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4)
            if _options["sci_mode"] is not None:
                self.scientific = _options["sci_mode"]
        self.width = max([1, *(len(self._number(value)) for value in values.tolist())])

    def _number(self, value: Any) -> str:
        if not self.is_floating:
            return str(value)
        if self.scientific:
            return f"{value:.{_options['precision']}e}"
        if self.whole_numbers:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{_options['precision']}f}"

    def __call__(self, value: Any) -> str:
        return self._number(value).rjust(self.width)


def _rows(array: Any, indent: int, shorten: bool, number: _Format) -> str:
    n_dims, edge = array.ndim, _options["edgeitems"]
    if not n_dims:
        return number(array.item())
    size, per_line, dots = len(array), 1, "..."
    if n_dims == 1:  # as many numbers on a line as there is room for
        per_line = max(1, (_options["linewidth"] - indent) // (number.width + 2))
        dots = " ..." if edge else dots
    is_cut = shorten and size > 2 * edge
    parts = [*array[:edge], *array[size - edge :]] if is_cut else [*array]
    cells = [_rows(part, indent + 1, shorten, number) for part in parts]
    if is_cut:
        cells.insert(edge, dots)
    lines = [", ".join(cells[at : at + per_line]) for at in range(0, len(cells), per_line)]
    between = "," + "\n" * max(n_dims - 1, 1) + " " * (indent + 1)
    return "[" + between.join(lines) + "]"
