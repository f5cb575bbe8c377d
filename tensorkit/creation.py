"""New tensors: from data, from numbers, from shapes, from other tensors, from random streams."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorkit import base, dtypes, layout, ranges
from tensorkit.autograd.leaves import make_leaf
from tensorkit.base import TensorBase
from tensorkit.devices import CPU, Device, as_device, quietly
from tensorkit.dtypes import DType, as_dtype
from tensorkit.errors import (
    ConversionError,
    DTypeError,
    NotSupportedError,
    ShapeError,
    message,
    must_be,
    type_name,
)
from tensorkit.layout import Ints, Layout
from tensorkit.ops import copying, general
from tensorkit.random import default_generator
from tensorkit.storage import Storage

if TYPE_CHECKING:
    from tensorkit._tensor import Tensor

_ABSENT: Any = object()  # an argument that was not given, where None is refused

# From data


def _made(result: "Tensor", requires_grad: bool) -> "Tensor":
    """A new tensor as its caller wants it: a leaf that requires grad, or not."""
    if requires_grad:
        return make_leaf(result)
    return general.finished(result)


def tensor(
    data: Any,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """A new tensor holding a copy of ``data``: a number, nested lists, an array or a tensor.

    Without ``dtype``: bools give bool, integers int64, numbers with a point the default dtype;
    arrays keep theirs. Raises ValueError if the lists have unequal lengths.

    >>> tk.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    wanted = None if dtype is None else as_dtype("tensor", dtype)
    where = as_device(device)
    if isinstance(data, TensorBase):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), "
            "rather than torch.tensor(sourceTensor).\n\nTry: source.clone()",
            UserWarning,
            stacklevel=2,
        )
        return _made(copying.converted(data, wanted or data._form.dtype), requires_grad)
    if isinstance(data, np.generic) and not isinstance(data, (float, np.complexfloating)):
        data = np.asarray(data)
    if isinstance(data, np.ndarray):
        return _made(_copied_array(data, wanted), requires_grad)
    shape = _shape_of(data)
    found = wanted or _inferred(data)
    values: list[Any] = []
    if 0 not in shape:
        _collect(data, shape, 0, found, values)
    array = _array_of(values, found).reshape(shape)
    return _made(base.place(array, where, found, layout.contiguous_strides(shape)), requires_grad)


