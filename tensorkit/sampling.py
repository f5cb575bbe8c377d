"""Random tensors: new ones, and the methods that fill a tensor in place.

What is drawn, and in which order, is the business of ``tensorkit.random``. Numbers are drawn on
the CPU and sent to the device of their tensor. All functions take ``generator``.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorkit import base, dtypes, layout
from tensorkit.autograd import history
from tensorkit.autograd.modes import no_grad
from tensorkit.autograd.rules import Rule
from tensorkit.base import Tensor, TensorBase
from tensorkit.creation import Wanted, empty, factory
from tensorkit.devices import CPU, Device, backend_of
from tensorkit.dtypes import DType
from tensorkit.errors import (
    ConversionError,
    DeviceMismatchError,
    DTypeError,
    NotSupportedError,
    OutOfMemoryError,
    ShapeError,
    message,
    type_name,
)
from tensorkit.ops import results, views, writing
from tensorkit.ops.arguments import (
    as_int,
    check_value,
    need_int,
    need_sizes,
    need_tensor,
    no_kernel,
    no_such_call,
    read,
)
from tensorkit.ops.selection import zeros_as
from tensorkit.quiet import quietly
from tensorkit.random import Generator, default_generator, source_for
from tensorkit.rounding import multiply_add


def _stream(generator: Any, device: Device) -> Generator:
    """The source for a tensor of ``device``; without one numbers are drawn on the CPU and sent."""
    if generator is None:
        generator = source_for(device)
    elif not isinstance(generator, Generator):
        raise TypeError(
            message(
                f"argument 'generator' must be torch.Generator, not {type_name(generator)}",
                repair="generator=tk.Generator().manual_seed(0)",
            )
        )
    elif generator.device is not device:
        names = device.type, generator.device.type
        if names[0] == names[1]:
            names = str(device), str(generator.device)
        raise DeviceMismatchError(
            f"Expected a '{names[0]}' device type for generator but found '{names[1]}'",
            repair=f"tk.Generator('{names[0]}')",
        )
    if device is not CPU:
        generator.mark()  # memory may run out
    return generator


def _need_floating(dtype: DType, kernel: str) -> None:
    if not dtype.is_floating_point:
        raise no_kernel(kernel, dtype, "tk.randint(0, 10, size) draws integers")


# Filling in place


def _write(x: Tensor, values: Any, stream: Generator, name: str, overload: int = 0) -> Tensor:
    """Write ``values`` into ``x``, the first ones first in memory; no gradient passes."""
    array = x._array
    is_host = values.__class__ is np.ndarray
    if is_host and writing.write_plainly(x, values.reshape(x.shape), name):
        return x
    is_host = is_host and values.dtype is array.dtype
    if is_host and x.device is not CPU and x._is_contiguous and x._node is base.watch is None:
        x.device.backend.write_from_host(x._array, values.reshape(x.shape), name[:-1])
        history.written(x, name)
        return x
    tracked = history.check_write(x)
    node = f"{name[:-1].title()}Backward{overload}"
    rule = Rule(name, node, ("x",), {"x": lambda g: zeros_as(g)}) if tracked else None
    writing.check_overlap(x)
    order = layout.slowest_first(x._strides)
    stacked = values.reshape([x.shape[dim] for dim in order])
    ordered = stacked.transpose(layout.inverse(order))
    on_device = _there(ordered, x.device, stream, name[:-1])
    writing.write(x, on_device, name[:-1], rule, {"x": x})
    return x


def _there(array: Any, device: Device, stream: Generator, why: str) -> Any:
    """An array on ``device``: sent there unless it was drawn there."""
    backend = device.backend
    if backend_of(array) is backend:
        return array
    try:
        return backend.from_host(array, why)
    except OutOfMemoryError:
        stream.rewind()
        raise


def uniform_(x: Tensor, start: Any = 0, to: Any = 1, *, generator: Any = None) -> Tensor:
    """Fill with random numbers, uniform in [start, to).

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(2).uniform_(-1, 1)
    tensor([-0.0075,  0.5364])
    """
    dtype, stream = x.dtype, _stream(generator, x.device)
    start, to = read(start), read(to)
    _need_floating(dtype, "check_uniform_bounds")
    if start == 0 and to == 1 and dtype is not dtypes.float16:
        return _write(x, stream.uniform(x._array.size, dtype), stream, "uniform_")
    for name, bound in (("from", start), ("to", to)):
        _check_drawn(name, bound, dtype)
    if start > to:
        raise DTypeError(
            f"uniform_ expects to return a [from, to) range, but found from={start:g} > to={to:g}"
        )
    try:
        drawn = stream.uniform(x._array.size, dtypes.float32 if dtype is dtypes.float16 else dtype)
        scaled = _stretched(drawn, to - start, start).astype(dtype.numpy)
        scaled[scaled == dtype.numpy.type(to)] = start  # what rounding carried out of the interval
        return _write(x, scaled, stream, "uniform_")
    except OutOfMemoryError:
        stream.rewind()
        raise


def normal_(x: Tensor, mean: Any = 0, std: Any = 1, *, generator: Any = None) -> Tensor:
    """Fill with random numbers, normal with this mean and standard deviation.

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(2).normal_(10, 2)
    tensor([13.0820,  9.4131])
    """
    stream = _stream(generator, x.device)
    if not std >= 0:
        raise DTypeError(f"normal expects std >= 0.0, but found std {std:g}")
    _need_floating(x.dtype, "normal_kernel_cpu")
    count = x._array.size
    one_by_one = not x._is_contiguous or count < 16  # then in float64
    dtype = dtypes.float64 if one_by_one else x.dtype
    try:
        values = stream.normal(count, dtype, one_by_one=one_by_one)
        return _write(x, _stretched(values, std, mean), stream, "normal_")
    except OutOfMemoryError:
        stream.rewind()
        raise


def _stretched(values: Any, scale: float, shift: float) -> Any:
    """``values * scale + shift``, rounded once as in PyTorch's kernels."""
    if scale == 1 and shift == 0:
        return values
    number = values.dtype.type
    if number is np.float16 or values.__class__ is not np.ndarray:
        return values * number(scale) + number(shift)
    x, y, z = (np.asarray(each, np.float64) for each in (values, number(scale), number(shift)))
    return multiply_add(np, x, y, z, values.dtype)


