"""What the simulated device accepts, CuPy accepts: its lists are compared with CuPy's signatures.

CuPy can be imported without a GPU, so that this runs on every machine that has it installed:
pip install --no-deps cupy-cuda12x cuda-pathfinder (140 MB).
"""

import importlib
import inspect
import re
from typing import NamedTuple

import numpy as np
import pytest
from kernel_sources import source

from tensorkit import devices, gpu, kernels, simulated

for module in ("nn", "optim"):  # with their kernels
    importlib.import_module(f"tensorkit.{module}")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install cupy-cuda12x")


class Signature(NamedTuple):
    """What a function takes: names by position, names only, and whether any number of arguments."""

    positional: list[str]
    by_name: list[str]
    any_number: bool


def _of_function(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # compiled: the signature is the first line of the docstring
        return _of_text(function.__doc__.split("\n")[0])
    kinds = inspect.Parameter
    return Signature(
        [p.name for p in parameters if p.kind is kinds.POSITIONAL_OR_KEYWORD],
        [p.name for p in parameters if p.kind is kinds.KEYWORD_ONLY],
        any(p.kind is kinds.VAR_POSITIONAL for p in parameters),
    )


def _of_text(line):
    inside = re.search(r"\((.*)\)", line)[1]
    names = [re.search(r"\*?\w+$", each.partition("=")[0])[0] for each in inside.split(", ")]
    star = next((place for place, name in enumerate(names) if name[0] == "*"), None)
    return Signature(names[:star], [] if star is None else names[star + 1 :], star is not None)


def _unknown(accepted, signature, skipped=0):
    """The names on our list that CuPy does not take in this way."""
    positional, _, by_name = accepted.partition("|")
    ours, theirs = positional.split(), signature.positional[skipped:]
    named = [*theirs, *signature.by_name]
    if signature.any_number:  # how many, it does not say; ours may take any number or a few
        return [name for name in by_name.split() if name not in named]
    wrong = [name for place, name in enumerate(ours) if theirs[place : place + 1] != [name]]
    return [*wrong, *(name for name in by_name.split() if name not in named)]


def _find(root, name):
    for part in name.split("."):
        root = getattr(root, part)
    return root


@pytest.mark.parametrize("name", simulated.FUNCTIONS)
def test_a_function_takes_in_cupy_what_it_takes_here(name):
    assert not _unknown(simulated.FUNCTIONS[name], _of_function(_find(cupy, name)))


@pytest.mark.parametrize("name", simulated.METHODS)
def test_a_method_takes_in_cupy_what_it_takes_here(name):
    found = _of_function(getattr(cupy.ndarray, name))
    assert not _unknown(simulated.METHODS[name], found, found.positional[:1] == ["self"])


def test_a_name_that_cupy_lacks_is_found():
    """The test of the tests: an error in a list would be seen."""
    signature = _of_function(cupy.argmax)
    assert _unknown("a axis wrong", signature) == ["wrong"]
    assert _unknown("axis a", signature) == ["axis", "a"]
    assert _unknown("a | wrong", signature) == ["wrong"]
    assert _unknown("axis | order", _of_function(cupy.ndarray.sum), 1) == ["order"]
    assert _unknown("| order", _of_function(cupy.stack)) == ["order"]


@pytest.mark.parametrize("name", simulated.UFUNCS)
def test_a_function_on_elements_is_one_in_cupy(name):
    theirs, ours = getattr(cupy, name), getattr(np, name)
    assert isinstance(theirs, cupy.ufunc)
    assert (theirs.nin, theirs.nout) == (ours.nin, ours.nout)
    assert {"out", "dtype"} <= set(re.findall(r"^    (\w+)\b.*:", theirs.__call__.__doc__, re.M))


def test_only_sums_and_products_reduce():
    """The others have the method, and raise when it is called."""
    library = simulated.Simulated(0, 2**20).xp
    for name in simulated.UFUNCS:
        if name in ("add", "multiply"):
            signature = _of_text(getattr(cupy, name).reduce.__doc__.split("\n")[0])
            assert signature.positional[1:] == ["array", "axis", "dtype", "out", "keepdims"]
            continue
        for ufunc in (getattr(cupy, name), getattr(library, name)):
            with pytest.raises(NotImplementedError):
                ufunc.reduce(None)


def test_arrays_and_dtypes_have_the_attributes_that_ours_have():
    assert not [name for name in simulated._ATTRIBUTES if not hasattr(cupy.ndarray, name)]
    for name, kind in simulated.Library.kinds.items():
        assert getattr(cupy, name) is kind
    assert cupy.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert callable(cupy.may_share_memory)


def test_what_the_backend_of_a_gpu_calls_exists():
    names = (
        "cuda.Device.synchronize cuda.Device.use cuda.Event.record cuda.get_elapsed_time "
        "cuda.set_allocator cuda.MemoryPool.malloc cuda.MemoryPool.used_bytes "
        "cuda.MemoryPool.total_bytes cuda.MemoryPool.free_all_blocks cuda.memory.OutOfMemoryError "
        "cuda.runtime.CUDARuntimeError cuda.runtime.runtimeGetVersion add.at ndarray.data "
        "cuda.runtime.getDeviceProperties _core._routines_linalg.set_compute_type "
        "_core._routines_linalg.COMPUTE_TYPE_TF32 _core._routines_linalg.COMPUTE_TYPE_FP32 "
        "from_dlpack"
    )
    for name in names.split():
        _find(cupy, name)
    assert "order" in _of_function(cupy.asnumpy).positional
    assert "order" in _of_function(cupy.array).positional


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


def test_a_kernel_that_is_no_cuda_is_not_compiled():
    try:
        cupy.cuda.nvrtc.getVersion()
    except RuntimeError:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
    wrong = cupy.cuda.nvrtc.createProgram("__global__ void run() { y = 1; }", "kernel.cu", (), ())
    with pytest.raises(cupy.cuda.nvrtc.NVRTCError):
        cupy.cuda.nvrtc.compileProgram(wrong, ())


def test_without_a_gpu_cupy_gives_no_device():
    if gpu.find():
        pytest.skip("there is a GPU")
    before = devices.cuda.use(None)
    assert devices.cuda.backends() == []
    devices.cuda.use(before)
