"""What CUDA devices have in common: the host asks, and learns later what came of it."""

from typing import Any

from tensorkit.devices import Backend
from tensorkit.errors import AcceleratorError, OutOfMemoryError


class CudaBackend(Backend):
    """The backend of a CUDA device."""

    kind = "cuda"
    index = 0

    def __init__(self, xp: Any) -> None:
        super().__init__(xp)
        self._pending: list[tuple[Any, str]] = []  # what should be true, and what it is if not

    def device_assert(self, fine: Any, mistake: str) -> None:
        """Raise AcceleratorError when the host next waits, unless all of ``fine`` is true.

        As in PyTorch a kernel that finds something wrong cannot raise by itself.
        """
        self._pending.append((fine.all(), mistake))

    def device_assert_inside(self, indices: Any, low: int, high: int, mistake: str) -> None:
        """The same for integers, which should lie in [low, high)."""
        self.device_assert((indices >= low) & (indices < high), mistake)

    def raise_pending(self) -> None:
        """Raise what a kernel found wrong. The host has waited."""
        pending, self._pending = self._pending, []
        for fine, mistake in pending:
            if not self.is_true(fine):
                raise AcceleratorError(
                    "CUDA error: device-side assert triggered",
                    f"{mistake}: a kernel found it, and the host learns of it when it next "
                    "waits for the device.",
                    repair="the same call on the CPU, x.cpu(), which names the place",
                )

    def is_true(self, fine: Any) -> bool:
        """The value of a bool array of one element, which is known."""
        return bool(fine)

    def product(self, x: Any, y: Any) -> Any:
        """Of vectors or matrices, or of matrices in pairs, (b, n, m) and (b, m, p)."""
        return x.dot(y) if y.ndim < 3 else self.xp.matmul(x, y)

    # Memory

    def memory(self) -> dict[str, int]:
        """Bytes: allocated, the peak of that, reserved, total, free."""
        raise NotImplementedError

    def out_of_memory(self, size: int, *more: str) -> OutOfMemoryError:
        """PyTorch's sentence about an allocation of ``size`` bytes that failed."""
        memory = self.memory()
        unused = memory["reserved"] - memory["allocated"]
        return OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {in_words(size)}. GPU 0 has a total capacity "
            f"of {in_words(memory['total'])} of which {in_words(memory['free'])} is free. Of the "
            f"allocated memory {in_words(memory['allocated'])} is allocated by PyTorch, and "
            f"{in_words(unused)} is reserved by PyTorch but unallocated.",
            *more,
            "The operation that found no memory changed nothing; what went before it stands, also "
            "within backward().",
            repair="del what is not needed, with tk.no_grad(), or smaller batches",
        )


def in_words(size: int) -> str:
    """A number of bytes as PyTorch writes it: 2.00 MiB."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} bytes"
