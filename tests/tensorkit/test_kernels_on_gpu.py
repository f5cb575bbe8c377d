"""On a GPU a kernel computes what it computes on the simulated device."""

import math
import random

import numpy as np
import pytest
from kernel_texts import body
from test_kernels import AS_COMPILED

import tensorkit as tk
from tensorkit import cuda
from tensorkit.cuda.cupy_backend import missing
from tensorkit.errors import KernelError

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

N = 8  # threads of a launch
X, Y = [0.5, -1.5, 2.0, 3.25, -0.75, 1.0, 4.0, -2.5], [1.0, 0.25, -3.0, 2.0, 0.5, -1.25, 3.0, 2.5]
V, W = [3, -2, 7, 1, -5, 4, 2, -1], [2, 3, -4, 5, 1, -3, 6, 2]
FLOATS = ("x[i]", "y[i]", "x[n - 1 - i]", "0.5", "2.0", "scale")
WHOLE = ("v[i]", "w[i]", "i", "n", "1", "3", "cuda.threadIdx.x", "cuda.blockDim.x")
ONE_FLOAT = ("-({})", "abs({})", "float({})", "math.exp({})", "math.sin({})", "math.tanh({})")
ONE_FLOAT += ("math.sqrt(abs({}))", "math.log(1.5 + abs({}))", "({}) * ({})", "({}) ** 2")
TWO_FLOATS = ("({} + {})", "({} - {})", "({} * {})", "({} / (1.5 + abs({})))", "max({}, {})")
TWO_FLOATS += ("min({}, {})", "({} ** 2 + {})", "(abs({}) ** {})")
TWO_WHOLE = ("({} + {})", "({} - {})", "({} * {})", "({} // {})", "({} % {})", "max({}, {})")
TWO_WHOLE += ("min({}, {})", "({} & {})", "({} | {})", "({} ^ {})", "({} << (abs({}) % 5))")
TWO_WHOLE += ("({} >> (abs({}) % 5))", "(abs({}) ** (abs({}) % 4))")
COMPARED = ("{} < {}", "{} <= {}", "{} == {}", "{} != {}", "{} > {}", "{} >= {}")


