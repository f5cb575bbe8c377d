"""Copies: clone, contiguous, another dtype; and how tensors change devices."""

from typing import Any

from tensorkit import base, layout
from tensorkit.autograd.node import Rule, add_node
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Backend, Device, backend_of, check_same_device
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.dtypes import DType
from tensorkit.errors import DeviceMismatchError
from tensorkit.ops.arguments import need_tensor


def on_one_device(*values: Any) -> tuple[Any, ...]:
    """These tensors and numbers on one device: 0-d tensors of the CPU go to that of the others.

    DeviceMismatchError for others that are apart.
    """
    tensors = [value for value in values if isinstance(value, TensorBase)]
    devices = {each.device for each in tensors}
    if len(devices) < 2:
        return values
    device = next(each.device for each in tensors if each.device is not CPU)
    bound = [each for each in tensors if each.shape or each.device is not CPU]
    check_same_device(*(each.device for each in bound))
    return tuple(
        moved(each, device, "0-d tensor")
        if isinstance(each, TensorBase) and each.device is CPU
        else each
        for each in values
    )


def gradient_on(gradient: Any, device: Device, position: int, prefix: str = "") -> Tensor:
    """A gradient on the device of its tensor: without dimensions it is moved, else refused."""
    if gradient.device is device or not gradient.shape:
        return moved(gradient, device)
    raise DeviceMismatchError(
        f"{prefix}invalid gradient at index {position} - expected device {device} but got "
        f"{gradient.device}",
        repair=f"g.to('{device}')",
    )


def _sent_back(g: Any, device: Device) -> Any:
    """A gradient, a tensor or an array, on the device that ``x`` came from."""
    if isinstance(g, TensorBase):
        return to(g, None, device)  # type: ignore[arg-type]
    return _copied(g, backend_of(g), device.backend, "to")


_MOVE = Rule("to", "ToCopyBackward0", ("x",), {"x": lambda g, device: _sent_back(g, device)})


def _copied(array: Any, source: Backend, target: Backend, reason: str) -> Any:
    """A copy of an array of one backend for another."""
    return target.from_host(source.to_host(array, reason), reason)


def moved(x: Any, device: Device, reason: str = "to") -> Tensor:
    """``x`` on this device. New tensors and ``copy_`` send their numbers themselves."""
    own = x.device
    if device is own:
        return x
    order = layout.slowest_first(x._strides)  # which the copy keeps
    array = _copied(x._array.transpose(order), own.backend, device.backend, reason)
    result = base.new(array.transpose(layout.inverse(order)))
    return add_node(_MOVE, result, {"x": x, "device": own})


@seen_by_modes
def clone(input: Tensor) -> Tensor:
    """Copy with memory of its own; the order of the elements in memory is kept where it is dense.

    >>> a = tk.tensor([1, 2])
    >>> b = tk.clone(a)
    >>> b[0] = 9
    >>> a
    tensor([1, 2])
    """
    need_tensor("clone", input)
    return add_node(_CLONE, converted(input, input.dtype), {"x": input})


def to_dtype(x: Tensor, dtype: DType) -> Tensor:
    """A copy of ``x`` with this dtype."""
    return add_node(_CONVERSION, converted(x, dtype), {"x": x})


@seen_by_modes
def to(x: Tensor, dtype: DType | None, device: Device | None, copy: bool = False) -> Tensor:
    """``x`` with this dtype and on this device; itself if nothing changes, unless ``copy``."""
    dtype, device = dtype or x.dtype, device or x.device
    if dtype is x.dtype and device is x.device and not copy:
        return x
    if device is not x.device:
        # PyTorch converts where the data are, then moves them
        return moved(x if dtype is x.dtype else to_dtype(x, dtype), device)
    return to_dtype(x, dtype)


def with_strides(x: Tensor, strides: layout.Ints) -> Tensor:
    """A copy of ``x`` with these strides."""
    return add_node(_CLONE, base.new_with_strides(x._array, strides), {"x": x})


# The engine casts a gradient to the dtype it is needed in, so a cast has the formula of a copy.
_CLONE = Rule("clone", "CloneBackward0", ("x",), {"x": lambda g: g})
_CONVERSION = Rule("to", "ToCopyBackward0", ("x",), {"x": lambda g: g})


def converted(x: TensorBase, dtype: DType) -> Tensor:
    """A copy of ``x`` with this dtype, without a node; row-major where elements are repeated."""
    array = x._array
    order = "C" if 0 in array.strides else "K"
    return base.new(without_warnings(array.astype, dtype.numpy, order))


@seen_by_modes
def contiguous(x: Tensor) -> Tensor:
    """``x`` itself if it is contiguous, otherwise a contiguous copy."""
    if layout.is_contiguous(x._array.shape, x._strides):
        return x
    return with_strides(x, layout.contiguous_strides(tuple(x.shape)))


def filled(x: TensorBase, number: float) -> Tensor:
    """A contiguous tensor of the shape, dtype and device of ``x``, filled with one number."""
    array = x._xp.empty(x._array.shape, x._array.dtype)
    array.fill(number)
    return base.new(array)
