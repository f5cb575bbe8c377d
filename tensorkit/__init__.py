"""tensorkit: PyTorch's tensors on NumPy, small enough to be read.

>>> import tensorkit as tk
>>> tk.tensor([1., 2., 3.]) * 10
tensor([10., 20., 30.])

The core in the order in which to read it, with minutes:

    base, storage, layout     what a tensor is; shapes and strides as plain numbers           (15)
    ops.arithmetic            ``a + b``: forward, gradient and example of an operation         (10)
    definition, dispatch      what ``@op`` makes of that: the direct path and the slow way     (30)
    explainer, errors         the words of what is refused                                     (10)
    ops.promotion, transfer   dtypes that differ, numbers; devices that differ                 (10)
    autograd.node             what is recorded of an operation; its formulas                   (25)
    autograd.engine           ``backward()``                                                   (20)
    autograd.inplace          views, versions, writes in place; ops.writing                    (20)
    ops.views, ops.indexing   ``x.view(2, 3)`` and ``x[index]``                                (15)
    devices, _tensor          where memory is; the class with its methods (ops.methods)        (10)

nn and optim are made of all this.

A file imports only what stands above it in the list of tests/tensorkit/test_package.py.
"""

import types
import typing
from math import e, inf, nan, pi

from tensorkit import absent
from tensorkit import autograd as autograd
from tensorkit import linalg as linalg
from tensorkit._tensor import Tensor
from tensorkit.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tensorkit.autograd.gradcheck import gradcheck as _gradcheck
from tensorkit.autograd.recording import recording as _recording
from tensorkit.creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    is_floating_point,
    is_tensor,
    linspace,
    numel,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from tensorkit.devices import Device as device
from tensorkit.devices import get_default_device, set_default_device
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
from tensorkit.errors import AcceleratorError, OutOfMemoryError
from tensorkit.layout import Size
from tensorkit.ops.arithmetic import (
    abs,
    add,
    div,
    floor_divide,
    mul,
    neg,
    pow,
    reciprocal,
    remainder,
    sign,
    square,
    sub,
    true_divide,
)
from tensorkit.ops.bitwise import bitwise_and, bitwise_not, bitwise_or, bitwise_xor
from tensorkit.ops.comparison import (
    allclose,
    clamp,
    eq,
    equal,
    ge,
    gt,
    isclose,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    maximum,
    minimum,
    ne,
)
from tensorkit.ops.copying import clone
from tensorkit.ops.elementary import (
    acos,
    asin,
    atan,
    atan2,
    ceil,
    cos,
    cosh,
    exp,
    expm1,
    floor,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    relu,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from tensorkit.ops.error_function import erf
from tensorkit.ops.gathering import (
    gather,
    index_add,
    index_select,
    scatter,
    scatter_add,
    take_along_dim,
)
from tensorkit.ops.indexing import masked_select
from tensorkit.ops.joining import cat, flip, repeat_interleave, stack, tril, triu
from tensorkit.ops.joining import cat as concat
from tensorkit.ops.joining import cat as concatenate
from tensorkit.ops.matmul import addmm, bmm, dot, einsum, matmul, mm, mv, outer
from tensorkit.ops.promotion import result_type
from tensorkit.ops.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    cumsum,
    max,
    mean,
    min,
    norm,
    prod,
    std,
    sum,
    var,
)
from tensorkit.ops.selection import masked_fill, nonzero, where
from tensorkit.ops.softmax import log_softmax, logsumexp, softmax
from tensorkit.ops.sorting import argsort, bincount, sort, topk, unique
from tensorkit.ops.views import (
    as_strided,
    broadcast_tensors,
    chunk,
    diagonal,
    flatten,
    movedim,
    narrow,
    permute,
    ravel,
    reshape,
    select,
    split,
    squeeze,
    t,
    transpose,
    unbind,
    unsqueeze,
)
from tensorkit.ops.views import expand as broadcast_to
from tensorkit.ops.views import transpose as swapaxes
from tensorkit.printing import set_printoptions
from tensorkit.random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from tensorkit.sampling import (
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
)

clip = clamp
absolute, divide, multiply, subtract = abs, div, mul, sub

if typing.TYPE_CHECKING:
    from tensorkit import nn as nn
    from tensorkit import optim as optim
    from tensorkit import utils as utils
    from tensorkit.serialization import load, save

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64

newaxis = None

__version__ = "0.1.0"

# What is imported above is what the library offers, under PyTorch's names.
__all__ = [
    name
    for name, offered in globals().items()
    if name[0] != "_" and not isinstance(offered, types.ModuleType)
]


# Looked up when asked: not every program trains, saves or draws.
_LATER = {
    "accelerator": "tensorkit.cuda",
    "backends": "tensorkit.backends",
    "cuda": "tensorkit.cuda",
    "explain": "tensorkit.explain",
    "load": "tensorkit.serialization",
    "nn": "tensorkit.nn",
    "optim": "tensorkit.optim",
    "register_device": "tensorkit.devices",
    "save": "tensorkit.serialization",
    "utils": "tensorkit.utils",
    "version": "tensorkit.version",
    "viz": "tensorkit.viz",
}


# Methods that PyTorch has as functions, too.
_METHODS = (
    "detach get_device is_complex is_inference is_nonzero is_signed moveaxis swapdims "
    "abs_ acos_ asin_ atan_ ceil_ clamp_ clip_ cos_ cosh_ detach_ erf_ exp_ expm1_ fill_ floor_ "
    "log10_ log1p_ log2_ log_ neg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinh_ sqrt_ "
    "tan_ tanh_ trunc_ zero_"
)


# not the modules of these names
autograd.gradcheck = _gradcheck  # type: ignore[assignment]
autograd.recording = _recording  # type: ignore[assignment]


def __getattr__(name: str) -> typing.Any:
    if name in _METHODS.split():
        return getattr(Tensor, name)
    if name in _LATER:
        import importlib

        module = importlib.import_module(_LATER[name])
        found = globals()[name] = getattr(module, name, module)
        return found
    raise AttributeError(absent.sentence("torch", name))
