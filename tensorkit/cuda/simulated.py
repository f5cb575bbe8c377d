"""A simulated CUDA device: NumPy arrays that behave as if they were in another memory.

An ``Array`` is no ndarray: it refuses to mix with arrays of the host, and what NumPy computes on it
is an ``Array`` again. Positions outside of a dimension wrap around, as CuPy's do: an operation that
refuses them checks them before.

A ``Pool`` keeps books as CuPy's memory pool does: in units of 512 bytes, freed blocks stay
reserved. It does not model how memory falls to pieces. A ``Clock`` models time, so that a notebook
shows the same times everywhere: they say what waits for what, not how fast a GPU is.
"""

import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tensorkit.cuda import ledger
from tensorkit.cuda.backend import CudaBackend
from tensorkit.devices import CPU, Backend, register_device
from tensorkit.direct_path import without_warnings

NAME = "Simulated CUDA device (NumPy on the CPU)"
_UNIT, _TOTAL = 512, 16 * 2**30
_FILLED = 2**20  # bytes of `empty` that hold nan; more stay untouched, and cost no memory
_LAUNCH, _TRANSFER, _WAIT, _LOOK = 5e-6, 10e-6, 5e-6, 1e-6  # seconds that each lasts at least
_MEMORY_SPEED, _BUS_SPEED = 1e12, 12e9  # bytes a second

# The first give values of the host, so the host waits; of the others it waits for the size.
_TO_HOST = {"item", "tolist", "tobytes"}
_OF_UNKNOWN_SIZE = {"compress", "nonzero", "unique", "bincount"}
_ATTRIBUTES = {"dtype", "shape", "strides", "ndim", "size", "itemsize", "nbytes", "flags"}

_IN_THE_HOST = "The simulated memory lies in this computer's, which has not so much left."


