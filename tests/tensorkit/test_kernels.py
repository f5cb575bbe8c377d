"""Kernels in Python: what they compute, what is counted, what a GPU is given."""

import linecache
import math
import warnings
from types import ModuleType

import numpy as np
import pytest
from kernel_texts import BARRIER, GRID, SHARED, body

import tensorkit as tk
from course.exercises import ch12_kernels
from tensorkit import cuda
from tensorkit.cuda.cupy_backend import missing
from tensorkit.errors import KernelError


@pytest.mark.parametrize("n", [1, 31, 32, 100])
@pytest.mark.parametrize(("blocks", "threads"), [(1, 1), (3, 7), (4, 64)])
def test_every_element_is_computed_once_whatever_the_launch(device, n, blocks, threads):
    step = "cuda.gridDim.x * cuda.blockDim.x"
    k = body(f"for i in range(cuda.grid(1), n, {step}):", "    out[i] = x[i] * 2.0 + i")
    x = tk.rand(n)
    out = tk.full((n,), -1.0, device=device)
    launch = k[blocks, threads](x.cuda(), out, n)
    assert np.array_equal(out.cpu().numpy(), (x * 2 + tk.arange(n)).numpy())
    assert launch.counts.loads == launch.counts.stores == n == launch.least.loads


def test_a_size_may_be_a_number_of_numpys(device):
    out = tk.zeros(8, device=device)
    launch = body(GRID, "out[i] = 1.0", parameters="out")[np.int64(2), 4](out)
    assert (launch.blocks, out.tolist()) == ((2, 1), [1.0] * 8)


def test_a_kernel_in_two_dimensions_writes_through_views(device):
    k = body("j, i = cuda.grid(2)", "if i < n and j < n:", "    out[i, j] = x[j, i]")
    x, out = tk.rand(5, 5), tk.zeros(8, 8, device=device)
    launch = k[(2, 3), (3, 2)](x.cuda().T, out[1:6, 2:7], 5)
    assert repr(launch).startswith("<k[(2, 3), (3, 2)]: 25 loads, 25 stores, ")
    assert (out.cpu()[1:6, 2:7] == x).all()
    assert out.sum().item() == pytest.approx(x.sum().item(), rel=1e-6)


