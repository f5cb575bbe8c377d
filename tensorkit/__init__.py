"""tensorkit: PyTorch's tensors on NumPy, small enough to be read.

>>> import tensorkit as tk
>>> tk.tensor([1., 2., 3.]) * 10
tensor([10., 20., 30.])
"""

from math import inf, nan, pi
from typing import Any

from tensorkit import absent
from tensorkit._tensor import Tensor
from tensorkit.creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    is_tensor,
    linspace,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    tensor,
    zeros,
    zeros_like,
)
from tensorkit.devices import Device as device
from tensorkit.dtypes import DType as dtype
from tensorkit.dtypes import bool_ as bool
from tensorkit.dtypes import (
    can_cast,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
)
from tensorkit.functional import allclose, div, equal, isclose, pow, result_type
from tensorkit.layout import Size
from tensorkit.ops.arithmetic import (
    abs,
    add,
    floor_divide,
    mul,
    neg,
    reciprocal,
    remainder,
    sub,
)
from tensorkit.ops.bitwise import bitwise_and, bitwise_not, bitwise_or, bitwise_xor
from tensorkit.ops.comparison import eq, ge, gt, le, lt, ne
from tensorkit.ops.copying import clone
from tensorkit.ops.views import as_strided
from tensorkit.printing import set_printoptions
from tensorkit.random import Generator, initial_seed, manual_seed

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64

__version__ = "0.1.0"

__all__ = [
    "Generator",
    "Size",
    "Tensor",
    "abs",
    "add",
    "allclose",
    "arange",
    "as_strided",
    "as_tensor",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "can_cast",
    "clone",
    "device",
    "div",
    "double",
    "dtype",
    "empty",
    "empty_like",
    "eq",
    "equal",
    "eye",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "floor_divide",
    "from_numpy",
    "full",
    "full_like",
    "ge",
    "get_default_dtype",
    "gt",
    "half",
    "iinfo",
    "inf",
    "initial_seed",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_tensor",
    "isclose",
    "le",
    "linspace",
    "long",
    "lt",
    "manual_seed",
    "mul",
    "nan",
    "ne",
    "neg",
    "ones",
    "ones_like",
    "pi",
    "pow",
    "promote_types",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "reciprocal",
    "remainder",
    "result_type",
    "set_default_dtype",
    "set_printoptions",
    "short",
    "sub",
    "tensor",
    "uint8",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> Any:
    if name == "viz":
        import importlib

        return importlib.import_module("tensorkit.viz")
    if name in absent.FUNCTIONS:
        raise AttributeError(absent.sentence("torch", name))
    raise AttributeError(f"module 'tensorkit' has no attribute '{name}'")
