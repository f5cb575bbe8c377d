"""A simulated CUDA device: NumPy arrays that behave as if they were in another memory.

An ``Array`` is no ndarray: it refuses to mix with host arrays, and it has only the methods that
``METHODS`` lists; ``Library`` has only the functions of ``FUNCTIONS`` and ``UFUNCS``. Both tables
name the keywords that CuPy takes, so that what runs here is not refused there; a test compares them
with CuPy's signatures.

A ``Pool`` keeps books as CuPy's memory pool does: in units of 512 bytes, freed blocks stay
reserved. It does not model how memory falls to pieces. A ``Clock`` models time, so that a notebook
shows the same times everywhere: they say what waits for what, not how fast a GPU is.
"""

import math
import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from tensorkit import ledger
from tensorkit.array_backend import Accelerator, Backend, out_of_memory
from tensorkit.devices import cuda, note_arrays
from tensorkit.errors import NotSupportedError, OutOfMemoryError, message
from tensorkit.kernels import Kernel, in_launches
from tensorkit.quiet import quietly
from tensorkit.wrapped import Wrapped

NAME = "Simulated CUDA device (NumPy on the CPU)"
_UNIT, _TOTAL = 512, 16 * 2**30
_LAUNCH, _TRANSFER, _WAIT, _LOOK = 5e-6, 10e-6, 5e-6, 1e-6  # seconds that each takes at least
_MEMORY_SPEED, _BUS_SPEED = 1e12, 12e9  # bytes a second

# What CuPy's functions take: positional parameters in order, which may also be named; those after
# the bar only by name.
FUNCTIONS = {
    "all": "a axis out keepdims",
    "any": "a axis out keepdims",
    "arange": "start stop step dtype",
    "argpartition": "a kth axis",
    "argsort": "a axis kind",
    "asarray": "a dtype order",
    "bincount": "x weights minlength",
    "broadcast_arrays": "*args",
    "broadcast_to": "array shape",
    "concatenate": "tup axis out | dtype casting",
    "copyto": "dst src casting where",
    "count_nonzero": "a axis",
    "cumprod": "a axis dtype out",
    "cumsum": "a axis dtype out",
    "einsum": "*operands",
    "empty": "shape dtype order",
    "expand_dims": "a axis",
    "eye": "N M k dtype order",
    "flip": "a axis",
    "full": "shape fill_value dtype order",
    "matmul": "x1 x2 out | casting dtype",
    "nonzero": "a",
    "ones": "shape dtype order",
    "repeat": "a repeats axis",
    "roll": "a shift axis",
    "stack": "tup axis out | dtype casting",
    "swapaxes": "a axis1 axis2",
    "take_along_axis": "a indices axis",
    "tile": "A reps",
    "tril": "m k",
    "triu": "m k",
    "unique": "ar return_index return_inverse return_counts axis | equal_nan",
    "where": "condition x y",
    "zeros": "shape dtype order",
    "zeros_like": "a dtype order",
    "linalg.det": "a",
    "linalg.inv": "a",
    "linalg.solve": "a b",
}
# fmt: off
UFUNCS = (
    "absolute", "add", "arccos", "arcsin", "arctan", "arctan2", "bitwise_and", "bitwise_or",
    "bitwise_xor", "ceil", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1",
    "floor", "floor_divide", "fmod", "greater", "greater_equal", "invert", "isfinite",
    "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "not_equal", "power", "remainder", "rint", "sin", "sinh", "sqrt", "subtract", "tan",
    "tanh", "trunc",
)
# fmt: on
METHODS = {
    "all": "axis out keepdims",
    "any": "axis out keepdims",
    "argmax": "axis",
    "argmin": "axis",
    "argsort": "axis kind",
    "astype": "dtype order casting subok copy",
    "compress": "condition axis out",
    "copy": "order",
    "cumsum": "axis dtype out",
    "diagonal": "offset axis1 axis2",
    "dot": "b out",
    "fill": "value",
    "item": "",
    "max": "axis out keepdims",
    "min": "axis out keepdims",
    "nonzero": "",
    "ravel": "order",
    "repeat": "repeats axis",
    "reshape": "*shape",
    "squeeze": "axis",
    "sum": "axis dtype out keepdims",
    "swapaxes": "axis1 axis2",
    "take": "indices axis out",
    "tobytes": "order",
    "tolist": "",
    "trace": "offset axis1 axis2 dtype out",
    "transpose": "*axes",
    "view": "dtype",
}
# These give host values, so the host waits; the others of a data-dependent size wait for the size.
_TO_HOST = {"item", "tolist", "tobytes"}
_OF_UNKNOWN_SIZE = {"compress", "nonzero", "unique", "bincount", "repeat"}
_ATTRIBUTES = {"dtype", "shape", "strides", "ndim", "size", "itemsize", "nbytes", "flags"}


