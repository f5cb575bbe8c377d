"""Chapter 12. RIGHT: other right answers, which test_right_answers tries; and answers by luck."""

from __future__ import annotations

import inspect
import linecache
import math

import pytest

import tensorkit as tk
from course.exercises.ch12_kernels.kernel_exercise import KernelExercise
from course.notebook.check import judge
from course.notebook.exercise import load
from tensorkit import cuda


@cuda.kernel
def axpy_by_hand(a, x, y, out, n):
    i = cuda.blockDim.x * cuda.blockIdx.x + cuda.threadIdx.x
    while i < n:
        out[i] = y[i] + x[i] * a
        i += cuda.gridDim.x * cuda.blockDim.x


@cuda.kernel
def axpy_from_the_end(a, x, y, out, n):
    i = n - 1 - cuda.grid(1)
    if i >= 0:
        out[i] = a * x[i] + y[i]


@cuda.kernel
def squares_from_the_end(x, out, n):
    i = n - 1 - cuda.grid(1)
    while i >= 0:
        value = x[i]
        out[i] = value * value
        i -= cuda.gridDim.x * cuda.blockDim.x


@cuda.kernel
def squares_in_rounds(x, out, n):
    n_threads = cuda.gridDim.x * cuda.blockDim.x
    for turn in range((n + n_threads - 1) // n_threads):
        i = turn * n_threads + cuda.grid(1)
        if i < n:
            out[i] = x[i] ** 2


@cuda.kernel
def bias_nested(x, bias, out, rows, columns):
    column = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if column < columns:
        added = bias[column]
        if row < rows:
            out[row, column] = x[row, column] + added


@cuda.kernel
def bias_strided(x, bias, out, rows, columns):
    column, first = cuda.grid(2)
    if column < columns:
        for row in range(first, rows, cuda.gridDim.y * cuda.blockDim.y):
            out[row, column] = x[row, column] + bias[column]


@cuda.kernel
def total_strided(x, out, n):
    for i in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x):
        cuda.atomic_add(out, 0, x[i])


@cuda.kernel
def total_of_blocks(x, out, n):
    part = cuda.shared(1, tk.float32)
    i = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        part[0] = 0.0
    cuda.syncthreads()
    if i < n:
        cuda.atomic_add(part, 0, float(x[i]))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic_add(out, 0, part[0])


