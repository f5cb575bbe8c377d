"""What a tensor is made of: an array, and, once it is shared, a storage.

Shape, strides, dtype and device are read from the array. ``_storage`` is None until a view, a write
or a node that saves it as its result needs one: until then no other tensor shares the memory, and
the array fills it without gaps.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorkit import direct_path
from tensorkit.devices import CPU, Device, device_of_array
from tensorkit.dtypes import DType, of_numpy
from tensorkit.layout import Ints, Layout, Size, contiguous_strides
from tensorkit.overrides import overridable
from tensorkit.storage import Storage
from tensorkit.thread_state import state

_ndarray = np.ndarray


class TensorBase:
    """The slots of a tensor; the public class is ``tensorkit.Tensor``.

    ``_node`` is None for most tensors: they do not require grad and are no views of floating-point
    numbers. ``autograd.node`` lists its other values. Slots of views and of leaves stay empty in
    other tensors.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_edge",
        "_edge_version",
        "_grad",
        "_hooks",
        "_node",
        "_offset",
        "_origin",
        "_storage",
        "_view_base",
    )

    _array: np.ndarray[Any, Any]
    _offset: int | None  # in the storage, in elements; None: ``offset_of`` finds it when asked
    _storage: Storage | None
    _node: Any
    _view_base: "Tensor"  # of a view: the tensor it was made from, itself no view
    _edge: Any  # of a view: its node, as long as the storage has version _edge_version
    _edge_version: int
    _grad: "Tensor | None"
    _hooks: Any  # of a leaf: what is attached to it; see autograd.hooks
    _origin: Any  # how it came about, if a recording was on; see autograd.recording

    @property
    def shape(self) -> Size:
        """Sizes of all dimensions.

        >>> tk.zeros(2, 3).shape
        torch.Size([2, 3])
        """
        return tuple.__new__(Size, self._array.shape)

    @property
    def dtype(self) -> DType:
        """Type of the elements.

        >>> tk.tensor([1, 2]).dtype
        torch.int64
        """
        return of_numpy(self._array.dtype)

    @property
    def device(self) -> Device:
        """Where the elements are.

        >>> tk.zeros(2).device
        device(type='cpu')
        """
        array = self._array
        return CPU if array.__class__ is _ndarray else device_of_array(array)

    @property
    def _strides(self) -> Ints:
        return strides_of(self._array)

    @property
    def _xp(self) -> Any:
        """The array library of the device."""
        return self.device.backend.xp


@overridable
def strides_of(array: Any) -> Ints:
    """Strides of an array in elements."""
    itemsize, strides = array.itemsize, array.strides
    if not array.size and not any(strides):  # NumPy gives 0 where strides do not matter
        return contiguous_strides(array.shape)
    return tuple([stride // itemsize for stride in strides])


# The class Tensor imports everything; lower layers name it in annotations, and make results of
# ``tensor_class``, which is that class once ``bind`` was called.
if TYPE_CHECKING:
    from tensorkit._tensor import Tensor as Tensor
else:
    Tensor = TensorBase
tensor_class: Any = TensorBase


def bind(cls: type) -> None:
    """Tell the lower layers which class their results have."""
    global tensor_class
    tensor_class = cls


def new(array: Any) -> Tensor:
    """A tensor on an array that no other tensor uses."""
    result = object.__new__(tensor_class)
    result._array = array
    result._storage = result._node = None
    if not direct_path.is_open and state.origin_recorders:
        state.origin_recorders[-1].made(result)
    return result


def storage_of(x: TensorBase) -> Storage:
    """The storage of ``x``, made when it is first asked for."""
    storage = x._storage
    if storage is None:
        storage = x._storage = Storage(x._array)
        x._offset = 0
    return storage


def offset_of(x: TensorBase) -> int:
    """Where in its storage the first element of ``x`` lies, counted in elements."""
    if x._storage is None:
        return 0
    if x._offset is None:
        start = x.device.backend.start
        x._offset = (start(x._array) - start(x._storage.flat)) // x._array.itemsize
    return x._offset


def layout_of(x: TensorBase) -> Layout:
    """Shape, strides and offset of ``x`` as plain numbers."""
    return Layout(x._array.shape, x._strides, offset_of(x))


def on_storage(storage: Storage, layout: Layout) -> Tensor:
    """A tensor that looks at ``storage`` through ``layout``."""
    shape, strides, offset = layout
    result = new(storage.device.backend.view(storage.flat, shape, strides, offset))
    result._storage = storage
    result._offset = offset
    return result


def tensor_of(storage: Storage) -> Tensor:
    """The tensor that a storage was made for, without its history."""
    result = new(storage._array)
    result._storage, result._offset = storage, 0
    return result


def same_memory(x: TensorBase) -> Tensor:
    """Another tensor on the array and the storage of ``x``, without its history."""
    result = object.__new__(tensor_class)
    result._array = x._array
    result._storage = storage_of(x)
    result._offset = x._offset
    result._node = None
    return result


def new_with_strides(array: Any, strides: Ints) -> Tensor:
    """A tensor of the values of an array, its elements ordered in memory by ``strides``."""
    copy = device_of_array(array).backend.allocate(array.dtype, array.shape, strides)
    copy[...] = array
    return new(copy)


def contiguous(array: Any, device: Device = CPU) -> Any:
    """``array`` in row-major order: itself, a copy, or for one of NumPy's numbers a new array."""
    if array.__class__ is not _ndarray:
        array = device.backend.asarray(array)
    if not array.flags.c_contiguous:
        array = device.backend.xp.asarray(array, order="C")
    return array
