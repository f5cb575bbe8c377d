"""The storage: one flat stretch of memory that one or more tensors look at.

At the end the C library is told to keep the memory of arrays that are no longer used.
"""

import ctypes  # NumPy has imported it already
from typing import Any

from tensorkit import layout
from tensorkit.devices import Device, as_device, device_of_array


class Storage:
    """Flat memory on one device. Tensors that share it see each other's writes.

    >>> a = tk.arange(6)
    >>> a[2:].untyped_storage().nbytes()
    48
    """

    __slots__ = ("_array", "has_leaf_view", "last_write", "version")

    has_leaf_view: bool  # set where a view was made a leaf that requires grad; else empty

    def __init__(self, array: Any) -> None:
        self._array = array  # dense, perhaps of more dimensions than one
        self.version = 0  # how often a tensor on this storage was written to
        self.last_write: tuple[str, Any, int] | None = None  # operation, code and instruction

    def __repr__(self) -> str:
        return f"<Storage of {self._array!r}>"

    def __reduce__(self) -> tuple[Any, ...]:  # a pickle's memory passes through the host
        return _unpickled, (self.device.backend.to_host(self.flat, "pickle"), self.device)

    @property
    def flat(self) -> Any:
        """The memory as a one-dimensional array."""
        array = self._array
        return array.transpose(layout.slowest_first(array.strides)).reshape(-1)

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return device_of_array(self._array)

    @property
    def writer(self) -> tuple[str, str, int] | None:
        """Operation, file and line of the last write; the line takes a while to be found."""
        if self.last_write is None:
            return None
        operation, code, at = self.last_write
        lines = [line for begin, end, line in code.co_lines() if begin <= at < end]
        return operation, code.co_filename, lines[0] if lines else code.co_firstlineno

    def data_ptr(self) -> int:
        """Address of the first byte.

        >>> a = tk.arange(6)
        >>> a.untyped_storage().data_ptr() == a.data_ptr()
        True
        """
        return self.device.backend.address(self.flat)

    def nbytes(self) -> int:
        """Size in bytes.

        >>> tk.zeros(3).untyped_storage().nbytes()
        12
        """
        return int(self._array.nbytes)


def _unpickled(array: Any, device: Device) -> Storage:
    return Storage(as_device(device).backend.from_host(array, "pickle"))


def keep_freed_memory() -> None:
    """Have glibc keep freed memory, up to 512 MB, for the next array instead of giving it back.

    Otherwise every large result is new to the process, and the system clears its pages one fault
    after the other: for arrays of some megabytes that takes longer than adding them. Elsewhere than
    under glibc this does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    # a glibc before 2.35 takes no more than 32 MB
    _ = mallopt(_M_MMAP_THRESHOLD, 2**30) or mallopt(_M_MMAP_THRESHOLD, 2**25)
    mallopt(_M_TRIM_THRESHOLD, 2**29)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
keep_freed_memory()
