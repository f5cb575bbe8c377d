"""A module that looks like CuPy and is NumPy, so that the lines of ``tensorkit.gpu`` run somewhere.

It shows that the backend of a GPU calls CuPy with the names, the arguments and in the order that
CuPy has, and on which of several devices. It shows nothing about a GPU. Kernels are compiled for
the host. It refuses what CuPy refuses (names that are not in the table of CuPy's signatures, arrays
of the host), and what CuPy does with a warning at most: computing on arrays of another device than
the current one. Arrays share memory and know their owners as CuPy's do.
"""

import contextlib
import ctypes
import operator
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
from cupy_signatures import committed
from kernel_sources import CODES, compiled, for_host, parameters, raw, source

from tensorkit import kernels
from tensorkit.devices import cuda
from tensorkit.quiet import quietly
from tensorkit.simulated import _TO_HOST, Library, _around, _product, _repeated
from tensorkit.wrapped import _BINARY, _OTHER

TABLE = committed()
_AS_OPERANDS_LIE = ("astype", "copy")  # other results lie row by row
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
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.pool.device_id

    def __add__(self, offset):
        return Pointer(self.mem, self.ptr - self.mem.ptr + offset)


class OutOfMemoryError(MemoryError):
    """The device is full."""


class Pool:
    """The memory of one device; what was given back stays reserved."""

    def __init__(self, device_id, size):
        self.device_id, self.size, self.used, self.total = device_id, size, 0, 0

    def malloc(self, size):
        size = -(-size // 512) * 512
        if self.used + size > self.size:
            raise OutOfMemoryError
        self.used += size
        self.total = max(self.total, self.used)
        return Pointer(Memory(self, size))


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
        function = {"take": _taken, "dot": _dot}.get(name, function)
        return lambda *args, **options: self.cupy.call(
            f"ndarray.{name}", function, (self, *args), options, 1
        )

    @property
    def flags(self):
        flags = self.host.flags
        return SimpleNamespace(c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous)

    @property
    def T(self):
        return self.transpose()

    @property
    def device(self):
        return self.cupy.cuda.Device(self.data.device_id)

    @property
    def __cuda_array_interface__(self):
        told = {"shape": self.shape, "typestr": self.dtype.str, "strides": self.strides}
        return {**told, "data": (self.data.ptr, False), "version": 3, "stream": 1}

    def __dlpack__(self, **options):
        assert {*options} <= {"stream", "max_version", "dl_device", "copy"}
        return self  # for a capsule

    def __dlpack_device__(self):
        return 2, self.data.device_id

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *args, **options):
        assert method == "__call__"
        if ufunc in _COMPARISONS:  # of which NumPy makes arrays of its own numbers
            args = [x.item() if isinstance(x, np.ndarray) and not x.ndim else x for x in args]
        return getattr(self.cupy, ufunc.__name__)(*args, **options)

    def __getitem__(self, index):
        return self.cupy.run("getitem", lambda x, i: x[_around(i, x.shape)], (self, index))

    def __setitem__(self, index, value):
        def write(x, i, y):
            x[_around(i, x.shape)] = y

        self.cupy.run("setitem", write, (self, index, value))

    def __len__(self):
        return len(self.host)

    def copy(self, order="C"):
        """On the current device, wherever this array is."""
        current = self.cupy.current
        if self.data.device_id == current or not self.size:
            return self.cupy.call("ndarray.copy", np.ndarray.copy, (self, order), {}, 1)
        if not (self.flags.c_contiguous or self.flags.f_contiguous):
            raise NotImplementedError("CuPy cannot copy non-contiguous array between devices.")
        return self.cupy.made("copy", self.host.copy(order), ())

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
        self.cupy.run("add.at", np.add.at, (total, places, values))


def _module(name, **members):
    made = ModuleType(name)
    made.__dict__.update(members)
    return made


