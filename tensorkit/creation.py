"""New tensors: from sizes, ranges and data, like another one, on memory of another library.

Every function takes ``dtype``, ``device`` and ``requires_grad`` by name. ``@factory`` reads these,
once for all, and passes them on as ``Options``. Random numbers come in ``tensorkit.random``.

``arange`` and ``linspace`` round as PyTorch's kernels do, which multiply and add with one rounding.
``arange`` works in blocks as wide as 32 bytes: the first number of a block is rounded before the
others are counted from it (aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp).
"""

import functools
import inspect
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tensorkit import base, dtypes, errors, layout
from tensorkit.autograd.hooks import make_leaf
from tensorkit.autograd.node import mark_inference
from tensorkit.base import Tensor, TensorBase
from tensorkit.devices import CPU, Device, as_device, device_of_array, is_array
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch_mode import seen_by_modes
from tensorkit.dtypes import DType, as_dtype
from tensorkit.layout import Ints, Layout
from tensorkit.ops import copying
from tensorkit.ops.arguments import as_scalar, check_value, need_tensor, no_kernel, stored
from tensorkit.ops.copying import moved
from tensorkit.storage import Storage

_BLOCK_BYTES = 32
# in which a product and a sum are computed before they are rounded to the dtype
_WIDE = {"e": np.float16, "f": np.float64, "d": np.longdouble}


class Options:
    """What the caller of a factory asks for by name; None where they ask for nothing."""

    def __init__(self, function: str, dtype: DType | None, device: Device | None) -> None:
        self.function, self.dtype, self.device = function, dtype, device

    @property
    def dtype_or_default(self) -> DType:
        """The dtype asked for, or the default one."""
        return self.dtype or dtypes.get_default_dtype()

    def empty(self, shape: Ints, dtype: DType | None = None) -> Tensor:
        """A contiguous tensor whose values are not set."""
        numpy = (dtype or self.dtype_or_default).numpy
        try:
            return base.new(as_device(self.device).backend.xp.empty(shape, numpy))
        except (ValueError, MemoryError) as error:  # sizes that no array has
            raise errors.ShapeError(f"{self.function}(): {error}") from None

    def like(self, x: Any) -> Tensor:
        """The same, in the shape, dtype and order in memory of ``x``, and on its device."""
        need_tensor(self.function, x)
        dtype, shape = self.dtype or x.dtype, x._array.shape
        device = x.device if self.device is None else as_device(self.device)
        strides = list(x._strides)
        for dim in reversed(range(len(shape))):  # a repeated dimension stays before those after it
            strides[dim] = strides[dim] or max(strides[dim + 1 :], default=0)
        return base.new(device.backend.allocate(dtype.numpy, shape, tuple(strides)))

    def holding(self, array: Any) -> Tensor:
        """A tensor of the values of a fresh NumPy array, which is kept or sent to the device."""
        return base.new(as_device(self.device).backend.from_host(array, self.function))