def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fill with ones, each with probability ``p``, a number or a tensor of them, and zeros.

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(8).bernoulli_(0.5)
    tensor([0., 0., 1., 0., 0., 0., 1., 1.])
    """
    stream = _stream(generator, x.device)
    is_tensor = isinstance(p, TensorBase)
    if is_tensor:
        p = views.expand(p, x.shape)
    elif not 0 <= p <= 1:
        raise DTypeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    try:
        ones = _ones(stream, p) if is_tensor else stream.uniform(x.numel(), dtypes.float64) < p
        return _write(x, ones, stream, "bernoulli_", 2)
    except OutOfMemoryError:
        stream.rewind()
        raise


def _ones(stream: Generator, p: Tensor) -> Any:
    """A flat bool array: whether a drawn number is below its probability."""
    if not p.dtype.is_floating_point:
        raise no_kernel("bernoulli_tensor_cpu_p_", p.dtype)
    there = stream.device is not CPU
    chances = p._array if there else p.device.backend.to_host(p._array, "bernoulli")
    chances = chances.reshape(-1)
    inside = (chances >= 0) & (chances <= 1)
    if there:
        stream.device.backend.expect(inside, "A probability was not between 0 and 1")
    elif not inside.all():
        raise DTypeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)",
            "These numbers are probabilities.",
        )
    double = p.dtype is dtypes.float64
    return stream.uniform(p.numel(), dtypes.float64 if double else dtypes.float32) < chances


def exponential_(x: Tensor, lambd: Any = 1, *, generator: Any = None) -> Tensor:
    """Fill with random numbers of the exponential distribution, whose mean is 1 / ``lambd``.

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(2).exponential_()
    tensor([3.5083, 1.2304])
    """
    if not x.dtype.is_floating_point:
        raise DTypeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {x.dtype.word}"
        )
    if not lambd > 0:
        raise DTypeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    stream = _stream(generator, x.device)
    try:
        values = stream.exponential(x.numel()) / lambd
        return _write(x, values, stream, "exponential_")
    except OutOfMemoryError:
        stream.rewind()
        raise


def random_(x: Tensor, *bounds: Any, generator: Any = None) -> Tensor:
    """Fill with random integers: all that the dtype holds, or ``(to)``, or ``(low, to)``.

    ``to`` itself is never drawn.

    >>> _ = tk.manual_seed(0)
    >>> tk.zeros(3).random_(10)
    tensor([4., 9., 3.])
    """
    stream = _stream(generator, x.device)
    if not bounds:
        values = stream.any_integers(x.numel(), x.dtype)
        return _write(x, values, stream, "random_", 2)
    low, high = (0, bounds[0]) if len(bounds) == 1 or bounds[1] is None else bounds
    if len(bounds) > 1 and bounds[1] is None:
        low, high = bounds[0], dtypes.limits(x.dtype)[1] + 1
    if low >= high:
        raise DTypeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}",
            "'to' itself is never drawn.",
        )
    _check_drawn("from", low, x.dtype)
    _check_drawn("to - 1", high - 1, x.dtype)
    return _write(x, stream.integers(low, high, x.numel()), stream, "random_", 2 - len(bounds))


_RANDOM_NAMES = {"int8": "signed char", "uint8": "unsigned char", "int16": "short", "int64": "long"}


def _check_drawn(what: str, value: int, dtype: DType) -> None:
    if dtype.is_floating_point and -60_000 < value < 60_000:  # nearly always
        return
    if dtype.is_floating_point:
        most = dtypes.finfo(dtype).max
        fits = -most <= value <= most
    else:
        low, high = dtypes.limits(dtype)
        fits = low <= value <= high
    if not fits:
        name = _RANDOM_NAMES.get(dtype.name, dtype.c_name)
        raise ConversionError(f"{what} is out of bounds for {name}", value=value, dtype=dtype)


# New tensors


def unwritten(x: Tensor) -> Tensor:
    """``x``, new: to fill it was no write that its version counts."""
    if x._storage is not None:
        x._storage.version, x._storage.wrote = 0, None
    return x


def _drawn(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A factory whose results are filled after they are made."""

    @functools.wraps(make)
    def filled(*args: Any, **named: Any) -> Tensor:
        return unwritten(make(*args, **named))

    return factory(filled)


