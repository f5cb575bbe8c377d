"""Tensors from data: numbers, nested lists, NumPy arrays, memory that another library owns."""

import warnings
from typing import Any

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.creation import Options, factory
from tensorkit.devices import CPU, Device, as_device, is_array
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import AutogradError, DTypeError, NotSupportedError, message, type_name
from tensorkit.layout import Ints, Layout
from tensorkit.ops import copying
from tensorkit.ops.arguments import check_value
from tensorkit.ops.moving import moved
from tensorkit.quiet import quietly
from tensorkit.storage import Storage


@factory
def tensor(options: Options, data: Any) -> Tensor:
    """A new tensor holding a copy of ``data``: a number, nested lists, an array or a tensor.

    Without ``dtype``: bools give bool, integers int64, numbers with a point the default dtype;
    arrays keep theirs. Raises ValueError if the lists have unequal lengths.

    >>> tk.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, TensorBase):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), "
            "rather than torch.tensor(sourceTensor).\n\nTry: source.clone()",
            UserWarning,
            stacklevel=3,
        )
        device = data.device if options.device is None else as_device(options.device)
        return moved(copying.converted(data, options.dtype or data.dtype), device)
    if isinstance(data, np.generic) and not isinstance(data, (float, np.complexfloating)):
        data = np.asarray(data)
    if isinstance(data, np.ndarray):
        shared = _shared(data)
        return moved(
            copying.converted(shared, options.dtype or shared.dtype), as_device(options.device)
        )
    shape = _shape_of(data)
    dtype = options.dtype or _inferred(data)
    values: list[Any] = []
    if 0 not in shape:
        _collect(data, shape, 0, dtype, values)
    return options.holding(_array_of(values, dtype).reshape(shape))


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple, range)):
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, TensorBase) and len(value.shape) > 0


def _holds_floats(data: Any) -> bool:
    """Whether a sequence holds Python's floats only: most do, and then little is to be asked."""
    return {*map(type, data)} <= {float}


def _shape_of(data: Any) -> Ints:
    """The sizes of nested sequences, read off the first element of each level."""
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type_name(data)}'")
    shape: list[int] = []
    while _is_sequence(data) and not (shape and isinstance(data, TensorBase)):
        shape.append(len(data))
        if not shape[-1]:
            break
        data = data[0]
    if isinstance(data, str):
        raise ValueError("too many dimensions 'str'")
    return tuple(shape)


def _inferred(data: Any) -> DType:
    """The dtype that holds every number in nested sequences; an empty one is floating point."""
    if _is_sequence(data) and not isinstance(data, TensorBase):
        if isinstance(data, np.ndarray):
            return dtypes.of_numpy(data.dtype)
        if _holds_floats(data):  # or nothing
            return dtypes.get_default_dtype()
        kinds = {_inferred(part) for part in data}
        found = kinds.pop()
        for kind in kinds:
            found = dtypes.promote(found, kind)
        return found
    if isinstance(data, np.generic):
        return dtypes.of_numpy(data.dtype)
    if isinstance(data, TensorBase):
        return data.dtype
    if isinstance(data, (bool, int, float)):
        return dtypes.of_number(data)
    if isinstance(data, complex):
        dtypes.refuse("complex64")
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type_name(data)}'")
    raise DTypeError(
        f"Could not infer dtype of {type(data).__name__}",
        "A tensor is made of numbers, or lists of numbers.",
    )


def _collect(data: Any, shape: Ints, dim: int, dtype: DType, values: list[Any]) -> None:
    """Append all numbers of nested sequences in row-major order, checking the lengths."""
    if dim == len(shape):
        values.append(_number(data, dtype))
        return
    if not _is_sequence(data):
        raise TypeError(message("not a sequence", f"{data!r} stands where a list is expected."))
    if len(data) != shape[dim]:
        raise ValueError(
            message(
                f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})",
                "All lists on one level must have the same length.",
            )
        )
    if dim == len(shape) - 1 and dtype.is_floating_point and _holds_floats(data):
        values += data
        return
    for part in data:
        _collect(part, shape, dim + 1, dtype, values)