class Pool:
    """The books of the device's memory."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.allocated = self.reserved = self.peak = 0

    def allocate(self, size: int) -> int | None:
        """Note an allocation; gives its size in whole units, None where there is no room."""
        rounded = -(-size // _UNIT) * _UNIT
        allocated = self.allocated + rounded
        if allocated > self.reserved and allocated > self.total:
            self.reserved = self.allocated  # CuPy gives back what it keeps before it gives up
            return None
        self.allocated = allocated
        self.reserved = max(self.reserved, allocated)
        self.peak = max(self.peak, allocated)
        return rounded


class Clock:
    """When things happen in the model: the host asks, the device works on one thing at a time."""

    def __init__(self) -> None:
        self.host = self.device = 0.0

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

    def wait(self, name: str) -> None:
        """The host waits until the device has done what was asked."""
        start = self.host
        self.host = self.device = max(self.host, self.device) + _WAIT
        ledger.note("synchronise", name, start, self.host - start)


class _Memory:
    """One allocation, given back when nothing refers to it."""

    def __init__(self, backend: "Simulated", size: int) -> None:
        self.backend, self.size = backend, 0
        allocated = backend.pool.allocate(size)
        if allocated is None:
            raise backend.out_of_memory(size)
        self.size = allocated

    def __del__(self) -> None:
        self.backend.pool.allocated -= self.size


class Array:
    """An array in the memory of the simulated device; views share ``memory``."""

    __slots__ = ("__weakref__", "_host", "memory")
    __array_ufunc__ = None  # NumPy's numbers leave operators to these
    __hash__ = object.__hash__

    _host: Any
    memory: _Memory

    def __getattr__(self, name: str) -> Any:
        if name in _ATTRIBUTES:
            return getattr(self._host, name)
        if name.startswith("_") or not callable(getattr(np.ndarray, name, None)):
            raise AttributeError(f"CuPy's arrays, as tensorkit uses them, have no {name!r}")
        return partial(self._call, name)

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        """A method of NumPy's arrays."""
        if name in _TO_HOST:
            return without_warnings(getattr(self._waited(name), name), *args, **options)
        if name in ("take", "compress"):
            _check_no_lists(*args[:1])
        as_in_cupy = {"take": _take, "dot": partial(_product, np.dot), "diagonal": _diagonal}
        function = as_in_cupy.get(name) or getattr(np.ndarray, name)
        return self.memory.backend.run(name, function, (self, *args), options)

    @property
    def T(self) -> Any:
        """The view with all dimensions in reverse order."""
        return self.transpose()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to "
            "construct a NumPy array explicitly."
        )

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return self.memory.backend.run("getitem", _read, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        _check_no_lists(value)
        backend = self.memory.backend
        index, value = _on_host((index, value), backend)
        index = _inside(index, self.shape)
        without_warnings(self._host.__setitem__, index, value)
        backend.clock.launch("setitem", self._host[index].nbytes)

    def _waited(self, name: str) -> Any:
        """The array on the host, which has waited for the device."""
        backend = self.memory.backend
        backend.wait(name)
        backend.clock.transfer(name, "device to host", self._host.nbytes)
        return self._host

    def __bool__(self) -> bool:
        return bool(self._waited("if"))

    def __int__(self) -> int:
        return int(self._waited("int"))

    def __float__(self) -> float:
        return float(self._waited("float"))

    def __index__(self) -> int:
        return operator.index(self._waited("index"))


def _operator(name: str, method: str, is_reflected: bool = False) -> Callable[..., Any]:
    function = getattr(operator, method)

    def apply(self: Array, *others: Any) -> Any:
        operands = (*others, self) if is_reflected else (self, *others)
        return self.memory.backend.run(name, function, operands, {})

    return apply


_BINARY = "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul"
for _name in _BINARY:
    setattr(Array, f"__{_name}__", _operator(_name, f"__{_name}__"))
    setattr(Array, f"__r{_name}__", _operator(_name, f"__{_name}__", True))
    setattr(Array, f"__i{_name}__", _operator(_name, f"__i{_name}__"))
for _name in ("lt", "le", "eq", "ne", "gt", "ge", "neg", "abs", "invert"):
    setattr(Array, f"__{_name}__", _operator(_name, f"__{_name}__"))


def _inside(index: Any, shape: tuple[int, ...]) -> Any:
    """An index whose arrays of integers lie inside of ``shape``: those outside wrap around."""
    parts, dim = [], 0
    for part in index if isinstance(index, tuple) else (index,):
        _check_no_lists(part)
        is_array = isinstance(part, np.ndarray)
        if is_array and part.dtype != bool and shape[dim]:
            part = part % shape[dim]
        parts.append(part)
        dim += part.ndim if is_array and part.dtype == bool else part is not None
    return tuple(parts) if isinstance(index, tuple) else parts[0]


def _read(host: Any, index: Any) -> Any:
    return host[_inside(index, host.shape)]


def _take(host: Any, *args: Any, **options: Any) -> Any:
    return host.take(*args, mode="wrap", **options)


def _broadcast_to(host: Any, shape: tuple[int, ...]) -> Any:
    return _writeable(np.broadcast_to(host, shape))


def _diagonal(host: Any, *args: Any) -> Any:
    return _writeable(host.diagonal(*args))


def _writeable(view: Any) -> Any:
    """As CuPy has it: who writes to a view writes to the array."""
    view.flags.writeable = True
    return view


def _product(multiply: Callable[..., Any], x: Any, y: Any, **options: Any) -> Any:
    """A product of arrays; of float16 it is added in float32, as cuBLAS does."""
    if x.dtype != np.float16:
        return multiply(x, y, **options)
    return multiply(x.astype(np.float32), y.astype(np.float32), **options).astype(np.float16)


def _on_host(value: Any, backend: "Simulated") -> Any:
    """The NumPy side of what a function is given; TypeError for arrays of the host."""
    if isinstance(value, Array):
        if value.memory.backend is not backend:
            raise ValueError("The array is on the device of another simulation")
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: an array of the host")
    if isinstance(value, (tuple, list)):
        return type(value)(_on_host(each, backend) for each in value)
    return value


def _check_no_lists(*values: Any) -> None:
    """TypeError for numbers in a list: CuPy refuses them, or sends them to the device unasked."""
    for value in values:
        if isinstance(value, (tuple, list)):
            raise TypeError(f"Unsupported type {type(value)}: numbers of the host")


def _arrays(value: Any) -> Iterator[Array]:
    """All arrays within nested tuples and lists."""
    if isinstance(value, Array):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _arrays(each)


class _Ufunc:
    """A function on elements; only sums and products reduce, as CuPy's."""

    def __init__(self, backend: "Simulated", ufunc: Any) -> None:
        self._backend, self._ufunc, self.name = backend, ufunc, ufunc.__name__

    def __call__(self, *args: Any, **options: Any) -> Any:
        _check_no_lists(*args)
        function = partial(_product, np.matmul) if self._ufunc is np.matmul else self._ufunc
        return self._backend.run(self.name, function, args, options)

    def reduce(self, *args: Any, **options: Any) -> Any:
        """Sums or products along axes."""
        if self.name not in ("add", "multiply"):
            raise NotImplementedError(f"CuPy's {self.name}.reduce raises NotImplementedError")
        name = {"add": "sum", "multiply": "prod"}[self.name]
        return self._backend.run(name, self._ufunc.reduce, args, options)

    def at(self, total: Any, indices: Any, values: Any) -> None:
        """Compute with elements that may be named more than once."""
        host, index, added = _on_host((total, indices, values), self._backend)
        self._ufunc.at(host, _inside(index, host.shape), added)
        self._backend.clock.launch("scatter_add", values.nbytes)


class Library:
    """The array library of the simulated device: NumPy's functions, on arrays of the device."""

    __name__ = "simulated"
    ndarray = Array

    def __init__(self, backend: "Simulated", numpy: Any = np) -> None:
        self._backend, self._numpy = backend, numpy

    def may_share_memory(self, a: Array, b: Array) -> bool:
        """Whether the stretches of memory of two arrays meet."""
        return np.may_share_memory(a._host, b._host)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._numpy, name)
        if name == "linalg":
            found = Library(self._backend, found)
        elif isinstance(found, np.ufunc):
            found = _Ufunc(self._backend, found)
        elif callable(found) and not isinstance(found, type):  # a dtype is that of NumPy
            found = partial(self._call, name, _broadcast_to if name == "broadcast_to" else found)
        self.__dict__[name] = found  # the next time it is not looked for
        return found

    def _call(self, name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if name == "asarray" and not isinstance(args[0], Array):
            raise TypeError("asarray of a host value is a transfer: use backend.from_host")
        return self._backend.run(name, function, args, options)


class Simulated(CudaBackend):
    """The backend of a simulated device."""

    is_simulated = True
    cuda_version = None
    name = NAME
    capability = (0, 0)
    n_processors = 1
    array = Array

    def __init__(self, total: int = _TOTAL) -> None:
        super().__init__(Library(self))
        self.pool, self.clock = Pool(total), Clock()

    def owner(self, array: Array) -> Backend:
        """The backend of the simulation in which the array was made."""
        return array.memory.backend

    def run(self, name: str, function: Any, args: Any, options: Any) -> Any:
        """``function`` of NumPy on these arguments, noted as a launch if it writes anything."""
        host = _on_host(args, self)
        named = {key: _on_host(value, self) for key, value in options.items()}
        try:
            result = without_warnings(function, *host, **named)
        except MemoryError as error:
            shape, dtype = getattr(error, "shape", ()), getattr(error, "dtype", np.dtype(np.uint8))
            raise self.out_of_memory(math.prod(shape) * dtype.itemsize, _IN_THE_HOST) from None
        given = [*_arrays((args, tuple(options.values())))]
        if result is None:  # copyto, fill: written to the first
            self.clock.launch(name, given[0].nbytes)
            return None
        if isinstance(result, (tuple, list)):
            made: Any = type(result)(self._as_device_array(name, each, given) for each in result)
        else:
            made = self._as_device_array(name, result, given)
        if name in _OF_UNKNOWN_SIZE:
            self.wait("mask" if name == "compress" or given[0].dtype == bool else name)
        return made

    def _as_device_array(self, name: str, result: Any, given: list[Array]) -> Array:
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
        elif array.dtype.kind == "f" and array.nbytes <= _FILLED:  # right by luck otherwise
            array.fill(np.nan)
        return made

    # Backend

    def asarray(self, value: Any) -> Any:
        """A result as an array; formulas may give a number."""
        return (
            value if isinstance(value, Array) else self.xp.full((), value, np.asarray(value).dtype)
        )

    def view_bytes(self, flat: Any, shape: Any, strides: Any, offset: int) -> Any:
        """An array on the memory of another one."""
        return _made(CPU.backend.view_bytes(flat._host, shape, strides, offset), flat.memory)

    def start(self, array: Any) -> int:
        """The address where an array begins."""
        return CPU.backend.start(array._host)

    def item(self, array: Any, reason: str) -> Any:
        """The only element; the host waits."""
        return array._waited(reason).item()

    def from_host(self, array: Any, reason: str = "to") -> Any:
        """A copy of a NumPy array on this device."""
        memory = _Memory(self, array.nbytes)
        self.clock.transfer(reason, "host to device", array.nbytes)
        return _made(array.copy(order="K"), memory)

    def write_from_host(self, into: Any, array: Any, reason: str) -> None:
        """Copy a NumPy array into one of this device, of its shape and dtype."""
        into._host[...] = array
        self.clock.transfer(reason, "host to device", array.nbytes)

    def to_host(self, array: Any, reason: str = "to") -> Any:
        """A copy on the host, which waits."""
        if reason != "to":
            self.wait(reason)
        self.raise_pending()
        self.clock.transfer(reason, "device to host", array.nbytes)
        return array._host.copy(order="K")

    def is_true(self, fine: Any) -> bool:
        """The value of a bool array, which the host knows once it has waited."""
        return bool(fine._host)

    def wait(self, name: str) -> None:
        """The host waits for the device."""
        self.clock.wait(name)
        self.raise_pending()

    def event(self) -> float:
        """The moment at which the device will have done what it was asked."""
        return max(self.clock.host, self.clock.device)

    def is_done(self, event: float) -> bool:
        """Whether the host knows that the moment has passed; asking needs time, too."""
        is_done = self.clock.host >= event
        self.clock.host += _LOOK
        return is_done

    def between(self, start: float, end: float) -> float:
        """Milliseconds from one moment to another."""
        return (end - start) * 1e3

    def memory(self) -> dict[str, int]:
        """Bytes: allocated, the peak of that, reserved, total, free."""
        return {**vars(self.pool), "free": self.pool.total - self.pool.reserved}

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        self.pool.peak = self.pool.allocated

    def empty_cache(self) -> None:
        """Give back what is reserved and not used."""
        self.pool.reserved = self.pool.allocated


def _made(host: Any, memory: _Memory) -> Array:
    array = object.__new__(Array)
    array._host, array.memory = host, memory
    return array


find = Simulated


class simulate:
    """Simulate a CUDA device from now on, or until the end of the block.

    ``total_memory`` is in bytes.

    >>> with tk.cuda.simulate():
    ...     print(tk.ones(2, device="cuda") + 1)
    tensor([2., 2.], device='cuda:0')
    """

    def __init__(self, total_memory: int = _TOTAL) -> None:
        self.backend = Simulated(int(total_memory))
        self._before = register_device("cuda", lambda: self.backend)

    def __enter__(self) -> "simulate":
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            register_device("cuda", self._before)