_IN_THE_HOST = "The simulated memory lies in this computer's, which has not so much left."
_NO_DEVICE_MEMORY = message(
    "A tensor on a simulated CUDA device has no memory on a GPU to share",
    "Its numbers are in the host's memory.",
    repair="x.cpu()",
)


class Pool:
    """The books of one device's memory."""

    def __init__(self, index: int, total: int) -> None:
        self.index, self.total = index, total
        self.allocated = self.reserved = self.peak = self.peak_reserved = 0

    def take(self, size: int) -> int:
        """Note an allocation; gives its size in whole units."""
        rounded = -(-size // _UNIT) * _UNIT
        wanted = self.allocated + rounded
        if wanted > self.reserved and wanted > self.total:
            self.reserved = self.allocated  # CuPy gives back what it keeps before it gives up
            raise self.refusal(size)
        self.allocated = wanted
        self.reserved = max(self.reserved, wanted)
        self.peak = max(self.peak, wanted)
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return rounded

    def refusal(self, size: int, *more: str) -> OutOfMemoryError:
        """The error about an allocation that failed."""
        return out_of_memory(size, self.index, self.memory(), self.free(), *more)

    def memory(self) -> dict[str, int]:
        """Bytes: allocated, reserved, their peaks, total."""
        return {
            "allocated": self.allocated,
            "reserved": self.reserved,
            "peak": self.peak,
            "peak_reserved": self.peak_reserved,
            "total": self.total,
        }

    def free(self) -> int:
        """Bytes that are not reserved."""
        return self.total - self.reserved

    def give(self, size: int) -> None:
        """Note that memory was freed: it stays reserved."""
        self.allocated -= size


class Clock:
    """When things happen in the model: the host asks, a device works on one thing at a time."""

    def __init__(self, now: list[float]) -> None:
        self._now = now  # on the host, which all devices share
        self.device = 0.0

    @property
    def host(self) -> float:
        """The moment on the host."""
        return self._now[0]

    @host.setter
    def host(self, moment: float) -> None:
        self._now[0] = moment

    def launch(self, name: str, size: int) -> None:
        """The device will work; the host goes on."""
        start, duration = max(self.host, self.device), _LAUNCH + size / _MEMORY_SPEED
        self.host += _LAUNCH
        self.device = start + duration
        ledger.note("launch", name, start, duration)

    def transfer(self, name: str, direction: str, size: int) -> None:
        """Data pass the bus; the host waits, first for the device."""
        start, duration = max(self.host, self.device), _TRANSFER + size / _BUS_SPEED
        self.host = self.device = start + duration
        ledger.note("transfer", name, start, duration, direction, size)

    def copy(self, name: str, size: int) -> None:
        """Data come from another device; the host goes on."""
        start, duration = max(self.host, self.device), _TRANSFER + size / _BUS_SPEED
        self.host += _LAUNCH
        self.device = start + duration
        ledger.note("transfer", name, start, duration, "device to device", size)

    def wait(self, name: str) -> None:
        """The host waits until the device has done what was asked."""
        start = self.host
        self.host = self.device = max(self.host, self.device) + _WAIT
        ledger.note("synchronise", name, start, self.host - start)


class _Memory:
    """One allocation, given back when nothing refers to it."""

    __slots__ = ("device", "pool", "size")

    def __init__(self, device: "Simulated", size: int) -> None:
        self.size = 0
        self.device, self.pool = device, device.pool
        self.size = self.pool.take(size)

    def __del__(self) -> None:
        self.pool.give(self.size)


class Array(Wrapped):
    """An array in the memory of a simulated device; views share ``memory``."""

    __slots__ = ("__weakref__", "_host", "memory")

    _host: Any
    memory: _Memory

    def __getattr__(self, name: str) -> Any:
        if name in _ATTRIBUTES:
            return getattr(self._host, name)
        if name in METHODS:
            return lambda *args, **options: _call(name, self, args, options)
        if name == "__cuda_array_interface__":
            raise AttributeError(_NO_DEVICE_MEMORY)
        raise AttributeError(f"CuPy's arrays, as tensorkit uses them, have no {name!r}")

    def _do(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        return self.memory.device.run(name, function, (self, *args), {})

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to "
            "construct a NumPy array explicitly."
        )

    def __dlpack__(self, **_: Any) -> NoReturn:
        raise BufferError(_NO_DEVICE_MEMORY)

    def __dlpack_device__(self) -> NoReturn:
        raise BufferError(_NO_DEVICE_MEMORY)

    def __getitem__(self, index: Any) -> Any:
        return self._do("getitem", _read, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _refuse_lists(value)
        index, value = _unwrapped((index, value), self.memory.device)
        index = _around(index, self.shape)
        quietly(self._host.__setitem__, index, value)
        self.memory.device.clock.launch("setitem", self._host[index].nbytes)

    def _waited(self, name: str) -> Any:
        device = self.memory.device
        device.wait(name)
        device.clock.transfer(name, "device to host", self._host.nbytes)
        return self._host

    def __bool__(self) -> bool:
        return bool(self._waited("if"))

    def __int__(self) -> int:
        return int(self._waited("int"))

    def __float__(self) -> float:
        return float(self._waited("float"))

    def __index__(self) -> int:
        return operator.index(self._waited("index"))

    def __repr__(self) -> str:
        return f"<array on a simulated device, {self.dtype} {self.shape}>"


# Positions outside wrap around, as CuPy's do: who would refuse them must look itself.


def _around(index: Any, shape: tuple[int, ...]) -> Any:
    """An index whose arrays of integers lie inside of ``shape``."""
    parts, dim = [], 0
    for part in index if isinstance(index, tuple) else (index,):
        _refuse_lists(part)
        is_array = isinstance(part, np.ndarray)
        if is_array and part.dtype != bool and shape[dim]:
            part = part % shape[dim]
        parts.append(part)
        dim += part.ndim if is_array and part.dtype == bool else part is not None
    return tuple(parts) if isinstance(index, tuple) else parts[0]


def _read(host: Any, index: Any) -> Any:
    return host[_around(index, host.shape)]


def _method(name: str) -> Callable[..., Any]:
    if name == "take":
        return partial(np.ndarray.take, mode="wrap")
    return partial(_product, np.dot) if name == "dot" else getattr(np.ndarray, name)


def _repeated(array: Any, shape: tuple[int, ...]) -> Any:
    """``broadcast_to`` as CuPy has it: who writes to the result writes to the array."""
    strides = np.broadcast_to(array, shape).strides
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _product(multiply: Callable[..., Any], x: Any, y: Any, **options: Any) -> Any:
    """A product of arrays; of float16 it is added in float32, as cuBLAS does."""
    if x.dtype != np.float16:
        return multiply(x, y, **options)
    return multiply(x.astype(np.float32), y.astype(np.float32), **options).astype(np.float16)


# Calls


def _unwrapped(value: Any, device: "Simulated") -> Any:
    """The NumPy side of what a function is given; TypeError for arrays of the host."""
    if isinstance(value, Array):
        if value.memory.device is not device:
            raise ValueError(
                "Array device must be same as the current device: array device = "
                f"{value.memory.device.index} while current = {device.index}"
            )
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: an array of the host")
    if isinstance(value, (tuple, list)):
        return type(value)(_unwrapped(each, device) for each in value)
    return value


def _refuse_lists(*values: Any) -> None:
    """TypeError for numbers in a list: CuPy refuses them, or sends them to the device unasked."""
    for value in values:
        if isinstance(value, (tuple, list)):
            raise TypeError(f"Unsupported type {type(value)}: numbers of the host")


def _check_keywords(name: str, accepted: str, args: tuple[Any, ...], options: Any) -> None:
    positional, _, by_name = accepted.partition("|")
    known = [*positional.split(), *by_name.split()]
    too_many = "*" not in positional and len(args) > len(positional.split())
    if too_many or not set(options) <= set(known):
        raise TypeError(f"{name} of CuPy takes ({accepted}), not {len(args)} and {list(options)}")


def _call(name: str, array: Array, args: Any, options: Any) -> Any:
    """Call a method on arrays of one device; its result is there, too."""
    _check_keywords(name, METHODS[name], args, options)
    if name in ("take", "compress"):
        _refuse_lists(*args[:1])
    if name in _TO_HOST:
        return quietly(_method(name), array._waited(name), *args, **options)
    return array.memory.device.run(name, _method(name), (array, *args), options)


def _arrays(value: Any) -> Any:
    """All arrays within nested tuples and lists."""
    if isinstance(value, Array):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _arrays(each)


class _Ufunc:
    """A function on elements; ``reduce`` and ``at`` only where CuPy has them."""

    def __init__(self, device: "Simulated", name: str) -> None:
        self.device, self.name, self.ufunc = device, name, getattr(np, name)
        inputs = " ".join(f"x{place}" for place in range(self.ufunc.nin))
        self.accepted = f"{inputs} out | dtype"

    def __call__(self, *args: Any, **options: Any) -> Any:
        _check_keywords(self.name, self.accepted, args, options)
        _refuse_lists(*args)
        return self.device.run(self.name, self.ufunc, args, options)

    def reduce(self, *args: Any, **options: Any) -> Any:
        """Sums or products along axes."""
        if self.name not in ("add", "multiply"):
            raise NotImplementedError(f"CuPy's {self.name}.reduce raises NotImplementedError")
        name = {"add": "sum", "multiply": "prod"}[self.name]
        _check_keywords(f"{self.name}.reduce", "array axis dtype out keepdims", args, options)
        return self.device.run(name, self.ufunc.reduce, args, options)


class Library:
    """The array library of one simulated device."""

    __name__ = "simulated"
    ndarray = Array
    generic = np.generic
    broadcast_shapes = staticmethod(np.broadcast_shapes)
    kinds: ClassVar[dict[str, Any]] = {
        name: getattr(np, name)
        for name in [
            "bool_",
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "float16",
            "float32",
            "float64",
        ]
    }

    def __init__(self, device: "Simulated") -> None:
        self._device = device
        self.__dict__.update(self.kinds)
        self.__dict__.update({name: _Ufunc(device, name) for name in UFUNCS})

    def may_share_memory(self, a: Array, b: Array) -> bool:
        """Whether two arrays lie in one allocation."""
        return a.memory is b.memory

    def __getattr__(self, name: str) -> Any:
        if name == "linalg":
            return _Linalg(self)
        if name not in FUNCTIONS:
            raise AttributeError(f"{name!r} is not on the list of what CuPy has: see simulated.py")
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part)
        function = {"matmul": partial(_product, np.matmul), "broadcast_to": _repeated}.get(
            name, function
        )

        def call(*args: Any, **options: Any) -> Any:
            _check_keywords(name, FUNCTIONS[name], args, options)
            if name == "asarray" and not isinstance(args[0], Array):
                raise TypeError("asarray of a host value is a transfer: use backend.from_host")
            return self._device.run(name, function, args, options)

        return call


class _Linalg:
    def __init__(self, library: Library) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, f"linalg.{name}")


