"""Devices: where a tensor's memory is, and which array library computes on it.

A kind of device is one entry of a table: its name, and a function that finds its ``Backend``: an
array library, memory, the way to and from the host. ``register_device`` adds one. The CPU's backend
is NumPy; that of ``cuda`` is CuPy's or the simulated one, and is imported when a program first
names the device.
"""

import functools
import importlib
import os
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorkit import errors, layout

_NAMES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)


class Device:
    """A device such as ``tk.device("cpu")``.

    >>> tk.device("cpu")
    device(type='cpu')
    >>> str(tk.device("cuda", 0))
    'cuda:0'
    """

    __slots__ = ("_backend", "index", "type")

    type: str
    index: int | None
    # None of a name alone, such as ``tk.device("cuda")``: ``as_device`` finds the device it means
    _backend: "Backend | None"

    def __new__(cls, type: "str | int | Device", index: int | None = None) -> "Device":
        """The device with this name; a number means a CUDA device."""
        if isinstance(type, Device):
            return type
        name: Any = type
        if isinstance(name, int) and not isinstance(name, bool):
            name, index = "cuda", name
        if not isinstance(name, str):
            repair = 'tk.device("cuda")'
            raise TypeError(
                errors.message(
                    f"device() wants a name, not {errors.type_name(name)}", repair=repair
                )
            )
        kind, colon, number = name.partition(":")
        if not re.fullmatch("[a-zA-Z_]+(:(0|[1-9][0-9]*))?", name):
            first = f"Invalid device string: '{name}'"
            raise errors.DeviceNameError(first, repair='device="cpu", or device="cuda"')
        if kind not in _kinds and kind not in _NAMES.split(", "):
            first = f"Expected one of {_NAMES} device type at start of device string: "
            raise errors.DeviceNameError(first + kind, repair='device="cpu", or device="cuda"')
        if index is not None and (colon or not isinstance(index, int) or index < 0):
            raise errors.DeviceNameError(f"{index!r} is no number for the device {name!r}")
        self = object.__new__(cls)
        self.type, self.index = kind, int(number) if colon else index
        self._backend = None
        return self

    @property
    def backend(self) -> "Backend":
        """The array library and memory of this device; raises if there is none."""
        return self._backend or as_device(self).backend

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device) or str(self) != str(other):
            return False  # of two simulations both devices are called cuda:0
        return not (self._backend and other._backend) or self._backend is other._backend

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_device if self is CPU else Device, (str(self),)

    def __enter__(self) -> "Device":
        """Make this the default device until the block ends: ``with tk.device("cpu"):``."""
        device = as_device(self)
        _default.outer = (*_default.outer, _default.device)
        _default.device = device
        return device

    def __exit__(self, *_: object) -> None:
        *outer, _default.device = _default.outer
        _default.outer = tuple(outer)