def factory(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that makes tensors: ``make`` behind the keywords that all of them take.

    ``autograd.recording`` reads the name of the operation from the variable ``make``.
    """

    @functools.wraps(make)
    def call(
        *args: Any,
        dtype: DType | type | None = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        **named: Any,
    ) -> Tensor:
        options = Options(
            make.__name__,
            None if dtype is None else as_dtype(make.__name__, dtype),
            None if device is None else as_device(device),
        )
        result = make(options, *args, **named)
        return make_leaf(result) if requires_grad else mark_inference(result)

    del call.__dict__["__wrapped__"]  # its first parameter is not the caller's
    own, common = (inspect.signature(each).parameters.values() for each in (make, call))
    named = [each for each in common if each.kind is each.KEYWORD_ONLY]
    call.__signature__ = inspect.Signature([*own][1:] + named)  # type: ignore[attr-defined]
    return seen_by_modes(call)


# From sizes


def need_sizes(function: str, size: Any) -> Any:
    """A size that can only be given as a sequence: TypeError for a single number."""
    if not isinstance(size, (tuple, list)):
        raise errors.must_be(function, "size", 1, "tuple of ints", size)
    return size


def shape_of(function: str, args: tuple[Any, ...], size: Any = None) -> Ints:
    """The shape that a call such as zeros(2, 3), zeros((2, 3)) or zeros(size=(2, 3)) asks for."""
    given = args if size is None else (*args, size)
    is_one = len(given) == 1 and isinstance(given[0], (tuple, list))
    sizes = given[0] if is_one else given
    try:
        if not given or (sizes and isinstance(sizes[0], bool)):
            raise TypeError
        shape = tuple(map(operator.index, sizes))
    except TypeError:
        got = ", ".join(type(each).__name__ for each in sizes) or "nothing"
        first = f"{function}(): size must be ints or a tuple of ints, not {got}"
        raise TypeError(errors.message(first, repair=f"tk.{function}(2, 3)")) from None
    for each in shape:
        if each < 0:
            first = f"Trying to create tensor with negative dimension {each}: {list(shape)}"
            raise errors.ShapeError(first)
        if each >= 2**63:
            raise ValueError("Overflow when unpacking long long")
    return shape


def _filled(x: Tensor, value: Any) -> Tensor:
    x._array.fill(value)
    return x


def _filled_with(x: Tensor, number: Any) -> Tensor:
    """``x`` filled with a number that its dtype has to hold."""
    check_value(number, x.dtype)
    return _filled(x, stored(number, x.dtype)[()])


def _number(function: str, value: Any) -> Any:
    """A Python number, also from a tensor without dimensions."""
    number = as_scalar(value)
    if number is None:
        raise TypeError(f"{function}() takes numbers, not {type(value).__name__}")
    return number


@factory
def zeros(options: Options, *args: Any, size: Any = None) -> Tensor:
    """A tensor of zeros; the sizes come one by one or as one tuple.

    >>> tk.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _filled(options.empty(shape_of("zeros", args, size)), 0)


@factory
def ones(options: Options, *args: Any, size: Any = None) -> Tensor:
    """A tensor of ones; the sizes come one by one or as one tuple.

    >>> tk.ones(3)
    tensor([1., 1., 1.])
    """
    return _filled(options.empty(shape_of("ones", args, size)), 1)


@factory
def empty(options: Options, *args: Any, size: Any = None) -> Tensor:
    """A tensor whose values are not set: whatever the memory held. Write before you read.

    >>> tk.empty(2, 3).shape
    torch.Size([2, 3])
    """
    return options.empty(shape_of("empty", args, size))


@factory
def full(options: Options, size: Any, fill_value: Any) -> Tensor:
    """A tensor filled with one number, whose kind decides the dtype.

    >>> tk.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    number = _number("full", fill_value)
    shape = shape_of("full", (), need_sizes("full", size))
    return _filled_with(options.empty(shape, options.dtype or dtypes.of_number(number)), number)


@factory
def eye(options: Options, n: int, m: int | None = None) -> Tensor:
    """A matrix of ``n`` rows and ``m`` columns (default ``n``) with ones on the diagonal.

    >>> tk.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    n, m = shape_of("eye", (n, n if m is None else m))
    result = _filled(options.empty((n, m)), 0)
    result._array.reshape(-1)[: m * min(n, m) : m + 1] = 1
    return result


# Like another tensor: same shape, dtype, device and order in memory


@factory
def empty_like(options: Options, input: Tensor) -> Tensor:
    """A tensor of the shape and dtype of ``input`` whose values are not set.

    >>> tk.empty_like(tk.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return options.like(input)


@factory
def zeros_like(options: Options, input: Tensor) -> Tensor:
    """Zeros, in the shape and dtype of ``input``.

    >>> tk.zeros_like(tk.tensor([5, 6]))
    tensor([0, 0])
    """
    return _filled(options.like(input), 0)


@factory
def ones_like(options: Options, input: Tensor) -> Tensor:
    """Ones, in the shape and dtype of ``input``.

    >>> tk.ones_like(tk.tensor([5, 6]))
    tensor([1, 1])
    """
    return _filled(options.like(input), 1)


@factory
def full_like(options: Options, input: Tensor, fill_value: Any) -> Tensor:
    """One number everywhere, in the shape and dtype of ``input``.

    >>> tk.full_like(tk.tensor([5., 6.]), 3)
    tensor([3., 3.])
    """
    return _filled_with(options.like(input), _number("full_like", fill_value))


# Ranges


@factory
def arange(options: Options, start: Any = None, end: Any = None, step: Any = 1) -> Tensor:
    """The numbers from ``start`` (default 0) up to, not including, ``end``, ``step`` apart.

    Integers give int64, anything with a point the default dtype.

    >>> tk.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> tk.arange(1., 2., 0.5)
    tensor([1.0000, 1.5000])
    """
    bounds = (0, start, step) if end is None else (0 if start is None else start, end, step)
    first, last, gap = (_number("arange", each) for each in bounds)
    has_point = any(isinstance(number, float) for number in (first, last, gap))
    dtype = options.dtype or (dtypes.get_default_dtype() if has_point else dtypes.int64)
    if dtype is dtypes.bool_:
        raise no_kernel("arange_cpu", dtype)
    n = _count(first, last, gap, dtype)
    if dtype.is_floating_point:
        return options.holding(_counted(first, gap, n, dtype))
    xp = as_device(options.device).backend.xp
    return base.new((int(first) + int(gap) * xp.arange(n, dtype=np.int64)).astype(dtype.numpy))


def _count(first: Any, last: Any, gap: Any, dtype: DType) -> int:
    """How many numbers ``arange`` gives; raises for bounds and steps that make no range."""
    wide = dtypes.float64 if dtype.is_floating_point else dtypes.int64
    for value in (first, last, gap):
        check_value(value, wide)
    if not (math.isfinite(first) and math.isfinite(last)):
        raise errors.DTypeError(f"unsupported range: {first:g} -> {last:g}")
    number = int if dtype is dtypes.int64 else float
    first, last, gap = number(first), number(last), number(gap)
    if not (gap > 0 or gap < 0):
        raise errors.DTypeError("step must be nonzero")
    if (last - first) * gap < 0:
        raise errors.DTypeError(
            "upper bound and lower bound inconsistent with step sign",
            f"From {first}, steps of {gap} never reach {last}.",
        )
    n = -((first - last) // gap) if dtype is dtypes.int64 else (last - first) / gap
    if n >= 2**63:
        raise errors.DTypeError(
            "invalid size, possible overflow?", f"From {first} to {last} by {gap}."
        )
    return math.ceil(n)


def _counted(first: Any, gap: Any, n: int, dtype: DType) -> Any:
    """``first``, ``first + gap``, ...: ``n`` numbers of a floating-point dtype."""
    inner = np.float32 if dtype is dtypes.float16 else np.float64
    start, step = (np.longdouble(inner(number)) for number in (first, gap))
    block = _BLOCK_BYTES // dtype.itemsize
    n_in_blocks = n - n % (2 * block)
    bases = (start + step * np.arange(0, n_in_blocks, block)).astype(inner).astype(dtype.numpy)
    blocks = (bases[:, np.newaxis] + step * np.arange(block)).astype(inner)
    rest = (start + step * np.arange(n_in_blocks, n)).astype(inner)
    return np.concatenate([blocks.ravel(), rest]).astype(dtype.numpy)


@factory
def linspace(options: Options, start: Any, end: Any, steps: int) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, at equal distances.

    For integer dtypes the ends and the numbers are cut off to integers.

    >>> tk.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    (n,), dtype = shape_of("linspace", (steps,)), options.dtype_or_default
    if dtype is dtypes.bool_ and n > 1:
        raise no_kernel("linspace_cpu", dtype)
    ends = [_number("linspace", value) for value in (start, end)][:n]
    for number in ends:
        check_value(number, dtype)
    exact = np.array([stored(number, dtype) for number in ends], dtype.numpy)
    return options.holding(exact if n < 2 else _spaced(exact[0], exact[1], n, dtype))


def _spaced(first: Any, last: Any, n: int, dtype: DType) -> Any:
    """``n`` numbers from ``first`` to ``last``, counted from both ends, so that both are exact."""
    inner = dtype.numpy if dtype.is_floating_point else np.dtype(np.float64)
    wide, index = _WIDE[inner.char], np.arange(n)
    start, stop = inner.type(first), inner.type(last)
    step = (stop - start) / inner.type(n - 1)
    forwards = (wide(start) + wide(step) * index.astype(wide)).astype(inner)
    backwards = (wide(stop) - wide(step) * index[::-1].astype(wide)).astype(inner)
    return np.where(index < n // 2, forwards, backwards).astype(dtype.numpy)


# From data


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
        return options.holding(without_warnings(_array_of, numbers, dtype))
    except ValueError:  # NumPy's, of lists that make no rectangle
        _refuse_lists(numbers)


def _numbers(data: Any, found: set[DType]) -> Any:
    """``data`` as nested lists of Python's numbers; ``found`` gets the dtypes they suggest."""
    if isinstance(data, TensorBase):
        if data._array.size != 1:
            first = "only one element tensors can be converted to Python scalars"
            raise ValueError(errors.message(first, repair="tk.stack(tensors)"))
        data = data.device.backend.to_host(data._array, "tensor").reshape(())
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
        raise TypeError(f"new(): invalid data type '{errors.type_name(data)}'")
    if isinstance(data, complex):
        dtypes.refuse("complex64")
    if not isinstance(data, (bool, int, float)):
        first = f"Could not infer dtype of {type(data).__name__}"
        raise errors.DTypeError(first, "A tensor is made of numbers, or lists of numbers.")
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


def _refuse_lists(numbers: Any) -> NoReturn:
    """Raise for nested lists that make no rectangle."""
    level, dim = [numbers], 0
    while all(isinstance(each, list) for each in level):
        for each in level:
            if len(each) != len(level[0]):
                raise ValueError(
                    errors.message(
                        f"expected sequence of length {len(level[0])} at dim {dim} "
                        f"(got {len(each)})",
                        "All lists on one level must have the same length.",
                    )
                ) from None
        level, dim = [part for each in level for part in each], dim + 1
    raise TypeError(errors.message("not a sequence", "A number stands beside a list.")) from None


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
    if is_array(data):
        own = device_of_array(data)
        where = own if device is None and own is not CPU else as_device(device)
        return copying.to(_shared(data, own), wanted, where)
    if isinstance(data, TensorBase):
        return copying.to(data, wanted, None if device is None else as_device(device))  # type: ignore[arg-type]
    return tensor(data, dtype=wanted, device=device)


def from_numpy(ndarray: "np.ndarray[Any, Any]") -> Tensor:
    """A tensor on the memory of a NumPy array: writes to one are seen in the other.

    To a tensor on an array that is read-only nothing can be written.

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
            errors.message(
                f"expected np.ndarray (got {errors.type_name(ndarray)})",
                repair="tk.tensor(...) copies lists and numbers",
            )
        )
    return _shared(ndarray)


def _shared(array: Any, device: Device = CPU) -> Tensor:
    """A tensor on the memory of an array of ``device``, without the warning."""
    if not array.dtype.isnative:
        raise ValueError(
            errors.message(
                "given numpy array has byte order different from the native byte order. "
                "Conversion between byte orders is currently not supported.",
                repair='array.astype(array.dtype.newbyteorder("="))',
            )
        )
    dtypes.of_numpy(array.dtype)  # raises for those that tensors do not have
    if any(stride < 0 or stride % array.itemsize for stride in array.strides):
        raise ValueError(
            errors.message(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around this "
                "by making a copy of your array  with array.copy().) ",
                repair="tk.from_numpy(array.copy())",
            )
        )
    shape = tuple(array.shape)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
    else:
        flat = device.backend.memory_of(array, layout.extent(shape, strides))
    return base.on_storage(Storage(flat), Layout(shape, strides, 0))


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a tensor.

    >>> tk.is_tensor(tk.zeros(2)), tk.is_tensor([0., 0.])
    (True, False)
    """
    return isinstance(obj, TensorBase)
