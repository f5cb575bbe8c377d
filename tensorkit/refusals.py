"""Why an operation refuses its arguments: asked where the direct path does not compute.

``check`` reads what ``@op`` declares and raises for the first thing that is wrong: PyTorch's first
line where learners meet it, then the numbers, then a repair. ``layout.broadcast_shapes`` refuses
shapes that do not broadcast; the ``check`` of a definition refuses what one operation alone does.
"""

from typing import Any, NoReturn

import numpy as np

from tensorkit import layout
from tensorkit.base import TensorBase
from tensorkit.definition import TYPECODES
from tensorkit.devices import CPU
from tensorkit.dtypes import DType, bool_, of_numpy
from tensorkit.errors import DTypeError, ShapeError, message, must_be, type_name
from tensorkit.ops.arguments import as_number, kind_of, no_kernel

# What array libraries raise. An error of tensorkit's own may be one of these, too: its text stays.
FROM_ARRAYS = (AttributeError, TypeError, ValueError, IndexError, RuntimeError, OverflowError)


def check_tensors(definition: Any, values: dict[str, Any]) -> None:
    """TypeError unless all tensors are tensors, or None where that is the default."""
    given = [values[name] for name in definition.inputs]
    accepts_numbers = definition.promote and definition.numbers and len(given) > 1
    is_one = any(isinstance(x, TensorBase) for x in given)
    for position, (name, x) in enumerate(zip(definition.inputs, given, strict=True), 1):
        if isinstance(x, TensorBase) or (x is None and name in definition.defaults):
            continue
        if isinstance(x, np.ndarray) and definition.symbol:
            refuse_array(definition, *given)
        if not (accepts_numbers and is_one and as_number(x) is not None):
            raise must_be(definition.name, name, position, "Tensor", x)


def refuse_array(definition: Any, left: Any, right: Any) -> NoReturn:
    """TypeError for an operator between a tensor and an array."""
    kinds = f"'{kind_of(left)}' and '{kind_of(right)}'"
    first = f"unsupported operand type(s) for {definition.symbol}: {kinds}"
    tensor = left if isinstance(left, TensorBase) else right
    there, back = ("", "") if tensor.device is CPU else (".to(tensor.device)", ".cpu()")
    raise TypeError(
        message(
            first,
            "A tensor and a NumPy array are not mixed without being told: the array's dtype "
            "(often float64) would decide.",
            repair=f"tk.from_numpy(array){there}, or tensor{back}.numpy()",
        )
    )


def check(definition: Any, values: dict[str, Any], promoted: DType | None = None) -> None:
    """Raise if something that is declared of an operation does not hold; values: its arguments.

    ``promoted`` is the dtype that operands are promoted to, where they are.
    """
    _check_ndim(definition, values)
    _check_options(definition, values)
    _check_dims(definition, values)
    if definition.check is not None:
        definition.check(**values)
    if promoted is None:
        _check_dtypes(definition, values)
    elif promoted.numpy.char not in TYPECODES[definition.categories[0]]:
        repair = "x.int()" if promoted is bool_ else "x.bool() or x.long()"
        repair = "x.float()" if definition.categories[0] == "floating" else repair
        raise no_kernel(definition.kernel_name, promoted, repair)


def in_words(definition: Any, error: Exception, backend: Any) -> Exception:
    """What the array library has said, with the operation's name, and a way without it."""
    kind = next((x for x in (TypeError, IndexError) if isinstance(error, x)), RuntimeError)
    # whether one of them lacks a function
    is_absent = any(getattr(error, "obj", None) is each for each in (backend.xp, backend))
    repair = f'tk.library.register_kernel(tk.{definition.name}, "{backend.kind}", f)'
    return kind(message(f"{definition.name}(): {error}", repair=repair if is_absent else None))


def _check_ndim(definition: Any, values: dict[str, Any]) -> None:
    for name, wanted in definition.ndim.items():
        x = values[name]
        if x is None or len(x.shape) == wanted:
            continue
        word = {1: "a vector", 2: "a matrix"}.get(wanted, f"a {wanted}D tensor")
        called = "self" if name == "input" else name
        raise ShapeError(
            f"{called} must be {word}",
            f"It has {len(x.shape)} dimensions: its shape is {tuple(x.shape)}.",
        )


_WORDS = {bool: "a bool", int: "an int", float: "a number", str: "a str"}


def _check_options(definition: Any, values: dict[str, Any]) -> None:
    """TypeError for options of another kind than their annotations say."""
    for name in [each for each in definition.options if each != definition.variadic]:
        value, annotation = values[name], definition.forward.__annotations__.get(name)
        kinds, word = definition.classes.get(name, (object,)), _WORDS.get(annotation, "")
        if name in definition.dim:
            if value is None and definition.defaults.get(name, 0) is None:
                continue
            one = annotation in (int, int | None)
            several = value if isinstance(value, tuple) and not one else (value,)
            fits = all(hasattr(x, "__index__") and not isinstance(x, bool) for x in several)
            word = "an int" if one else "an int or a tuple of ints"
        else:
            fits = isinstance(value, kinds) or (kinds == (int,) and hasattr(value, "__index__"))
            fits = fits and (bool in kinds or object in kinds or not isinstance(value, bool))
        if not fits:
            first = f"{definition.name}(): {name} must be {word}, not {type_name(value)}."
            example = {bool: "True", float: "0.5", str: "..."}.get(annotation, "-1")
            if isinstance(value, bool) and "correction" in definition.options:  # x.var(False)
                name, example = "correction", str(int(value))
            raise TypeError(message(first, repair=f"{name}={example}"))


def _check_dtypes(definition: Any, values: dict[str, Any]) -> None:
    """DTypeError for dtypes that differ, NotSupportedError for one that does not fit."""
    known: dict[str, tuple[str, Any]] = {}
    for name, category, typecodes in zip(
        definition.inputs, definition.categories, definition.typecodes, strict=True
    ):
        x = values[name]
        if x is None:
            continue
        first, dtype = known.setdefault(category, (name, x.dtype))
        if dtype is not x.dtype:
            wider = max(dtype, x.dtype, key=lambda each: (each.is_floating_point, each.itemsize))
            both = ("m1", "m2") if definition.name == "mm" else (first, name)  # PyTorch's words
            raise DTypeError(
                f"expected {' and '.join(both)} to have the same dtype, but got: "
                f"{dtype.whole_name} != {x.dtype.whole_name}",
                repair=f"{name if wider is dtype else first}.to(tk.{wider.name})",
            )
        if x._array.dtype.char not in typecodes:
            dtype = of_numpy(x._array.dtype)
            repair = "x.float()" if category != "integral" else "x.long()"
            raise no_kernel(definition.kernel_name, dtype, repair)


def _check_dims(definition: Any, values: dict[str, Any]) -> None:
    """Raise for dimensions that the first tensor does not have, or that are named twice."""
    shape = getattr(values[definition.inputs[0]], "shape", ())  # a number has none
    for name in definition.dim:
        if values.get(name) is not None:
            layout.wrap_dims(values[name], len(shape))
