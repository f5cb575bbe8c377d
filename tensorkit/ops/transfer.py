"""Between devices: the only place where tensors change them."""

from typing import Any

from tensorkit import base, layout
from tensorkit.autograd.node import Rule, finished, record
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Backend, Device, backend_of, refuse_mix
from tensorkit.errors import DeviceMismatchError


def together(*values: Any) -> tuple[Any, ...]:
    """These tensors and numbers on one device: 0-d tensors of the CPU go to that of the others.

    DeviceMismatchError for others that are apart.
    """
    tensors = [value for value in values if isinstance(value, TensorBase)]
    devices = {each.device for each in tensors}
    if len(devices) < 2:
        return values
    device = next(each.device for each in tensors if each.device is not CPU)
    bound = [each for each in tensors if each.shape or each.device is not CPU]
    refuse_mix(*(each.device for each in bound))
    return tuple(
        moved(each, device, "0-d tensor")
        if isinstance(each, TensorBase) and each.device is CPU
        else each
        for each in values
    )


def at_home(gradient: Any, device: Device, place: int, said: str = "") -> Tensor:
    """A gradient where its tensor is: one without dimensions is sent there, others are refused."""
    if gradient.device is device or not gradient.shape:
        return moved(gradient, device)
    raise DeviceMismatchError(
        f"{said}invalid gradient at index {place} - expected device {device} but got "
        f"{gradient.device}",
        repair=f"g.to('{device}')",
    )


def sent(x: Any, origin: Device) -> Any:
    """A gradient, a tensor or an array, on its way back to the device of ``origin``."""
    if isinstance(x, TensorBase):
        return moved(x, origin)
    return _copied(x, backend_of(x), origin.backend, "to")


_MOVE = Rule("to", "ToCopyBackward0", ("x",), {"x": lambda g, origin: sent(g, origin)})


def _copied(array: Any, source: Backend, target: Backend, why: str) -> Any:
    """A copy of an array of one backend for another."""
    return target.from_host(source.to_host(array, why), why)


def moved(x: Any, device: Device, why: str = "to") -> Tensor:
    """``x`` on this device: the only place where tensors change devices."""
    own = x.device
    if device is own:
        return x
    order = layout.slowest_first(x._strides)  # which the copy keeps
    array = _copied(x._array.transpose(order), own.backend, device.backend, why)
    result = base.new(array.transpose(layout.inverse(order)))
    if x._node is None:
        return finished(result)
    return record(_MOVE, result, {"x": x, "origin": own})