class Writer:
    """Writes expressions by chance."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def filled(self, forms, write, depth):
        form = self.random.choice(forms)
        return form.format(*(write(depth - 1) for _ in range(form.count("{}"))))

    def of_float(self, depth):
        if depth == 0:
            return self.random.choice(FLOATS)
        kind = self.random.randrange(6)
        if kind == 0:
            return f"({self.of_float(depth - 1)} * {self.of_whole(depth - 1)})"
        if kind == 1:
            chosen = self.of_float(depth - 1), self.of_float(depth - 1)
            return f"(float({chosen[0]}) if {self.of_truth(depth - 1)} else float({chosen[1]}))"
        return self.filled(ONE_FLOAT if kind == 2 else TWO_FLOATS, self.of_float, depth)

    def of_whole(self, depth):
        if depth == 0:
            return self.random.choice(WHOLE)
        kind = self.random.randrange(6)
        if kind == 0:
            return f"int({self.of_float(0)})"
        if kind == 1:
            chosen = self.of_whole(depth - 1), self.of_whole(depth - 1)
            return f"({chosen[0]} if {self.of_truth(depth - 1)} else {chosen[1]})"
        return self.filled(("-({})", "abs({})") if kind == 2 else TWO_WHOLE, self.of_whole, depth)

    def of_truth(self, depth):
        write = self.random.choice((self.of_float, self.of_whole))
        known = ("x[i]", "y[i]", "scale") if write == self.of_float else ("v[i]", "i", "n")
        found = self.random.choice(COMPARED).format(self.random.choice(known), write(0))
        if depth > 0 and self.random.randrange(3) == 0:
            form = self.random.choice(("{} and {}", "{} or {}", "not ({}) and {}"))
            found = form.format(found, self.of_truth(depth - 1))
        return found


def kernel_of(lines):
    return body("i = cuda.grid(1)", *lines, parameters="x, y, v, w, out, whole, n, scale")


def computed(kernel, rows):
    """What a kernel writes into floats and integers, on the device that is there."""
    floats, integers = (tk.tensor(each, device="cuda") for each in ((X, Y), (V, W)))
    out = tk.zeros(rows, N, device="cuda")
    whole = tk.zeros(rows, N, dtype=tk.int64, device="cuda")
    kernel[1, N](*floats, *integers, out, whole, N, 0.75)
    return out.cpu().numpy(), whole.cpu().numpy()


def is_taken(line):
    """Whether the simulated device computes a line: it refuses what leaves int64, or x / 0."""
    try:
        with cuda.simulate(), np.errstate(all="ignore"):
            return all(np.isfinite(found).all() for found in computed(kernel_of([line]), 1))
    except KernelError:
        return False


@pytest.mark.parametrize("seed", range(12))
def test_expressions_have_the_value_that_they_have_on_the_simulated_device(seed):
    writer, lines = Writer(seed), []
    while len(lines) < 24:
        row, is_float = len(lines), len(lines) % 2
        value = writer.of_float(2) if is_float else writer.of_whole(2)
        array = "out" if is_float else "whole"
        if is_taken(f"{array}[0, i] = {value}"):
            lines.append(f"{array}[{row}, i] = {value}")
    kernel = kernel_of(lines)
    with cuda.simulate():
        expected = computed(kernel, len(lines))
    floats, integers = computed(kernel, len(lines))
    for row, line in enumerate(lines):
        assert np.allclose(floats[row], expected[0][row], 2e-4, 1e-5), line
        assert np.array_equal(integers[row], expected[1][row]), line


LOOPS = {
    "a sum": ["total = 0.0", "for j in range(i, n):", "    total += x[j]", "out[0, i] = total"],
    "backwards": ["for j in range(n - 1, i, -2):", "    whole[0, i] = whole[0, i] * 10 + j"],
    "while": ["j = n", "while j > 1:", "    j = j // 2", "    whole[0, i] += j"],
    "while with and": ["j = 0", "while j < n and v[j] != w[i]:", "    j += 1", "whole[0, i] = j"],
    "shared": [
        "s = cuda.shared(8, tk.float32)", "t = cuda.threadIdx.x", "s[t] = x[t]",
        "cuda.syncthreads()", "out[0, i] = s[n - 1 - t]",
    ],
    "shared in two dimensions": [
        "s = cuda.shared((4, 2), tk.int32)", "t = cuda.threadIdx.x", "s[t // 2, t % 2] = v[t]",
        "cuda.syncthreads()", "whole[0, i] = s[3 - t // 2, 1 - t % 2]",
    ],
    "a tree": [
        "s = cuda.shared(8, tk.float32)", "t = cuda.threadIdx.x", "s[t] = x[t]",
        "cuda.syncthreads()", "half = 4", "while half > 0:", "    if t < half:",
        "        s[t] += s[t + half]", "    cuda.syncthreads()", "    half = half // 2",
        "out[0, i] = s[0]",
    ],
    "atomics": ["cuda.atomic_add(out, (0, 0), x[i])"],
    "atomics in shared memory": [
        "s = cuda.shared(1, tk.int32)", "if i == 0:", "    s[0] = 0", "cuda.syncthreads()",
        "cuda.atomic_add(s, 0, i)", "cuda.syncthreads()", "whole[0, i] = s[0]",
    ],
    "a value before": ["y[i] = 0.0", "out[0, i] = cuda.atomic_add(y, i, 2.0) + y[i]"],
    "infinity": ["best = -math.inf", "for j in range(n):", "    best = max(best, x[j])",
                 "out[0, i] = best"],
    "in place": ["x[i] *= 2.0", "x[i] -= y[i]", "out[0, i] = x[i]", "v[i] //= 2",
                 "whole[0, i] = v[i]"],
    "a float into an integer of int()": ["whole[0, i] = int(x[i] * 3.0)"],
    "a truth value": ["near = x[i] < y[i]", "if not near:", "    whole[0, i] = 1"],
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_statements_do_what_they_do_on_the_simulated_device(name):
    kernel = kernel_of(LOOPS[name])
    with cuda.simulate():
        expected = computed(kernel, 1)
    for found, other in zip(computed(kernel, 1), expected, strict=True):
        assert np.allclose(found, other, 1e-5)


@pytest.mark.parametrize("lines", AS_COMPILED)
def test_numbers_are_those_that_are_written_down_for_the_compiled_text(lines):
    out, whole = tk.zeros(1, device="cuda"), tk.ones(1, dtype=tk.int64, device="cuda")
    x = tk.tensor([100.0, math.nan, 0.0], device="cuda")
    body(*lines.split("; "), parameters="x, out, n, whole")[1, 1](x, out, 1.0, whole)
    assert np.array_equal(out.cpu().numpy(), [np.float32(AS_COMPILED[lines])], equal_nan=True)


def test_a_value_of_two_types_is_refused_at_the_first_launch():
    kernel = kernel_of(["out[0, i] = x[i] if i < n else 2 * x[i]"])
    with pytest.raises(TypeError, match="ype"):
        computed(kernel, 1)


def test_a_network_trains_with_a_kernel_that_is_registered_for_relu():
    from course.exercises.ch12_kernels.own_relu import my_relu

    def losses(device):
        tk.manual_seed(0)
        x, y = tk.rand(32, 4), tk.randint(0, 3, (32,))
        net = tk.nn.Sequential(tk.nn.Linear(4, 16), tk.nn.ReLU(), tk.nn.Linear(16, 3)).to(device)
        optimizer, found = tk.optim.SGD(net.parameters(), lr=0.5), []
        for _ in range(20):
            optimizer.zero_grad()
            loss = tk.nn.functional.cross_entropy(net(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    with tk.library.scope(), cuda.profile() as profile:
        tk.library.register_kernel(tk.relu, "cuda", my_relu)
        found = losses("cuda")
    assert len(profile) == 20
    assert np.allclose(found, losses("cpu"), 1e-4)
