"""Devices: where a tensor's memory is, and which array library works on it.

``device.backend`` is the device's ``Backend``, and ``device.backend.xp`` the only way to an array
library: NumPy for the CPU; for CUDA CuPy (``tensorkit.gpu``) or the simulated device's
(``tensorkit.simulated``). Neither is imported before somebody asks for a CUDA device.
"""

import importlib
import os
import re
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tensorkit.array_backend import Backend
from tensorkit.errors import (
    AcceleratorError,
    DeviceError,
    DeviceMismatchError,
    DeviceNameError,
    message,
    must_be,
    type_name,
)
from tensorkit.malloc import keep_freed_memory

_KNOWN = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)


class Device:
    """A device such as ``tk.device("cpu")``.

    >>> tk.device("cpu")
    device(type='cpu')
    >>> str(tk.device("cpu"))
    'cpu'
    """

    __slots__ = ("_backend", "index", "type")

    type: str
    index: int | None
    _backend: Backend | None  # what tensors of this device use, once there is one

    def __new__(cls, type: "str | Device", index: int | None = None) -> "Device":
        """The device with this name; there is one object per device, so ``is`` compares them."""
        if isinstance(type, Device):
            return type
        given: Any = type
        if given.__class__ is int and cuda.backends():
            type, index = "cuda", given
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
            device._backend = None
        return device

    @property
    def backend(self) -> Backend:
        """The array library and allocator of this device; raises if there is none."""
        if self._backend is None:
            if self.type == "cuda":
                return cuda.backend(self.index)
            raise DeviceError(
                f"tensorkit has no backend for device type {self.type}",
                "It computes on the CPU and on CUDA devices.",
                repair='device="cpu"',
            )
        return self._backend

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (str(self),)

    def __enter__(self) -> "Device":
        """Make this the default device until the block ends: ``with tk.device("cpu"):``."""
        outer = (*_default.outer, get_default_device())
        set_default_device(self)
        _default.outer = outer
        return self

    def __exit__(self, *_: object) -> None:
        # none are outside where other CUDA devices came within the block
        *outer, _default.device = _default.outer or (CPU,)
        _default.outer = tuple(outer)


