"""The graph of cross entropy, its unusual items, and what it refuses."""

import pytest
from second_order import gradgradcheck
from tk_oracle import torch

import tensorkit as tk
from tensorkit.nn.functional import cross_entropy

LABELS = [0, 2, 1, 2]


@pytest.fixture
def scores():
    """Of four items and three classes."""
    tk.manual_seed(0)
    return tk.randn(4, 3, dtype=tk.float64, requires_grad=True)


@pytest.fixture
def labels():
    """The classes of the items."""
    return tk.tensor(LABELS)


def test_second_derivatives_are_right(scores, labels):
    assert gradgradcheck(lambda x: cross_entropy(x, labels), (scores,))


def test_the_nodes_are_those_of_the_parts(scores, labels):
    node = (cross_entropy(scores, labels)).grad_fn
    ((behind, _),) = node.next_functions
    assert (repr(node), repr(behind)) == ("<NllLossBackward0>", "<LogSoftmaxBackward0>")
    assert behind.next_functions[0][0].variable is scores
    assert behind.order < node.order


def test_labels_may_not_change_before_backward(scores, labels):
    loss = cross_entropy(scores, labels)
    labels.zero_()
    with pytest.raises(RuntimeError, match=r"\[torch.LongTensor \[4\]\] is at version 1"):
        loss.backward()


@pytest.mark.parametrize("label", [-1, 3, 6])
def test_labels_of_no_class_that_came_through_numpy_are_refused(scores, labels, label):
    loss = cross_entropy(scores, labels)
    labels.numpy()[0] = label
    with pytest.raises(IndexError, match=rf"Target {label} is out of bounds\."):
        loss.backward()


@pytest.mark.parametrize(
    ("items", "classes"),
    [
        ([[1.0, -torch.inf], [3.0, 1.0]], [0, 1]),
        ([[1.0, torch.inf], [3.0, 1.0]], [0, 1]),
        ([[1000.0, 0.0], [0.0, 1000.0]], [0, 0]),
        ([[200.0, 0.0]], [0]),
        ([[torch.nan, 0.0]], [0]),
    ],
    ids=["-inf", "inf", "far apart", "sure", "nan"],
)
def test_unusual_items_count_as_in_pytorch(items, classes):
    found = []
    for m in (torch, tk):
        x = m.tensor(items, requires_grad=True)
        loss = m.nn.functional.cross_entropy(x, m.tensor(classes))
        loss.backward()
        found.append((repr(loss.detach()), repr(x.grad)))
    assert found[0] == found[1]


def test_a_class_that_does_not_exist_is_refused(scores):
    with pytest.raises(IndexError, match=r"Target 3 is out of bounds\."):
        cross_entropy(scores, tk.tensor([0, 1, 2, 3]))


def test_items_without_a_class_are_left_out_by_hand(scores):
    labels = tk.tensor([0, -100, 1, 2])
    with pytest.raises(IndexError, match=r"Target -100 is .*\n\n.*no class is ignored\.\nTry: x"):
        cross_entropy(scores, labels)
    loss = cross_entropy(scores[labels >= 0], labels[labels >= 0])
    references = torch.tensor(scores.tolist()), torch.tensor(labels.tolist())
    assert loss.item() == pytest.approx(torch.nn.functional.cross_entropy(*references).item())
