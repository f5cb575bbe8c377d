"""A module that looks like CuPy and is NumPy, so that the lines of ``tensorkit.gpu`` run somewhere.

It shows that the backend of a GPU calls CuPy with the names and in the order that CuPy has. It
shows nothing about a GPU. Kernels are compiled for the host.
"""

import ctypes
from types import SimpleNamespace

import numpy as np
from kernel_sources import CODES, compiled, for_host, parameters, raw, source

from tensorkit import kernels


class ndarray(np.ndarray):
    """Results stay arrays where they have no dimensions, as CuPy's do."""

    def __new__(cls, shape, dtype=float, memptr=None, strides=None, order="C"):
        if memptr is None:
            return np.empty(shape, dtype, order).view(cls)
        return super().__new__(cls, shape, dtype, memptr.mem, memptr.offset, strides)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return _wrapped(array)

    def __getitem__(self, index):
        return _wrapped(super().__getitem__(index))

    def set(self, arr):
        assert arr.__class__ is np.ndarray
        assert (arr.shape, arr.dtype) == (self.shape, self.dtype)
        assert self.flags.c_contiguous
        self[...] = arr

    @property
    def data(self):
        return Pointer(self, 0)

    def __dlpack_device__(self):
        return 2, 0

    @property
    def device(self):
        return SimpleNamespace(id=0)


class Pointer:
    """A place in memory."""

    def __init__(self, array, offset):
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        self.mem = np.asarray(root).reshape(-1, order="A").view(np.uint8)
        start = root.__array_interface__["data"][0]
        self.ptr = array.__array_interface__["data"][0] + offset
        self.offset = self.ptr - start
        self.array = array

    def __add__(self, offset):
        return Pointer(self.array, offset)


def _wrapped(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(_wrapped, value))
    return np.asarray(value).view(ndarray) if isinstance(value, (np.ndarray, np.generic)) else value


def _in_rows(array):
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).view(ndarray)


class Ufunc:
    """A function on elements; only sums and products reduce."""

    def __init__(self, name):
        self.name, self.ufunc, self.at = name, getattr(np, name), getattr(np, name).at

    def __call__(self, *args, **options):
        made = _wrapped(self.ufunc(*args, **options))
        # CuPy's results lie row by row, however its operands lie
        return made if "out" in options or len(args) > self.ufunc.nin else _in_rows(made)

    def reduce(self, *args, **options):
        if self.name not in ("add", "multiply"):
            raise NotImplementedError
        return _wrapped(self.ufunc.reduce(*args, **options))


class OutOfMemoryError(MemoryError):
    """The device is full."""


class Pool:
    """Counts what was asked of it."""

    def __init__(self, total):
        self.used, self.total = 0, total

    def malloc(self, size):
        if self.used + size > self.total:
            raise OutOfMemoryError
        self.used += size
        return size

    def used_bytes(self):
        return self.used

    total_bytes = used_bytes

    def free_all_blocks(self):
        self.used = 0


