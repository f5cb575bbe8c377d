"""What the simulated device accepts, CuPy accepts: its lists are compared with CuPy's signatures.

They stand in a committed table, so that this runs everywhere; where CuPy is installed it is asked,
too. What only the installed one can tell is skipped without it.
"""

import ast
import importlib
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from cupy_signatures import Signature, as_text, backend_names, committed, installed
from kernel_sources import source

from tensorkit import devices, gpu, kernels, simulated

for module in ("nn", "optim"):  # with their kernels
    importlib.import_module(f"tensorkit.{module}")
if "GPU_STAND_IN" not in os.environ and importlib.util.find_spec("cupy"):  # it is no CuPy
    import cupy
else:
    cupy = None
needs_cupy = pytest.mark.skipif(cupy is None, reason="needs CuPy: pip install cupy-cuda12x")


@pytest.fixture(params=["committed", pytest.param("installed", marks=needs_cupy)], scope="module")
def table(request):
    return committed() if request.param == "committed" else installed()


def _unknown(accepted, signature):
    """The names on our list that CuPy does not take in this way."""
    positional, _, by_name = accepted.partition("|")
    ours, theirs = positional.split(), signature.positional
    named = [*theirs, *signature.by_name]
    if signature.any_number:  # how many, it does not say; ours may take any number or a few
        return [name for name in by_name.split() if name not in named]
    wrong = [name for place, name in enumerate(ours) if theirs[place : place + 1] != [name]]
    return [*wrong, *(name for name in by_name.split() if name not in named)]


@pytest.mark.parametrize("name", simulated.FUNCTIONS)
def test_a_function_takes_in_cupy_what_it_takes_here(table, name):
    assert not _unknown(simulated.FUNCTIONS[name], table[name])


def test_the_package_names_no_function_of_an_array_library_that_is_not_on_the_list():
    """Also where no test calls it: the code is searched for ``xp.name``."""
    known = {*simulated.FUNCTIONS, *simulated.UFUNCS, *simulated.Library.kinds, *_OF_LIBRARY}
    found = []
    for path in {*Path(simulated.__file__).parent.rglob("*.py")} - {Path(gpu.__file__)}:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr not in known:
                place = getattr(node.value, "attr", getattr(node.value, "id", None))
                found += [(path.name, node.attr)] if place == "xp" else []
    assert {*found} <= _ON_THE_CPU


_ON_THE_CPU = {("arithmetic.py", "sign"), ("arranging.py", "tri")}  # behind a question for NumPy
_OF_LIBRARY = ["linalg", "ndarray", "generic", "broadcast_shapes", "may_share_memory", "__name__"]
_OF_LIBRARY += ["ElementwiseKernel", "RawKernel", "ascontiguousarray"]  # of a GPU's only


@pytest.mark.parametrize("name", simulated.METHODS)
def test_a_method_takes_in_cupy_what_it_takes_here(table, name):
    assert not _unknown(simulated.METHODS[name], table[f"ndarray.{name}"])


def test_a_name_that_cupy_lacks_is_found():
    """The test of the tests: an error in a list would be seen."""
    signature = Signature(["a", "axis", "out"], ["casting"], False)
    assert _unknown("a axis wrong", signature) == ["wrong"]
    assert _unknown("axis a", signature) == ["axis", "a"]
    assert _unknown("a | wrong", signature) == ["wrong"]
    assert _unknown("a | casting axis", signature) == []
    assert _unknown("a b c | order", Signature([], ["out"], True)) == ["order"]


@pytest.mark.parametrize("name", simulated.UFUNCS)
def test_a_function_on_elements_is_one_in_cupy(table, name):
    found = table[f"ufunc {name}"]
    assert len(found.positional) == getattr(np, name).nin
    assert found.by_name == ["dtype", "out"]


