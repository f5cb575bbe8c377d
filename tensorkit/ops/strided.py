"""Strided parts: reading, adding and writing a part of a tensor that a layout describes.

Each takes two layouts on one storage, ``source`` of the whole and ``target`` of the part. They are
the gradients of views and of writes through views, and each other's gradients.
"""

from typing import Any

from tensorkit import layout
from tensorkit.autograd.node import strided
from tensorkit.devices import backend_of
from tensorkit.dispatch import op
from tensorkit.errors import NotSupportedError
from tensorkit.layout import Layout
from tensorkit.ops.selection import zeros_as


def _laid_out(xp: Any, x: Any, source: Layout, target: Layout) -> tuple[Any, int]:
    """Flat memory that holds ``x`` as ``source`` says, and where in the storage it begins."""
    if layout.overlaps_itself(source.shape, source.strides):
        raise NotSupportedError(
            "tensorkit has no gradient for as_strided of an expanded tensor",
            "Several elements share memory there.",
            repair="x.contiguous().as_strided(...)",
        )
    start = min(source.offset, target.offset)
    end = max(each.offset + layout.extent(each.shape, each.strides) for each in (source, target))
    flat = xp.zeros(max(end - start, 0), x.dtype)
    _part(xp, flat, source, start)[...] = x
    return flat, start


def _part(xp: Any, flat: Any, part: Layout, start: int) -> Any:
    """The elements of ``flat`` that ``part`` describes."""
    return backend_of(flat).view(flat, part.shape, part.strides, part.offset - start)


@op()
def read_strided(xp: Any, x: Any, *, source: Layout, target: Layout) -> Any:
    """The part of ``x`` that ``target`` describes, as a copy."""
    flat, start = _laid_out(xp, x, source, target)
    return _part(xp, flat, target, start).copy()


@op()
def add_strided(xp: Any, x: Any, *, source: Layout, target: Layout) -> Any:
    """Zeros in the shape of ``source`` to which ``x`` is added where ``target`` looks.

    Elements that ``target`` sees several times receive the sum.
    """
    flat, start = _laid_out(xp, xp.zeros(source.shape, x.dtype), source, target)
    positions = _part(xp, xp.arange(flat.size), target, start)
    backend_of(flat).add_at(flat, positions.reshape(-1), x.reshape(-1))
    return _part(xp, flat, source, start).copy()


@op()
def write_strided(xp: Any, x: Any, y: Any, *, source: Layout, target: Layout) -> Any:
    """``x`` with ``y`` in place of the part that ``target`` describes."""
    flat, start = _laid_out(xp, x, source, target)
    _part(xp, flat, target, start)[...] = y
    return _part(xp, flat, source, start).copy()


read_strided.grad(
    x=lambda g, source, target: add_strided(g, source=source, target=target),
)
add_strided.grad(
    x=lambda g, source, target: read_strided(g, source=source, target=target),
)
write_strided.grad(
    x=lambda g, y, source, target: write_strided(g, zeros_as(y), source=source, target=target),
    y=lambda g, source, target: read_strided(g, source=source, target=target),
)


strided += [read_strided, write_strided]