class Cupy:
    """The module."""

    __name__ = "cupy"
    ndarray, generic = ndarray, np.generic
    broadcast_shapes = staticmethod(np.broadcast_shapes)
    may_share_memory = staticmethod(np.may_share_memory)

    def __init__(self, folder):
        self.folder, self.launched, self.waits = folder, [], 0
        self.linalg = SimpleNamespace(
            **{
                name: lambda *args, name=name: _wrapped(
                    getattr(np.linalg, name)(*map(np.asarray, args))
                )
                for name in ("inv", "det", "solve")
            }
        )
        types = {"COMPUTE_TYPE_TF32": 1, "COMPUTE_TYPE_FP32": 0}
        self.tf32 = None
        linalg = SimpleNamespace(**types, set_compute_type=self._set_compute_type)
        self._core = SimpleNamespace(_routines_linalg=linalg)
        self._pool = Pool(2**40)
        runtime = SimpleNamespace(
            getDeviceProperties=lambda index: {
                "name": b"A fake", "major": 9, "minor": 0, "multiProcessorCount": 132,
                "totalGlobalMem": 2**40,
            },
            runtimeGetVersion=lambda: 12090, CUDA_R_16F=2, CUDA_R_32F=0, CUDA_R_64F=1,
        )  # fmt: skip
        self.cuda = SimpleNamespace(
            runtime=runtime, Device=lambda index: SimpleNamespace(synchronize=self._wait, use=int),
            Event=lambda: SimpleNamespace(record=int, done=True, time=self.waits),
            get_elapsed_time=lambda start, end: end.time - start.time,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError), set_allocator=lambda _: None,
            cublas=self._cublas(), get_cublas_handle=lambda: 1,
        )  # fmt: skip

    def __getattr__(self, name):
        found = getattr(np, name)
        if isinstance(found, np.ufunc) and name != "matmul":
            return Ufunc(name)
        if isinstance(found, type):
            return found
        return lambda *args, **options: _wrapped(found(*args, **options))

    def _cublas(self):
        names = "32F 32F_FAST_TF32 64F"
        types = {f"CUBLAS_COMPUTE_{name}": name for name in names.split()}
        product = self._gemm_strided_batched
        return SimpleNamespace(**types, gemmStridedBatchedEx=product, CUBLAS_GEMM_DEFAULT=-1)

    def _gemm_strided_batched(
        self, handle, trans_a, trans_b, m, n, k, alpha, a, a_kind, lda, a_step, b, b_kind, ldb,
        b_step, beta, c, c_kind, ldc, c_step, count, compute, algorithm,
    ):  # fmt: skip
        """As cuBLAS tells it: matrices lie column by column, ``ld`` apart; C = alpha A B + beta C.

        Nothing outside of the matrices is touched.
        """
        kinds = {2: np.float16, 0: np.float32, 1: np.float64}
        assert a_kind == b_kind == c_kind
        assert (handle, algorithm) == (1, -1)
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

    def _set_compute_type(self, dtype, kind):
        self.tf32 = dtype, kind

    def _wait(self):
        self.waits += 1

    def get_default_memory_pool(self):
        return self._pool

    def array(self, obj, order="K"):
        return np.array(obj, order=order).view(ndarray)

    def asnumpy(self, array, order="C"):
        return np.array(array, order=order, subok=False)

    def from_dlpack(self, array):
        return np.asarray(array).view(ndarray)

    # Kernels

    def ElementwiseKernel(self, *told):
        return lambda *arrays: self._run(told, arrays)

    def _run(self, told, arrays):
        name, *rest = told[3:]
        kernel = next(each for each in kernels.ALL if f"tensorkit_{each.name}" == name)
        assert told[:3] == (kernel.inputs, kernel.outputs, kernel.code)
        assert rest == [True, kernel.before]
        self.launched.append(kernel.name)
        given = parameters(kernel)
        inputs = [word for word, _, written in given if not written]
        kind = next(each.dtype for each in reversed(arrays) if isinstance(each, np.ndarray))
        names = [name for _, name, _ in given]
        whole = raw(kernel)
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
        outputs = [*arrays[len(inputs) :]] or [np.empty(shape, kind)]
        written = [np.array(each, order="C") for each in outputs]
        assert len(held) + len(written) == len(given)
        wanted = [kind if word == "T" else np.dtype(types[word]) for word, _, w in given if w]
        assert [each.dtype for each in written] == wanted
        size = ctypes.c_long(int(np.prod(shape)))
        real = CODES.get(kind.char, "double")
        code = for_host(source(kernel, real))
        run = compiled(self.folder, f"{kernel.name}_{real}", code).run
        run(size, *(each.ctypes.data_as(ctypes.c_void_p) for each in [*held, *written]))
        for each, values in zip(outputs, written, strict=True):
            each[...] = values
        return _wrapped(outputs[0])

    def RawKernel(self, code, name):
        def launch(grid, block, args):
            (n_blocks,), (n_threads,) = grid, block
            self.launched.append(name.removeprefix("tensorkit_"))
            kind = "float" if "typedef float T" in code else "double"
            start = compiled(self.folder, f"{name}_{kind}", for_host(code, name)).start
            values = [_by_value(each) for each in args]
            places = (ctypes.c_void_p * len(values))(*(each.ctypes.data for each in values))
            start(n_blocks, n_threads, places)

        return launch


def _by_value(argument):
    """What a launch copies: a number, the address of an array, or one record of NumPy's."""
    if argument is None:
        return np.zeros(1, np.uint64)
    if isinstance(argument, ndarray):
        assert argument.flags.c_contiguous
        return np.array([argument.data.ptr], np.uint64)
    if isinstance(argument, np.ndarray):
        assert argument.size == 1
        return argument
    assert isinstance(argument, np.generic)  # a Python number would travel as float64 or int64
    return np.array([argument])
