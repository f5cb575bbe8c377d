"""What the layers of a call refuse is refused on the direct path as well."""

import gc
import random

import pytest

import tensorkit as tk
from tensorkit import direct_path
from tensorkit.definition import Definition
from tensorkit.nn import functional as F

SHAPES = [(), (0,), (1,), (2,), (3,), (2, 3), (3, 2), (0, 3), (2, 2, 3), (2, 3, 2)]
DTYPES = [tk.float32, tk.float32, tk.int64, tk.bool]
VALUES = {bool: [True, False], int: [-1, 0, 1, 2, 5], str: ["mean", "sum", "none", "floor"]}
OTHER_VALUES = [None, 0, 1, -2, 3, 2.5, (0,), (1, 0), (2, -1), (0, 0), (3,), (6,), (slice(1), 0)]


def _checked():
    """The operations that declare a check."""
    assert F.mse_loss  # imported, so that its operations are there
    found = [x for x in gc.get_objects() if type(x) is Definition and x.check]
    found = [each for each in found if each.forward.__module__.startswith("tensorkit.")]
    return sorted(found, key=lambda definition: definition.name)


def _arguments(definition, draw):
    args, options = [], {}
    for _ in range(definition.tensors):
        x = tk.ones(draw.choice(SHAPES)).to(draw.choice(DTYPES))
        args.append(x.t() if x.ndim == 2 and draw.random() < 0.3 else x)
    if definition.promote and draw.random() < 0.2:
        args[-1] = draw.choice([2, -1, 1.5, True])
    for name in definition.options:
        if name == definition.variadic:
            args += [draw.choice([-1, 0, 1, 2, 3, 6]) for _ in range(draw.randint(1, 3))]
        elif name not in definition.defaults or draw.random() < 0.5:
            annotation = definition.forward.__annotations__.get(name)
            options[name] = draw.choice(VALUES.get(annotation, OTHER_VALUES))
    return args, options


def _found(definition, args, options):
    try:
        return repr(definition.call(*args, **options))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("definition", _checked(), ids=lambda definition: definition.name)
def test_what_a_check_refuses_is_refused_on_the_direct_path_too(definition):
    draw = random.Random(definition.name)
    for _ in range(200):
        args, options = _arguments(definition, draw)
        direct = _found(definition, args, options)
        direct_path.close()
        try:
            layers = _found(definition, args, options)
        finally:
            direct_path.reopen()
        assert direct == layers, (args, options)


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        *[(name, (0,), {"keepdim": 1}) for name in ("sum", "mean", "amax", "amin", "std", "prod")],
        *[(name, (0,), {"keepdim": 1}) for name in ("max", "min", "argmax", "argmin", "all")],
        ("topk", (1,), {"sorted": 1}),
        ("topk", (True,), {}),
        ("topk", (), {"k": True}),
        ("sort", (), {"descending": None}),
        ("isclose", (tk.ones(2, 2),), {"equal_nan": 1}),
        ("cumsum", (None,), {}),
        ("cumsum", (), {"dim": None}),
        ("tril", (), {"diagonal": True}),
    ],
)
def test_an_option_of_another_class_is_refused_as_in_pytorch(name, args, options):
    with pytest.raises(TypeError, match=r"must be an? (bool|int)"):
        getattr(tk.ones(2, 2), name)(*args, **options)
