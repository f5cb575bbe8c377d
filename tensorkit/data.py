"""Tensors from data: numbers, nested lists, NumPy arrays, memory that another library owns."""

import functools
import warnings
from typing import Any

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.base import Tensor, TensorBase
from tensorkit.creation import Options, factory
from tensorkit.devices import CPU, Device, as_device, is_array
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import AutogradError, DTypeError, NotSupportedError, message, type_name
from tensorkit.layout import Layout
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
    if isinstance(data, np.ndarray):
        shared, device = _shared(data), as_device(options.device)
        return moved(copying.converted(shared, options.dtype or shared.dtype), device)
    found: set[DType] = set()
    numbers = _numbers(data, found)
    dtype = options.dtype
    if dtype is None:
        dtype = functools.reduce(dtypes.promote, found) if found else dtypes.get_default_dtype()
    try:
        return options.holding(quietly(_array_of, numbers, dtype))
    except ValueError:  # NumPy's, of lists that make no rectangle
        _check_lengths(numbers, 0, _first_lengths(numbers))
        raise


def _numbers(data: Any, found: set[DType]) -> Any:
    """``data`` as nested lists of Python's numbers; ``found`` gets the dtypes they suggest."""
    if isinstance(data, TensorBase):
        if base.watch is not None:
            base.watch.leaves(data)
        data = data.device.backend.to_host(data._array, "tensor")
    if isinstance(data, (np.ndarray, np.generic)):
        found.add(dtypes.of_numpy(data.dtype))
        return data.tolist()
    if isinstance(data, (list, tuple, range)):
        kinds = {*map(type, data)}
        if kinds <= {float, int, bool}:  # nearly always: then little is to be asked
            found.update(dtypes.of_number(kind()) for kind in kinds)
            return list(data)
        return [_numbers(each, found) for each in data]
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type_name(data)}'")
    if not isinstance(data, (bool, int, float)):
        first = f"Could not infer dtype of {type(data).__name__}"
        raise DTypeError(first, "A tensor is made of numbers, or lists of numbers.")
    found.add(dtypes.of_number(data))
    return data


def _array_of(numbers: Any, dtype: DType) -> Any:
    """An array of numbers; raises for what the dtype cannot hold."""
    if dtype.category != dtypes.INTEGER:
        return np.array(numbers, dtype.numpy)
    shape = np.array(numbers).shape
    values = np.array(numbers, object).reshape(-1).tolist()
    for value in values:
        check_value(value, dtype, dtype.name)
    bits = 2 ** (8 * dtype.itemsize)  # negative numbers may wrap
    words = np.array([int(value) % bits for value in values], f"u{dtype.itemsize}")
    return words.view(dtype.numpy).reshape(shape)


def _first_lengths(numbers: Any) -> list[int]:
    """The sizes of nested lists, read off the first element of each level."""
    if not isinstance(numbers, list):
        return []
    return [len(numbers), *(_first_lengths(numbers[0]) if numbers else [])]


def _check_lengths(numbers: Any, dim: int, shape: list[int]) -> None:
    if isinstance(numbers, list) is not (dim < len(shape)):
        raise TypeError(message("not a sequence", "A number stands beside a list."))
    if isinstance(numbers, list) and len(numbers) != shape[dim]:
        raise ValueError(
            message(
                f"expected sequence of length {shape[dim]} at dim {dim} (got {len(numbers)})",
                "All lists on one level must have the same length.",
            )
        )
    for part in numbers if isinstance(numbers, list) else ():
        _check_lengths(part, dim + 1, shape)


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