def test_what_the_backend_of_a_gpu_asks_for_exists(table):
    names = [*backend_names(), *(f"ndarray.{name}" for name in simulated._ATTRIBUTES)]
    missing = [name for name in names if name not in table]
    if "cuda.cublas.gemmStridedBatchedEx" in missing:  # cuBLAS itself is not installed
        missing = [name for name in missing if not name.startswith("cuda.cublas.")]
    assert not missing
    assert table["add.reduce"].positional == ["array", "axis", "dtype", "out", "keepdims"]
    assert table["ElementwiseKernel"].positional[:6] == [
        "in_params", "out_params", "operation", "name", "reduce_dims", "preamble",
    ]  # fmt: skip
    assert table["RawKernel"].positional[:2] == ["code", "name"]
    assert table["RawKernel.__call__"].positional == ["grid", "block", "args"]
    for name in ("array", "asnumpy"):
        assert "order" in table[name].positional


def test_cublas_takes_a_product_as_ours_is_told(table):
    found = table.get("cuda.cublas.gemmStridedBatchedEx")
    if found is None:
        pytest.skip("cuBLAS is not installed: pip install nvidia-cublas-cu12")
    assert " ".join(found.positional) == (
        "handle transa transb m n k alpha A Atype lda strideA B Btype ldb strideB beta C Ctype ldc "
        "strideC batchCount computeType algo"
    )


@needs_cupy
def test_the_committed_table_is_what_the_installed_cupy_says():
    ours, theirs = committed(), installed()
    if ours["version"] != theirs["version"]:
        pytest.skip(f"the table is of CuPy {ours['version']}, installed is {theirs['version']}")
    ours = {name: told for name, told in ours.items() if name in theirs or "cublas" not in name}
    assert as_text(theirs) == as_text(ours), "python tests/tensorkit/cupy_signatures.py"


def test_only_sums_and_products_reduce():
    """The others have the method in CuPy, and raise when it is called."""
    library = simulated.Simulated(0, 2**20).xp
    for name in set(simulated.UFUNCS) - {"add", "multiply"}:
        for place in (library, *([cupy] if cupy else [])):
            with pytest.raises(NotImplementedError):
                getattr(place, name).reduce(None)


@needs_cupy
def test_dtypes_are_those_of_numpy():
    for name, kind in simulated.Library.kinds.items():
        assert getattr(cupy, name) is kind
    assert cupy.broadcast_shapes((2, 1), (3,)) == (2, 3)


def _programs():
    """The source and the entry of each kernel, for each kind of number."""
    found = {}
    for kernel in kernels.ALL:
        for kind in ("float", "double"):
            if isinstance(kernel, kernels.Rows):
                found[kernel.name, kind] = kernel.source(kind)
                continue
            found[kernel.name, kind] = source(kernel, kind), "run"
            if kernel.name in ("sgd", "sgd_momentum", "adam", "amsgrad"):
                found[f"{kernel.name} on lists", kind] = kernel.source_on_lists(kind)
    return found


@needs_cupy
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("program", _programs(), ids=" ".join)
def test_a_kernel_can_be_compiled_for_a_gpu(program, architecture):
    """By NVRTC, which needs no GPU; that a GPU computes the same, `make test-gpu` shows."""
    try:
        cupy.cuda.nvrtc.getVersion()
    except RuntimeError:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
    code, entry = _programs()[program]
    made = cupy.cuda.nvrtc.createProgram(code, "kernel.cu", (), ())
    options = (f"--gpu-architecture={architecture}", "-std=c++17")  # as CuPy's RawKernel has it
    cupy.cuda.nvrtc.compileProgram(made, options)
    assert f".text.{entry}".encode() in bytes(cupy.cuda.nvrtc.getCUBIN(made))


@needs_cupy
def test_a_kernel_that_is_no_cuda_is_not_compiled():
    try:
        cupy.cuda.nvrtc.getVersion()
    except RuntimeError:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
    wrong = cupy.cuda.nvrtc.createProgram("__global__ void run() { y = 1; }", "kernel.cu", (), ())
    with pytest.raises(cupy.cuda.nvrtc.NVRTCError):
        cupy.cuda.nvrtc.compileProgram(wrong, ())


@needs_cupy
def test_without_a_gpu_cupy_gives_no_device():
    if gpu.find():
        pytest.skip("there is a GPU")
    before = devices.cuda.use(None)
    assert devices.cuda.backends() == []
    devices.cuda.restore(before)
