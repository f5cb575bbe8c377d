"""Real CUDA devices: CuPy's arrays, pool and streams. Imported when a CUDA device is asked for.

What holds for CuPy: a view made from memory does not know its base, but shares ``data.mem``; other
views share ``data`` and know the array that owns it; its pool counts in units of 512 bytes; indices
outside wrap around instead of raising; ``copyto`` and operators launch on one stream, in order; it
computes on the current device (``tensorkit.other_gpu`` makes another one current).
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorkit import cublas, ledger
from tensorkit.array_backend import Accelerator, Backend, out_of_memory
from tensorkit.devices import backend_of, note_arrays
from tensorkit.kernels import Kernel, in_launches
from tensorkit.other_gpu import Array, There

_OUTSIDE = Kernel(
    "outside",
    "int64 place, int64 low, int64 high, int64 other",
    "raw bool found",
    "if ((place < low || place >= high) && place != other) found[0] = true;",
)


class Gpu(Accelerator):
    """The backend of one GPU; ``cupy`` is the module. ``is_current``: it is CuPy's current one."""

    def __init__(self, cupy: Any, index: int, is_current: bool = True) -> None:
        super().__init__(cupy if is_current else There(cupy, self))
        self.cupy, self.index, self.device = cupy, index, cupy.cuda.Device(index)
        self._array_class = cupy.ndarray if is_current else Array
        properties = cupy.cuda.runtime.getDeviceProperties(index)
        self.name = properties["name"].decode()
        self.capability = (properties["major"], properties["minor"])
        self.n_processors = properties["multiProcessorCount"]
        self._total = properties["totalGlobalMem"]
        version = cupy.cuda.runtime.runtimeGetVersion()
        self.cuda_version = f"{version // 1000}.{version % 1000 // 10}"
        self.pool = cupy.get_default_memory_pool()
        self.peak = self.peak_reserved = 0
        self._tf32 = False

    # Arrays

    def asarray(self, value: Any) -> Any:
        """A result as an array; formulas may give a number."""
        return value if value.__class__ is self._array_class else self.xp.asarray(value)

    def view_bytes(self, flat: Any, shape: Any, strides: Any, offset: int) -> Any:
        """An array on the memory of another one."""
        if 0 in shape:
            return self.xp.ndarray(shape, flat.dtype, self.xp.empty(0, flat.dtype).data, strides)
        start = flat.data + offset * flat.itemsize
        return self.xp.ndarray(shape, flat.dtype, start, strides)

    def memory_of(self, array: Any, count: int) -> Any:
        """A flat array on the memory of an array, from its first element on."""
        return self.xp.ndarray((count,), array.dtype, array.data)

    def from_dlpack(self, array: Any) -> Any:
        """An array on the memory of another library's."""
        return self.xp.from_dlpack(array)

    def is_alone(self, array: Any, most: int) -> bool:
        """Whether nobody else sees this memory or holds the array."""
        if sys.getrefcount(array) > most:
            return False
        if array.__class__ is Array:
            array, most = array.inner, 3  # held by the wrapper, by this function and by getrefcount
            if sys.getrefcount(array) > most:
                return False
        # the owner: held by its view and by getrefcount; memory: by the pointer and by getrefcount
        is_owner = array.base is None or sys.getrefcount(array.base) <= 2
        return is_owner and sys.getrefcount(array.data.mem) <= 2

    def address(self, array: Any) -> int:
        """Where the first element lies."""
        return int(array.data.ptr) if array.size else 0

    def add_at(self, total: Any, places: Any, values: Any) -> None:
        """Add to elements that may be named more than once, by atomic additions.

        The order of the additions, and so the last digit of the sums, is not the same each time.
        """
        add = self.xp.add.at
        kind = total.dtype
        if kind == np.int64:  # bits add alike with and without a sign
            add(total.view(np.uint64), places, values.view(np.uint64))
        elif kind.itemsize >= 4 or kind == np.float16:
            add(total, places, values)
        else:
            sums = self.xp.zeros(total.shape, np.int32)
            add(sums, places, values.astype(np.int32))
            total += sums.astype(kind)

    def repeated_positions(self, repeats: Any) -> Any:
        """The same without ``repeat``, which takes no array in CuPy 14.0 (Colab has 14.0.1).

        A 1 stands where the next position begins, so the sum of all up to a place is its position.
        """
        total = self.item(repeats.sum(dtype=np.int64), "repeat_interleave")
        starts = self.xp.zeros(total + 1, np.int64)  # those of the last positions may be at the end
        ends = repeats.cumsum(dtype=np.int64)
        self.add_at(starts, ends, self.xp.ones(ends.shape, np.int64))
        return starts[:-1].cumsum()

    def launch_on_lists(
        self, kernel: Kernel, numbers: Any, lists: Sequence[Any], form: Callable[..., None]
    ) -> None:
        """Run a kernel on ``[first input, *outputs]`` of each list, in as few launches as may be.

        ``form`` is what it computes, on NumPy's arrays.
        """
        if len(lists) == 1:  # which may lie in memory as they like
            first, *outputs = lists[0]
            kernel(self.xp, first, *numbers, *outputs)
            return
        for some in in_launches(kernel, lists):
            kernel.on_lists(self.xp, numbers, some)

    def product(self, x: Any, y: Any) -> Any:
        """Of vectors or matrices, or of matrices in pairs, (b, n, m) and (b, m, p)."""
        if x.dtype.kind != "f":
            return super().product(x, y)
        if x.dtype.char == "e" and y.ndim < 3 and x.size == y.size == x.shape[-1]:
            return x.astype("f").dot(y.astype("f")).astype("e")  # CuPy would round every product
        if y.ndim < 3 and all(z.flags.c_contiguous or z.flags.f_contiguous for z in (x, y)):
            return x.dot(y)
        left = x if x.ndim == 3 else x.reshape(1, -1, x.shape[-1])
        right = y if y.ndim == 3 else y.reshape(1, y.shape[0], -1)
        found = cublas.product(self.xp, left, right, self._tf32)
        return found if y.ndim == 3 else found.reshape((*x.shape[:-1], *y.shape[1:]))

    # To and from the host

    def _note(self, start: float, kind: str, name: str, *moved: Any) -> None:
        """Write down what took from ``start`` until now; of a transfer direction and bytes."""
        if ledger.is_recording():
            duration = time.perf_counter() - start
            ledger.note(kind, name, start, duration, *moved, sees_launches=False)

    def item(self, array: Any, why: str) -> Any:
        """The only element; the host waits."""
        return self.to_host(array, why).item()

    def from_host(self, array: Any, why: str = "to") -> Any:
        """A copy of a NumPy array on this device."""
        start = time.perf_counter()
        made = self.xp.array(array, order="K")
        self._note(start, "transfer", why, "host to device", array.nbytes)
        return made

    def from_device(self, array: Any, why: str = "to") -> Any:
        """A copy of an array of another GPU, which does not pass through the host."""
        start = time.perf_counter()
        source: Any = backend_of(array)
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = source.xp.ascontiguousarray(array)  # CuPy sends nothing else
        self.wait_for(source.mark())
        with self.device:
            made = self.xp.asarray(getattr(array, "inner", array).copy(order="K"))
        source.wait_for(self.mark())  # before it gives the memory to another array
        self._note(start, "transfer", why, "device to device", array.nbytes)
        return made

    def write_from_host(self, into: Any, array: Any, why: str) -> None:
        """Copy a NumPy array into one of this device, of its shape and dtype, without gaps."""
        start = time.perf_counter()
        into.set(array)
        self._note(start, "transfer", why, "host to device", array.nbytes)

    def to_host(self, array: Any, why: str = "to") -> Any:
        """A copy on the host, which waits."""
        if why != "to":
            self.wait(why)
        start = time.perf_counter()
        found = self.xp.asnumpy(array, order="A")
        self._note(start, "transfer", why, "device to host", array.nbytes)
        self.answer()
        return found

    def look(self, found: Any) -> bool:
        """What a kernel found."""
        return bool(found)

    def expect_inside(
        self, places: Any, low: int, high: int, mistake: str, but: int | None = None
    ) -> None:
        """Have one kernel look for integers that are neither in [low, high) nor ``but``."""
        if places.dtype != np.int64:
            super().expect_inside(places, low, high, mistake, but)
            return
        found = self.xp.zeros(1, np.bool_)
        _OUTSIDE(self.xp, places, low, high, -(2**63) if but is None else but, found)
        self._questions.append((found, False, mistake))

    def wait(self, name: str) -> None:
        """The host waits for the device."""
        start = time.perf_counter()
        self.device.synchronize()
        self._note(start, "synchronise", name)
        self.answer()

    # Time

    def mark(self) -> Any:
        """An event after what was asked so far."""
        with self.device:
            event = self.cupy.cuda.Event()
            event.record()
        return event

    def wait_for(self, mark: Any) -> None:
        """Let what is asked from now on begin after an event, which may be another GPU's."""
        with self.device:
            self.cupy.cuda.get_current_stream().wait_event(mark)

    def is_over(self, mark: Any) -> bool:
        """Whether the device has reached an event."""
        return bool(mark.done)

    def between(self, start: Any, end: Any) -> float:
        """Milliseconds from one event to another."""
        return float(self.cupy.cuda.get_elapsed_time(start, end))

    # Memory

    def allocate_bytes(self, size: int) -> Any:
        """CuPy's allocator, with PyTorch's words where memory runs out."""
        try:
            memory = self.pool.malloc(size)
        except self.cupy.cuda.memory.OutOfMemoryError:
            raise out_of_memory(size, self.index, self.memory(), self.free()) from None
        used = self.pool.used_bytes()
        if used > self.peak:
            self.peak, self.peak_reserved = used, self.pool.total_bytes()
        return memory

    def memory(self) -> dict[str, int]:
        """Bytes: allocated, reserved, their peaks, total."""
        with self.device:
            allocated, reserved = self.pool.used_bytes(), self.pool.total_bytes()
        return {
            "allocated": allocated,
            "reserved": reserved,
            "peak": self.peak,
            "peak_reserved": self.peak_reserved,
            "total": self._total,
        }

    def free(self) -> int:
        """The bytes that nobody uses, this process or another."""
        return int(self.device.mem_info[0])

    def reset_peak(self) -> None:
        """Count the peaks from now on."""
        with self.device:
            self.peak, self.peak_reserved = self.pool.used_bytes(), self.pool.total_bytes()

    def empty_cache(self) -> None:
        """Give back what is reserved and not used."""
        if self.peak_reserved:  # else nobody has used this GPU, and nobody shall
            with self.device:
                self.pool.free_all_blocks()

    # Settings

    def use_tf32(self, allow: bool) -> None:
        """Let float32 products use TF32."""
        self._tf32 = allow
        linalg = self.cupy._core._routines_linalg
        kind = linalg.COMPUTE_TYPE_TF32 if allow else linalg.COMPUTE_TYPE_FP32
        linalg.set_compute_type(np.float32, kind)


def missing() -> str | None:
    """A sentence about what CuPy lacks to compute on a GPU; None if it lacks nothing."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed (pip install cupy-cuda12x[ctk], or cupy-cuda13x[ctk])."
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU ({error})."
    return None if count else "CuPy finds no GPU."


def find() -> list[Backend]:
    """The backends of the GPUs; none where there is no GPU or no CuPy.

    The arrays of the first are CuPy's, because that is the current one in every thread, unless the
    program chose another. Those of the others are wrapped.
    """
    if missing():
        return []
    import cupy

    runtime = cupy.cuda.runtime
    is_first_current = runtime.getDevice() == 0
    indices = range(runtime.getDeviceCount())
    found = [Gpu(cupy, index, index == 0 and is_first_current) for index in indices]
    first = found[0]
    note_arrays(cupy.ndarray, lambda array: first)
    note_arrays(Array, lambda array: array.gpu)

    def allocate(size: int) -> Any:  # CuPy asks for memory of its current device
        return found[runtime.getDevice()].allocate_bytes(size)

    cupy.cuda.set_allocator(first.allocate_bytes if len(found) == 1 else allocate)
    first.use_tf32(False)  # whatever CUPY_TF32 says
    return [*found]
