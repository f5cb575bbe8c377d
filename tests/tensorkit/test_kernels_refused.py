"""Kernels in Python: what is refused when they are defined and when they are launched."""

import pytest
from kernel_texts import body, kernel_of

import tensorkit as tk
from tensorkit import cuda
from tensorkit.errors import KernelError

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
    "total = x[0:2]": r"`0:2` is not understood(?s:.)*Try: for j in range\(n\):",
    "def f(y): out[0] = y": r"`def f\(y\):` is not understood",
    "for j in range(3): break": "Try: while i < n and go == 1:",
    "for j in range(3): continue": "Try: if go == 1:",
    "total = +x[0]": r"Try: no sign \+",
    "if x is n: out[0] = 1.0": "`is` is not understood(?s:.)*Try: ==",
    "if 0 < n < 3: out[0] = 1.0": "one comparison at a time",
    "for value in x: out[0] = value": "a loop goes over a range",
    "for j in range(stop=3): out[0] = 1.0": "a loop goes over a range",
    "a = b = 0.0": "one name is assigned at a time",
    "a, b = 0.0, 1.0": "a thread has no tuples",
    "total: float = 0.0": "float = 0.0` is not understood(?s:.)*Try: y = 0.0",
    "text = 'a'": "a kernel computes with numbers",
    "total = True + True": "a kernel computes with numbers",
    "y = x": "x is an array",
    "z = 1.0 @ 2.0": "`@` is for tensors",
    "assert n": "`assert n` is not understood(?s:.)*Try: .*if i < n:",
    "y = f'{n}'": "`f'{n}'` is not understood",
    "while 1: out[0] = 1.0": "a condition with a name",
    "while True: out[0] = 1.0": "a condition with a name",
    "import math": "`import math` is not understood(?s:.)*Try: the line above the kernel",
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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("out[0] = n if x[0] > 0.0 else x[1]", "of an integer and an element of an array"),
        ("out[0] = n if x[0] > 0.0 else 0.5", "of an integer and a float"),
        ("n = n / 2", "n begins as an integer"),
    ],
)
def test_a_line_that_the_types_of_the_arguments_do_not_fit_is_refused_at_the_launch(line, words):
    k = body(line)
    with cuda.simulate():
        x, out = tensors()
        k[1, 1](x, out, 3.0)
        with pytest.raises(KernelError, match=words) as raised:
            k[1, 1](x, out, 3)
    assert raised.value.line == 3


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
    "blocks to simulate": (
        lambda x, out: K[10**9, 1](x, out, 1),
        RuntimeError,
        "1,000,000 simulated",
    ),
    "blocks along y": (lambda x, out: K[(1, 65_536), 1](x, out, 1), RuntimeError, "65,535 blocks"),
    "blocks along x": (lambda x, out: K[2**31, 1](x, out, 1), RuntimeError, "31 - 1, y 65,535"),
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