class Cupy(ModuleType):
    """The module; ``launched`` names the kernels that ran."""

    def __init__(self, folder, n_devices=1):
        super().__init__("cupy")
        self.__version__ = TABLE["version"]
        self.folder, self.launched, self.waits, self.tf32 = folder, [], 0, None
        self._local = threading.local()  # CuPy has one current device for each thread
        self.ndarray = type("ndarray", (Array,), {"cupy": self})
        self.generic, self.broadcast_shapes = np.generic, np.broadcast_shapes
        self.__dict__.update(Library.kinds)
        self.pools = [Pool(number, 2**40) for number in range(n_devices)]
        self.allocate = self.malloc
        types = {"COMPUTE_TYPE_TF32": 1, "COMPUTE_TYPE_FP32": 0}
        linalg = _module("linalg", **types, set_compute_type=self._set_type)
        self._core = _module("_core", _routines_linalg=linalg)
        self.linalg = _module("linalg")
        for name in ("inv", "det", "solve"):
            function = getattr(np.linalg, name)
            setattr(self.linalg, name, lambda *args, function=function: self.run(
                "linalg", function, args
            ))  # fmt: skip
        properties = {"name": b"A fake", "major": 9, "minor": 0, "multiProcessorCount": 132}
        runtime = _module(
            "runtime", getDeviceProperties=lambda index: {**properties, "totalGlobalMem": 2**40},
            getDevice=lambda: self.current, getDeviceCount=lambda: n_devices,
            runtimeGetVersion=lambda: 12090, CUDARuntimeError=RuntimeError,
            CUDA_R_16F=2, CUDA_R_32F=0, CUDA_R_64F=1,
        )  # fmt: skip
        compute = {f"CUBLAS_COMPUTE_{name}": name for name in ("32F", "32F_FAST_TF32", "64F")}
        cublas = _module(
            "cublas", **compute, CUBLAS_GEMM_DEFAULT=-1,
            gemmStridedBatchedEx=self._gemm_strided_batched,
        )  # fmt: skip
        self.cuda = _module(
            "cuda", runtime=runtime, cublas=cublas, Device=lambda number: Device(self, number),
            Event=lambda: Event(self), get_elapsed_time=lambda start, end: end.time - start.time,
            get_current_stream=lambda: SimpleNamespace(wait_event=self._wait_event),
            memory=_module("memory", OutOfMemoryError=OutOfMemoryError),
            set_allocator=lambda allocate: setattr(self, "allocate", allocate),
            get_cublas_handle=lambda: 1 + self.current,
            using_allocator=lambda allocate: contextlib.nullcontext(),
        )  # fmt: skip

    @property
    def current(self):
        return getattr(self._local, "current", 0)

    def __getattr__(self, name):
        if f"ufunc {name}" in TABLE:
            return Ufunc(self, name)
        if name not in TABLE:
            raise AttributeError(f"CuPy, as tensorkit uses it, has no {name!r}")
        function = _repeated if name == "broadcast_to" else getattr(np, name)
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
        """A function of NumPy on arrays of the current device, where its result is, too."""
        given = []
        host = self._host(args, given)
        options = {key: self._host(value, given) for key, value in (options or {}).items()}
        return self.made(name, quietly(function, *host, **options), given)

    def _host(self, value, given):
        if isinstance(value, Array):
            if value.data.device_id != self.current:
                raise ValueError(
                    f"The device where the array resides ({value.data.device_id}) is different "
                    f"from the current device ({self.current}). Peer access is unavailable between "
                    "these devices."
                )
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
            shared = self.from_dlpack(a)
            return shared if shared.data.device_id == self.current else shared.copy()
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

    # Devices and memory

    def malloc(self, size):
        return self.pools[self.current].malloc(size)

    def get_default_memory_pool(self):
        return self

    def used_bytes(self):
        return self.pools[self.current].used

    def total_bytes(self):
        return self.pools[self.current].total

    def free_all_blocks(self):
        self.pools[self.current].total = self.used_bytes()

    def _set_type(self, dtype, kind):
        self.tf32 = dtype, kind

    def _wait_event(self, event):
        assert isinstance(event, Event)

    # Products

    def _gemm_strided_batched(
        self, handle, trans_a, trans_b, m, n, k, alpha, a, a_kind, lda, a_step, b, b_kind, ldb,
        b_step, beta, c, c_kind, ldc, c_step, count, compute, algorithm,
    ):  # fmt: skip
        """As cuBLAS tells it: matrices lie column by column, ``ld`` apart; C = alpha A B + beta C.

        Nothing outside of the matrices is touched.
        """
        kinds = {2: np.float16, 0: np.float32, 1: np.float64}
        assert a_kind == b_kind == c_kind
        assert (handle, algorithm) == (1 + self.current, -1)
        self.launched.append(f"gemm {compute}")
        scale = np.float64 if compute == "64F" else np.float32

        def matrix(start, rows, columns, ld, kind):
            assert ld >= max(rows, 1)
            kind, count = np.dtype(kinds[kind]), ld * (columns - 1) + rows
            memory = (ctypes.c_char * (count * kind.itemsize)).from_address(start)
            strides = (kind.itemsize, ld * kind.itemsize)
            return np.ndarray((rows, columns), kind, memory, 0, strides), kind.itemsize

        one, zero = (
            np.ctypeslib.as_array((ctypes.c_char * 8).from_address(x)) for x in (alpha, beta)
        )
        assert (one.view(scale)[0], zero.view(scale)[0]) == (1, 0)
        for place in range(count):
            size = np.dtype(kinds[a_kind]).itemsize
            left = (k, m) if trans_a else (m, k)
            right = (n, k) if trans_b else (k, n)
            x, _ = matrix(a + place * a_step * size, *left, lda, a_kind)
            y, _ = matrix(b + place * b_step * size, *right, ldb, b_kind)
            z, _ = matrix(c + place * c_step * size, m, n, ldc, c_kind)
            x, y = x.T if trans_a else x, y.T if trans_b else y
            z[...] = x.astype(scale) @ y.astype(scale)

    # Kernels

    def ElementwiseKernel(self, *told):
        return lambda *arrays: self._run_kernel(told, arrays)

    def _run_kernel(self, told, arrays):
        name, *rest = told[3:]
        kernel = next(each for each in kernels.ALL if f"tensorkit_{each.name}" == name)
        assert told[:3] == (kernel.inputs, kernel.outputs, kernel.code)
        assert rest == [True, kernel.before]
        self.launched.append(kernel.name)
        given = parameters(kernel)
        inputs = [word for word, _, written in given if not written]
        names = [name for _, name, _ in given]
        whole = raw(kernel)
        outputs = [*arrays[len(inputs) :]]
        arrays = self._host(arrays, [])
        kind = next(each.dtype for each in reversed(arrays) if isinstance(each, np.ndarray))
        shape = np.broadcast_shapes(
            *(
                np.shape(each)
                for each, name in zip(arrays, names, strict=False)
                if name not in whole
            )
        )
        if any(word == "T" for word in inputs):
            kind = next(
                each.dtype
                for each, word in zip(arrays, inputs, strict=False)
                if word == "T" and isinstance(each, np.ndarray)
            )
        types = {"T": kind, "int64": "i8", "uint64": "u8", "bool": "?"}
        for each, word in zip(arrays, inputs, strict=False):  # as CuPy: numbers convert, arrays fit
            assert np.ndim(each) == 0 or each.dtype == types[word], kernel.name
        held = [
            np.array(
                each if name in whole else np.broadcast_to(each, shape), types[word], order="C"
            )
            for each, word, name in zip(arrays, inputs, names, strict=False)
        ]
        outputs = outputs or [self.ndarray(shape, kind)]
        written = [np.array(each.host, order="C") for each in outputs]
        assert len(held) + len(written) == len(given)
        wanted = [kind if word == "T" else np.dtype(types[word]) for word, _, w in given if w]
        assert [each.dtype for each in written] == wanted
        size = ctypes.c_long(int(np.prod(shape)))
        real = CODES.get(kind.char, "double")
        code = for_host(source(kernel, real))
        run = compiled(self.folder, f"{kernel.name}_{real}", code).run
        run(size, *(each.ctypes.data_as(ctypes.c_void_p) for each in [*held, *written]))
        for each, values in zip(outputs, written, strict=True):
            each.host[...] = values
        return outputs[0]

    def RawKernel(self, code, name):
        def launch(grid, block, args):
            (n_blocks,), (n_threads,) = grid, block
            self.launched.append(name.removeprefix("tensorkit_"))
            kind = "float" if "typedef float T" in code else "double"
            start = compiled(self.folder, f"{name}_{kind}", for_host(code, name)).start
            values = [self._by_value(each) for each in args]
            places = (ctypes.c_void_p * len(values))(*(each.ctypes.data for each in values))
            start(n_blocks, n_threads, places)

        return launch

    def _by_value(self, argument):
        """What a launch copies: a number, the address of an array, or one record of NumPy's."""
        if argument is None:
            return np.zeros(1, np.uint64)
        if isinstance(argument, Array):
            assert self._host(argument, []).flags.c_contiguous
            return np.array([argument.data.ptr], np.uint64)
        if isinstance(argument, np.ndarray):
            assert argument.size == 1
            return argument
        assert isinstance(argument, np.generic)  # a Python number would travel as float64 or int64
        return np.array([argument])


