"""Wrong answers that are right for most numbers fail with every seed."""

from __future__ import annotations

import math

import pytest

import tensorkit as tk
from course.engine import grad_mode
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


def batches_without_weights(pieces, w):
    w = w.clone().requires_grad_()
    samples = sum(len(y) for _, y in pieces)
    for x, y in pieces:
        (((0 * (x @ w) + x @ (w - w.detach()) - y) ** 2).sum() / samples).backward()
    return w.grad


def scores_without_relu(state, x):
    hidden = x @ state["0.weight"].T + state["0.bias"]
    return hidden @ state["3.weight"].T + state["3.bias"]


def standard_rows_of_whole_numbers(x):
    return load()["standard-rows"].reference(x.round())


def standard_rows_above_zero(x):
    return load()["standard-rows"].reference(x.abs())


def faded_above_zero(x):
    return load()["any-device"].reference(x.abs())


def block_means_above_zero(x, size):
    return load()["block-means"].reference(x.abs(), size)


def block_means_of_whole_numbers(x, size):
    return load()["block-means"].reference(x.round(), size)


def array_above_zero(t):
    return load()["as-array"].reference(t.abs())


def unbroadcast_above_zero(gradient, shape):
    return load()["unbroadcast"].reference(gradient.abs(), shape)


def products_above_zero(a, b):
    return load()["batch-product"].reference(a, b.abs())


def linear_gradients_above_zero(x, target, w, b):
    return load()["linear-gradients"].reference(x.abs(), target, w, b)


def newton_step_above_zero(x, gradient, hessian):
    return load()["newton-step"].reference(x, gradient, hessian.abs())


def private_copy_above_zero(array):
    return load()["private-copy"].reference(abs(array))


def dense_with_bias_above_zero(x, weight, bias):
    return x @ weight.T + bias.abs()


def confusion_of_whole_numbers(scores, labels):
    return load()["confusion"].reference(scores.round(), labels)


def nearest_by_third_powers(points, centres):
    return ((points.unsqueeze(1) - centres).abs() ** 3).sum(dim=2).argmin(dim=1)


def nearest_of_whole_numbers(points, centres):
    return load()["nearest-centre"].reference(points.round(), centres.round())


def whole_scores(scores, limit):
    return load()["top-scores"].reference(scores.round(), limit)


def product_of_whole_numbers(A, B):
    return load()["product-chain"].reference(A.round(), B)


def position_in_three_dimensions(index, stride, offset):
    return sum((i * step for i, step in zip(index[:3], stride[:3], strict=True)), offset)


def hessian_vector_of_four(x, v):
    product = load()["hessian-vector"].reference(x, v)
    product[4:] = 0
    return product


def first_three_moved(parameters, gradients, lr):
    load()["sgd-step"].reference(parameters[:3], gradients[:3], lr)


def first_three_moved_with_momentum(parameters, gradients, velocities, lr, momentum):
    move = load()["momentum-step"].reference
    move(parameters[:3], gradients[:3], velocities[:3], lr, momentum)


class _OneWriteNoticed:
    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError("not while operations are recorded")
        self.data -= other.data
        self.version += 1
        return self

    def check_saved(self):
        for tensor, version in self.saved:
            if tensor.version == version + 1:
                raise RuntimeError("changed")


class _FrozenByZeroGrad(load()["own-tensor"].reference):
    def zero_grad(self):
        self.grad, self.requires_grad = None, False


def recorded_by_first_or_last(self, data, inputs, formula, saved=()):
    new = type(self)(data)
    if grad_mode.enabled and (inputs[0].requires_grad or inputs[-1].requires_grad):
        new.requires_grad, new.inputs, new.formula = True, tuple(inputs), formula
        new.saved = [(each, each.version) for each in saved]
    return new


WRONG = [
    ("micro-batches", batches_without_weights),
    ("another-answer-each-time", scores_without_relu),
    ("standard-rows", standard_rows_of_whole_numbers),
    ("standard-rows", standard_rows_above_zero),
    ("any-device", faded_above_zero),
    ("block-means", block_means_above_zero),
    ("block-means", block_means_of_whole_numbers),
    ("as-array", array_above_zero),
    ("unbroadcast", unbroadcast_above_zero),
    ("batch-product", products_above_zero),
    ("linear-gradients", linear_gradients_above_zero),
    ("newton-step", newton_step_above_zero),
    ("private-copy", private_copy_above_zero),
    ("dense", dense_with_bias_above_zero),
    ("confusion", confusion_of_whole_numbers),
    ("nearest-centre", nearest_by_third_powers),
    ("nearest-centre", nearest_of_whole_numbers),
    ("top-scores", whole_scores),
    ("product-chain", product_of_whole_numbers),
    ("position-of", position_in_three_dimensions),
    ("hessian-vector", hessian_vector_of_four),
    ("sgd-step", first_three_moved),
    ("momentum-step", first_three_moved_with_momentum),
    ("stale-value", _OneWriteNoticed),
    ("own-tensor", _FrozenByZeroGrad),
    ("record-result", recorded_by_first_or_last),
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