@_drawn
def rand(wanted: Wanted, *args: Any, generator: Any = None, **size: Any) -> Tensor:
    """Random numbers, uniform in [0, 1).

    >>> _ = tk.manual_seed(0)
    >>> tk.rand(2)
    tensor([0.4963, 0.7682])
    """
    return uniform_(wanted.sized(*args, **size), generator=generator)


@_drawn
def randn(wanted: Wanted, *args: Any, generator: Any = None, **size: Any) -> Tensor:
    """Random numbers, normal with mean 0 and standard deviation 1.

    >>> _ = tk.manual_seed(0)
    >>> tk.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    return normal_(wanted.sized(*args, **size), generator=generator)


@_drawn
def randint(wanted: Wanted, *args: Any, generator: Any = None, **named: Any) -> Tensor:
    """Random integers from ``low`` (default 0) up to, not including, ``high``, as int64.

    Call it as ``randint(high, size)`` or ``randint(low, high, size)``.

    >>> _ = tk.manual_seed(0)
    >>> tk.randint(10, (5,))
    tensor([4, 9, 3, 0, 3])
    """
    low, high, size = _randint_arguments(args, named)
    shape = need_sizes("randint", "size", len(args) or 3, size)
    result = wanted.empty(shape, wanted.dtype or dtypes.int64)
    return random_(result, low, high, generator=generator)


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
    if options:
        raise TypeError(f"randint() got an unexpected keyword argument '{next(iter(options))}'")
    if "high" not in values or "size" not in values or n_given > len(names):
        more = "tuple of ints size, *, torch.dtype dtype, torch.device device)"
        raise no_such_call("randint", args, f"(int high, {more}", f"(int low, int high, {more}")
    for position, name in enumerate(names[:-1], start=1):
        values[name] = need_int("randint", name, position, values[name])
    return values["low"], values["high"], values["size"]


@_drawn
def randperm(wanted: Wanted, n: int, *, generator: Any = None) -> Tensor:
    """The integers 0 to ``n - 1`` in random order.

    >>> _ = tk.manual_seed(0)
    >>> tk.randperm(4)
    tensor([0, 1, 3, 2])
    """
    n = need_int("randperm", "n", 1, n)
    dtype = wanted.dtype or dtypes.int64
    if n < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype is dtypes.bool_:
        raise no_kernel("randperm", dtype)
    if dtype is dtypes.float16 and n > 2049:
        raise ConversionError("n cannot be greater than 2049 for Half type.", value=n, dtype=dtype)
    check_value(n, dtype)
    stream = _stream(generator, wanted.place)
    try:
        order = stream.permutation(n).astype(dtype.numpy)
        order = _there(order, wanted.place, stream, "randperm")
    except OutOfMemoryError:
        stream.rewind()
        raise
    return results.contiguous_result(order, wanted.place)


@_drawn
def rand_like(wanted: Wanted, input: Tensor, *, generator: Any = None) -> Tensor:
    """Random numbers, uniform in [0, 1), in the shape and dtype of ``input``.

    >>> _ = tk.manual_seed(0)
    >>> tk.rand_like(tk.zeros(2))
    tensor([0.4963, 0.7682])
    """
    return uniform_(wanted.like(input), generator=generator)


@_drawn
def randn_like(wanted: Wanted, input: Tensor, *, generator: Any = None) -> Tensor:
    """Random normal numbers in the shape and dtype of ``input``.

    >>> _ = tk.manual_seed(0)
    >>> tk.randn_like(tk.zeros(2))
    tensor([ 1.5410, -0.2934])
    """
    return normal_(wanted.like(input), generator=generator)


@_drawn
def randint_like(
    wanted: Wanted, input: Tensor, low: int, high: int | None = None, *, generator: Any = None
) -> Tensor:
    """Random integers in the shape and dtype of ``input``: ``(high)`` or ``(low, high)``.

    >>> _ = tk.manual_seed(0)
    >>> tk.randint_like(tk.zeros(3), 10)
    tensor([4., 9., 3.])
    """
    need_tensor("randint_like", input)
    bounds = (0, low) if high is None else (low, high)
    if any(as_int(bound) is None for bound in bounds):
        signatures = "(Tensor input, int high)", "(Tensor input, int low, int high)"
        given = (input, low) if high is None else (input, low, high)
        raise no_such_call("randint_like", given, *signatures)
    return random_(wanted.like(input), *bounds, generator=generator)


# Each element from a distribution of its own


def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """Ones with the probabilities that ``input`` holds, and zeros.

    >>> tk.bernoulli(tk.tensor([0., 1., 1.]))
    tensor([0., 1., 1.])
    """
    need_tensor("bernoulli", input)
    with no_grad():
        if p is not None:
            result = empty(tuple(input.shape), dtype=input.dtype, device=input.device)
            unwritten(bernoulli_(result, p, generator=generator))
        else:
            device = input.device
            stream = _stream(generator, device)
            shape, dtype = input.shape, input.dtype.numpy
            try:
                ones = _ones(stream, input).reshape(shape).astype(dtype)
                ones = _there(ones, device, stream, "bernoulli")
            except OutOfMemoryError:
                stream.rewind()
                raise
            result = results.contiguous_result(ones, device)
    return _without_gradient("BernoulliBackward0", result, input)


def _without_gradient(node: str, result: Tensor, x: Tensor) -> Tensor:
    """``result`` with a node through which only zeros pass, if ``x`` is tracked."""
    if x._node is None:
        return results.finished(result)
    return history.record(Rule("", node, ("x",), {"x": lambda g: zeros_as(g)}), result, {"x": x})


def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, **kind: Any
) -> Tensor:
    """Random normal numbers; ``mean`` and ``std`` are tensors, or numbers with a ``size``.

    >>> tk.normal(tk.tensor([1., 2.]), tk.zeros(2))
    tensor([1., 2.])
    """
    tensors = [value for value in (mean, std) if isinstance(value, TensorBase)]
    if (size is None) == (not tensors) or (tensors and kind):
        raise no_such_call(
            "normal",
            tuple(value for value in (mean, std, size) if value is not None),
            "(Tensor mean, Tensor std)",
            "(Tensor mean, float std = 1)",
            "(float mean, Tensor std)",
            "(float mean, float std, tuple of ints size)",
        )
    if not tensors:
        return unwritten(normal_(empty(size, **kind), mean, std, generator=generator))
    if std is tensors[-1]:
        if not (std._array >= 0).all():
            raise DTypeError("normal expects all elements of std >= 0.0")
    elif not std >= 0:
        raise DTypeError(f"normal expects std >= 0.0, but found std {std:g}")
    with no_grad():
        total: Any = mean + std if len(tensors) == 2 else tensors[0]
        kind = {"dtype": total.dtype, "device": total.device}
        noise = randn(tuple(total.shape), generator=generator, **kind)
        try:
            noise = noise if std.__class__ is float and std == 1.0 else noise.mul_(std)
            result = noise.add_(mean)
        except OutOfMemoryError:
            (source_for(noise.device) if generator is None else generator).rewind()
            raise
    unwritten(result)
    return _without_gradient(
        "NormalBackward3" if len(tensors) == 2 else "NormalBackward1", result, total
    )


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Positions drawn in each row of ``input``, which holds weights: (m,) or (n, m).

    >>> tk.multinomial(tk.tensor([0., 0., 1.]), 2, replacement=True)
    tensor([2, 2])
    """
    need_tensor("multinomial", input)
    shape, dtype = tuple(input.shape), input.dtype
    n = need_int("multinomial", "num_samples", 2, num_samples)
    stream = default_generator if generator is None else _stream(generator, input.device)
    if stream.device is not CPU:
        raise NotSupportedError(
            "tensorkit draws from weights on the CPU only", repair="generator=None"
        )
    if input.device is not CPU:
        stream.mark()
    weights = input.device.backend.to_host(input._array, "multinomial")
    if len(shape) not in (1, 2):
        raise ShapeError("prob_dist must be 1 or 2 dim", a_shape=shape)
    if not dtype.is_floating_point:
        raise DTypeError(
            f"multinomial only supports floating-point dtypes for input, got: {dtype.word}"
        )
    if n <= 0:
        raise ShapeError("cannot sample n_sample <= 0 samples", a_shape=shape)
    if not replacement and n > shape[-1]:
        raise ShapeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
            a_shape=shape,
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise DTypeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (weights.sum(-1) > 0).all():
        raise DTypeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement and n > 1:
        up_to = np.cumsum(weights, -1, dtype=dtype.numpy).reshape(-1, shape[-1])
        draws = stream.uniform(len(up_to) * n, dtypes.float64).reshape(-1, n)
        rows = zip(up_to / up_to[:, -1:], draws, strict=True)
        positions = np.array([np.searchsorted(row, drawn) for row, drawn in rows])
    else:  # a race: whoever has a weight of w arrives after an exponential time of mean 1 / w
        times = stream.exponential(weights.size).astype(dtype.numpy).reshape(shape)
        positions = quietly(lambda: np.argsort(-(weights / times), -1, kind="stable"))[..., :n]
    positions = positions.reshape(*shape[:-1], n).astype(np.int64)
    return results.contiguous_result(
        _there(positions, input.device, stream, "multinomial"), input.device
    )