class Device:
    """One of the devices; ``with`` makes it the current one."""

    def __init__(self, cupy, number):
        assert 0 <= number < len(cupy.pools)
        self.cupy, self.id = cupy, number

    def __enter__(self):
        local = self.cupy._local
        local.outer = [*getattr(local, "outer", []), self.cupy.current]
        local.current = self.id
        return self

    def __exit__(self, *_):
        self.cupy._local.current = self.cupy._local.outer.pop()

    def synchronize(self):
        self.cupy.waits += 1

    @property
    def mem_info(self):
        pool = self.cupy.pools[self.id]
        return pool.size - pool.total, pool.size


class Event:
    """A moment: how often the host had waited. It belongs to the device that is current."""

    done = True

    def __init__(self, cupy):
        self.cupy, self.device = cupy, cupy.current

    def record(self):
        assert self.device == self.cupy.current
        self.time = self.cupy.waits


@contextlib.contextmanager
def installed(folder, n_devices=1, current=0):
    """Let ``import cupy`` give this module, and tensorkit find its devices."""
    cupy = Cupy(folder, n_devices)
    cupy._local.current = current
    real, sys.modules["cupy"] = sys.modules.get("cupy"), cupy
    before = cuda.use(None)
    try:
        yield cupy
    finally:
        cuda.restore(before)
        del sys.modules["cupy"]
        if real is not None:
            sys.modules["cupy"] = real
