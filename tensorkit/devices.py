"""Devices: where a tensor's memory is, and which array library works on it.

``BACKENDS`` maps a device type to its ``Backend``; ``device.backend.xp`` is the only way to an
array library. This version knows the CPU, whose library is NumPy.

NumPy reports division by zero, overflow and nan as warnings; PyTorch never does. ``quiet.run``
calls a function in a context whose floating-point reports are off. It changes neither the user's
NumPy settings nor the warning filters, and every thread has a context of its own.
"""

import contextvars
import ctypes  # NumPy has imported it already
import re
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tensorkit.errors import DeviceError, TensorkitError, message, must_be, type_name

_KNOWN = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)


class _Quiet(threading.local):
    """``run(function, *args)`` with NumPy's floating-point reports off, for this thread."""

    run: Callable[..., Any]

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = self._run = context.run

    def decline(self) -> None:
        """From now on raise RuntimeError: every call then takes the general path."""
        self.run = _decline

    def accept(self) -> None:
        """Run functions again."""
        self.run = self._run


def _decline(function: Callable[..., Any], *args: Any, **options: Any) -> NoReturn:
    raise RuntimeError("fast paths are closed in this thread")


quiet = _Quiet()


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ``function`` with NumPy's reports off, also where ``quiet`` is already entered."""
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)


class Backend:
    """What a device type must supply: an array namespace and a way to view its memory."""

    __slots__ = ("xp",)

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def allocate(self, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """An uninitialised array of its own, its elements ordered in memory by ``strides``."""
        slowest_first = sorted(range(len(shape)), key=lambda dim: strides[dim], reverse=True)
        dense = self.xp.empty([shape[dim] for dim in slowest_first], dtype)
        return dense.transpose([slowest_first.index(dim) for dim in range(len(shape))])

    def view(self, flat: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """An array that looks at the memory of the one-dimensional array ``flat``."""
        itemsize = flat.dtype.itemsize
        return self.view_bytes(flat, shape, tuple(stride * itemsize for stride in strides), offset)

    def view_bytes(
        self, flat: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Any:
        """The same, with strides counted in bytes as array libraries do."""
        if 0 in shape:  # nothing to see; an offset may lie beyond the end
            return self.xp.empty(shape, flat.dtype)
        return self.xp.ndarray(shape, flat.dtype, flat, offset * flat.itemsize, strides)

    def from_host(self, array: Any) -> Any:
        """A NumPy array in this device's memory; itself where that is NumPy's."""
        return array

    def to_host(self, array: Any) -> Any:
        """An array of this device in NumPy's memory; itself where it is there."""
        return array

    def flatten(self, array: Any, strides: tuple[int, ...]) -> Any:
        """The memory of a dense array of its own, as a one-dimensional array."""
        slowest_first = sorted(range(array.ndim), key=lambda dim: strides[dim], reverse=True)
        return array.transpose(slowest_first).reshape(-1)


class Device:
    """A device such as ``tk.device("cpu")``.

    >>> tk.device("cpu")
    device(type='cpu')
    >>> str(tk.device("cpu"))
    'cpu'
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __new__(cls, type: "str | Device", index: int | None = None) -> "Device":
        """The device with this name; there is one object per device, so ``is`` compares them."""
        if isinstance(type, Device):
            return type
        if not isinstance(type, str):
            _refuse_kind(type)
        kind, number = _parse(type)
        if index is not None:
            _check_index(type, number, index)
            number = index
        key = kind, number
        device = _DEVICES.get(key)
        if device is None:
            device = _DEVICES[key] = object.__new__(cls)
            device.type, device.index = key
        return device

    @property
    def backend(self) -> Backend:
        """The array library and allocator of this device; raises if there is none."""
        found = BACKENDS.get(self.type)
        if found is None:
            raise DeviceError(
                message(
                    "Torch not compiled with CUDA enabled"
                    if self.type == "cuda"
                    else f"tensorkit has no backend for device type {self.type}",
                    "This version of tensorkit computes on the CPU only.",
                    repair='device="cpu"',
                )
            )
        return found

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (str(self),)

    def __enter__(self) -> "Device":
        """Make this the default device until the block ends: ``with tk.device("cpu"):``."""
        _outer.append(get_default_device())
        set_default_device(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_default_device(_outer.pop())


class DeviceNameError(TensorkitError, RuntimeError):
    """A string that names no device."""


def _refuse_kind(value: Any) -> NoReturn:
    if isinstance(value, int) and not isinstance(value, bool):
        raise DeviceNameError(
            message("Cannot access accelerator device when none is available.", repair="'cpu'")
        )
    raise TypeError(
        message(
            "device() received an invalid combination of arguments - "
            f"got ({type_name(value)}), but expected one of:",
            " * (torch.device device)",
            " * (str type, int index = -1)",
        )
    )


def _check_index(name: str, in_name: int | None, index: Any) -> None:
    if not isinstance(index, int) or isinstance(index, bool):
        raise must_be("device", "index", 2, "int", index)
    if in_name is not None:
        raise DeviceNameError(
            "type (string) must not include an index because index was passed explicitly: " + name
        )
    if index < 0:
        raise DeviceNameError("Device index must not be negative")


def _parse(name: str) -> tuple[str, int | None]:
    if not name:
        raise DeviceNameError("Device string must not be empty")
    kind, colon, number = name.partition(":")
    if not kind or (colon and not re.fullmatch("0|[1-9][0-9]*", number)):
        raise DeviceNameError(message(f"Invalid device string: '{name}'", repair="'cpu'"))
    if kind not in _KNOWN.split(", "):
        raise DeviceNameError(
            message(
                f"Expected one of {_KNOWN} device type at start of device string: {kind}",
                repair='device="cpu"',
            )
        )
    return kind, int(number) if colon else None


_DEVICES: dict[tuple[str, int | None], Device] = {}
BACKENDS = {"cpu": Backend(np)}
CPU = Device("cpu")


def _keep_freed_memory() -> None:
    """Have glibc keep freed memory, up to 512 MB, for the next array instead of giving it back.

    Otherwise every large result is new to the process, and the system clears its pages one fault
    after the other: for arrays of some megabytes that takes as long as computing them. Elsewhere
    than under glibc this does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    # a glibc before 2.35 takes no more than 32 MB
    _ = mallopt(_M_MMAP_THRESHOLD, 2**30) or mallopt(_M_MMAP_THRESHOLD, 2**25)
    mallopt(_M_TRIM_THRESHOLD, 2**29)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_keep_freed_memory()


_default = CPU
_outer: list[Device] = []  # the default devices outside of the blocks that are entered


def get_default_device() -> Device:
    """The device of new tensors whose caller names none.

    >>> tk.get_default_device()
    device(type='cpu')
    """
    return _default


def set_default_device(device: Any) -> None:
    """Choose the device of new tensors whose caller names none; None means the CPU again.

    >>> tk.set_default_device("cpu")
    """
    global _default
    _default = CPU if device is None else as_device(device)


def as_device(value: Any) -> Device:
    """The device that a ``device=`` argument names; raises if this process cannot use it."""
    if value is None:
        return _default
    device = value if isinstance(value, Device) else Device(value)
    _ = device.backend
    # One CPU: cpu:0 and cpu are the same memory and give the same form.
    return CPU if device.type == "cpu" else device
