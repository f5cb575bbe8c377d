"""Kernels in Python: what they compute, what is refused, what is noticed, what is counted."""

import itertools
import linecache
import math
import warnings
from types import ModuleType

import numpy as np
import pytest

import tensorkit as tk
from course.exercises import ch12_kernels
from tensorkit import cuda
from tensorkit.cuda.cupy_backend import missing
from tensorkit.cuda.kernel_run import Memory
from tensorkit.errors import KernelError

_numbers = itertools.count()


def kernel_of(text):
    """The kernel that a text defines, as a cell of a notebook would."""
    file = f"<kernel {next(_numbers)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = {"cuda": cuda, "tk": tk, "math": math, "SIZE": 8}
    names |= {"OUTSIDE": tk.ones(2), "ARRAY": np.ones(2)}
    exec(compile(text, file, "exec"), names)
    return names["k"]


def body(*lines, parameters="x, out, n"):
    return kernel_of("\n    ".join([f"@cuda.kernel\ndef k({parameters}):", *lines]) + "\n")


@pytest.fixture
def device():
    """Every test on a device of its own, the seed of the threads' order included."""
    tk.manual_seed(0)
    with cuda.simulate():
        yield "cuda"


GRID = "i = cuda.grid(1)"


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


# Refused when it is defined

