"""What a device must supply: an array library, memory, the way to and from the host.

``Backend`` is the CPU's, and the default of the others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorkit import layout
from tensorkit.errors import AcceleratorError, OutOfMemoryError


class Backend:
    """What a device must supply: an array namespace, memory, the way to and from the host."""

    index = 0
    is_simulated = False
    tensor_device: Any  # the Device whose backend this is
    # What only the backends of CUDA devices have:
    cuda_version: str | None
    use_tf32: Callable[[bool], None]
    empty_cache: Callable[[], None]
    expect: Callable[[Any, str], None]
    expect_inside: Callable[..., None]
    launch_on_lists: Callable[..., None]
    product: Callable[..., Any]
    is_alone: Callable[[Any, int], bool]
    from_dlpack: Callable[[Any], Any]
    draw: Callable[..., Any]
    from_device: Callable[[Any, str], Any]

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def asarray(self, value: Any) -> Any:
        """A result as an array: NumPy gives a scalar where there are no dimensions."""
        return value if value.__class__ is np.ndarray else np.asarray(value)

    def address(self, array: Any) -> int:
        """Where the first element lies."""
        return int(array.ctypes.data) if array.size else 0

    def add_at(self, total: Any, places: Any, values: Any) -> None:
        """Add ``values`` to the flat array ``total`` at ``places``, which may repeat."""
        self.xp.add.at(total, places, values)

    def repeated_positions(self, repeats: Any) -> Any:
        """Position 0 as often as the first of ``repeats``, position 1 as often as the second."""
        return self.xp.repeat(self.xp.arange(repeats.size), repeats)

    def item(self, array: Any, why: str) -> Any:
        """The only element as a Python number; ``why`` is what asked for it."""
        return array.item()

    def allocate(self, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """An uninitialised array of its own, its elements ordered in memory by ``strides``."""
        order = layout.slowest_first(strides)
        dense = self.xp.empty([shape[dim] for dim in order], dtype)
        return dense.transpose(layout.inverse(order))

    def view(self, flat: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """An array that looks at the memory of the one-dimensional array ``flat``."""
        itemsize = flat.dtype.itemsize
        return self.view_bytes(flat, shape, tuple(stride * itemsize for stride in strides), offset)

    def view_bytes(
        self, flat: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Any:
        """The same, with strides counted in bytes as array libraries do."""
        if 0 in shape:  # nothing to see; an offset may lie beyond the end
            return self.xp.ndarray(shape, flat.dtype, self.xp.empty(0, flat.dtype), 0, strides)
        return self.xp.ndarray(shape, flat.dtype, flat, offset * flat.itemsize, strides)

    def memory_of(self, array: Any, count: int) -> Any:
        """A flat array of ``count`` elements on the memory of an array, from its first one on."""
        writeable = array.flags.writeable
        return np.lib.stride_tricks.as_strided(
            array, (count,), (array.itemsize,), writeable=writeable
        )

    def from_host(self, array: Any, why: str = "to") -> Any:
        """A NumPy array in this device's memory; itself where that is NumPy's."""
        return array

    def write_from_host(self, into: Any, array: Any, why: str) -> None:
        """Copy a NumPy array into an array of this device, of the same shape and dtype."""
        into[...] = array

    def to_host(self, array: Any, why: str = "to") -> Any:
        """An array of this device in NumPy's memory; itself where it is there."""
        return array

    def flatten(self, array: Any, strides: tuple[int, ...]) -> Any:
        """The memory of a dense array of its own, as a one-dimensional array."""
        return array.transpose(layout.slowest_first(strides)).reshape(-1)


class Accelerator(Backend):
    """The backend of a CUDA device: the host asks, and learns later what came of it."""

    def __init__(self, xp: Any) -> None:
        super().__init__(xp)
        self._questions: list[tuple[Any, bool, str]] = []  # what is found, and should be

    def expect(self, fine: Any, mistake: str) -> None:
        """Raise AcceleratorError when the host next waits, unless all of ``fine`` is true.

        As in PyTorch a kernel that finds something wrong cannot raise by itself.
        """
        self._questions.append((fine.all(), True, mistake))

    def expect_inside(
        self, places: Any, low: int, high: int, mistake: str, but: int | None = None
    ) -> None:
        """The same for integers, which should lie in [low, high) or be ``but``."""
        fine = (places >= low) & (places < high)
        self.expect(fine if but is None else fine | (places == but), mistake)

    def answer(self) -> None:
        """Raise what a kernel found wrong. The host has waited."""
        questions, self._questions = self._questions, []
        for found, should, mistake in questions:
            if self.look(found) is not should:
                raise AcceleratorError(
                    "CUDA error: device-side assert triggered",
                    f"{mistake}: a kernel found it, and the host learns of it when it next "
                    "waits for the device.",
                    repair="the same call on the CPU, x.cpu(), which names the place",
                )

    def product(self, x: Any, y: Any) -> Any:
        """Of vectors or matrices, or of matrices in pairs, (b, n, m) and (b, m, p)."""
        return x.dot(y) if y.ndim < 3 else self.xp.matmul(x, y)

    def look(self, found: Any) -> bool:
        """The value of a bool array of one element, which is known."""
        raise NotImplementedError


def out_of_memory(
    size: int, index: int, memory: dict[str, int], free: int, *more: str
) -> OutOfMemoryError:
    """PyTorch's sentence about an allocation of ``size`` bytes that failed."""
    allocated, total = memory["allocated"], memory["total"]
    return OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {in_words(size)}. GPU {index} has a total "
        f"capacity of {in_words(total)} of which {in_words(free)} is free. Of the "
        f"allocated memory {in_words(allocated)} is allocated by PyTorch, and "
        f"{in_words(memory['reserved'] - allocated)} is reserved by PyTorch but unallocated.",
        *more,
        "The operation that found no memory changed nothing; what went before it stands, within "
        "backward() too.",
        repair="del what is not needed, with tk.no_grad(), or smaller batches",
    )


def in_words(size: int) -> str:
    """A number of bytes as PyTorch writes it: 2.00 MiB."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} bytes"