class Simulated(Accelerator):
    """The backend of one simulated device."""

    is_simulated = True
    cuda_version = None
    name = NAME
    capability = (0, 0)
    n_processors = 1

    def __init__(self, index: int, total: int, now: list[float] | None = None) -> None:
        super().__init__(Library(self))
        self.index = index
        self.pool, self.clock = Pool(index, total), Clock(now or [0.0])

    def run(self, name: str, function: Any, args: Any, options: Any) -> Any:
        """``function`` of NumPy on these arguments, noted as a launch if it writes anything."""
        host = _unwrapped(args, self)
        named = {k: _unwrapped(v, self) for k, v in options.items()}
        try:
            result = quietly(function, *host, **named)
        except MemoryError as error:
            shape, dtype = getattr(error, "shape", ()), getattr(error, "dtype", np.dtype(np.uint8))
            size = math.prod(shape) * dtype.itemsize
            raise self.pool.refusal(size, *([] if size > self.free() else [_IN_THE_HOST])) from None
        given = [*_arrays((args, tuple(options.values())))]
        if result is None:  # copyto, fill: written where it was told
            self.clock.launch(name, given[0].nbytes)
            return None
        if isinstance(result, (tuple, list)):
            wrapped: Any = type(result)(self._wrapped(name, each, given) for each in result)
        else:
            wrapped = self._wrapped(name, result, given)
        if name in _OF_UNKNOWN_SIZE:
            self.wait("mask" if name == "compress" or given[0].dtype == bool else name)
        return wrapped

    def _wrapped(self, name: str, result: Any, given: list[Array]) -> Array:
        """A NumPy result as an array of this device."""
        for each in given:
            if each._host is result:  # out=, or in place; asarray of an array does nothing
                if name != "asarray":
                    self.clock.launch(name, result.nbytes)
                return each
        array = np.asarray(result)
        if isinstance(result, np.ndarray):
            for each in given:
                if np.may_share_memory(array, each._host):
                    return _made(array, each.memory)
        made = _made(array, _Memory(self, array.nbytes))
        if name != "empty":
            self.clock.launch(name, array.nbytes + sum(each.nbytes for each in given))
        return made

    def from_dlpack(self, array: Any) -> NoReturn:
        """Refuse: a simulated device cannot see a GPU's memory."""
        raise NotSupportedError(
            "A simulated CUDA device cannot share the memory of a GPU",
            repair="the other library's copy on the CPU",
        )

    # Backend

    def asarray(self, value: Any) -> Any:
        """A result as an array; formulas may give a number."""
        return (
            value if isinstance(value, Array) else self.xp.full((), value, np.asarray(value).dtype)
        )

    def view_bytes(self, flat: Any, shape: Any, strides: Any, offset: int) -> Any:
        """An array on the memory of another one."""
        host = Backend.view_bytes(_HOST, flat._host, shape, strides, offset)
        return _made(host, flat.memory)

    def is_alone(self, array: Any, most: int) -> bool:
        """Whether nobody else sees this memory or holds the array."""
        # memory: held by the array and by getrefcount
        return sys.getrefcount(array) <= most and sys.getrefcount(array.memory) <= 2

    def address(self, array: Any) -> int:
        """Where the first element lies."""
        return int(array._host.ctypes.data) if array.size else 0

    def add_at(self, total: Any, places: Any, values: Any) -> None:
        """Add to elements that may be named more than once."""
        host = _unwrapped((total, places, values), self)
        np.add.at(*host)
        self.clock.launch("scatter_add", host[2].nbytes)

    def launch_on_lists(
        self, kernel: Kernel, numbers: Any, lists: Sequence[Any], form: Callable[..., None]
    ) -> None:
        """Run the NumPy form of a kernel on each list; as on a GPU one launch takes many."""
        for some in in_launches(kernel, lists):
            for arrays in some:
                quietly(form, *_unwrapped(tuple(arrays), self))
            self.clock.launch(kernel.name, sum(each.nbytes for each in _arrays(tuple(some))))

    def item(self, array: Any, why: str) -> Any:
        """The only element; the host waits."""
        return array._waited(why).item()

    def from_host(self, array: Any, why: str = "to") -> Any:
        """A copy of a NumPy array on this device."""
        memory = _Memory(self, array.nbytes)
        self.clock.transfer(why, "host to device", array.nbytes)
        return _made(array.copy(order="K"), memory)

    def write_from_host(self, into: Any, array: Any, why: str) -> None:
        """Copy a NumPy array into one of this device, of its shape and dtype, without gaps."""
        into._host[...] = array
        self.clock.transfer(why, "host to device", array.nbytes)

    def to_host(self, array: Any, why: str = "to") -> Any:
        """A copy on the host, which waits."""
        if why != "to":
            self.wait(why)
        self.answer()
        self.clock.transfer(why, "device to host", array.nbytes)
        return array._host.copy(order="K")

    def from_device(self, array: Any, why: str = "to") -> Any:
        """A copy of an array of another simulated device, which does not pass through the host."""
        memory, source = _Memory(self, array.nbytes), array.memory.device
        self.wait_for(source.mark())
        self.clock.copy(why, array.nbytes)
        source.wait_for(self.mark())
        return _made(array._host.copy(order="K"), memory)

    def look(self, found: Any) -> bool:
        """What a kernel found, which the host knows once it has waited."""
        return bool(found._host)

    def wait(self, name: str) -> None:
        """The host waits for the device."""
        self.clock.wait(name)
        self.answer()

    def mark(self) -> float:
        """The moment at which the device will have done what it was asked."""
        return max(self.clock.host, self.clock.device)

    def wait_for(self, mark: float) -> None:
        """Let what is asked from now on begin after a moment."""
        self.clock.device = max(self.clock.device, mark)

    def is_over(self, mark: float) -> bool:
        """Whether the host knows that the moment has passed; asking takes time, too."""
        is_over = self.clock.host >= mark
        self.clock.host += _LOOK
        return is_over

    def between(self, start: float, end: float) -> float:
        """Milliseconds from one moment to another."""
        return (end - start) * 1e3

    def use_tf32(self, allow: bool) -> None:
        """Nothing: a simulated device has no TF32."""

    def memory(self) -> dict[str, int]:
        """Bytes: allocated, reserved, their peaks, total."""
        return self.pool.memory()

    def free(self) -> int:
        """The bytes that are not reserved."""
        return self.pool.free()

    def reset_peak(self) -> None:
        """Count the peaks from now on."""
        self.pool.peak, self.pool.peak_reserved = self.pool.allocated, self.pool.reserved

    def empty_cache(self) -> None:
        """Give back what is reserved and not used."""
        self.pool.reserved = self.pool.allocated