REFUSED = {
    "return x[0]": "a kernel returns nothing",
    "print(x[0])": r"print\(x\[0\]\) is nothing that both",
    "values = [0, 1]": "a thread has no lists",
    "values = [j for j in range(3)]": "a thread has no lists",
    "total = OUTSIDE[0]": "OUTSIDE is no argument and no shared array",
    "total = OUTSIDE": "OUTSIDE is no number and no argument",
    "total = ARRAY.x": "ARRAY.x is no number and no argument",
    "k[1, 1](x, out, n)": "nothing that both devices understand",
    "k(x, out, n)": r"k\(x, out, n\) is nothing that both",
    "total = round(2.5)": r"round\(2.5\) is nothing",
    "total = x.sum()": r"x.sum\(\) is nothing",
    "total = x[0:2]": "a thread works on single elements",
    "if 0 < n < 3: out[0] = 1.0": "one comparison at a time",
    "for value in x: out[0] = value": "a loop goes over a range",
    "for j in range(stop=3): out[0] = 1.0": "a loop goes over a range",
    "a = b = 0.0": "one name is assigned at a time",
    "a, b = 0.0, 1.0": "a thread has no tuples",
    "total: float = 0.0": "float = 0.0` is not understood",
    "text = 'a'": "a kernel computes with numbers",
    "total = True + True": "a kernel computes with numbers",
    "y = x": "x is an array",
    "z = 1.0 @ 2.0": "`@` is for tensors",
    "assert n": "`assert n` is not understood",
    "y = f'{n}'": "`f'{n}'` is not understood",
    "while 1: out[0] = 1.0": "a condition with a name",
    "while True: out[0] = 1.0": "a condition with a name",
    "import math": "`import math` is not understood",
    "with cuda.simulate(): out[0] = 1.0": "`with cuda.*` is not understood",
    "i = cuda.grid(3)": r"cuda.grid\(3\) is nothing",
    "i = cuda.grid(2)": r"cuda.grid\(2\) is nothing",
    "i, j, m = cuda.grid(2)": r"cuda.grid\(2\) is nothing",
    "cuda.seen = 1.0": "cuda.seen is no number and no argument",
    "s = t = cuda.shared(8, tk.float32)": "one name is assigned at a time",
    "i = cuda.threadIdx": "is no number and no argument",
    "i = cuda.threadIdx.z": r"is no number and no argument(?s:.)*Try: i = cuda.threadIdx.x, or .y",
    "y = x[n][n + 1]": r"x\[n\] is no argument(?s:.)*Try: x\[n, n \+ 1\]",
    "s = cuda.shared(n, tk.float32)": "constant sizes",
    "if n: s = cuda.shared(8, tk.float32)": "no if or loop",
    "s = cuda.shared((200, 100), tk.float32)": "at most 49,152 bytes",
    "s = cuda.shared(8, tk.float32); s = cuda.shared(8, tk.float32)": "a new name",
    "m = ~n": "`~` of a truth value is another number",
    "out[0] = undefined": "undefined is no number and no argument",
    "cuda.atomic_add(out, 0)": r"atomic_add\(out, 0\) is nothing",
    "cuda.atomic_add(0, out, 1.0)": r"atomic_add\(0, out, 1.0\) is nothing",
    "cuda.atomic_add(out, 1.0, 0)": r"an index is an integer(?s:.)*atomic_add\(x, index, value",
    "for x[0] in range(3): out[0] = 1.0": "a loop goes over a range",
    "for j in range(): out[0] = 1.0": "a loop goes over a range",
    "y = math.exp()": r"math.exp\(\) is nothing",
    "y = max(n)": r"max\(n\) is nothing(?s:.)*Try: max\(a, b\)",
    "y = int(n, 2)": r"int\(n, 2\) is nothing",
    "y = len(x)": r"len\(x\) is nothing(?s:.)*Try: def kernel\(x, out, n\):",
    "y = x.shape[0]": "x.shape is no argument(?s:.)*sizes are parameters too",
    "x = cuda.shared(8, tk.float32)": "a new name",
    "s = cuda.shared(0, tk.float32)": "constant sizes",
    "s = cuda.shared(8, tk.float16)": r"known dtype",
    "s = cuda.shared(8, tk.int64); cuda.atomic_add(s, 0, 1)": "adds to float32 and int32",
    # kinds that CuPy takes for types that do not fit
    "y = x[n < 2]": "an index is an integer, and this one is a truth value",
    "y = x[n / 2]": "an index is an integer, and this one is a float",
    "for j in range(n / 2): out[0] = 1.0": "an index is an integer, and this one is a float",
    "y = 1 if n < 2 else 2.0": "of an integer and a float",
    "y = x[0] if n < 2 else 0": "of an element of an array and an integer",
    "y = 1 if SIZE > 4 else 2": "the condition is a constant",
    "y = -(n < 2)": "`-` is for numbers, and this is a truth value",
    "y = (n < 2) - (n > 5)": "`-` is for numbers",
    "y = n << 2.0": "are for integers",
    "y = 0; y += x[0]": "y begins as an integer, .* and is given an element of an array",
    "y = 0; y = min(y, math.exp(n))": "y begins as an integer, .* and is given a float",
    "y = cuda.grid(1) > 3; y = abs(-2)": "y begins as a truth value, .* and is given an integer",
    "y = z; z = 1.0": "z is no number and no argument here",
    "y = y + 1.0; y = 0.0": "y is no number and no argument here",
    "y = max(x[n + j] for j in range(3))": "range.*` is not understood",
    "row = n; y = max([x[row] for j in range(3)])": "a thread has no lists",
    "i = threadIdx.x": r"Try: i = cuda.threadIdx.x, or .y",
    "syncthreads()": r"Try: cuda.syncthreads\(\)",
    "i = grid(1)": r"Try: i = cuda.grid\(1\)",
    "total = total + 1; total = 3": "total begins as a float, .* and is given an integer",
    "for total in range(3): out[0] = 1.0": "total begins as a float",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_the_devices_do_not_both_understand_is_refused_with_its_line(line):
    with pytest.raises(KernelError, match=REFUSED[line]) as raised:
        body("total = 0.0", line, "out[1] = x[1]")
    assert raised.value.line == 4
    assert "\nTry: " in str(raised.value)


def test_recursion_within_a_function_is_refused_with_its_line():
    with pytest.raises(KernelError, match=r"k\[1, 1\]\(x\) is nothing(?s:.)*while") as raised:
        kernel_of("def outer():\n    @cuda.kernel\n    def k(x):\n        k[1, 1](x)\nouter()\n")
    assert raised.value.line == 4


def test_a_number_of_a_module_is_a_float_where_it_is_one(device):
    k = body(
        "best = -math.inf", "for i in range(n):", "    best = max(best, x[i])", "out[0] = best"
    )
    out = tk.zeros(1, device=device)
    k[1, 1](tk.tensor([2.0, 5.0], device=device), out, 2)
    assert out.item() == 5


@pytest.mark.parametrize("line", ["try:", "while n > 0:"])
def test_what_stands_in_two_lines_is_refused_too(line):
    end = "    break" if "while" in line else "    out[0] = 1.0\n    except ValueError: pass"
    with pytest.raises(KernelError, match=r"`(try:|break)` is not"):
        body(line, end)


def test_a_shared_array_is_indexed_in_all_its_dimensions():
    with pytest.raises(KernelError, match="s has 2 dimensions elsewhere, and 1 here"):
        body("s = cuda.shared((2, 3), tk.float32)", "s[0] = 1.0")


def test_parameters_may_have_annotations(device):
    k = body("out[0] = n", parameters="out: 'a tensor', n: int")
    out = tk.zeros(1, dtype=tk.int32, device=device)
    k[1, 1](out, 3)
    assert out.item() == 3


async def waits(out):
    out[0] = 1.0


@pytest.mark.parametrize(
    "function", [waits, 3, max, int, None], ids=["async def", "3", "max", "int", "brackets"]
)
def test_a_kernel_is_a_function_with_a_text(function):
    with pytest.raises(KernelError, match=r"is not found(?s:.)*without brackets"):
        cuda.kernel(function)


def test_parameters_are_plain():
    with pytest.raises(KernelError, match="no defaults"):
        body("x[0] = 1.0", parameters="x, n=3")


# Refused when it is launched

K = body("cuda.atomic_add(out, 0, x[0] + n)")


def tensors():
    return tk.ones(2, device="cuda"), tk.zeros(2, device="cuda")


LAUNCHES = {
    "no blocks": (lambda x, out: K[0, 32](x, out, 1), ValueError, r"least one(?s:.)*\[max\(1, -"),
    "negative": (lambda x, out: K[1, -1](x, out, 1), ValueError, "at least one"),
    "a float": (lambda x, out: K[1.0, 32](x, out, 1), ValueError, "an integer"),
    "one size": (lambda x, out: K[32](x, out, 1), ValueError, "two sizes"),
    "no sizes": (lambda x, out: K(x, out, 1), TypeError, "blocks and threads are missing"),
    "three sizes": (lambda x, out: K[(1, 1, 1), 1](x, out, 1), ValueError, "or a pair"),
    "too many threads": (lambda x, out: K[1, 1025](x, out, 1), RuntimeError, "invalid config"),
    "too few arguments": (lambda x, out: K[1, 1](x, out), TypeError, "takes 3 arguments but 2"),
    "of the host": (
        lambda x, out: K[1, 1](x.cpu(), out, 1),
        RuntimeError,
        r"same device.*(?s:.)*x\.to\('cuda'\)    # line \d+: .*K\[1, 1\]",
    ),
    "no tensor": (lambda x, out: K[1, 1](1.0, out, 1), TypeError, "x must be Tensor, not float"),
    "of the host, and not used": (
        lambda x, out: body("y = 1.0", parameters="x")[1, 1](x.cpu()),
        RuntimeError,
        r"same device.*(?s:.)*x\.to\('cuda'\)",
    ),
    "a text that is not used": (
        lambda x, out: body("y = 1.0", parameters="x")[1, 1]("text"),
        TypeError,
        "x must be Tensor, not str",
    ),
    "no number": (lambda x, out: K[1, 1](x, out, x), TypeError, r"n is a number here(?s:.)*n\[i\]"),
    "dimensions": (
        lambda x, out: K[1, 1](x[None], out, 1),
        TypeError,
        r"x\.ndim is 2, and its index in the kernel is for 1(?s:.)*x\.reshape\(-1\)",
    ),
    "more dimensions than it has": (
        lambda x, out: body("x[0, 0] = 1.0", parameters="x")[1, 1](x),
        TypeError,
        r"for 2(?s:.)*x\.reshape\(1, -1\)",
    ),
    "by name": (
        lambda x, out: K[1, 1](x, out, n=1),
        TypeError,
        "takes 3 arguments but 2 were given, and n by name",
    ),
    "blocks along y": (lambda x, out: K[(1, 65_536), 1](x, out, 1), RuntimeError, "65,535 blocks"),
    "float64": (lambda x, out: K[1, 1](x.double(), out, 1), RuntimeError, "float64"),
    "int64 atomics": (lambda x, out: K[1, 1](x, out.long(), 1), RuntimeError, "int32"),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_wrong_launch_is_refused_with_the_repair(device, name):
    launch, kind, words = LAUNCHES[name]
    with pytest.raises(kind, match=words) as raised:
        launch(*tensors())
    assert "\nTry: " in str(raised.value)


def test_a_number_that_does_not_fit_is_refused_or_infinite(device):
    with pytest.raises(OverflowError, match="outside of int64"):
        K[1, 1](*tensors(), 2**70)
    K[1, 1](*tensors(), 1e300)
    body("out[0] = 1e50")[1, 1](*tensors(), 1)


def test_a_wrong_launch_is_refused_with_its_line(device):
    k = K
    with pytest.raises(ValueError, match=r"line \d+: k\[0, 32\]\(1, 2, 3\)"):
        k[0, 32](1, 2, 3)
    with pytest.raises(RuntimeError, match=r"line \d+: k\[1, \(33, 32\)\]\(1, 2, 3\)"):
        k[1, (33, 32)](1, 2, 3)


GAPS = [
    "if ...: out[0] = 1.0",
    "while ... and n < 1: n += 1",
    "...",
    "for i in range(n): out[i] = ...\n    ...",  # the first of two
]


@pytest.mark.parametrize("gap", GAPS)
def test_a_kernel_with_a_gap_is_defined_and_not_launched(device, gap):
    k = body(gap, "out[0] = 1.0")
    with pytest.raises(KernelError, match="a gap is left") as raised:
        k[1, 1](*tensors(), 1)
    assert raised.value.line == 3


def test_words_of_kernels_mean_nothing_outside():
    for use in (lambda: cuda.grid(1), lambda: cuda.threadIdx.x, cuda.syncthreads):
        with pytest.raises(KernelError, match="within a kernel only"):
            use()


# Noticed while it runs

SHARED = ("s = cuda.shared(SIZE, tk.float32)", "t = cuda.threadIdx.x")
WRONG = {
    "outside": ([GRID, "out[i] = x[i]"], (2, 8), "reaches x"),
    "negative": ([GRID, "out[i] = x[i - 1]"], (1, 8), r"x\[-1\].*outside"),
    "a sum": ([GRID, "out[0] += x[i]"], (1, 8), "two threads touch out"),
    "a sum of blocks": ([GRID, "out[0] += x[i]"], (8, 1), "two blocks touch out"),
    "atomic and plain": (
        [GRID, "cuda.atomic_add(out, 0, x[i])", "out[i] = out[0]"],
        (1, 8),
        "races",
    ),
    "all add, one reads": (
        [GRID, "cuda.atomic_add(out, 0, x[i])", "if i == 0:", "    y = out[0]"], (1, 8), "races",
    ),
    "no barrier": ([*SHARED, "s[t] = x[t]", "out[t] = s[7 - t]"], (1, 8), "two threads touch s"),
    "no second barrier in a loop": (
        [*SHARED, "for r in range(2):", "    s[t] = x[t]", "    cuda.syncthreads()",
         "    out[t] = s[7 - t]"],
        (1, 8), r"Try: cuda.syncthreads\(\) after line 8, before the loop goes round",
    ),
    "no value": (
        [GRID, "if i < 3:", "    y = x[i]", "out[i] = y"],
        (1, 8), "Try: .*, or a number set above the if",
    ),
    "too late a barrier": (
        [*SHARED, "for r in range(2):", "    s[t] = x[t]", "    cuda.syncthreads()",
         "    out[t] = s[7 - t]"],
        (1, 8), "two threads touch s",
    ),
    "a tree": (
        [*SHARED, "s[t] = x[t]", "cuda.syncthreads()", "for half in range(4, 0, -2):",
         "    if t < half:", "        s[t] += s[t + half]"],
        (1, 8), r"touch s(?s:.)*Try: cuda.syncthreads\(\) after each round",
    ),
    "in an if": (
        [GRID, "if i < n - 3:", "    cuda.syncthreads()", "out[i] = x[i]"],
        (1, 8),
        "a barrier that not all threads of a block reach",
    ),
    "in a round for each thread": (
        [GRID, "for j in range(n):", "    if j == i:", "        cuda.syncthreads()"],
        (1, 8), "waits in line 6, in round 1 of its loop",
    ),
    "two barriers": (
        [GRID, "if i < 4:", "    cuda.syncthreads()", "else:", "    cuda.syncthreads()",
         "out[i] = x[i]"],
        (1, 8), "waits in line",
    ),
    "unwritten": ([*SHARED, "out[t] = s[t]"], (1, 8), r"before any thread has written it"),
    "unwritten in the next block": (
        [*SHARED, "if cuda.blockIdx.x == 0:", "    s[t] = 1.0", "out[cuda.grid(1)] = s[t]"],
        (2, 4), "before any thread has written it",
    ),
    "a float for an index": ([GRID, "out[x[i]] = 1.0"], (1, 1), "be interpreted as an integer"),
    "a position written": (["cuda.threadIdx.x = 1"], (1, 1), "line 3: cuda.threadIdx.x = 1"),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", WRONG)
def test_what_a_gpu_would_hide_raises_in_whatever_order_the_threads_run(device, name, seed):
    lines, (blocks, threads), words = WRONG[name]
    x, out = tk.ones(8, device=device), tk.zeros(8, device=device)
    k = body(*lines)
    tk.manual_seed(seed)
    with pytest.raises(KernelError, match=words) as raised:
        k[blocks, threads](x, out, 8)
    assert raised.value.line >= 3
    assert raised.value.threads
    assert f"line {raised.value.line}: " in str(raised.value)


RIGHT = {
    "atomics": [GRID, "cuda.atomic_add(out, 0, x[i])"],
    "barriers": [*SHARED, "s[t] = x[t]", "cuda.syncthreads()", "out[t] = s[7 - t]"],
    "its own element twice": [GRID, "out[i] = x[i]", "out[i] += 1.0"],
    "all read one": [GRID, "out[i] = x[0]"],
    "a loop of all threads": [
        GRID,
        "for r in range(3):",
        "    cuda.syncthreads()",
        "out[i] = x[i]",
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_ordered_does_not_raise(device, name):
    body(*RIGHT[name])[1, 8](tk.ones(8, device=device), tk.zeros(8, device=device), 8)


def test_nothing_is_left_of_a_launch_that_was_interrupted(device, monkeypatch):
    k = body(*RIGHT["barriers"])
    x, out = tk.arange(8.0, device=device), tk.zeros(8, device=device)

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Memory, "__setitem__", stopped)
        with pytest.raises(KeyboardInterrupt):
            k[1, 8](x, out, 8)
    with pytest.raises(KernelError, match="within a kernel only"):
        cuda.grid(1)
    k[1, 8](x, out, 8)
    assert out.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_a_race_names_threads_element_and_repair(device):
    with pytest.raises(KernelError) as raised:
        body(GRID, "out[0] += x[i]")[1, 8](tk.ones(8, device=device), tk.zeros(1).cuda(), 8)
    error = raised.value
    assert (error.line, error.block, error.threads) == (4, (0, 0), ((0, 0), (1, 0)))
    assert error.element == (0,)
    assert "Try: cuda.atomic_add(out, i, value)" in str(error)


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


def test_of_threads_that_only_write_one_is_enough(device):
    x = tk.ones(8, device=device)
    with pytest.raises(KernelError, match=r"Try: if cuda\.threadIdx\.x == 0: around the line"):
        body(GRID, "out[0] = 1.0")[2, 4](x, x, 8)
    with pytest.raises(KernelError, match=r"Try: if cuda\.blockIdx\.x == 0: around the line"):
        body(GRID, "if cuda.threadIdx.x == 0:", "    out[0] = 1.0")[2, 4](x, x, 8)
    k = body(GRID, "if cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0:", "    out[0] = 5.0")
    k[2, 4](x, x, 8)
    assert x[0].item() == 5


def test_a_race_of_two_arguments_in_one_memory_asks_for_another_tensor(device):
    x = tk.ones(8, device=device)
    with pytest.raises(KernelError, match=r"out\[1\](?s:.)*reads x\[1\](?s:.)*another tensor"):
        body(GRID, "if i < 7:", "    out[i] = x[i + 1]")[1, 8](x, x, 8)


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
    k = body(*RIGHT["barriers"])
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
