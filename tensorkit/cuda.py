"""``tk.cuda``: CUDA devices, real or simulated, under PyTorch's names.

Without a GPU, and unless ``simulate`` is asked for, there are no devices, and this says so.
"""

from typing import Any, NamedTuple, NoReturn

from tensorkit import absent, random
from tensorkit.array_backend import in_words
from tensorkit.devices import Device, as_device
from tensorkit.devices import cuda as _cuda
from tensorkit.errors import AcceleratorError, NotSupportedError, message
from tensorkit.errors import OutOfMemoryError as OutOfMemoryError
from tensorkit.ledger import Ledger as Ledger
from tensorkit.ledger import record as record
from tensorkit.simulated import simulate as simulate


def is_available() -> bool:
    """Whether there is a CUDA device to compute on.

    >>> with tk.cuda.simulate():
    ...     tk.cuda.is_available()
    True
    """
    return bool(_cuda.backends())


def init() -> None:
    """Look for CUDA devices now; raises if there are none."""
    _cuda.backend(None)


def is_initialized() -> bool:
    """Whether CUDA devices have been looked for and found."""
    return _cuda.is_known()


def is_simulated() -> bool:
    """Whether the CUDA devices are simulated.

    >>> with tk.cuda.simulate():
    ...     tk.cuda.is_simulated()
    True
    """
    return any(each.is_simulated for each in _cuda.backends())


def device_count() -> int:
    """How many CUDA devices there are.

    >>> with tk.cuda.simulate(devices=2):
    ...     tk.cuda.device_count()
    2
    """
    return len(_cuda.backends())


def _backend(device: Any = None) -> Any:
    """The backend of a device given as an index, a name or a ``tk.device``; None: the current."""
    if device is None or device.__class__ is int:
        return _cuda.backend(device)
    device = as_device(device)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return device.backend


def _place(device: Any) -> Device:
    return as_device(Device("cuda", _backend(device).index))


def current_device() -> int:
    """The number of the device that "cuda" means in this thread."""
    _cuda.backend(None)
    return _cuda.current


def set_device(device: Any) -> None:
    """Let "cuda" mean this device in this thread; a negative number changes nothing.

    >>> with tk.cuda.simulate(devices=2):
    ...     tk.cuda.set_device(1)
    ...     tk.zeros(1, device="cuda").device
    device(type='cuda', index=1)
    """
    if device.__class__ is int and device < 0:
        return
    _cuda.current = _backend(device).index


class device:
    """``with tk.cuda.device(1):`` lets "cuda" mean this device until the block ends.

    A negative number changes nothing.
    """

    def __init__(self, device: Any) -> None:
        is_negative = device.__class__ is int and device < 0
        self.index = device if is_negative else _backend(device).index

    def __enter__(self) -> None:
        self.before = _cuda.current
        set_device(self.index)

    def __exit__(self, *_: object) -> None:
        set_device(self.before)


class Properties(NamedTuple):
    """What a device is."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


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


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Major and minor compute capability; (0, 0) for a simulated device."""
    return _backend(device).capability


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: tensorkit has no bfloat16."""
    return False


# Memory


def _bytes(name: str, device: Any) -> int:
    return _backend(device).memory()[name] if is_available() else 0


def memory_allocated(device: Any = None) -> int:
    """Bytes in use, in units of 512.

    >>> with tk.cuda.simulate():
    ...     x = tk.zeros(100, device="cuda")
    ...     tk.cuda.memory_allocated()
    512
    """
    return _bytes("allocated", device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use since the start or ``reset_peak_memory_stats``."""
    return _bytes("peak", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool holds: those in use and those that it keeps for later."""
    return _bytes("reserved", device)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool held."""
    return _bytes("peak_reserved", device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin at what is in use now."""
    _backend(device).reset_peak()


def empty_cache() -> None:
    """Give back the memory that the pools hold and nobody uses."""
    for each in _cuda.backends():
        each.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the device.

    >>> with tk.cuda.simulate(total_memory=2**20):
    ...     tk.cuda.mem_get_info()
    (1048576, 1048576)
    """
    found = _backend(device)
    return found.free(), found.memory()["total"]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The books in words, in five lines, abbreviated or not."""
    memory = _backend(device).memory()
    return "\n".join(f"{name:<14} {in_words(value)}" for name, value in memory.items())


# Time


def synchronize(device: Any = None) -> None:
    """Wait until the device has done what was asked of it."""
    _backend(device).wait("synchronize")


class Stream:
    """A queue of work. There is one for each device: work is done in the order it was asked for."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        if priority:
            raise NotSupportedError(
                "tensorkit has one stream for each device", repair="tk.cuda.Stream()"
            )
        self.backend = _backend(device)

    @property
    def device(self) -> Device:
        """The device whose work it is."""
        return Device("cuda", self.backend.index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.backend is self.backend

    def __hash__(self) -> int:
        return hash(self.backend)

    def query(self) -> bool:
        """Whether all is done."""
        return self.record_event().query()

    def synchronize(self) -> None:
        """Wait until all is done."""
        self.backend.wait("Stream.synchronize")

    def wait_stream(self, stream: "Stream") -> None:
        """Let what is asked from now on begin after what was asked of another device."""
        self.wait_event(stream.record_event())

    def wait_event(self, event: "Event") -> None:
        """Let what is asked from now on begin after an event."""
        event.wait(self)

    def record_event(self, event: "Event | None" = None) -> "Event":
        """An event after what was asked so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> "Stream":
        self._inside = device(self.backend.index)
        self._inside.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._inside.__exit__()


def current_stream(device: Any = None) -> Stream:
    """The one stream of a device."""
    return Stream(device)


default_stream = current_stream


def stream(stream: Stream | None) -> Any:
    """``with tk.cuda.stream(s):`` lets "cuda" mean the stream's device; None changes nothing."""
    return device(-1) if stream is None else stream


class Event:
    """A moment in the work of a device.

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

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self.enable_timing = enable_timing
        self._mark: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the end of what was asked so far."""
        self._backend = _backend() if stream is None else stream.backend
        self._mark = self._backend.mark()

    def wait(self, stream: Stream | None = None) -> None:
        """Let what is asked of a device from now on begin after it, which may be another's."""
        if self._mark is not None:
            (_backend() if stream is None else stream.backend).wait_for(self._mark)

    def query(self) -> bool:
        """Whether the work before it is done."""
        return self._mark is None or self._backend.is_over(self._mark)

    def synchronize(self) -> None:
        """Wait until the work before it is done."""
        if self._mark is not None:
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
        if self._mark is None or end_event._mark is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise AcceleratorError(
                "Both events must be completed before calculating elapsed time.",
                "The device may still be at work.",
                repair="tk.cuda.synchronize() before",
            )
        return self._backend.between(self._mark, end_event._mark)


# Random numbers


def manual_seed(seed: int) -> None:
    """Start the stream that belongs to ``seed``: numbers are drawn on the host and sent.

    So it is the one stream of ``tk.manual_seed``, and a seed gives the same numbers everywhere.
    """
    if is_available():
        random.manual_seed(seed)


manual_seed_all = manual_seed


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.cuda", name))
