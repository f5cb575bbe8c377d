"""The package as a whole: import directions, public names, cost of the import."""

import ast
import functools
import importlib
import math
import operator
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import size

import tensorkit as tk
from tensorkit import absent

PACKAGE = Path(tk.__file__).parent

# Each module may import only modules above it. `viz` is below everything: nothing imports it.
LAYERS = [
    "errors",
    "absent",
    "thread_state",
    "direct_path",
    "overrides",
    "dtypes",
    "layout",
    "devices",
    "cuda.ledger",
    "cuda.backend",
    "cuda.simulated",
    "cuda.cupy_backend",
    "backends",
    "storage",
    "autograd",  # a table of names, which are looked up when asked
    "autograd.grad_mode",
    "base",
    "dispatch_mode",
    "autograd.node",
    "autograd.versions",
    "autograd.hooks",
    "autograd._recording",
    "ops.arguments",
    "ops.copying",
    "definition",
    "refusals",
    "ops.inplace",
    "dispatch_layers",
    "dispatch",
    "ops.comparison",
    "ops.pointwise",
    "ops.arithmetic",
    "ops.activations",
    "ops.views",
    "ops.indexing",
    "ops.gathering",
    "ops.joining",
    "ops.reductions",
    "ops.sorting",
    "ops.matmul",
    "linalg",
    "creation",
    "random",
    "cuda",
    "cuda.kernel_source",
    "cuda.kernel_run",
    "cuda.kernels",
    "autograd.function",
    "library",
    "autograd.engine",
    "autograd.functional",
    "autograd._gradcheck",
    "ops.methods",
    "pickling",
    "printing",
    "_tensor",
    "nn.module",
    "nn.functional",
    "nn.init",
    "nn.layers",
    "nn",
    "optim",
    "utils.data",
    "utils",
    "serialization",
    "viz.drawing",
    "viz.picture",
    "viz.words",
    "viz.charts",
    "viz.boxes",
    "viz.autograd_graph",
    "viz._graph",
    "viz._backward",
    "viz._bars",
    "viz._curves",
    "viz._dispatch",
    "viz._grids",
    "viz._kernel",
    "viz._memory",
    "viz._timeline",
    "viz",
    "explain._broadcast",
    "explain._dispatch",
    "explain._gradients",
    "explain._source",
    "explain",
]


def _torch():
    return pytest.importorskip("torch", reason="needs PyTorch: pip install torch==2.13.0")


