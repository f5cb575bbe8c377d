"""A module that looks like CuPy and is NumPy, so that the backend of a GPU runs somewhere.

It shows that the backend, and every forward and formula, calls CuPy with the names and arguments
that CuPy has. It shows nothing about a GPU. It refuses what CuPy refuses: names that are not in the
table of CuPy's signatures, arrays of the host. Arrays share memory and know their owners as CuPy's
do.
"""

import contextlib
import operator
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
from cupy_signatures import committed

from tensorkit.cuda.cupy_backend import find
from tensorkit.cuda.simulated import _TO_HOST, _broadcast_to, _diagonal, _inside, _product
from tensorkit.devices import register_device
from tensorkit.direct_path import without_warnings

_BINARY = "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul"
_OTHER = "lt", "le", "eq", "ne", "gt", "ge", "neg", "abs", "invert"
_DTYPES = ["bool_", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
TABLE = committed()
_AS_OPERANDS_LIE = ("astype", "copy")  # in memory; other results lie row by row
_COMPARISONS = np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal
_ATOMIC = "efdiILQ"  # the dtypes that CuPy adds to at places which repeat


class Memory:
    """An allocation, given back when nothing refers to it."""

    def __init__(self, pool, size):
        self.pool, self.size = pool, size
        self.buffer = np.empty(max(size, 1), np.uint8)
        self.ptr = self.buffer.ctypes.data

    def __del__(self):
        self.pool.used -= self.size


class Pointer:
    """A place in memory."""

    def __init__(self, mem, offset=0):
        self.mem, self.ptr = mem, mem.ptr + offset

    def __add__(self, offset):
        return Pointer(self.mem, self.ptr - self.mem.ptr + offset)


class OutOfMemoryError(MemoryError):
    """The device is full."""


class Pool:
    """The memory of the device; what was given back stays reserved."""

    def __init__(self, size):
        self.size, self.used, self.total = size, 0, 0

    def malloc(self, size):
        size = -(-size // 512) * 512
        if self.used + size > self.size:
            raise OutOfMemoryError
        self.used += size
        self.total = max(self.total, self.used)
        return Pointer(Memory(self, size))

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.total

    def free_all_blocks(self):
        self.total = self.used


class Array:
    """What ``cupy.ndarray`` is; ``cupy`` is the module it belongs to."""

    cupy: "Cupy"
    __hash__ = object.__hash__

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        shape, dtype = np.broadcast_shapes(shape), np.dtype(dtype)
        if memptr is None:
            memptr = self.cupy.allocate(int(np.prod(shape)) * dtype.itemsize)
        self.data, self.base = memptr, None
        offset = memptr.ptr - memptr.mem.ptr
        self.host = np.ndarray(shape, dtype, memptr.mem.buffer, offset, strides, order)

    def _view(self, host):
        """An array on a part of this memory."""
        offset = host.__array_interface__["data"][0] - self.data.ptr
        made = object.__new__(type(self))
        made.data = self.data + offset if offset and host.size else self.data
        made.base, made.host = self if self.base is None else self.base, host
        return made

    def __getattr__(self, name):
        if name == "mean":  # for programs by hand
            return lambda *axis: self.cupy.run(name, np.ndarray.mean, (self, *axis))
        if f"ndarray.{name}" not in TABLE:
            raise AttributeError(f"CuPy's arrays, as tensorkit uses them, have no {name!r}")
        found = getattr(self.host, name)
        if not callable(found) or name in _TO_HOST:
            return found
        function = getattr(np.ndarray, name)
        function = {"take": _taken, "dot": _dot, "diagonal": _diagonal}.get(name, function)
        return lambda *args, **options: self.cupy.call(
            f"ndarray.{name}", function, (self, *args), options, 1
        )

    @property
    def flags(self):
        flags = self.host.flags
        return SimpleNamespace(
            c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, forc=flags.forc
        )

    @property
    def T(self):
        return self.transpose()

    @property
    def __cuda_array_interface__(self):
        told = {"shape": self.shape, "typestr": self.dtype.str, "strides": self.strides}
        return {**told, "data": (self.data.ptr, False), "version": 3, "stream": 1}

    def __dlpack__(self, **options):
        assert {*options} <= {"stream", "max_version", "dl_device", "copy"}
        return self  # for a capsule

    def __dlpack_device__(self):
        return 2, 0

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *args, **options):
        assert method == "__call__"
        if ufunc in _COMPARISONS:  # of which NumPy makes arrays of its own numbers
            args = [x.item() if isinstance(x, np.ndarray) and not x.ndim else x for x in args]
        return getattr(self.cupy, ufunc.__name__)(*args, **options)

    def __getitem__(self, index):
        return self.cupy.run("getitem", lambda x, i: x[_inside(i, x.shape)], (self, index))

    def __setitem__(self, index, value):
        def write(x, i, y):
            x[_inside(i, x.shape)] = y

        self.cupy.run("setitem", write, (self, index, value))

    def __len__(self):
        return len(self.host)

    def get(self):
        """On the host."""
        return self.host.copy()

    def set(self, arr):
        """From the host."""
        assert arr.__class__ is np.ndarray
        assert (arr.shape, arr.dtype) == (self.shape, self.dtype)
        assert self.flags.c_contiguous or self.flags.f_contiguous
        self.host[...] = arr

    def _number(kind):
        return lambda self: kind(self.host)

    __bool__, __int__, __float__ = _number(bool), _number(int), _number(float)
    __index__ = _number(operator.index)


def _taken(x, places, axis=None):
    return x.take(places, axis, mode="wrap")


def _dot(x, y):
    return _product(np.dot, x, y)


def _operator(name, function):
    return lambda self, *others: self.cupy.run(name, function, (self, *others))


def _reflected(name, function):
    return _operator(name, lambda x, y: function(y, x))


for _name in _BINARY:
    for _kind in ("", "i"):
        _full = f"__{_kind}{_name}__"
        setattr(Array, _full, _operator(_full, getattr(operator, _full)))
    setattr(Array, f"__r{_name}__", _reflected(_name, getattr(operator, f"__{_name}__")))
for _name in _OTHER:
    setattr(Array, f"__{_name}__", _operator(_name, getattr(operator, f"__{_name}__")))


class Ufunc:
    """A function on elements; only sums and products reduce."""

    def __init__(self, cupy, name):
        self.cupy, self.name, self.ufunc = cupy, name, getattr(np, name)

    def __call__(self, *args, **options):
        assert len(args) <= self.ufunc.nargs
        assert {*options} <= {*TABLE[f"ufunc {self.name}"].by_name}
        return self.cupy.run(self.name, self.ufunc, args, options)

    def reduce(self, *args, **options):
        if self.name not in ("add", "multiply"):
            raise NotImplementedError
        return self.cupy.call(f"{self.name}.reduce", self.ufunc.reduce, args, options)

    def at(self, total, places, values):
        assert self.name == "add"
        assert total.dtype.char in _ATOMIC
        self.cupy.run(
            "add.at", lambda x, i, y: np.add.at(x, _inside(i, x.shape), y), (total, places, values)
        )


def _module(name, **members):
    made = ModuleType(name)
    made.__dict__.update(members)
    return made


class Cupy(ModuleType):
    """The module."""

    def __init__(self):
        super().__init__("cupy")
        self.__version__ = TABLE["version"]
        self.waits = 0
        self.ndarray = type("ndarray", (Array,), {"cupy": self})
        self.generic, self.broadcast_shapes = np.generic, np.broadcast_shapes
        self.__dict__.update({name: getattr(np, name) for name in _DTYPES})
        self.pool = Pool(2**40)
        self.allocate = self.pool.malloc
        self.linalg = _module("linalg")
        for name in ("inv", "det", "solve"):
            function = getattr(np.linalg, name)
            setattr(self.linalg, name, lambda *args, function=function: self.run(
                "linalg", function, args
            ))  # fmt: skip
        properties = {"name": b"A fake", "major": 9, "minor": 0, "multiProcessorCount": 132}
        runtime = _module(
            "runtime", getDeviceProperties=lambda index: {**properties, "totalGlobalMem": 2**40},
            getDeviceCount=lambda: 1, runtimeGetVersion=lambda: 12090,
            CUDARuntimeError=RuntimeError,
        )  # fmt: skip
        self.cuda = _module(
            "cuda", runtime=runtime, Device=lambda number: Device(self),
            Event=lambda: Event(self), get_elapsed_time=lambda start, end: end.time - start.time,
            memory=_module("memory", OutOfMemoryError=OutOfMemoryError),
            set_allocator=lambda allocate: setattr(self, "allocate", allocate),
            using_allocator=lambda allocate: contextlib.nullcontext(),
        )  # fmt: skip

    def __getattr__(self, name):
        if f"ufunc {name}" in TABLE:
            return Ufunc(self, name)
        if name not in TABLE:
            raise AttributeError(f"CuPy, as tensorkit uses it, has no {name!r}")
        function = _broadcast_to if name == "broadcast_to" else getattr(np, name)
        return lambda *args, **options: self.call(name, function, args, options)

    # Calls

    def call(self, name, function, args, options, n_self=0):
        """The same, after a look at the signature."""
        told = TABLE[name]
        if name == "repeat" and isinstance([*args, *options.values()][1], Array):
            # as CuPy 14.0, which Colab has; 14.1 takes an array
            raise ValueError("cupy.ndaray cannot be specified as `repeats` argument.")
        assert told.any_number or len(args) - n_self <= len(told.positional), name
        assert {*options} <= {*told.positional, *told.by_name}, name
        return self.run(name.removeprefix("ndarray."), function, args, options)

    def run(self, name, function, args, options=None):
        """A function of NumPy on arrays of the device, where its result is, too."""
        given = []
        host = self._host(args, given)
        options = {key: self._host(value, given) for key, value in (options or {}).items()}
        return self.made(name, without_warnings(function, *host, **options), given)

    def _host(self, value, given):
        if isinstance(value, Array):
            given.append(value)
            return value.host
        if isinstance(value, np.ndarray):
            raise TypeError(f"Unsupported type {type(value)}")
        if isinstance(value, (tuple, list)):
            return type(value)([self._host(each, given) for each in value])
        return value

    def made(self, name, result, given):
        """A result of NumPy as it is here: what was given, a view of it, or an array of its own."""
        if isinstance(result, (tuple, list)):
            return type(result)(self.made(name, each, given) for each in result)
        if not isinstance(result, (np.ndarray, np.generic)):
            return result
        for each in given:
            if result is each.host:
                return each
            if isinstance(result, np.ndarray) and np.may_share_memory(result, each.host):
                return each._view(result)
        strides = None
        if name in _AS_OPERANDS_LIE and not result.flags.c_contiguous:
            strides = result.strides
        made = self.ndarray(result.shape, result.dtype, self.allocate(result.nbytes), strides)
        made.host[...] = result
        return made

    def empty(self, shape, dtype=float, order="C"):
        return self.ndarray(shape, dtype, order=order)

    def array(self, obj, order="K"):
        assert obj.__class__ is np.ndarray
        return self.made("copy", obj.copy(order), ())

    def asarray(self, a, dtype=None, order=None):
        if hasattr(a, "__cuda_array_interface__") and not isinstance(a, Array):
            return self.from_dlpack(a)
        if not isinstance(a, Array):
            assert np.ndim(a) == 0  # more would be a transfer
            return self.made("asarray", np.asarray(a, dtype), ())
        return self.run("asarray", np.asarray, (a, dtype, order))

    def asnumpy(self, a, order="C"):
        order = "F" if order == "A" and a.flags.f_contiguous else "C"
        return np.array(a.host, order=order)

    def from_dlpack(self, array):
        found = array.__dlpack__(stream=1, max_version=(1, 0), copy=None)
        return self.ndarray(found.shape, found.dtype, found.data + 0, found.strides)

    def matmul(self, x1, x2):
        return self.run("matmul", lambda x, y: _product(np.matmul, x, y), (x1, x2))

    def get_default_memory_pool(self):
        return self.pool


class Device:
    """The device."""

    def __init__(self, cupy):
        self.cupy = cupy

    def synchronize(self):
        self.cupy.waits += 1

    @property
    def mem_info(self):
        pool = self.cupy.pool
        return pool.size - pool.total, pool.size


class Event:
    """A moment: how often the host had waited."""

    done = True

    def __init__(self, cupy):
        self.cupy = cupy

    def record(self):
        self.time = self.cupy.waits


@contextlib.contextmanager
def installed():
    """Let ``import cupy`` give this module, and tensorkit find its device."""
    cupy = Cupy()
    real, sys.modules["cupy"] = sys.modules.get("cupy"), cupy
    gpu = find()
    before = register_device("cuda", lambda: gpu)
    try:
        yield cupy
    finally:
        register_device("cuda", before)
        del sys.modules["cupy"]
        if real is not None:
            sys.modules["cupy"] = real