def _refuse_kind(value: Any) -> NoReturn:
    if isinstance(value, int) and not isinstance(value, bool):  # there is no CUDA device
        _check_index("", None, value)
        raise DeviceNameError(
            "Cannot access accelerator device when none is available.", repair="'cpu'"
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


_NAMES = 'device="cpu", or device="cuda"'


def _parse(name: str) -> tuple[str, int | None]:
    if not name:
        raise DeviceNameError("Device string must not be empty")
    kind, colon, number = name.partition(":")
    if not re.fullmatch("[a-zA-Z_]+", kind) or (
        colon and not re.fullmatch("0|[1-9][0-9]*", number)
    ):
        raise DeviceNameError(f"Invalid device string: '{name}'", repair=_NAMES)
    if kind not in _KNOWN.split(", "):
        raise DeviceNameError(
            f"Expected one of {_KNOWN} device type at start of device string: {kind}", repair=_NAMES
        )
    return kind, int(number) if colon else None


class _Chosen(threading.local):
    """The CUDA device that each thread has chosen: what "cuda" without a number means there."""

    index = 0


class _Cuda:
    """The CUDA devices of this process: real ones, simulated ones, or none."""

    def __init__(self) -> None:
        self._found: list[Backend] | None = None
        self._chosen = _Chosen()
        self.matmul_precision = "highest"  # or "high", "medium": of float32 products

    def backends(self) -> list[Backend]:
        """One per device; looks for devices when first asked."""
        if self._found is None:
            wanted = os.environ.get("TENSORKIT_SIMULATE_CUDA", "").strip() or "0"
            if not wanted.isdecimal():
                raise ValueError(
                    message(
                        f"TENSORKIT_SIMULATE_CUDA={wanted!r} does not say how many CUDA devices",
                        repair="TENSORKIT_SIMULATE_CUDA=1, or 0 for those there are",
                    )
                )
            if count := int(wanted):
                self._found = importlib.import_module("tensorkit.simulated").find(count)
            else:
                self._found = importlib.import_module("tensorkit.gpu").find()
        return self._found

    @property
    def current(self) -> int:
        """The device that "cuda" without a number means in this thread."""
        return self._chosen.index

    @current.setter
    def current(self, index: int) -> None:
        self._chosen.index = index

    def is_known(self) -> bool:
        """Whether devices have been looked for and found."""
        return bool(self._found)

    def use(self, backends: list[Backend] | None) -> tuple[Any, ...]:
        """Let these be the CUDA devices, None: look again. Gives what ``restore`` takes.

        What threads have chosen, the device that "cuda" means and the default one, belongs to the
        devices that there were: each begins anew, until ``restore``.
        """
        global _default
        before = self._found, self._chosen, _default, _withdrawn()
        self._found, self._chosen, _default = backends, _Chosen(), _Default()
        return before

    def restore(self, before: tuple[Any, ...]) -> None:
        """Let the CUDA devices be again what they were before ``use``."""
        global _default
        _withdrawn()
        self._found, self._chosen, _default, devices = before
        _DEVICES.update(devices)

    def backend(self, index: int | None) -> Backend:
        """The backend of one device; raises if there is none."""
        found = self.backends()
        if not found:
            raise DeviceError(
                "Torch not compiled with CUDA enabled",
                "There is no CUDA device here, or no CuPy to compute on it.",
                repair='device="cpu", or tk.cuda.simulate() before',
            )
        index = self.current if index is None else index
        if not 0 <= index < len(found):
            raise AcceleratorError(
                "CUDA error: invalid device ordinal",
                f"The devices are cuda:0 to cuda:{len(found) - 1}."
                if len(found) > 1
                else "There is one device, cuda:0.",
                repair='device="cuda:0"',
            )
        return found[index]


def _withdrawn() -> dict[tuple[str, int | None], Device]:
    """The CUDA devices that are in use, taken off the table; their tensors keep them."""
    used = [key for key, device in _DEVICES.items() if key[0] == "cuda" and device._backend]
    return {key: _DEVICES.pop(key) for key in used}


_DEVICES: dict[tuple[str, int | None], Device] = {}
cuda = _Cuda()
keep_freed_memory()
_NUMPY = Backend(np)
CPU = Device("cpu")
CPU._backend, _NUMPY.tensor_device = _NUMPY, CPU

# How to find the backend of an array that is not NumPy's: its class -> a function of the array.
_foreign: dict[type, Callable[[Any], Backend]] = {}


def note_arrays(kind: type, backend_of: Callable[[Any], Backend]) -> None:
    """Tell which backend arrays of this class belong to."""
    _foreign[kind] = backend_of


def is_array(value: Any) -> bool:
    """Whether ``value`` is an array of any device: no number, no tensor."""
    return value.__class__ is np.ndarray or value.__class__ in _foreign


def backend_of(*values: Any) -> Backend:
    """The backend of the first array among these; NumPy's where all are numbers."""
    for value in values:
        if value.__class__ is np.ndarray:
            return _NUMPY
        if value.__class__ in _foreign:
            return _foreign[value.__class__](value)
    return _NUMPY


def device_of_array(array: Any) -> Device:
    """The device in whose memory an array is."""
    if array.__class__ is np.ndarray:
        return CPU
    return backend_of(array).tensor_device


def refuse_mix(*devices: "Device", repair: str | None = None, into: "Device | None" = None) -> None:
    """DeviceMismatchError unless these are one device; ``into``: where the tensor stays."""
    for other in devices:
        if other is not devices[0]:
            stays = into or (devices[0] if devices[0] is not CPU else other)  # rather to the GPU
            moves = other if stays is devices[0] else devices[0]
            why, which = (
                "Data move between devices only when told; a 0-d tensor of the CPU may mix.",
                f"the tensor on {moves}",
            )
            if str(other) == str(devices[0]):
                why, which = "One of them is from another simulation.", "that one"
            raise DeviceMismatchError(
                "Expected all tensors to be on the same device, but found at least two "
                f"devices, {devices[0]} and {other}!",
                why,
                repair=repair or f"x.to('{stays}')    # x: {which}",
            )


class _Default(threading.local):
    """The device of new tensors in each thread, and those outside of the blocks it has entered."""

    device = CPU
    outer: tuple[Device, ...] = ()


_default = _Default()
_is_chosen = False  # by any thread; most programs choose none, and need not look


def get_default_device() -> Device:
    """The device of new tensors whose caller names none; each thread has its own.

    >>> tk.get_default_device()
    device(type='cpu')
    """
    return _default.device if _is_chosen else CPU


def set_default_device(device: Any) -> None:
    """Choose the device of new tensors whose caller names none; None means the CPU again.

    >>> tk.set_default_device("cpu")
    """
    global _is_chosen
    _default.device = CPU if device is None else as_device(device)
    _is_chosen = _is_chosen or _default.device is not CPU


def cuda_device(value: Any) -> Device:
    """The device that ``.cuda(value)`` means."""
    if value is not None and not isinstance(value, (str, int, Device)):
        raise must_be("cuda", "device", 1, "torch.device", value)
    device = Device("cuda" if value is None else value)  # type: ignore[arg-type]
    if device.type != "cuda":
        raise DeviceNameError("Invalid device, must be cuda device", repair=f"x.to('{device}')")
    return as_device(device)


def as_device(value: Any) -> Device:
    """The device that a ``device=`` argument names; raises if this process cannot use it."""
    if value is None:
        return get_default_device()
    device = value if isinstance(value, Device) else Device(value)
    if device is CPU:
        return CPU
    if device.type == "cpu":  # one CPU: cpu:0 and cpu are the same memory
        return CPU
    if device.type != "cuda":
        _ = device.backend  # raises
    backend = cuda.backend(device.index)
    index = cuda.current if device.index is None else device.index
    device = Device("cuda", index)  # also where `device` is left over from a simulation
    device._backend = backend
    backend.tensor_device = device
    return device
