"""The storage: one flat stretch of memory that one or more tensors look at."""

from typing import Any

from tensorkit.devices import Device
from tensorkit.dtypes import DType


class Storage:
    """Flat memory on one device. Tensors that share it see each other's writes.

    >>> a = tk.arange(6)
    >>> a[2:].untyped_storage().nbytes()
    48
    """

    __slots__ = ("_array", "_strides", "device", "dtype", "version", "wrote")

    def __init__(self, array: Any, device: Device, dtype: DType, strides: Any = None) -> None:
        self._array = array
        self._strides = strides  # how a dense `array` lies in memory; None if it is flat already
        self.device = device
        self.dtype = dtype
        self.version = 0  # how often a tensor on this storage was written to
        self.wrote: tuple[str, Any, int] | None = None  # operation, code and place of the last one

    @property
    def flat(self) -> Any:
        """The memory as a one-dimensional array; a tensor's own array is flattened when asked."""
        if self._strides is not None:
            self._array = self.device.backend.flatten(self._array, self._strides)
            self._strides = None
        return self._array

    @property
    def writer(self) -> tuple[str, str, int] | None:
        """Operation, file and line of the last write; the line takes a while to be found."""
        if self.wrote is None:
            return None
        operation, code, at = self.wrote
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

    def size(self) -> int:
        """Size in bytes: an untyped storage counts bytes, not elements.

        >>> tk.zeros(3).untyped_storage().size()
        12
        """
        return self.nbytes()