def test_a_launch_is_a_write_and_is_noticed_by_autograd(device):
    k = body(GRID, "x[i] = 1.0", parameters="x")
    x = tk.rand(4, device=device)
    w = tk.rand(4, device=device, requires_grad=True)
    loss = (w * x).sum()
    k[1, 4](x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        k[1, 4](w)
    with pytest.raises(TypeError, match="requires grad, and autograd does not see"):
        k[1, 4](w * 1)


def test_a_refused_launch_may_have_written_and_is_noticed_by_autograd(device):
    k = body(GRID, "x[i] = 100.0", "y = x[i + 1]", parameters="x")
    x = tk.ones(4, device=device)
    loss = (tk.ones(4, device=device, requires_grad=True) * x).sum()
    with pytest.raises(KernelError, match="outside of x"):
        k[1, 4](x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# What CuPy's translation of the line gives, compiled by a C++ compiler
AS_COMPILED = {
    "y = 16777216.0; out[0] = y + 1.0 - y": 0,
    "y = n + 16777216.0; out[0] = y - 16777216.0": 0,
    "out[0] = math.exp(x[0]) / math.exp(x[0])": math.nan,
    "out[0] = math.exp(1000.0)": math.inf,
    "out[0] = math.log(x[2])": -math.inf,
    "out[0] = math.sin(16777217) - math.sin(16777216.0)": 0,
    "out[0] = max(x[0], 16777217) - 16777216": 0,
    "out[0] = min(16777217, n + 1e9) - 16777216": 0,
    "out[0] = max(0.0, x[1])": math.nan,
    "out[0] = min(0.0, x[1])": math.nan,
    "out[0] = x[0] or 5": 1,
    "y = x[0] > 0 and 3; out[0] = y": 1,
    "y = cuda.blockDim.x > 0; out[0] = y + y": 1,
    "out[0] = (cuda.blockDim.x > 0) + (cuda.blockDim.x > 0)": 1,
    "out[0] = (cuda.blockDim.x > 0) + abs(cuda.blockDim.x > 0)": 1,
    "y = 16777216.0; y += whole[0] * 1.0; y += whole[0] * 1.0; out[0] = y - 16777216.0": 0,
}


@pytest.mark.parametrize("lines", AS_COMPILED)
def test_numbers_are_those_of_the_compiled_text_where_python_has_others(device, lines):
    out, whole = tk.zeros(1, device=device), tk.ones(1, dtype=tk.int64, device=device)
    x = tk.tensor([100.0, math.nan, 0.0], device=device)
    body(*lines.split("; "), parameters="x, out, n, whole")[1, 1](x, out, 1.0, whole)
    assert np.array_equal(out.cpu().numpy(), [np.float32(AS_COMPILED[lines])], equal_nan=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("out[0] = 2.5", "Cannot cast"),
        ("cuda.atomic_add(out, 0, 2.5)", "Cannot cast"),
        ("out[0] = int(2.0 * (n + 1) ** -1)", "negative integer powers"),
        ("n **= -1", "negative integer powers"),
    ],
)
def test_numbers_that_do_not_fit_an_integer_are_refused(device, line, words):
    with pytest.raises(KernelError, match=words):
        body(line)[1, 1](tk.zeros(1).cuda(), tk.zeros(1, dtype=tk.int32).cuda(), 2)


@pytest.mark.parametrize(
    "line", ["out[0] = h * h % 1000", "out[0] = 1.0 if h * h > 0 else 0.0", "h *= h"]
)
def test_an_integer_that_a_gpu_would_wrap_around_is_refused(device, line):
    k = body("h = n * 2654435761", line)
    with pytest.raises(KernelError, match="outside of int64") as raised:
        k[1, 1](tk.zeros(1, device=device), tk.zeros(1, device=device), 7)
    assert raised.value.line == 4


LARGEST = 2**31 - 1


# CuPy 14.2 writes `(long long)(x_[0]) + 1ll`, and `(float)(x_[0]) == y_[0]`
@pytest.mark.parametrize(
    ("line", "dtype", "x", "y", "expected"),
    [
        ("out[0] = x[0] + 1", tk.int32, LARGEST, 0.0, 2**31),
        ("out[0] = x[0] * n", tk.int32, LARGEST, 0.0, 2 * LARGEST),
        ("out[0] = x[0] << 20", tk.int32, 2**20, 0.0, 2**40),
        ("out[0] = int(x[0] == y[0])", tk.int64, 2**24 + 1, 2.0**24, 1),
        ("out[0] = int(x[0] == y[0])", tk.int32, 2**24 + 1, 2.0**24, 1),
        ("out[0] = int(x[0] + y[0])", tk.int64, 2**24 + 1, 1.0, 2**24),
    ],
)
def test_an_element_of_integers_meets_others_as_on_a_gpu(device, line, dtype, x, y, expected):
    arrays = tk.tensor([x], dtype=dtype, device=device), tk.tensor([y], device=device)
    out = tk.zeros(1, dtype=tk.int64, device=device)
    body(line, parameters="x, y, out, n")[1, 1](*arrays, out, 2)
    assert out.item() == expected


@pytest.mark.parametrize(
    "line",
    [
        "out[0] = x[0] + 1",
        "out[0] += x[0]",
        "out[0] = 1 // out[0]",
        "out[0] = x[0] + (n > 0)",
        "out[1] += n > 0",
        "count = 0; count += n > 5; out[0] = n // count",
        "count = 0; count += n > 5; out[0] = n % count",
        "cuda.atomic_add(out, 0, x[0] + 1)",
        "cuda.atomic_add(out, 1, 1)",
    ],
)
def test_an_integer_that_does_not_fit_is_refused(device, line):
    x = tk.tensor([LARGEST], dtype=tk.int32, device=device)
    out = tk.tensor([0, LARGEST], dtype=tk.int32, device=device)
    with pytest.raises(KernelError, match=r"out of bounds for int32|by zero"):
        body("out[0] += x[0]" if "+= x" in line else "pass", *line.split("; "))[1, 1](x, out, 2)


# Counted


@pytest.mark.parametrize("step", [1, 2, 3, 32, 33])
def test_transactions_are_the_pieces_of_128_bytes(device, step):
    k = body(GRID, "value = x[i * n]", parameters="x, n")
    launch = k[1, 32](tk.zeros(32 * step, device=device), step)
    assert launch.counts.transactions == len({4 * step * i // 128 for i in range(32)})


@pytest.mark.parametrize("step", [1, 2, 3, 16, 32, 33])
def test_bank_conflicts_are_further_words_of_one_bank(device, step):
    k = body("s = cuda.shared(1057, tk.float32)", "s[cuda.threadIdx.x * n] = 1.0", parameters="n")
    words = [step * i % 32 for i in range(32)]
    expected = max(words.count(word) for word in words) - 1
    assert k[1, 32](step).counts.bank_conflicts == expected


def test_idle_threads_are_those_of_a_warp_that_others_wait_for(device):
    k = body(GRID, "if i % 2 == 0:", "    out[i] = 1.0", parameters="out")
    assert k[1, 40](tk.zeros(40, device=device)).counts.idle_threads == 20


def test_the_profile_shows_launches_with_their_lines_and_the_least(device):
    k = body(*BARRIER)
    with cuda.profile() as profile:
        k[1, 8](tk.ones(8, device=device), tk.zeros(8, device=device), 8)
    shown = repr(profile).splitlines()
    assert "k[1, 8](tk.ones(8, device=device)" in shown[1]
    assert shown[1].split()[-6:] == ["(8)", "2", "(2)", "0", "0", "1"]


@pytest.mark.parametrize(
    "line", ["x[i] = 1.0", "x[i] += 1.0", "x[33 * i] = x[i]", "cuda.atomic_add(x, i, 1.0)"]
)
def test_the_least_is_no_more_than_what_was_used(device, line):
    launch = body(GRID, line, parameters="x")[1, 32](tk.zeros(4096, device=device))
    assert all(least <= now for least, now in zip(launch.least, launch.counts, strict=True))


# On a GPU

OF_THE_CHAPTER = {
    name: value
    for module in vars(ch12_kernels).values()
    if type(module) is ModuleType
    for name, value in vars(module).items()
    if type(value) is cuda.Kernel
}


@pytest.mark.parametrize("name", OF_THE_CHAPTER)
def test_cupy_makes_cuda_of_the_kernels_of_the_chapter(name):
    """CuPy can be asked for the text in CUDA's language without a GPU."""
    cupy, jit, _compile, _cuda_types = (
        pytest.importorskip(name, reason="needs CuPy: pip install cupy-cuda12x")
        for name in ("cupy", "cupyx.jit", "cupyx.jit._compile", "cupyx.jit._cuda_types")
    )
    source = OF_THE_CHAPTER[name].source
    text, file = source.for_cupy, f"<{name}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = {"jit": jit, "numpy": np, "cupy": cupy}
    exec(compile(text, file, "exec"), names)
    kinds = [
        _cuda_types.CArray(np.dtype("f"), source.n_dims[name], True, False)
        if name in source.arrays
        else _cuda_types.Scalar(np.int64)
        for name in source.parameters
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = _compile.transpile(
            names[f"{source.name}_"],
            ['extern "C"', "__global__"],
            "cuda",
            tuple(kinds),
            _cuda_types.void,
        )
    assert f"__global__ void {name}_(" in made.code
    assert made.code.count("__shared__") == len(source.shared)


OTHERWISE_FOR_CUPY = {
    "'Nothing'": "pass",
    "y = math.exp(n)": "cupy.exp(numpy.float32(n_))",  # which else is a float16
    "y = n / 2": "numpy.float32(n_ / numpy.int64(2))",  # which else is a float64
    "y = 2 and 3": "numpy.bool_(numpy.int64(2) and numpy.int64(3))",  # which else is 3
}


@pytest.mark.parametrize("line", OTHERWISE_FOR_CUPY)
def test_cupy_is_given_a_text_that_computes_in_float32(line):
    text = body(line).source.for_cupy
    assert OTHERWISE_FOR_CUPY[line] in text
    compile(text, "k", "exec")


def test_a_gpu_is_given_no_names_but_cupys():
    text = body(*SHARED, "s[t] = math.exp(x[t]) + SIZE", "out[cuda.grid(1)] = abs(s[0])").source
    known = {"jit", "numpy", "cupy", "x_", "out_", "n_", "s_", "t_", "k_"}  # no words of C++
    code = compile(text.for_cupy, "k", "exec").co_consts[0]
    assert {*code.co_names, *code.co_varnames} - known <= {
        *("shared_memory", "float32", "int64", "threadIdx", "grid", "exp", "abs"),
        "x",
    }


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
@pytest.mark.parametrize("id", ["grid-stride", "tree-sum", "tiled-matmul", "softmax-rows"])
def test_a_kernel_of_the_chapter_gives_on_the_gpu_what_it_gives_on_the_simulated_one(id):
    from course.notebook.exercise import Draw, load

    exercise = load()[id]
    for given in exercise.cases(Draw(id)):
        blocks, threads, *values = given.args
        expected = exercise.expected(*given.args)
        moved = [value.cuda() if isinstance(value, tk.Tensor) else value for value in values]
        if blocks and 0 not in np.shape(expected):
            found = exercise.reference[blocks, threads](*moved)[3][exercise.filled].cpu()
            assert np.allclose(found.numpy(), expected.numpy(), rtol=1e-5), given.label