def _module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree):
    """(line, module) of each import of tensorkit, those for type checking left out."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                longer = f"{node.module}.{alias.name}"
                is_module = longer.removeprefix("tensorkit.") in LAYERS
                yield node.lineno, longer if is_module else node.module


def test_imports_point_only_upwards_in_the_list_of_layers():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = _module_name(path)
        if name in ("", "ops"):
            continue
        assert name in LAYERS, f"{name} is not in the list of layers"
        for line, imported in _imports(ast.parse(path.read_text())):
            target = imported.removeprefix("tensorkit.")
            if not imported.startswith("tensorkit.") or target == "ops":
                continue
            if LAYERS.index(target) >= LAYERS.index(name):
                wrong.append(f"{path.name}:{line} imports {imported}, a layer below it")
    assert not wrong, "\n".join(wrong)


READ = re.compile(r"^    ([a-z_., *]+?)  +\S.*\((\d+)\)$", re.M)


def test_the_reading_order_has_every_file_of_the_core_after_those_that_it_imports():
    rows = [names.split(", ") for names, _ in READ.findall(tk.__doc__)]
    files = [name.removesuffix(" *") for row in rows for name in row]
    assert files == sorted(files, key=LAYERS.index)
    core = {_module_name(path) for path in size.core_files()} | {"cuda.backend", "dispatch_mode"}
    assert {name for row in rows for name in row if "*" not in name} == core


def test_the_functions_to_read_first_are_where_the_list_says():
    first = tk.__doc__.partition("forty minutes")[2].partition("The whole core")[0]
    rows = re.findall(r"^    ([a-z_.]+)  +(\w\S*(?:, \S+)*)  +\S", first, re.M)
    assert len(rows) > 10
    for module, names in rows:
        for name in names.split(", "):
            operator.attrgetter(name)(importlib.import_module(f"tensorkit.{module}"))


def test_the_minutes_of_the_reading_order_are_those_of_the_files_lines():
    paths = {_module_name(path): path for path in size.sizes()}
    for names, minutes in READ.findall(tk.__doc__):
        if "*" not in names:
            texts = [paths[name].read_text("utf-8") for name in names.split(", ")]
            found = sum(bool(line.strip()) for line in "\n".join(texts).splitlines()) / 25
            assert abs(found - int(minutes)) < 1, names
    together = sum(int(minutes) for _, minutes in READ.findall(tk.__doc__))
    assert f"all together take {together}." in tk.__doc__


@pytest.mark.rest
def test_every_offered_name_is_one_of_pytorchs():
    torch = _torch()
    assert not [name for name in tk.__all__ if not hasattr(torch, name)]
    functions = tk.nn.functional.__all__
    assert not [name for name in functions if not hasattr(torch.nn.functional, name)]


def test_functional_offers_its_own_functions_and_those_of_activations():
    offered, found = {}, tk.nn.functional
    exec("from tensorkit.nn.functional import *", offered)
    homes = (found.__name__, "tensorkit.ops.activations")
    own = {x for x, f in vars(found).items() if getattr(f, "__module__", "") in homes}
    helpers = {x for x in own if x[0] == "_"} | {"log_of_one_more_than_exp"}
    elsewhere = {"sigmoid", "tanh", "softmax", "log_softmax"}
    assert offered.keys() - {"__builtins__"} == own - helpers | elsewhere


def test_importing_brings_only_numpy_and_the_standard_library():
    code = (
        "import sys; import numpy; before = set(sys.modules); import tensorkit; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(n for n in new if n not in sys.stdlib_module_names and n != 'numpy'))"
        "; later = ['viz', 'nn', 'autograd._gradcheck', 'autograd.functional']"
        "; print([name for name in later if f'tensorkit.{name}' in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=PACKAGE.parent,
    ).stdout
    assert shown == "['tensorkit']\n[]\n"


def test_every_public_function_has_a_first_sentence_and_an_example():
    for name in tk.__all__:
        value = getattr(tk, name)
        if callable(value) and type(value).__name__ not in ("DType",):
            doc = value.__doc__ or ""
            assert doc.strip(), name
            assert ">>>" in doc or isinstance(value, type), name


def test_names_of_torch_that_are_missing_say_so():
    with pytest.raises(AttributeError, match=r"median is not part of tensorkit; use x\.sort"):
        _ = tk.median
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tk.nonsense
    with pytest.raises(AttributeError, match=r"torch\.nn\.Conv2d is .* use tk\.nn\.Linear on"):
        _ = tk.nn.Conv2d
    with pytest.raises(AttributeError, match=r"use manual_seed\(seed\), which starts the numbers"):
        _ = tk.Generator().get_state
    with pytest.raises(AttributeError, match="'Generator' object has no attribute 'nonsense'"):
        _ = tk.Generator().nonsense
    with pytest.raises(AttributeError, match=r"no attribute 'SGDD'; dir\(tk\.optim\) lists what"):
        _ = tk.optim.SGDD
    with pytest.raises(
        AttributeError, match=r"Tensor\.storage is not part of tensorkit; use x\.un"
    ):
        _ = tk.ones(2).storage
    with pytest.raises(
        AttributeError, match=r"use two real tensors \(there are no complex numbers"
    ):
        _ = tk.complex64
    with pytest.raises(AttributeError, match=r"module 'tensorkit\.cuda' has no attribute 'nons"):
        _ = tk.cuda.nonsense
    with pytest.raises(AttributeError, match=r"Tensor\.eq_ is .* use x\.copy_\(x == y\)"):
        _ = tk.ones(2).eq_
    with pytest.raises(AttributeError, match=r"Tensor\.amax_ is .* use x = x\.amax\("):
        _ = tk.ones(2).amax_
    with pytest.raises(AttributeError, match=r"module 'tensorkit' has no attribute 'ones_'"):
        _ = tk.ones_
    with pytest.raises(AttributeError, match=r"torch\.expm1_ is .* use x = tk\.from_n"):
        _ = tk.expm1_
    with pytest.raises(AttributeError, match=r"Unflatten is not .* use x\.reshape in forward"):
        _ = tk.nn.Unflatten
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nonsense'"):
        _ = tk.ones(2).nonsense


@pytest.mark.rest
def test_names_said_to_be_missing_are_missing_here_and_there_in_torch():
    torch = _torch()
    for name in absent._INSTEAD:
        assert not hasattr(tk.Tensor, name)
        assert name not in tk.__all__
        assert hasattr(torch, name) or hasattr(torch.Tensor, name), name
    for name in absent._OF_PARTS:
        parts = [
            ("linalg",),
            ("nn", "functional"),
            ("nn",),
            ("nn", "Module"),
            ("nn", "init"),
            ("nn", "Sequential"),
            ("optim",),
            ("optim", "Optimizer"),
        ]
        parts += [("cuda",), ("accelerator",), ("autograd",), ("autograd", "functional")]
        parts += [("utils", "data")]
        in_torch, in_tensorkit = (
            [name in vars(functools.reduce(getattr, part, m)) for part in parts]
            for m in (torch, tk)
        )
        optimizer = torch.optim.SGD([torch.zeros(1)])
        others = (torch.autograd.function.FunctionCtx, torch.Generator, optimizer)
        assert any(in_torch) or any(hasattr(each, name) for each in others), name
        assert not any(in_tensorkit), name


def test_what_is_advised_instead_of_a_missing_name_exists():
    for advice in (*absent._FAMILIES, *absent._PARTS):
        for owner, *names in re.findall(r"\b(tk|x)\.(\w+)(?:\.([A-Z]\w+))?", advice):
            start: object = tk if owner == "tk" else tk.ones(2, 2)
            functools.reduce(getattr, filter(None, names), start)


def test_numpy_has_the_functions_that_are_advised_by_their_own_name():
    (names,) = [names for advice, names in absent._FAMILIES.items() if "of this name" in advice]
    assert [name for name in names.split() if not hasattr(np, name)] == []


CALLS = """
    lerp(x, y, 0.3); diff(m); inner(m, m); inner(x, y); dist(x, y); cdist(m, y[None]); erfc(x)
    exp2(x); logaddexp(x, y); fmod(x, y); bernoulli(ones); atan2(y, x); isin(x, y)
    logit(x); diag_embed(x); broadcast_shapes(a, b)
    unique_consecutive(ones); bucketize(x, boundaries)
    rsqrt(x); expm1(x); log2(x); tan(x); asin(x); acos(x); sinh(x)
    cosh(x); trace(m)
