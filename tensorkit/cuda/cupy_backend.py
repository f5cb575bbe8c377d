"""Real CUDA devices: CuPy's arrays, pool and stream. Imported when a CUDA device is asked for.

What holds for CuPy: a view made from memory does not know its base, but shares ``data.mem``; other
views share ``data`` and know the array that owns it; its pool counts in units of 512 bytes; indices
outside wrap around instead of raising; ``copyto`` and operators launch on one stream, in order; it
computes on the current device, which must be the first one.
"""

import time
from typing import Any

import numpy as np

from tensorkit.cuda import ledger
from tensorkit.cuda.backend import CudaBackend


class Gpu(CudaBackend):
    """The backend of the GPU; ``cupy`` is the module."""

    def __init__(self, cupy: Any) -> None:
        super().__init__(cupy)
        self.array, self.gpu = cupy.ndarray, cupy.cuda.Device(0)
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.name = properties["name"].decode()
        self.capability = (properties["major"], properties["minor"])
        self.n_processors = properties["multiProcessorCount"]
        self._total = properties["totalGlobalMem"]
        version = cupy.cuda.runtime.runtimeGetVersion()
        self.cuda_version = f"{version // 1000}.{version % 1000 // 10}"
        self.pool = cupy.get_default_memory_pool()
        self.peak = 0

    # Arrays

    def view_bytes(self, flat: Any, shape: Any, strides: Any, offset: int) -> Any:
        """An array on the memory of another one."""
        return self.xp.ndarray(shape, flat.dtype, flat.data + offset, strides)

    def memory_of(self, array: Any, count: int) -> Any:
        """A flat array on the memory of an array, from its first element on."""
        return self.xp.ndarray((count,), array.dtype, array.data)

    def start(self, array: Any) -> int:
        """The address where an array begins."""
        return int(array.data.ptr)

    def add_at(self, total: Any, indices: Any, values: Any) -> None:
        """Add to elements that may be named more than once, by atomic additions.

        The order of the additions, and so the last digit of the sums, is not the same each time.
        """
        add, kind = self.xp.add.at, total.dtype
        if kind == np.int64:  # bits add alike with and without a sign
            add(total.view(np.uint64), indices, values.view(np.uint64))
        elif kind.itemsize >= 4:
            add(total, indices, values)
        else:
            sums = total.astype(np.float32 if kind == np.float16 else np.int32)
            add(sums, indices, values.astype(sums.dtype))
            total[...] = sums.astype(kind)

    def product(self, x: Any, y: Any) -> Any:
        """Of vectors or matrices, or of matrices in pairs, (b, n, m) and (b, m, p)."""
        if x.dtype.char == "e" and y.ndim < 3 and x.size == y.size == x.shape[-1]:
            return x.astype("f").dot(y.astype("f")).astype("e")  # CuPy would round every product
        return super().product(x, y)

    # To and from the host

    def _note(self, start: float, kind: str, name: str, *moved: Any) -> None:
        """Write down what took from ``start`` until now; of a transfer direction and bytes."""
        duration = time.perf_counter() - start
        ledger.note(kind, name, start, duration, *moved, sees_launches=False)

    def item(self, array: Any, reason: str) -> Any:
        """The only element; the host waits."""
        return self.to_host(array, reason).item()

    def from_host(self, array: Any, reason: str = "to") -> Any:
        """A copy of a NumPy array on this device."""
        start = time.perf_counter()
        made = self.xp.array(array, order="K")
        self._note(start, "transfer", reason, "host to device", array.nbytes)
        return made

    def write_from_host(self, into: Any, array: Any, reason: str) -> None:
        """Copy a NumPy array into one of this device, of its shape and dtype."""
        start = time.perf_counter()
        if into.flags.c_contiguous or into.flags.f_contiguous:
            into.set(array)
        else:
            into[...] = self.xp.array(array)
        self._note(start, "transfer", reason, "host to device", array.nbytes)

    def to_host(self, array: Any, reason: str = "to") -> Any:
        """A copy on the host, which waits."""
        if reason != "to":
            self.wait(reason)
        start = time.perf_counter()
        found = self.xp.asnumpy(array, order="A")
        self._note(start, "transfer", reason, "device to host", array.nbytes)
        self.raise_pending()
        return found

    def wait(self, name: str) -> None:
        """The host waits for the device."""
        start = time.perf_counter()
        self.gpu.synchronize()
        self._note(start, "synchronise", name)
        self.raise_pending()

    # Time

    def event(self) -> Any:
        """An event after what was asked so far."""
        event = self.xp.cuda.Event()
        event.record()
        return event

    def is_done(self, event: Any) -> bool:
        """Whether the device has reached an event."""
        return bool(event.done)

    def between(self, start: Any, end: Any) -> float:
        """Milliseconds from one event to another."""
        return float(self.xp.cuda.get_elapsed_time(start, end))

    # Memory

    def allocate_bytes(self, size: int) -> Any:
        """CuPy's allocator, with PyTorch's words where memory runs out."""
        try:
            memory = self.pool.malloc(size)
        except self.xp.cuda.memory.OutOfMemoryError:
            raise self.out_of_memory(size) from None
        self.peak = max(self.peak, self.pool.used_bytes())
        return memory

    def memory(self) -> dict[str, int]:
        """Bytes: allocated, the peak of that, reserved, total, free."""
        return {
            "allocated": self.pool.used_bytes(),
            "reserved": self.pool.total_bytes(),
            "peak": self.peak,
            "total": self._total,
            "free": int(self.gpu.mem_info[0]),  # that nobody uses, this process or another
        }

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        self.peak = self.pool.used_bytes()

    def empty_cache(self) -> None:
        """Give back what is reserved and not used."""
        self.pool.free_all_blocks()


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


def find() -> Gpu | None:
    """The backend of the first GPU; None where there is no GPU or no CuPy."""
    if missing():
        return None
    import cupy

    found = Gpu(cupy)
    cupy.cuda.set_allocator(found.allocate_bytes)
    return found