class Backend:
    """What a device must supply. This one is the CPU's, and the default of the others."""

    kind: str = "cpu"  # of its device
    index: int | None = None
    array: type = np.ndarray  # the class of its arrays
    is_simulated = False
    # What the backend of any other device than the CPU must have; cuda.backend has them for CUDA:
    device_assert: Callable[[Any, str], None]
    device_assert_inside: Callable[..., None]
    product: Callable[..., Any]
    # What only the backends of CUDA devices have:
    cuda_version: str | None

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.device = object.__new__(Device)
        self.device.type, self.device.index = self.kind, self.index
        self.device._backend = self

    def owner(self, array: Any) -> "Backend":
        """The backend that an array of this class belongs to."""
        return self

    # Arrays

    def asarray(self, value: Any) -> Any:
        """A result as an array: NumPy gives a scalar where there are no dimensions."""
        return value if value.__class__ is self.array else self.xp.asarray(value)

    def start(self, array: Any) -> int:
        """The address where an array begins."""
        return int(array.__array_interface__["data"][0])

    def address(self, array: Any) -> int:
        """Where the first element lies; 0 if there is none."""
        return self.start(array) if array.size else 0

    def add_at(self, total: Any, indices: Any, values: Any) -> None:
        """Add ``values`` to ``total`` at ``indices``, an index whose positions may repeat."""
        if total.dtype.char == "e":  # float16 cannot even count to 4096
            sums = total.astype(np.float32)
            self.add_at(sums, indices, values)
            total[...] = sums
            return
        is_host = total.__class__ is np.ndarray
        if is_host and total.ndim > 1 and total.flags.c_contiguous:  # five times as fast
            index = indices if isinstance(indices, tuple) else (indices,)
            if len(index) == 1 and total.ndim == 2 and index[0].dtype == np.int64:  # rows
                indices = index[0][..., None] * total.shape[1] + np.arange(total.shape[1])
            else:
                indices = np.arange(total.size).reshape(total.shape)[indices]
            values = np.broadcast_to(values, indices.shape).reshape(-1)
            total, indices = total.reshape(-1), indices.reshape(-1)
        self.xp.add.at(total, indices, values)

    def allocate(self, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """An uninitialised array of its own, its elements ordered in memory by ``strides``."""
        order = layout.slowest_first(strides)
        dense = self.xp.empty([shape[dim] for dim in order], dtype)
        return dense.transpose(layout.inverse(order))

    def view(self, flat: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """An array that looks at the memory of the one-dimensional array ``flat``."""
        if 0 in shape:  # nothing to see; an offset may lie beyond the end
            flat, offset = self.xp.empty(0, flat.dtype), 0
        itemsize = flat.dtype.itemsize
        in_bytes = tuple(stride * itemsize for stride in strides)
        return self.view_bytes(flat, shape, in_bytes, offset * itemsize)

    def view_bytes(self, flat: Any, shape: Any, strides: Any, offset: int) -> Any:
        """The same, with strides and offset counted in bytes as array libraries do."""
        return self.xp.ndarray(shape, flat.dtype, flat, offset, strides)

    def memory_of(self, array: Any, count: int) -> Any:
        """A flat array of ``count`` elements on the memory of an array, from its first one on."""
        writeable = array.flags.writeable
        return np.lib.stride_tricks.as_strided(
            array, (count,), (array.itemsize,), writeable=writeable
        )

    # To and from the host; ``why`` is what asked for it

    def item(self, array: Any, reason: str) -> Any:
        """The only element as a Python number."""
        return array.item()

    def from_host(self, array: Any, reason: str = "to") -> Any:
        """A NumPy array in this device's memory; itself where that is NumPy's."""
        return array

    def write_from_host(self, into: Any, array: Any, reason: str) -> None:
        """Copy a NumPy array into one of this device, of its shape and dtype."""
        into[...] = array

    def to_host(self, array: Any, reason: str = "to") -> Any:
        """An array of this device in NumPy's memory; itself where it is there."""
        return array


# The table of kinds

_kinds: dict[str, Callable[[], Backend | None]] = {}
_backends: dict[type, Backend] = {}  # by the class of their arrays


def register_device(
    kind: str, find: Callable[[], Backend | None]
) -> Callable[[], Backend | None] | None:
    """Let ``device=kind`` mean the backend that ``find()`` gives; None: there is no such device.

    Gives the function that was there before. ``find`` is called whenever a program names the
    device, so it should keep what it has made. Tensors that exist stay where they are.

    >>> tk.register_device("mine", lambda: None)
    >>> tk.device("mine")
    device(type='mine')
    """
    before = _kinds.get(kind)
    _kinds[kind] = find
    return before


def find_backend(kind: str) -> Backend | None:
    """The backend of a kind of device, None if there is none here."""
    backend = _kinds.get(kind, lambda: None)()
    if backend is not None:
        _backends[backend.array] = backend
    return backend


@functools.cache
def _find_cuda() -> Backend | None:
    """What CuPy finds, or the simulated device where the environment asks for it."""
    wanted = os.environ.get("TENSORKIT_SIMULATE_CUDA", "").strip() or "0"
    if wanted not in ("0", "1"):
        raise ValueError(
            errors.message(
                f"TENSORKIT_SIMULATE_CUDA={wanted!r} does not say whether to simulate a device",
                repair="TENSORKIT_SIMULATE_CUDA=1, or 0 for the one there is",
            )
        )
    name = "simulated" if wanted == "1" else "cupy_backend"
    found: Backend | None = importlib.import_module(f"tensorkit.cuda.{name}").find()
    return found


_NUMPY: Backend = Backend(np)
register_device("cpu", lambda: _NUMPY)
register_device("cuda", _find_cuda)
CPU = _NUMPY.device


# Which device an argument means


class _Default(threading.local):
    """The device of new tensors in each thread, and those outside of the blocks it has entered."""

    device = CPU
    outer: tuple[Device, ...] = ()


_default = _Default()


def get_default_device() -> Device:
    """The device of new tensors whose caller names none; each thread has its own.

    >>> tk.get_default_device()
    device(type='cpu')
    """
    device = _default.device
    # a simulation may have ended
    return device if device is CPU or find_backend(device.type) is device._backend else CPU


def set_default_device(device: Any) -> None:
    """Choose the device of new tensors whose caller names none; None means the CPU again.

    >>> tk.set_default_device("cpu")
    """
    _default.device = CPU if device is None else as_device(device)


def as_device(value: Any) -> Device:
    """The device that a ``device=`` argument names; raises if this process cannot use it."""
    if value is None:
        return get_default_device()
    if value is CPU:
        return CPU
    device = Device(value)
    backend = find_backend(device.type)
    if backend is None:
        raise errors.DeviceError(
            "Torch not compiled with CUDA enabled"
            if device.type == "cuda"
            else f"tensorkit has no backend for device type {device.type}",
            "There is no such device here, or no CuPy to compute on it.",
            repair='device="cpu", or tk.cuda.simulate() before',
        )
    if device.index and backend is not _NUMPY:
        raise errors.AcceleratorError(
            "CUDA error: invalid device ordinal",
            f"tensorkit computes on one {device.type.upper()} device.",
            repair=f".to('{device.type}')",
        )
    return backend.device


def cuda_device(value: Any) -> Device:
    """The device that ``.cuda(value)`` means."""
    device = as_device("cuda" if value is None else value)
    if device.type != "cuda":
        raise errors.DeviceNameError(
            "Invalid device, must be cuda device", repair=f"x.to('{device}')"
        )
    return device


# Which device an array is on


def is_array(value: Any) -> bool:
    """Whether ``value`` is an array of any device: no number, no tensor."""
    return value.__class__ is np.ndarray or value.__class__ in _backends


def backend_of(*values: Any) -> Backend:
    """The backend of the first array among these; NumPy's where all are numbers."""
    for value in values:
        if value.__class__ in _backends:
            return _backends[value.__class__].owner(value)
    return _NUMPY


def device_of_array(array: Any) -> Device:
    """The device in whose memory an array is."""
    return CPU if array.__class__ is np.ndarray else backend_of(array).device


def check_same_device(*devices: Device, repair: str = "", into: Device | None = None) -> None:
    """DeviceMismatchError unless these are one device; ``into``: where the tensor stays."""
    for other in devices:
        if other is not devices[0]:
            stays = into or (devices[0] if devices[0] is not CPU else other)  # rather to the GPU
            moves = other if stays is devices[0] else devices[0]
            reason = "Data move between devices only when told; a 0-d tensor of the CPU may mix."
            which = f"the tensor on {moves}"
            if str(other) == str(devices[0]):
                reason, which = "One of them is from another simulation.", "that one"
            raise errors.DeviceMismatchError(
                "Expected all tensors to be on the same device, but found at least two "
                f"devices, {devices[0]} and {other}!",
                reason,
                repair=repair or f"x.to('{stays}')    # x: {which}",
            )
