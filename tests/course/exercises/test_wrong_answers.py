"""Wrong answers that are right for most numbers fail with every seed."""

from __future__ import annotations

import math

import pytest

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.exercise import load


def copied_unless_contiguous(array):
    return tk.from_numpy(array)[::2, ::2].float().contiguous()


def winner_of_the_most_certain_model(predictions):
    stacked = tk.stack(predictions)
    return stacked.mean(dim=0), stacked.amax(dim=0).argmax(dim=1)


def winner_of_the_product(predictions):
    stacked = tk.stack(predictions)
    return stacked.mean(dim=0), stacked.prod(dim=0).argmax(dim=1)


def contiguous_by_its_outermost_stride(shape, stride):
    kept = [(size, step) for size, step in zip(shape, stride, strict=True) if size != 1]
    if 0 in shape or not kept:
        return True
    return kept[-1][1] == 1 and math.prod(kept[0]) == math.prod(shape)


def largest_from_zero(A, B):
    flat = (A @ B).T.flatten()
    largest, place = 0, 0
    for i, number in enumerate(flat.tolist()):
        if number > largest:
            largest, place = number, i
    return flat, place


def shape_where_zero_fits_all(a, b):
    n = max(len(a), len(b))
    pairs = zip((1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b, strict=True)
    sizes = []
    for x, y in pairs:
        if x != y and min(x, y) > 1:
            raise ValueError
        sizes.append(0 if 0 in (x, y) else max(x, y))
    return tuple(sizes)


def nearest_by_largest_difference(points, centres):
    return (points.unsqueeze(1) - centres).abs().amax(dim=2).argmin(dim=1)


def nearest_by_fourth_powers(points, centres):
    return ((points.unsqueeze(1) - centres) ** 4).sum(dim=2).argmin(dim=1)


def picked_where_not_zero(scores, limit):
    kept = tk.where(scores > limit, scores, 0.0)
    return kept[kept != 0], kept


def picked_where_positive(scores, limit):
    kept = tk.where(scores > limit, scores, 0.0)
    return kept[kept > 0], kept


def summed_where_sizes_are_new(gradient, shape):
    for dim in reversed(range(gradient.ndim)):
        if gradient.shape[dim] not in shape:
            gradient = gradient.sum(dim=dim)
    return gradient.reshape(shape)


def matched_from_the_left(gradient, shape):
    sizes, dims = list(shape), []
    for dim, size in enumerate(gradient.shape):
        if sizes and sizes[0] in (1, size):
            dims += [dim] * (sizes.pop(0) != size)
        else:
            dims.append(dim)
    return (gradient.sum(dim=dims) if dims else gradient).reshape(shape)


def trained_by_a_part_of_the_name(parameters, names):
    for name, parameter in parameters.items():
        parameter.requires_grad_(any(each in name for each in names))
    return [name for name, parameter in parameters.items() if parameter.requires_grad]


def trained_in_order_of_the_alphabet(parameters, names):
    for name, parameter in parameters.items():
        parameter.requires_grad_(name in names)
    return sorted(name for name, parameter in parameters.items() if parameter.requires_grad)


WRONG = [
    ("private-copy", copied_unless_contiguous),
    ("ensemble", winner_of_the_most_certain_model),
    ("ensemble", winner_of_the_product),
    ("contiguous-by-hand", contiguous_by_its_outermost_stride),
    ("product-chain", largest_from_zero),
    ("broadcast-shape", shape_where_zero_fits_all),
    ("nearest-centre", nearest_by_largest_difference),
    ("nearest-centre", nearest_by_fourth_powers),
    ("top-scores", picked_where_not_zero),
    ("top-scores", picked_where_positive),
    ("unbroadcast", summed_where_sizes_are_new),
    ("unbroadcast", matched_from_the_left),
    ("train-only", trained_by_a_part_of_the_name),
    ("train-only", trained_in_order_of_the_alphabet),
]


@pytest.mark.parametrize(("id", "answer"), WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_answer_fails_with_every_seed(id, answer):
    for seed in range(5):
        assert judge(load()[id], answer, seed=seed).status != "passed"


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("ensemble", winner_of_the_most_certain_model),
        ("ensemble", winner_of_the_product),
        ("nearest-centre", nearest_by_largest_difference),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_another_measure_earns_less_than_half(id, answer):
    for seed in range(5):
        report = judge(load()[id], answer, seed=seed)
        assert report.earned < report.possible / 2


@pytest.mark.parametrize("id", ["sgd-step", "momentum-step"])
def test_a_frozen_leaf_is_still_a_leaf(id):
    def frozen(parameters, *_):
        for parameter in parameters:
            parameter.requires_grad_(False)

    text = str(judge(load()[id], frozen))
    assert "still leaves that require grad: False" in text
