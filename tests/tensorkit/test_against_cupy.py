"""What tensorkit asks of CuPy, CuPy has: the names in its code are compared with CuPy's signatures.

They stand in a committed table, so that this runs everywhere; where CuPy is installed it is asked,
too. Which arguments and methods are used, ``fake_cupy`` compares with the table while tests run.
"""

import ast
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from cupy_signatures import as_text, backend_names, committed, installed

import tensorkit as tk
from tensorkit.cuda import cupy_backend, simulated
from tensorkit.devices import register_device

cupy = None
if importlib.util.find_spec("cupy"):
    import cupy
needs_cupy = pytest.mark.skipif(cupy is None, reason="needs CuPy: pip install cupy-cuda12x")


@pytest.fixture(params=["committed", pytest.param("installed", marks=needs_cupy)], scope="module")
def table(request):
    return committed() if request.param == "committed" else installed()


def test_the_package_names_no_function_of_an_array_library_that_cupy_lacks(table):
    """Also where no test calls it: the code is searched for ``xp.name``."""
    known = {name.removeprefix("ufunc ") for name in table} | _OTHERS
    found = []
    for path in {*Path(tk.__file__).parent.rglob("*.py")} - {Path(cupy_backend.__file__)}:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr not in known:
                place = getattr(node.value, "attr", getattr(node.value, "id", None))
                found += [(path.name, node.attr)] if place == "xp" else []
    assert {*found} <= _ON_THE_CPU


_ON_THE_CPU = {("arithmetic.py", "sign"), ("arranging.py", "tri")}  # behind a question for NumPy
_OTHERS = {"linalg", "ndarray", "generic", "__name__"}
_OTHERS |= {"bool_", *(f"{kind}{bits}" for kind in ("int", "float") for bits in (8, 16, 32, 64))}


def test_what_the_backend_of_a_gpu_asks_for_exists(table):
    assert not [name for name in backend_names() if name not in table]
    assert table["add.reduce"].positional == ["array", "axis", "dtype", "out", "keepdims"]
    for name in ("array", "asnumpy"):
        assert "order" in table[name].positional


@needs_cupy
def test_the_committed_table_is_what_the_installed_cupy_says():
    stored, current = committed(), installed()
    if stored["version"] != current["version"]:
        pytest.skip(f"the table is of CuPy {stored['version']}, installed is {current['version']}")
    assert as_text(current) == as_text(stored), "python tests/tensorkit/cupy_signatures.py"


@needs_cupy
def test_dtypes_are_those_of_numpy():
    for name in ("bool_", "uint8", "int64", "float16", "float32", "float64"):
        assert getattr(cupy, name) is getattr(np, name)
    assert cupy.broadcast_shapes((2, 1), (3,)) == (2, 3)


def test_only_sums_and_products_reduce():
    """The others have the method in CuPy, and raise when it is called."""
    library = simulated.Simulated().xp
    for name in ("maximum", "logical_or"):
        for place in (library, *([cupy] if cupy else [])):
            with pytest.raises(NotImplementedError):
                getattr(place, name).reduce(None)


@needs_cupy
def test_without_a_gpu_cupy_gives_no_device():
    if cupy_backend.find():
        pytest.skip("there is a GPU")
    before = register_device("cuda", cupy_backend.find)
    assert not tk.cuda.is_available()
    register_device("cuda", before)
