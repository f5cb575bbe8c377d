"""Calls that look alike give each its own result, and nobody else holds what a call gives."""

import math

import pytest
from tk_oracle import strides_that_count

import tensorkit as tk

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch==2.13.0")

# Each is called twice, so that the second call finds what the first has left.
PAIRS = """
tk.zeros(3) | tk.zeros(3).add_(1)
tk.full((2,), 0.0) | tk.full((2,), -0.0)
tk.full((2,), 1) | tk.full((2,), 1.0) | tk.full((2,), True)
tk.arange(3) | tk.arange(3.0)
tk.ones(2, 1) | tk.ones((2, 1)) | tk.ones(2, 1, dtype=tk.int8)
tk.zeros_like(x) | tk.zeros_like(x.int()) | tk.zeros_like(x.T)
tk.full_like(x, 2) | tk.full_like(x.int(), 2) | tk.full_like(x, 2.5)
tk.eye(2) | tk.eye(2, 3) | tk.eye(2, dtype=tk.bool)
tk.where(x > 1, x, 0) | tk.where(x > 1, x, 0.0) | tk.where(x > 1, x, -0.0) | tk.where(x > 1, 1, 0)
tk.where(x > 1, x, x.T) | tk.where((x > 1).T, x.T, x.T) | tk.where(x > 1, x, x.double())
tk.cat([x, x]) | tk.cat([x, x], 1) | tk.cat([x, x.T]) | tk.cat([x, x.double()])
tk.cat([x, x[:0]]) | tk.cat([x, tk.zeros(0)]) | tk.cat((x,)) | tk.cat([x, x], -1)
tk.stack([x, x]) | tk.stack([x, x], 1) | tk.stack([x, x.T], 2) | tk.stack([x, x.double()], -1)
(x > 1).sum() | (x > 1).sum(dtype=tk.bool) | x.int().sum() | x.int().sum(0, dtype=tk.int32)
x.clone() | x.T.clone() | x[:, :1].clone() | x.double() | x.T.int() | x[::2].double()
x[None] | x[...] | x[None, 0] | x[0, None]
x.clone().zero_() | x.T.clone().zero_() | x.clone()[0].zero_() | x.clone().copy_(tk.tensor(2))
x.clone().fill_(7e4) | x.int().fill_(2.7) | x.half().fill_(1e5) | x.clone().copy_(x[0])
x // 0.3 | x // -0.3 | -x // 0.0 | x // math.inf | (x * 0) // -x
tk.nn.functional.nll_loss(x, y) | tk.nn.functional.nll_loss(x, y, reduction="sum")
tk.nn.functional.nll_loss(x, y + 2) | tk.nn.functional.nll_loss(x, y - 1)
tk.nn.functional.nll_loss(x, y + 9) | tk.nn.functional.mse_loss(x, x.T)
tk.nn.functional.nll_loss(x, y - 9) | tk.nn.functional.nll_loss(x.half(), y)
tk.tensor([-0.0]).sum() | tk.tensor([-0.0]).mean() | x.log_softmax(1) | x.softmax(0)
""".strip().split("\n")


@pytest.mark.parametrize("line", PAIRS)
def test_calls_that_look_alike_are_told_apart(line):
    def shown(m, text):
        x, y = m.tensor([[1.0, 2.0], [3.0, -4.0]]), m.tensor([0, 1])
        try:
            found = eval(text, {"tk": m, "x": x, "y": y, "math": math})
            return repr(found), strides_that_count(found)
        except Exception as error:
            return str(error).split("\n")[0]

    texts = [text.strip() for text in line.split(" | ")]
    actual = [[shown(tk, text) for text in texts] for _ in range(2)]
    expected = [shown(torch, text) for text in texts]
    assert actual == [expected, expected]


def test_what_is_kept_belongs_to_nobody():
    tk.zeros(3)
    changed = tk.zeros(3).fill_(5)
    assert changed.tolist() == [5, 5, 5]
    assert tk.zeros(3).tolist() == [0, 0, 0]


def test_kept_tensors_follow_the_default_dtype():
    tk.zeros(3)
    tk.set_default_dtype(tk.float64)
    try:
        assert tk.zeros(3).dtype is tk.float64
    finally:
        tk.set_default_dtype(tk.float32)


def test_a_copy_of_kept_memory_requires_grad_only_where_asked():
    assert tk.ones(3, requires_grad=True).requires_grad
    assert not tk.ones(3).requires_grad


def test_missing_attributes_are_not_listed():
    assert not {"storage", "median"} & set(dir(tk.ones(2)))
    assert not hasattr(tk.ones(2), "storage")


def test_an_empty_index_does_not_answer_for_calls_with_keywords():
    for m in (torch, tk):
        x = m.arange(6.0).view(2, 3)
        x[()]
        parts = x.split(2, dim=1), x.unbind(dim=1), x.narrow(dim=1, start=0, length=1)
        assert [len(part) for part in parts] == [2, 3, 2]


def test_a_number_chosen_in_half_precision_may_be_too_large():
    mask, x = tk.tensor([True, False]), tk.ones(2).half()
    assert tk.where(mask, x, 1e6).tolist() == [1, tk.inf]
