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

    __slots__ = ("_array", "device", "dtype")

    def __init__(self, array: Any, device: Device, dtype: DType) -> None:
        self._array = array
        self.device = device
        self.dtype = dtype

    def data_ptr(self) -> int:
        """Address of the first byte.

        >>> a = tk.arange(6)
        >>> a.untyped_storage().data_ptr() == a.data_ptr()
        True
        """
        return int(self._array.ctypes.data) if self._array.size else 0

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