def _copied_array(array: Any, wanted: DType | None) -> "Tensor":
    shared = _shared(array)
    return copying.converted(shared, wanted or shared.dtype)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple, range)):
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, TensorBase) and len(value._form.shape) > 0


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
        if not len(data):
            return dtypes.get_default_dtype()
        kinds = {_inferred(part) for part in data}
        found = kinds.pop()
        for kind in kinds:
            found = dtypes.promote(found, kind)
        return found
    if isinstance(data, np.generic):
        return dtypes.of_numpy(data.dtype)
    if isinstance(data, TensorBase):
        return data._form.dtype
    if isinstance(data, (bool, int, float)):
        return dtypes.of_number(data)
    if isinstance(data, complex):
        dtypes.refuse("complex64")
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type_name(data)}'")
    raise DTypeError(
        message(
            f"Could not infer dtype of {type(data).__name__}",
            "A tensor is made of numbers, or lists of numbers.",
        )
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
    for part in data:
        _collect(part, shape, dim + 1, dtype, values)


def _number(value: Any, dtype: DType) -> Any:
    """One element as a Python number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, TensorBase):
        if value._array.size != 1:
            floating = dtype.is_floating_point
            raise (ValueError if floating else TypeError)(
                message(
                    "only one element tensors can be converted to Python scalars"
                    if floating
                    else "only integer tensors of a single element can be converted to an index",
                    "A list may contain tensors of one element; this one has shape "
                    f"{tuple(value._form.shape)}.",
                )
            )
        value = value._array.item()
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
            general.check_value(value, dtype, dtype.name)
        mask = 2 ** (8 * dtype.itemsize) - 1
        words = [int(value) & mask for value in values]
        return np.array(words, f"u{dtype.itemsize}").view(dtype.numpy)
    return quietly(np.array, values, dtype.numpy)


def as_tensor(
    data: Any, dtype: DType | type | None = None, device: Device | str | None = None
) -> "Tensor":
    """``data`` as a tensor, without a copy where that is possible.

    A tensor of the wanted dtype is returned itself, an array shares its memory, all else is
    copied.

    >>> a = tk.tensor([1, 2])
    >>> tk.as_tensor(a) is a
    True
    """
    wanted = None if dtype is None else as_dtype("as_tensor", dtype)
    where = as_device(device)
    if isinstance(data, np.ndarray):
        shared = from_numpy(data)
        return shared if wanted in (None, shared.dtype) else copying.converted(shared, wanted)
    if isinstance(data, TensorBase):
        same = wanted is None or wanted is data._form.dtype
        return data if same else copying.converted(data, wanted)  # type: ignore
    return tensor(data, dtype=wanted, device=where)


def from_numpy(ndarray: "np.ndarray[Any, Any]") -> "Tensor":
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


def _shared(array: Any) -> "Tensor":
    """A tensor on the memory of ``array``, without the warning."""
    if not array.dtype.isnative:
        raise ValueError(
            message(
                "given numpy array has byte order different from the native byte order. "
                "Conversion between byte orders is currently not supported.",
                repair='array.astype(array.dtype.newbyteorder("="))',
            )
        )
    dtype = dtypes.of_numpy(array.dtype)
    _refuse_negative_strides(array)
    if any(stride % array.itemsize for stride in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. "
            "Copy the numpy array to reallocate the memory."
        )
    shape = tuple(array.shape)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    flat = np.lib.stride_tricks.as_strided(
        array,
        (layout.extent(shape, strides),),
        (array.itemsize,),
        writeable=array.flags.writeable,
    )
    return base.on_storage(Storage(flat, CPU, dtype), Layout(shape, strides, 0))


def _refuse_negative_strides(array: Any) -> None:
    if any(stride < 0 for stride in array.strides):
        raise ValueError(
            message(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around this "
                "by making a copy of your array  with array.copy().) ",
                repair="tk.from_numpy(array.copy())",
            )
        )


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a tensor.

    >>> tk.is_tensor(tk.zeros(2)), tk.is_tensor([0., 0.])
    (True, False)
    """
    return isinstance(obj, TensorBase)


# From a shape


def _size(function: str, args: tuple[Any, ...], size: Any = _ABSENT) -> Ints:
    """The shape that a call such as zeros(2, 3), zeros((2, 3)) or zeros(size=(2, 3)) asks for."""
    if size is not _ABSENT:
        if args:
            raise TypeError(f"{function}() got multiple values for argument 'size'")
        if not isinstance(size, (tuple, list)):
            kind = type_name(size)
            raise TypeError(f"{function}(): argument 'size' must be tuple of ints, not {kind}")
        return general.need_sizes(function, "size", 1, size)
    if not args:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    if isinstance(args[0], (tuple, list)):
        if len(args) > 1:
            raise TypeError(f"{function}() takes 1 positional argument but {len(args)} were given")
        return general.need_sizes(function, "size", 1, args[0])
    if general.as_int_or_large(args[0]) is None:
        raise must_be(function, "size", 1, "tuple of ints", args[0])
    return general.need_sizes(function, "size", 1, args)


def _non_negative(function: str, shape: Ints) -> None:
    if any(size < 0 for size in shape):
        raise ShapeError(
            message(
                f"{function}: Dimension size must be non-negative.",
                f"The shape asked for is {shape}.",
            ),
            a_shape=shape,
        )


def _refuse_negative(shape: Ints) -> None:
    for size in shape:
        if size < 0:
            raise ShapeError(
                f"Trying to create tensor with negative dimension {size}: {list(shape)}",
                a_shape=shape,
            )


def _filled(shape: Ints, value: Any, dtype: DType, device: Any) -> "Tensor":
    layout.check_size(shape, dtype.itemsize)
    where = as_device(device)
    array = where.backend.xp.full(shape, value, dtype.numpy)
    return base.new(array, base.form_of(where, dtype, shape, layout.contiguous_strides(shape)))


def _dtype_or_default(function: str, dtype: Any) -> DType:
    return dtypes.get_default_dtype() if dtype is None else as_dtype(function, dtype)


def zeros(
    *args: Any,
    size: Sequence[int] = _ABSENT,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """A tensor of zeros; the sizes come one by one or as one tuple.

    >>> tk.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape = _size("zeros", args, size)
    _non_negative("zeros", shape)
    return _made(_filled(shape, 0, _dtype_or_default("zeros", dtype), device), requires_grad)


def ones(
    *args: Any,
    size: Sequence[int] = _ABSENT,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """A tensor of ones; the sizes come one by one or as one tuple.

    >>> tk.ones(3)
    tensor([1., 1., 1.])
    """
    shape = _size("ones", args, size)
    _refuse_negative(shape)
    return _made(_filled(shape, 1, _dtype_or_default("ones", dtype), device), requires_grad)


def empty(
    *args: Any,
    size: Sequence[int] = _ABSENT,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """A tensor whose values are not set: whatever the memory held. Write before you read.

    >>> tk.empty(2, 3).shape
    torch.Size([2, 3])
    """
    shape = _size("empty", args, size)
    _refuse_negative(shape)
    found = _dtype_or_default("empty", dtype)
    layout.check_size(shape, found.itemsize)
    where = as_device(device)
    array = where.backend.xp.empty(shape, found.numpy)
    return _made(
        base.new(array, base.form_of(where, found, shape, layout.contiguous_strides(shape))),
        requires_grad,
    )


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """A tensor filled with one number, whose kind decides the dtype.

    >>> tk.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    shape = general.need_sizes("full", "size", 1, size)
    _refuse_negative(shape)
    number = _fill_number("full", fill_value)
    found = dtypes.of_number(number) if dtype is None else as_dtype("full", dtype)
    general.check_value(number, found)
    return _made(_filled(shape, copying.stored(number, found), found, device), requires_grad)


def _fill_number(function: str, value: Any) -> Any:
    number = general.as_scalar(value)
    if number is None:
        raise must_be(function, "fill_value", 2, "Number", value)
    return number


def eye(
    n: int,
    m: int = _ABSENT,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """A matrix of ``n`` rows and ``m`` columns (default ``n``) with ones on the diagonal.

    >>> tk.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if m is not _ABSENT and (general.as_int(n) is None or general.as_int(m) is None):
        raise TypeError(
            message(
                "eye() received an invalid combination of arguments - "
                f"got ({type_name(n)}, {type_name(m)}), but expected one of:",
                " * (int n)",
                " * (int n, int m)",
            )
        )
    n = general.need_int("eye", "n", 1, n)
    m = n if m is _ABSENT else general.need_int("eye", "m", 2, m)
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise ShapeError(f"{name} must be greater or equal to 0, got {value}")
    if n * m >= 2**63:
        raise ShapeError("numel: integer multiplication overflow", a_shape=(n, m))
    found = _dtype_or_default("eye", dtype)
    where = as_device(device)
    array = where.backend.xp.eye(n, m, dtype=found.numpy)
    return _made(
        base.place(array, where, found, layout.contiguous_strides(array.shape)), requires_grad
    )


def arange(
    start: Any = _ABSENT,
    end: Any = _ABSENT,
    step: Any = _ABSENT,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """The numbers from ``start`` (default 0) up to, not including, ``end``, ``step`` apart.

    Integers give int64, anything with a point the default dtype.

    >>> tk.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> tk.arange(1., 2., 0.5)
    tensor([1.0000, 1.5000])
    """
    bounds = first, _, gap = _bounds(start, end, step)
    if dtype is not None:
        found = as_dtype("arange", dtype)
    elif any(isinstance(number, float) for number in bounds):
        found = dtypes.get_default_dtype()
    else:
        found = dtypes.int64
    if found is dtypes.bool_:
        raise NotSupportedError("\"arange_cpu\" not implemented for 'Bool'", dtype=found)
    where = as_device(device)
    n = ranges.count(*bounds, found)
    layout.check_size((n,), found.itemsize)
    array = quietly(ranges.counted, first, gap, n, found)
    return _made(
        base.place(array, where, found, layout.contiguous_strides(array.shape)), requires_grad
    )


def _bounds(start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
    """First number, end and step of ``arange``, whose only argument is the end."""
    if end is _ABSENT and step is _ABSENT and start is not _ABSENT:
        number = general.as_scalar(start)
        if number is None:
            raise must_be("arange", "end", 1, "Number", start)
        return 0, number, 1
    bounds = [general.as_scalar(value) for value in (start, end, step)]
    if start is _ABSENT and step is _ABSENT:
        bounds[0] = 0
    if step is _ABSENT:
        bounds[2] = 1
    if any(number is None for number in bounds):
        named = "step=" if end is _ABSENT else ""
        given = (("", start), ("", end), (named, step))
        got = [name + type_name(value) for name, value in given if value is not _ABSENT]
        raise TypeError(
            message(
                "arange() received an invalid combination of arguments - "
                f"got ({', '.join(got)}), but expected one of:",
                " * (Number end)",
                " * (Number start, Number end, Number step = 1)",
            )
        )
    return bounds[0], bounds[1], bounds[2]


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """``steps`` numbers from ``start`` to ``end``, both included, at equal distances.

    For integer dtypes the ends and the numbers are cut off to integers.

    >>> tk.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    _refuse_dimensions(start, end)
    first, last, n = general.as_scalar(start), general.as_scalar(end), general.as_int(steps)
    if first is None or last is None or n is None:
        kinds = ", ".join(type_name(value) for value in (start, end, steps))
        raise TypeError(
            message(
                f"linspace() received an invalid combination of arguments - got ({kinds}), "
                "but expected one of:",
                " * (Number or 0-d Tensor start, Number or 0-d Tensor end, int steps)",
            )
        )
    if n < 0:
        raise DTypeError("number of steps must be non-negative")
    found = _dtype_or_default("linspace", dtype)
    if found is dtypes.bool_ and n > 1:
        raise NotSupportedError("\"linspace_cpu\" not implemented for 'Bool'", dtype=found)
    where = as_device(device)
    layout.check_size((n,), found.itemsize)
    array = quietly(ranges.spaced, first, last, n, found)
    return _made(
        base.place(array, where, found, layout.contiguous_strides(array.shape)), requires_grad
    )


def _refuse_dimensions(start: Any, end: Any) -> None:
    wrong = [
        f"{name} with {len(value._form.shape)} dimension(s)"
        for name, value in (("start", start), ("end", end))
        if isinstance(value, TensorBase) and value._form.shape
    ]
    if wrong:
        raise DTypeError(
            "linspace only supports 0-dimensional start and end tensors, "
            f"but got {' and '.join(wrong)}."
        )


# Like another tensor: same shape, dtype and order in memory


def _like(function: str, x: Any, dtype: Any, device: Any) -> "Tensor":
    general.need_tensor(function, x)
    found = x._form.dtype if dtype is None else as_dtype(function, dtype)
    where = x._form.device if device is None else as_device(device)
    shape = tuple(x._form.shape)
    strides = layout.dense_strides(shape, x._form.strides)
    array = where.backend.allocate(found.numpy, shape, strides)
    return base.new(array, base.form_of(where, found, shape, strides))


def empty_like(
    input: "Tensor",
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """A tensor of the shape and dtype of ``input`` whose values are not set.

    >>> tk.empty_like(tk.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return _made(_like("empty_like", input, dtype, device), requires_grad)


def zeros_like(
    input: "Tensor",
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """Zeros, in the shape and dtype of ``input``.

    >>> tk.zeros_like(tk.tensor([5, 6]))
    tensor([0, 0])
    """
    return _made(_like("zeros_like", input, dtype, device).fill_(0), requires_grad)


def ones_like(
    input: "Tensor",
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """Ones, in the shape and dtype of ``input``.

    >>> tk.ones_like(tk.tensor([5, 6]))
    tensor([1, 1])
    """
    return _made(_like("ones_like", input, dtype, device).fill_(1), requires_grad)


def full_like(
    input: "Tensor",
    fill_value: Any,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """One number everywhere, in the shape and dtype of ``input``.

    >>> tk.full_like(tk.tensor([5., 6.]), 3)
    tensor([3., 3.])
    """
    result = _like("full_like", input, dtype, device)
    return _made(result.fill_(_fill_number("full_like", fill_value)), requires_grad)


# From random streams


def rand(
    *args: Any,
    size: Sequence[int] = _ABSENT,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """Random numbers, uniform in [0, 1).

    >>> _ = tk.manual_seed(0)
    >>> tk.rand(2)
    tensor([0.4963, 0.7682])
    """
    result = _empty("rand", args, size, dtype, device)
    return _made(_fill_uniform(result), requires_grad)


def randn(
    *args: Any,
    size: Sequence[int] = _ABSENT,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """Random numbers, normal with mean 0 and standard deviation 1.

    >>> _ = tk.manual_seed(0)
    >>> tk.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    result = _empty("randn", args, size, dtype, device)
    dtype = result.dtype
    _need_floating(dtype, "normal_kernel_cpu")
    shape = result.shape
    result._array[...] = default_generator.normal(result.numel(), dtype).reshape(shape)
    return _made(result, requires_grad)


def _empty(function: str, args: Any, size: Any, dtype: Any, device: Any) -> "Tensor":
    shape = _size(function, args, size)
    _refuse_negative(shape)
    return empty(shape, dtype=_dtype_or_default(function, dtype), device=device)


def _need_floating(dtype: DType, kernel: str) -> None:
    if not dtype.is_floating_point:
        raise NotSupportedError(
            message(
                f"\"{kernel}\" not implemented for '{dtype.word}'",
                repair="tk.randint(0, 10, size) draws integers",
            ),
            dtype=dtype,
        )


def _fill_uniform(x: "Tensor") -> "Tensor":
    _need_floating(x.dtype, "check_uniform_bounds")
    x._array[...] = _in_memory_order(x, default_generator.uniform(x.numel(), x.dtype))
    return x


def _in_memory_order(x: "Tensor", values: Any) -> Any:
    """Flat ``values`` as an array of the shape of ``x``, the first ones first in memory."""
    strides = x._form.strides
    slowest_first = sorted(range(x.dim()), key=lambda dim: strides[dim], reverse=True)
    stacked = values.reshape([x.shape[dim] for dim in slowest_first])
    return stacked.transpose([slowest_first.index(dim) for dim in range(x.dim())])


def rand_like(
    input: "Tensor",
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """Random numbers, uniform in [0, 1), in the shape and dtype of ``input``.

    >>> _ = tk.manual_seed(0)
    >>> tk.rand_like(tk.zeros(2))
    tensor([0.4963, 0.7682])
    """
    return _made(_fill_uniform(_like("rand_like", input, dtype, device)), requires_grad)


def randn_like(
    input: "Tensor",
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """Random normal numbers in the shape and dtype of ``input``.

    >>> _ = tk.manual_seed(0)
    >>> tk.randn_like(tk.zeros(2))
    tensor([ 1.5410, -0.2934])
    """
    result = _like("randn_like", input, dtype, device)
    _need_floating(result.dtype, "normal_kernel_cpu")
    values = default_generator.normal(result.numel(), result.dtype)
    result._array[...] = _in_memory_order(result, values)
    return _made(result, requires_grad)


def randint(*args: Any, **options: Any) -> "Tensor":
    """Random integers from ``low`` (default 0) up to, not including, ``high``, as int64.

    Call it as ``randint(high, size)`` or ``randint(low, high, size)``; ``dtype``, ``device``
    and ``requires_grad`` are keywords.

    >>> _ = tk.manual_seed(0)
    >>> tk.randint(10, (5,))
    tensor([4, 9, 3, 0, 3])
    """
    low, high, size = _randint_arguments(args, options)
    dtype, device = options.pop("dtype", None), options.pop("device", None)
    requires_grad = options.pop("requires_grad", False)
    if options:
        raise TypeError(f"randint() got an unexpected keyword argument '{next(iter(options))}'")
    shape = general.need_sizes("randint", "size", len(args) or 3, size)
    _refuse_negative(shape)
    found = dtypes.int64 if dtype is None else as_dtype("randint", dtype)
    result = _fill_integers(empty(shape, dtype=found, device=device), low, high)
    return _made(result, requires_grad)


def _randint_arguments(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, int, Any]:
    """low, high and size of a call, given by position or by name."""
    named: dict[str, Any] = {
        name: options.pop(name) for name in ("low", "high", "size") if name in options
    }
    n_given = len(args) + len(named)
    names = ["high", "size"] if n_given == 2 else ["low", "high", "size"]
    by_position = [name for name in names if name not in named]
    values: dict[str, Any] = {"low": 0, **named}
    values.update(zip(by_position, args, strict=False))
    if "high" not in values or "size" not in values or n_given > len(names):
        kinds = ", ".join(type_name(value) for value in args)
        raise TypeError(
            message(
                f"randint() received an invalid combination of arguments - got ({kinds}), "
                "but expected one of:",
                " * (int high, tuple of ints size, *, torch.dtype dtype, torch.device device)",
                " * (int low, int high, tuple of ints size, *, torch.dtype dtype, "
                "torch.device device)",
            )
        )
    for position, name in enumerate(names[:-1], start=1):
        values[name] = general.need_int("randint", name, position, values[name])
    return values["low"], values["high"], values["size"]


def _fill_integers(x: "Tensor", low: int, high: int) -> "Tensor":
    if low >= high:
        raise DTypeError(
            message(
                f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}",
                "'to' itself is never drawn.",
            )
        )
    _check_drawn("from", low, x.dtype)
    _check_drawn("to - 1", high - 1, x.dtype)
    values = default_generator.integers(low, high, x.numel())
    x._array[...] = _in_memory_order(x, values)
    return x


_RANDOM_NAMES = {"int8": "signed char", "uint8": "unsigned char", "int16": "short", "int64": "long"}


def _check_drawn(what: str, value: int, dtype: DType) -> None:
    if dtype.is_floating_point:
        most = dtypes.finfo(dtype).max
        fits = -most <= value <= most
    else:
        low, high = dtypes.limits(dtype)
        fits = low <= value <= high
    if not fits:
        name = _RANDOM_NAMES.get(dtype.name, dtype.c_name)
        raise ConversionError(f"{what} is out of bounds for {name}", value=value, dtype=dtype)


def randint_like(
    input: "Tensor",
    low: int,
    high: int | None = None,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """Random integers in the shape and dtype of ``input``: ``(high)`` or ``(low, high)``.

    >>> _ = tk.manual_seed(0)
    >>> tk.randint_like(tk.zeros(3), 10)
    tensor([4., 9., 3.])
    """
    general.need_tensor("randint_like", input)
    bounds = (low,) if high is None else (low, high)
    if any(general.as_int(bound) is None for bound in bounds):
        kinds = ", ".join(type_name(value) for value in (input, *bounds))
        raise TypeError(
            message(
                f"randint_like() received an invalid combination of arguments - got ({kinds}), "
                "but expected one of:",
                " * (Tensor input, int high)",
                " * (Tensor input, int low, int high)",
            )
        )
    low, high = (0, low) if high is None else (low, high)
    return _made(
        _fill_integers(_like("randint_like", input, dtype, device), low, high), requires_grad
    )


def randperm(
    n: int,
    *,
    dtype: DType | type | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> "Tensor":
    """The integers 0 to ``n - 1`` in random order.

    >>> _ = tk.manual_seed(0)
    >>> tk.randperm(4)
    tensor([0, 1, 3, 2])
    """
    n = general.need_int("randperm", "n", 1, n)
    _refuse_negative((n,))
    found = dtypes.int64 if dtype is None else as_dtype("randperm", dtype)
    if found is dtypes.bool_:
        raise NotSupportedError("\"randperm\" not implemented for 'Bool'", dtype=found)
    if found is dtypes.float16 and n > 2049:
        raise ConversionError("n cannot be greater than 2049 for Half type.", value=n, dtype=found)
    general.check_value(n, found)
    where = as_device(device)
    array = default_generator.permutation(n).astype(found.numpy)
    return _made(base.place(array, where, found, (1,)), requires_grad)
