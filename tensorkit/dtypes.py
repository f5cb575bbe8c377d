"""Element types: the ``DType`` objects, their categories, and PyTorch's promotion rules.

A *category* orders the kinds of numbers: bool (0) < integer (1) < floating point (2). Promotion
first compares categories and only then widths. NumPy's promotion is never asked; NumPy only
supplies ``numpy``, the dtype in which the elements are stored.
"""

from typing import Any, NoReturn

import numpy as np

from tensorkit.errors import NotSupportedError, message

BOOL, INTEGER, FLOATING = 0, 1, 2


class DType:
    """An element type such as ``tk.float32``. There is one object per type: compare with ``is``.

    >>> tk.float32, tk.float32.itemsize, tk.float32.is_floating_point
    (torch.float32, 4, True)
    """

    def __init__(self, name: str, word: str, c_name: str, category: int, whole: str = "") -> None:
        self.name = name
        self.word = word  # the name in PyTorch's messages and tensor types: Float, Long
        self.c_name = c_name  # the name in its overflow messages: float, int64_t
        self.whole_name = whole or c_name  # in those about two dtypes: float, long int
        self.category = category
        self.numpy = np.dtype(name)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = category == FLOATING

    is_complex = False  # none is

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        # Pickle and deepcopy find the one object again by its name in this module.
        return "bool_" if self.name == "bool" else self.name


float16 = DType("float16", "Half", "c10::Half", FLOATING)
float32 = DType("float32", "Float", "float", FLOATING)
float64 = DType("float64", "Double", "double", FLOATING)
int8 = DType("int8", "Char", "int8_t", INTEGER, "signed char")
int16 = DType("int16", "Short", "int16_t", INTEGER, "short int")
int32 = DType("int32", "Int", "int", INTEGER)
int64 = DType("int64", "Long", "int64_t", INTEGER, "long int")
uint8 = DType("uint8", "Byte", "uint8_t", INTEGER, "unsigned char")
bool_ = DType("bool", "Bool", "bool", BOOL)

ALL = (float16, float32, float64, int8, int16, int32, int64, uint8, bool_)
_BY_NUMPYS = {dtype.numpy: dtype for dtype in ALL}
_OF_PYTHON = {float: float64, int: int64, bool: bool_}
_ABSENT = ("bfloat16", "complex32", "complex64", "complex128", "uint16", "uint32", "uint64")

_default = float32


def get_default_dtype() -> DType:
    """The dtype of floating-point tensors made from Python floats.

    >>> tk.get_default_dtype()
    torch.float32
    """
    return _default


def set_default_dtype(d: DType) -> None:
    """Choose the dtype of floating-point tensors made from Python floats.

    >>> tk.set_default_dtype(tk.float64)
    >>> tk.tensor(0.5).dtype
    torch.float64
    >>> tk.set_default_dtype(tk.float32)
    """
    global _default
    if not (isinstance(d, DType) and d.is_floating_point):
        what = "" if isinstance(d, DType) else "invalid dtype object: "
        raise TypeError(f"{what}only floating-point types are supported as the default type")
    _default = d


def as_dtype(function: str, value: Any) -> DType:
    """The DType that a ``dtype=`` argument names: a DType, or Python's float, int, bool."""
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _OF_PYTHON:
        return _OF_PYTHON[value]
    if value is complex:
        refuse("complex64")
    raise TypeError(
        message(
            f"{function}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}",
            repair=f"dtype=tk.{value if f'torch.{value}' in map(repr, ALL) else 'float32'}",
        )
    )


def refuse(name: str, repair: str = "dtype=tk.float32") -> NoReturn:
    """Raise: the dtype ``name`` exists in PyTorch and not here."""
    have = ", ".join(dtype.name for dtype in ALL)
    raise NotSupportedError(f"tensorkit has no dtype {name}", f"It has: {have}.", repair=repair)


def of_numpy(dtype: np.dtype[Any]) -> DType:
    """The DType for a NumPy dtype; TypeError with PyTorch's sentence for what has none."""
    found = _BY_NUMPYS.get(dtype)
    if found is None:
        if dtype.name in _ABSENT:
            repairs = {"c": "array.real, array.imag", "u": 'array.astype("int64")'}
            refuse(dtype.name, repairs.get(dtype.kind, 'array.astype("float32")'))
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{dtype.type.__name__}. The only supported "
            "types are: float64, float32, float16, complex64, complex128, int64, int32, int16, "
            "int8, uint64, uint32, uint16, uint8, and bool."
        )
    return found


def of_number(value: bool | int | float) -> DType:
    """The dtype that a Python number suggests: bool, int64 or the default dtype."""
    if isinstance(value, bool):
        return bool_
    return int64 if isinstance(value, int) else _default


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that holds both.

    >>> tk.promote_types(tk.uint8, tk.int8), tk.promote_types(tk.int64, tk.float16)
    (torch.int16, torch.float16)
    """
    return promote(as_dtype("promote_types", type1), as_dtype("promote_types", type2))


def promote(a: DType, b: DType) -> DType:
    """``promote_types`` without the check of its arguments."""
    if a is b:
        return a
    if a.category != b.category:
        return a if a.category > b.category else b
    wide, narrow = (a, b) if a.itemsize >= b.itemsize else (b, a)
    if wide.itemsize == narrow.itemsize:  # int8 with uint8: neither holds the other
        return int16
    return wide


def combine(higher: DType | None, lower: DType | None) -> DType | None:
    """``higher`` wins, unless ``lower`` is of a higher category (float over int)."""
    if higher is None or lower is None:
        return higher or lower
    return promote(higher, lower) if lower.category > higher.category else higher


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a result of dtype ``from_`` may be stored in ``to`` by an in-place operation.

    A higher category never goes into a lower one: that would lose the kind of number.

    >>> tk.can_cast(tk.float64, tk.float16), tk.can_cast(tk.float32, tk.int64)
    (True, False)
    """
    return as_dtype("can_cast", from_).category <= as_dtype("can_cast", to).category


def limits(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool dtype."""
    if dtype is bool_:
        return 0, 1
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)