"""


@pytest.mark.rest
@pytest.mark.parametrize("call", re.findall(r"\w+\(.*?\)", CALLS))
def test_what_is_advised_instead_of_a_missing_function_gives_the_same(call):
    torch, name = _torch(), call.partition("(")[0]

    def values(m):
        x, y = m.tensor([0.5, -0.25, 0.75]), m.tensor([0.25, 0.5, 1.0])
        return {
            "x": x,
            "y": y,
            "m": m.stack((x, y)),
            "ones": m.ones(3),
            "boundaries": m.tensor([-0.25, 0.5, 0.6]),
            "a": (3, 1),
            "b": (2,),
            "n": 3,
            "weight": 0.3,
            "tk": tk,
            "torch": torch,
            "numpy": np,
            "math": math,
        }

    own = values(tk)
    if "(ones)" in call:
        own["x"] = own["ones"]
    if name in ("cdist", "trace", "diff") or call == "inner(m, m)":
        own["x"] = own["m"]
    if call == "inner(m, m)":
        own["y"] = own["m"]
    expected = eval(f"torch.{call}", values(torch))
    instead = absent._INSTEAD[name].partition(", which")[0]
    assert np.allclose(eval(instead, own), expected, equal_nan=True)


@pytest.mark.rest
def test_what_writes_in_place_is_a_function_where_it_is_one_in_torch():
    torch = _torch()
    methods = {name for name in dir(torch) if name.endswith("_") and hasattr(tk.Tensor, name)}
    assert not [name for name in methods if not hasattr(tk, name)]
    x = tk.tensor([1.0, 4.0])
    assert tk.sqrt_(x) is x
    assert x.tolist() == [1.0, 2.0]
    assert tk.fill_(x, 3).tolist() == [3.0, 3.0]


@pytest.mark.rest
@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (4, 2), (3, 3, 3)])
def test_the_advice_for_a_diagonal_fills_it_as_fill_diagonal_does(shape):
    torch, x = _torch(), tk.zeros(shape)
    exec(absent._INSTEAD["fill_diagonal_"], {"x": x, "value": 7.0})
    assert x.tolist() == torch.zeros(shape).fill_diagonal_(7.0).tolist()
