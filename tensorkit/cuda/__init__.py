"""``tk.cuda``: one CUDA device, real or simulated, under PyTorch's names. Also ``tk.accelerator``.

Without a GPU, and unless ``simulate`` is asked for, there is no device, and this says so.
"""

import importlib
from typing import Any, NamedTuple

from tensorkit import absent, random
from tensorkit.cuda.ledger import Ledger as Ledger
from tensorkit.cuda.ledger import note as note
from tensorkit.cuda.ledger import record as record
from tensorkit.cuda.ledger import unrecorded as unrecorded
from tensorkit.cuda.simulated import simulate as simulate
from tensorkit.devices import as_device, find_backend
from tensorkit.errors import AcceleratorError, message
from tensorkit.errors import OutOfMemoryError as OutOfMemoryError


def is_available() -> bool:
    """Whether there is a CUDA device to compute on.

    >>> with tk.cuda.simulate():
    ...     tk.cuda.is_available()
    True
    """
    return find_backend("cuda") is not None


def is_simulated() -> bool:
    """Whether the CUDA device is simulated.

    >>> with tk.cuda.simulate():
    ...     tk.cuda.is_simulated()
    True
    """
    return is_available() and bool(_backend().is_simulated)


def device_count() -> int:
    """How many CUDA devices there are: one or none.

    >>> with tk.cuda.simulate():
    ...     tk.cuda.device_count()
    1
    """
    return int(is_available())


def _backend(device: Any = None) -> Any:
    """The backend of a device given as an index, a name or a ``tk.device``; None: the one."""
    found = as_device("cuda" if device is None else device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return found.backend


def current_device() -> int:
    """The number of the device that "cuda" means: 0."""
    return int(_backend().index)


def set_device(device: Any) -> None:
    """Let "cuda" mean this device, of which there is one."""
    _backend(device)


class Properties(NamedTuple):
    """What a device is."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device: Any = None) -> Properties:
    """Name, compute capability, memory in bytes, number of multiprocessors.

    >>> with tk.cuda.simulate(total_memory=2**30):
    ...     tk.cuda.get_device_properties(0).total_memory
    1073741824
    """
    found = _backend(device)
    major, minor = found.capability
    return Properties(found.name, major, minor, found.memory()["total"], found.n_processors)


def get_device_name(device: Any = None) -> str:
    """What the device is called; a simulated one says so.

    >>> with tk.cuda.simulate():
    ...     tk.cuda.get_device_name()
    'Simulated CUDA device (NumPy on the CPU)'
    """
    return get_device_properties(device).name


# Memory


def _bytes(name: str, device: Any) -> int:
    return _backend(device).memory()[name] if is_available() else 0


def memory_allocated(device: Any = None) -> int:
    """Bytes in use, in units of 512.

    >>> with tk.cuda.simulate():
    ...     x = tk.zeros(1, device="cuda")
    ...     tk.cuda.memory_allocated()
    512
    """
    return _bytes("allocated", device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use."""
    return _bytes("peak", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool holds: those in use and those that it keeps for later."""
    return _bytes("reserved", device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin at what is in use now."""
    _backend(device).reset_peak()


def empty_cache() -> None:
    """Give back the memory that the pool holds and nobody uses."""
    if is_available():
        _backend().empty_cache()


# Time


def synchronize(device: Any = None) -> None:
    """Wait until the device has done what was asked of it."""
    _backend(device).wait("synchronize")


class Event:
    """A moment in the work of the device.

    On a simulated device the time is that of its model, the same on every machine.

    >>> with tk.cuda.simulate():
    ...     start, end = tk.cuda.Event(enable_timing=True), tk.cuda.Event(enable_timing=True)
    ...     start.record()
    ...     y = tk.zeros(1000, device="cuda") + 1
    ...     end.record()
    ...     tk.cuda.synchronize()
    ...     start.elapsed_time(end) > 0
    True
    """

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing
        self._event: Any = None

    def record(self) -> None:
        """Mark the end of what was asked so far."""
        self._backend = _backend()
        self._event = self._backend.event()

    def query(self) -> bool:
        """Whether the work before it is done."""
        return self._event is None or self._backend.is_done(self._event)

    def synchronize(self) -> None:
        """Wait until the work before it is done."""
        if self._event is not None:
            self._backend.wait("Event.synchronize")

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds from this event to ``end_event``, once the device has reached both."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError(
                message(
                    "Both events must be created with argument 'enable_timing=True'.",
                    repair="tk.cuda.Event(enable_timing=True)",
                )
            )
        if self._event is None or end_event._event is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise AcceleratorError(
                "Both events must be completed before calculating elapsed time.",
                "The device may still be at work.",
                repair="tk.cuda.synchronize() before",
            )
        return self._backend.between(self._event, end_event._event)


# Random numbers


def manual_seed(seed: int) -> None:
    """Start the stream that belongs to ``seed``: numbers are drawn on the host and sent.

    So it is the one stream of ``tk.manual_seed``, and a seed gives the same numbers everywhere.
    """
    if is_available():
        random.manual_seed(seed)


# Kernels written in Python: imported when somebody asks for them

_OF_KERNELS = (
    "kernel Kernel Launch Counts profile grid threadIdx blockIdx blockDim gridDim syncthreads "
    "shared atomic_add"
)


def __getattr__(name: str) -> Any:
    if name not in _OF_KERNELS.split():
        raise AttributeError(absent.sentence("torch.cuda", name))
    return getattr(importlib.import_module("tensorkit.cuda.kernels"), name)