@cuda.kernel
def tree_with_neighbours(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < n else 0.0
    step = 1
    while step < 8:
        cuda.syncthreads()
        if t % (2 * step) == 0:
            part[t] += part[t + step]
        step = 2 * step
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


@cuda.kernel
def tree_without_a_loop(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = 8 * cuda.blockIdx.x + t
    part[t] = x[i] if i < n else 0.0
    cuda.syncthreads()
    if t < 4:
        part[t] += part[t + 4]
    cuda.syncthreads()
    if t < 2:
        part[t] += part[t + 2]
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = part[0] + part[1]


@cuda.kernel
def matmul_with_one_shared_array(a, b, out, n):
    both = cuda.shared((8, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    tile = 0
    while tile < n // 4:
        both[ty, tx] = a[row, 4 * tile + tx]
        both[4 + ty, tx] = b[4 * tile + ty, column]
        cuda.syncthreads()
        for k in range(4):
            value += both[ty, k] * both[4 + k, tx]
        cuda.syncthreads()
        tile += 1
    out[row, column] = value


@cuda.kernel
def matmul_with_a_turned_tile(a, b, out, n):
    left = cuda.shared(16, tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for first in range(0, n, 4):
        cuda.syncthreads()
        left[4 * ty + tx] = a[row, first + tx]
        right[tx, ty] = b[first + ty, column]
        cuda.syncthreads()
        for k in range(4):
            value += left[4 * ty + k] * right[tx, k]
    out[row, column] = value


@cuda.kernel
def softmax_each_alone(x, out, columns):
    row = cuda.blockIdx.x
    top = x[row, 0]
    for j in range(1, columns):
        top = max(top, x[row, j])
    whole = 0.0
    for j in range(columns):
        whole += math.exp(x[row, j] - top)
    for j in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
        out[row, j] = math.exp(x[row, j] - top) / whole


@cuda.kernel
def softmax_with_two_arrays(x, out, columns):
    tops = cuda.shared(4, tk.float32)
    sums = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    tops[t] = -3e38
    for j in range(t, columns, 4):
        tops[t] = max(tops[t], x[row, j])
    cuda.syncthreads()
    top = max(tops[0], tops[1], tops[2], tops[3])
    sums[t] = 0.0
    for j in range(t, columns, 4):
        sums[t] += math.exp(x[row, j] - top)
    cuda.syncthreads()
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - top) / (sums[0] + sums[1] + sums[2] + sums[3])


@cuda.kernel
def scan_from_one_array_to_the_other(x, out, n):
    part = cuda.shared((2, 16), tk.float32)
    t = cuda.threadIdx.x
    part[0, t] = x[t - 1] if t > 0 and t <= n else 0.0
    cuda.syncthreads()
    now = 0
    step = 1
    while step < 16:
        part[1 - now, t] = part[now, t]
        if t >= step:
            part[1 - now, t] += part[now, t - step]
        cuda.syncthreads()
        now = 1 - now
        step = 2 * step
    if t < n:
        out[t] = part[now, t]


@cuda.kernel
def scan_inclusive_then_shifted(x, out, n):
    part = cuda.shared(16, tk.float32)
    t = cuda.threadIdx.x
    own = x[t] if t < n else 0.0
    part[t] = own
    for turn in range(4):
        cuda.syncthreads()
        before = part[t - (1 << turn)] if t >= 1 << turn else 0.0
        cuda.syncthreads()
        part[t] += before
    if t < n:
        out[t] = part[t] - own


@cuda.kernel
def scan_up_and_down(x, out, n):
    part = cuda.shared(16, tk.float32)
    t = cuda.threadIdx.x
    part[t] = x[t] if t < n else 0.0
    cuda.syncthreads()
    for turn in range(4):
        at = (2 << turn) * (t + 1) - 1
        if at < 16:
            part[at] += part[at - (1 << turn)]
        cuda.syncthreads()
    if t == 0:
        part[15] = 0.0
    for turn in range(3, -1, -1):
        cuda.syncthreads()
        at = (2 << turn) * (t + 1) - 1
        if at < 16:
            left = part[at - (1 << turn)]
            part[at - (1 << turn)] = part[at]
            part[at] += left
    cuda.syncthreads()
    if t < n:
        out[t] = part[t]


@cuda.kernel
def turned_with_a_wide_tile(x, out):
    tile = cuda.shared((32, 35), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[row, t] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[row, t] = tile[t, row]


@cuda.kernel
def turned_on_diagonals(x, out):
    tile = cuda.shared((32, 32), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[row, (t + row) % 32] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[row, t] = tile[t, (row + t) % 32]


@cuda.kernel
def _clamped_all(x, out, n):
    for i in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x):
        out[i] = x[i] if x[i] > 0.0 else 0.0


def relu_strided(x):
    out = tk.zeros_like(x)
    _clamped_all[2, 16](x.reshape(-1), out.reshape(-1), x.numel())
    return out


def relu_flat(x):
    flat = x.reshape(-1)
    out = tk.zeros(x.numel(), device=x.device)
    _clamped_all[1, 32](flat, out, x.numel())
    return out.reshape(x.shape)


RIGHT = [
    ("one-thread-each", axpy_by_hand),
    ("one-thread-each", axpy_from_the_end),
    ("grid-stride", squares_from_the_end),
    ("grid-stride", squares_in_rounds),
    ("add-bias", bias_nested),
    ("add-bias", bias_strided),
    ("racing-sum", total_strided),
    ("racing-sum", total_of_blocks),
    ("tree-sum", tree_with_neighbours),
    ("tree-sum", tree_without_a_loop),
    ("tiled-matmul", matmul_with_one_shared_array),
    ("tiled-matmul", matmul_with_a_turned_tile),
    ("softmax-rows", softmax_each_alone),
    ("softmax-rows", softmax_with_two_arrays),
    ("exclusive-scan", scan_from_one_array_to_the_other),
    ("exclusive-scan", scan_inclusive_then_shifted),
    ("exclusive-scan", scan_up_and_down),
    ("bank-conflict", turned_with_a_wide_tile),
    ("bank-conflict", turned_on_diagonals),
    ("own-relu", relu_strided),
    ("own-relu", relu_flat),
]


@cuda.kernel
def total_if_threads_run_in_order(x, out, n):
    """Right where one thread runs after the other."""
    i = cuda.grid(1)
    if i < n:
        out[0] = out[0] + x[i]


@cuda.kernel
def sums_if_thread_0_is_last(x, out, n):
    """Right where thread 0 comes last."""
    part = cuda.shared(8, tk.float32)
    t = 7 - cuda.threadIdx.x
    i = cuda.blockIdx.x * 8 + t
    part[t] = x[i] if i < n else 0.0
    if t == 0:
        total = 0.0
        for k in range(8):
            total += part[k]
        out[cuda.blockIdx.x] = total


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [("racing-sum", total_if_threads_run_in_order), ("tree-sum", sums_if_thread_0_is_last)],
)
def test_what_is_right_in_one_order_only_earns_no_more_than_the_case_of_one_element(
    exercise, answer
):
    asked = load()[exercise]
    earned = [judge(asked, answer, seed=seed).earned for seed in range(3)]
    assert max(earned) <= asked.points / 8


@pytest.mark.rest
@pytest.mark.parametrize(
    "asked", [asked for asked in load("12_kernels").values() if isinstance(asked, KernelExercise)],
    ids=lambda asked: asked.id,
)  # fmt: skip
def test_a_usual_mistake_is_recognised_under_the_name_that_learners_give_it(asked):
    for mistake in asked.mistakes():
        body = inspect.getsource(mistake.answer).partition("(")[2]
        text, file = f"@cuda.kernel\ndef {asked.name}({body}", f"<{asked.id}, {mistake.name}>"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        names = {"cuda": cuda, "tk": tk, "math": math}
        exec(compile(text, file, "exec"), names)
        report = judge(asked, names[asked.name], seconds=60)
        assert report.message == mistake.message


def test_a_function_without_the_decorator_is_told_so():
    asked = load()["one-thread-each"]
    assert "Put `@cuda.kernel` on the line above" in asked.is_answer(axpy_by_hand.__wrapped__)
    assert asked.is_answer(axpy_by_hand) is None
    assert "should be a kernel, and it is a whole number." in asked.is_answer(3)
