"""tensorkit: PyTorch's tensors on NumPy, small enough to be read.

>>> import tensorkit as tk
>>> tk.tensor([1., 2., 3.]) * 10
tensor([10., 20., 30.])

If you have forty minutes, read these functions, from the call to the gradient:

    ops.arithmetic     add                the body runs only with alpha; else NumPy's ``add`` does
    dispatch           op, _of_two        ``x + y`` on the CPU goes no further
    dispatch_layers    call_layers        for a GPU, a mode, dtypes that differ
    dispatch_layers    find_kernel        from a table, see ``Definition.kernels``
    layout             broadcast_shapes   the commonest refusal
    errors             message            how a refusal is worded
    autograd.node      add_node           mostly ``add_node_quickly`` in ``quick_form`` runs instead
    autograd.node      Node.value         what a node saved; refused if it was written to since
    autograd.versions  make_view          a view, on the storage of its base
    autograd.versions  bump_version       a write in place
    autograd.node      Rule.gradients     the formulas of one node
    autograd.engine    _Run.__init__      with ``create_graph`` gradients are tensors, not arrays,
    autograd.engine    _Run.collect       and what the formulas do is recorded
    autograd.engine    _Run._walk         the graph, from the results to the leaves
    ops.reductions     sum_to_shape       the way back from broadcasting

The whole core, in the order to read it: each of these files comes after those of the list that it
imports (the order of all files is in tests/tensorkit/test_package.py). A minute is 25 lines,
docstrings and comments among them; all together take 200. Of files marked with * read what is named
here.

    errors                               the words of errors                                  (5)
    absent *                             ``known_options``: a missing option is refused       (1)
    thread_state                         what a thread has switched on; which code is whose   (1)
    direct_path, overrides               NumPy without warnings; own functions in the library (5)
    dtypes, layout                       types of elements; shapes and strides as numbers    (14)
    devices, cuda.backend                where memory is, and what computes there            (14)
    cuda.simulated *                     ``Array`` and ``Library``: the simulated GPU         (3)
    storage                              memory that tensors share; how often it was written  (3)
    autograd, autograd.grad_mode         whether operations are recorded                      (6)
    base, dispatch_mode                  what a tensor is made of; blocks that see all calls  (9)
    autograd.node                        the graph: a node, and how a result gets one        (17)
    autograd.versions                    views, versions, writes in place                     (6)
    autograd.hooks, autograd._recording  ``.grad`` and hooks; where tensors come from        (14)
    ops.arguments, ops.copying           dtypes that differ, numbers; devices that differ    (10)
    definition, refusals                 what ``@op`` declares; why a call is refused        (13)
    ops.inplace                          checks before a write in place, and the write        (5)
    dispatch_layers, dispatch            how a call finds its kernel; the direct path        (20)
    ops.arithmetic *                     ``add``: forward, gradient and example               (2)
    ops.views *, ops.indexing *          ``view`` and ``getitem``                             (3)
    ops.reductions *                     ``sum_to_shape``: the way back from broadcasting     (2)
    autograd.function, autograd.engine   operations of the user's; ``backward()``            (21)
    autograd.functional, autograd._gradcheck  derivatives of functions; a check of gradients  (7)
    ops.methods *, _tensor               operations as methods; the class                    (19)

nn and optim are made of all this.
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
    float16,
    float32,
    float64,
    get_default_dtype,
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
from tensorkit.ops.arguments import result_type
from tensorkit.ops.comparison import where
from tensorkit.ops.joining import cat, stack
from tensorkit.ops.matmul import einsum
from tensorkit.ops.methods import FUNCTIONS as _FUNCTIONS
from tensorkit.ops.views import split
from tensorkit.printing import set_printoptions
from tensorkit.random import (
    Generator,
    default_generator,
    initial_seed,
    manual_seed,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    seed,
)

if typing.TYPE_CHECKING:
    from tensorkit import library as library
    from tensorkit import nn as nn
    from tensorkit import optim as optim
    from tensorkit import utils as utils
    from tensorkit.serialization import load, save

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64

concat = concatenate = cat
newaxis = None

__version__ = "0.1.0"

# The methods that PyTorch has as functions, too: ``tk.exp(x)`` is ``x.exp()``.
globals().update(_FUNCTIONS)

# What stands above is what the library offers, under PyTorch's names; forms in place belong to
# their operations.
__all__ = [
    name
    for name, offered in globals().items()
    if "_" not in (name[0], name[-1]) and not isinstance(offered, types.ModuleType)
]

_OF_TENSORS = "detach is_floating_point is_inference numel"
globals().update({name: getattr(Tensor, name) for name in _OF_TENSORS.split()})


# Looked up when asked: not every program trains, saves or draws.
_LATER = {
    "accelerator": "tensorkit.cuda",
    "backends": "tensorkit.backends",
    "cuda": "tensorkit.cuda",
    "explain": "tensorkit.explain",
    "library": "tensorkit.library",
    "load": "tensorkit.serialization",
    "nn": "tensorkit.nn",
    "optim": "tensorkit.optim",
    "register_device": "tensorkit.devices",
    "save": "tensorkit.serialization",
    "utils": "tensorkit.utils",
    "version": "tensorkit.backends",
    "viz": "tensorkit.viz",
}


def __getattr__(name: str) -> typing.Any:
    if name in _LATER:
        import importlib

        module = importlib.import_module(_LATER[name])
        found = globals()[name] = getattr(module, name, module)
        return found
    raise AttributeError(absent.sentence("torch", name))