_HOST = Backend(np)


def _made(host: Any, memory: _Memory) -> Array:
    array = object.__new__(Array)
    array._host, array.memory = host, memory
    return array


note_arrays(Array, lambda array: array.memory.device)


def find(count: int, total: int = _TOTAL) -> list[Backend]:
    """So many simulated devices, each with ``total`` bytes; the host's time is one."""
    now = [0.0]
    return [Simulated(index, total, now) for index in range(count)]


class simulate:
    """Simulate CUDA devices from now on, or until the end of the block.

    ``total_memory`` is in bytes, of each device.

    >>> with tk.cuda.simulate():
    ...     print(tk.ones(2, device="cuda") + 1)
    tensor([2., 2.], device='cuda:0')
    """

    def __init__(self, devices: int = 1, total_memory: int = _TOTAL) -> None:
        for number in (devices, total_memory):
            if not (isinstance(number, (int, float)) and number >= 0 and number % 1 == 0):
                raise ValueError(
                    message(
                        f"{devices!r} devices of {total_memory!r} bytes cannot be simulated",
                        repair="tk.cuda.simulate(devices=2, total_memory=2**30)",
                    )
                )
        self.backends = find(int(devices), int(total_memory))
        self._before = cuda.use(self.backends)

    def __enter__(self) -> "simulate":
        return self

    def __exit__(self, *_: object) -> None:
        cuda.restore(self._before)

    def __repr__(self) -> str:
        return f"<{len(self.backends)} x {NAME}>"