def _number(value: Any, dtype: DType) -> Any:
    """One element as a Python number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Tensor):  # of one element; else these methods raise
        value = value._only("item") if dtype.is_floating_point else value.__index__()
    if isinstance(value, int) and not (-(2**63) <= value < 2**63 or dtype.is_floating_point):
        raise ValueError("Overflow when unpacking long long")
    if isinstance(value, (bool, int, float)):
        return value
    kind = type(value).__name__
    if dtype.is_floating_point:
        raise TypeError(f"must be real number, not {kind}")
    raise TypeError(f"'{kind}' object cannot be interpreted as an integer")


def _array_of(values: list[Any], dtype: DType) -> Any:
    """A flat array of numbers; raises for what the dtype cannot hold."""
    if dtype.category == dtypes.INTEGER:
        for value in values:
            check_value(value, dtype, dtype.name)
        mask = 2 ** (8 * dtype.itemsize) - 1
        words = [int(value) & mask for value in values]
        return np.array(words, f"u{dtype.itemsize}").view(dtype.numpy)
    return quietly(np.array, values, dtype.numpy)


def as_tensor(
    data: Any, dtype: DType | type | None = None, device: Device | str | None = None
) -> Tensor:
    """``data`` as a tensor, without a copy where that is possible.

    A tensor of the wanted dtype and device is returned itself, an array shares its memory, all
    else is copied.

    >>> a = tk.tensor([1, 2])
    >>> tk.as_tensor(a) is a
    True
    """
    wanted = None if dtype is None else as_dtype("as_tensor", dtype)
    if is_array(data) and data.__class__ is not np.ndarray:  # CuPy's
        data = from_dlpack(data)
    if isinstance(data, np.ndarray):
        return copying.to(_shared(data), wanted, as_device(device))
    if isinstance(data, TensorBase):
        return copying.to(data, wanted, None if device is None else as_device(device))  # type: ignore[arg-type]
    return tensor(data, dtype=wanted, device=device)


def from_numpy(ndarray: "np.ndarray[Any, Any]") -> Tensor:
    """A tensor on the memory of a NumPy array: writes to one are seen in the other.

    The dtype is the array's: float64 stays float64. Raises for reversed arrays (negative
    strides), other byte orders and dtypes that tensors do not have.

    >>> import numpy as np
    >>> array = np.array([1., 2., 3.])
    >>> shared = tk.from_numpy(array)
    >>> array[0] = 9.
    >>> shared
    tensor([9., 2., 3.], dtype=torch.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(
            message(
                f"expected np.ndarray (got {type_name(ndarray)})",
                repair="tk.tensor(...) copies lists and numbers",
            )
        )
    shared = _shared(ndarray)
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. tensorkit raises when such a tensor is written to. "
            "You may want to copy the array: tk.from_numpy(array.copy()).",
            UserWarning,
            stacklevel=2,
        )
    return shared


def _shared(array: Any, device: Device = CPU) -> Tensor:
    """A tensor on the memory of an array of ``device``, without the warning."""
    if array.__class__ is np.ndarray and array.flags.c_contiguous and array.dtype.isnative:
        shape = array.shape
        if not (0 in shape or 1 in shape):  # whose strides say nothing
            flat = array.reshape(-1)
            dtypes.of_numpy(array.dtype)  # raises for those that tensors do not have
            result = base.new(flat.reshape(shape))
            result._storage, result._offset = Storage(flat), 0
            return result
    if not array.dtype.isnative:
        raise ValueError(
            message(
                "given numpy array has byte order different from the native byte order. "
                "Conversion between byte orders is currently not supported.",
                repair='array.astype(array.dtype.newbyteorder("="))',
            )
        )
    dtypes.of_numpy(array.dtype)  # raises for those that tensors do not have
    if any(stride < 0 for stride in array.strides):
        raise ValueError(
            message(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around this "
                "by making a copy of your array  with array.copy().) ",
                repair="tk.from_numpy(array.copy())",
            )
        )
    if any(stride % array.itemsize for stride in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. "
            "Copy the numpy array to reallocate the memory."
        )
    shape = tuple(array.shape)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    flat = device.backend.memory_of(array, layout.extent(shape, strides))
    return base.on_storage(Storage(flat), Layout(shape, strides, 0))


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor on the memory of an array of another library: writes to one are seen in the other.

    >>> tk.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    if isinstance(ext_tensor, TensorBase):
        if ext_tensor.requires_grad:  # type: ignore[attr-defined]
            ext_tensor.__dlpack__()  # type: ignore[attr-defined]  # raises
        return ext_tensor.detach()  # type: ignore[attr-defined]
    kind, number = getattr(ext_tensor, "__dlpack_device__", lambda: (1, 0))()
    if kind == _CUDA:
        device = as_device(f"cuda:{number}")
        return _shared(device.backend.from_dlpack(ext_tensor), device)
    if kind != 1:
        raise NotSupportedError(
            f"tensorkit reads the memory of the CPU and of CUDA devices through DLPack, not "
            f"that of device type {kind}",
            repair="tk.tensor(numpy_array, device=...)",
        )
    return _shared(np.from_dlpack(ext_tensor))


_CUDA = 2  # DLPack's number for memory of CUDA devices


def cuda_array_interface(x: Tensor) -> Any:
    """What CuPy, Numba and PyTorch read to share the memory of a tensor on a CUDA device."""
    if x.device is CPU:
        raise AttributeError(
            message(
                f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {x.type()} If CUDA "
                "data is required use tensor.cuda() to copy tensor to device memory.",
                repair="x.cuda()",
            )
        )
    if x.requires_grad:
        raise AutogradError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients "
            "aren't required, use var.detach() to get Variable that doesn't require grad.",
            repair="x.detach()",
        )
    array: Any = x._array
    return array.__cuda_array_interface__


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a tensor.

    >>> tk.is_tensor(tk.zeros(2)), tk.is_tensor([0., 0.])
    (True, False)
    """
    return isinstance(obj, TensorBase)
