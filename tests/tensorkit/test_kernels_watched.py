"""Kernels in Python: what is noticed while they run."""

import pytest
from kernel_texts import BARRIER, GRID, SHARED, body

import tensorkit as tk
from tensorkit import cuda
from tensorkit.cuda.kernel_run import Memory
from tensorkit.errors import KernelError

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
    "in a loop of the thread's own length": (
        [GRID, "for j in range(i):", "    cuda.syncthreads()"],
        (1, 8), "waits in line 5(?s:.)*has ended",
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
    "barriers": BARRIER,
    "its own element twice": [GRID, "out[i] = x[i]", "out[i] += 1.0"],
    "all read one": [GRID, "out[i] = x[0]"],
    "a loop of all threads": [
        GRID,
        "for r in range(3):",
        "    cuda.syncthreads()",
        "out[i] = x[i]",
    ],
    "a barrier in the first round of loops that differ, and one below": [
        GRID,
        "for j in range(i + 1):",
        "    if j == 0:",
        "        cuda.syncthreads()",
        "cuda.syncthreads()",
    ],
    "each thread in another round": [
        GRID,
        "for j in range(n):",
        "    if j == i:",
        "        cuda.syncthreads()",
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_ordered_does_not_raise(device, name):
    body(*RIGHT[name])[1, 8](tk.ones(8, device=device), tk.zeros(8, device=device), 8)


def test_nothing_is_left_of_a_launch_that_was_interrupted(device, monkeypatch):
    k = body(*BARRIER)
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
