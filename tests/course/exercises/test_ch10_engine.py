"""Chapter 10. RIGHT: answers that test_right_answers tries; what is no answer."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import pytest

from course import engine
from course.engine import assembly, grad_mode, numbers
from course.notebook.check import judge
from course.notebook.exercise import load
from course.notebook.plain import Opaque

CHAPTER = load("10_engine")
EXERCISE = {
    exercise.name: exercise for exercise in CHAPTER.values() if exercise.name in assembly.PARTS
}
OWN = {name: exercise.reference for name, exercise in EXERCISE.items()}


class BasicsInAnotherOrder:
    def zero_grad(self):
        self.grad = None

    def __init__(self, data, requires_grad=False):
        self.number, self.version = next(numbers), 0
        self.saved, self.inputs, self.formula = [], (), None
        self.requires_grad = bool(requires_grad)
        self.data = np.asarray(data).astype(np.float64)
        self.zero_grad()


class BasicsWithDefaults:
    grad = None
    inputs = ()
    formula = None
    version = 0

    def __init__(self, data, requires_grad=False):
        self.data = np.array(data, dtype="float64", copy=True)
        self.requires_grad = requires_grad
        self.saved = []
        self.number = next(numbers)

    def zero_grad(self):
        if self.grad is not None:
            self.grad = None


def result_that_returns_early(self, data, inputs, formula, saved=()):
    new = type(self)(data)
    asked = [each for each in inputs if each.requires_grad]
    if not grad_mode.enabled or not asked:
        return new
    new.requires_grad = True
    new.inputs, new.formula, new.saved = inputs, formula, []
    for each in saved:
        new.saved.append((each, each.version))
    return new


def result_by_the_constructor(self, data, inputs, formula, saved=()):
    asks = False
    for each in inputs:
        asks = asks or each.requires_grad
    if asks and grad_mode.enabled:
        new = self.__class__(data, requires_grad=True)
        new.__dict__.update(inputs=tuple(inputs), formula=formula)
        new.saved = list(zip(saved, [each.version for each in saved], strict=True))
        return new
    return self.__class__(data)


class OperationsWithNamedFormulas:
    def __add__(self, other):
        other = self.as_tensor(other)

        def formula(g):
            return g, g

        return self.result(np.add(self.data, other.data), (self, other), formula)

    def __mul__(self, other):
        other = self.as_tensor(other)

        def formula(g):
            return other * g, self * g

        return self.result(self.data * other.data, (self, other), formula, (self, other))

    def __matmul__(self, other):
        other = self.as_tensor(other)

        def formula(g):
            return [g @ other.T, (g.T @ self).T]

        return self.result(np.matmul(self.data, other.data), [self, other], formula, [self, other])

    def relu(self):
        mask = np.where(self.data > 0, 1.0, 0.0)
        return self.result(mask * self.data, [self], lambda g: [mask * g])

    def sum(self):
        zeros = np.zeros_like(self.data)
        return self.result(np.sum(self.data), [self], lambda g: [g + zeros])


class OperationsWithOtherMasks(OWN["Operations"]):
    def relu(self):
        values = self.data.copy()
        values[values < 0] = 0
        return self.result(values, (self,), lambda g: (g * (values > 0),))

    def sum(self):
        return self.result(self.data.sum(), (self,), lambda g: (g * np.full(self.data.shape, 1.0),))


def walk_over_a_sorted_list(self, gradient):
    waiting, arrived = [self], {id(self): gradient}
    while waiting:
        waiting.sort(key=lambda each: each.number)
        tensor = waiting.pop()
        g = arrived.pop(id(tensor))
        if not tensor.inputs:
            tensor.grad = g if tensor.grad is None else g + tensor.grad
        else:
            tensor.check_saved()
            for source, part in zip(tensor.inputs, tensor.formula(g), strict=True):
                if not source.requires_grad:
                    continue
                part = part.unbroadcast(source.shape)
                if id(source) in arrived:
                    arrived[id(source)] = arrived[id(source)] + part
                else:
                    arrived[id(source)] = part
                    waiting.append(source)


def walk_in_an_order_found_before(self, gradient):
    """As in chapter 05, without recursion."""
    finished, seen, way = [], {self}, [(self, iter(self.inputs))]
    while way:
        tensor, left = way[-1]
        for source in left:
            if source.requires_grad and source not in seen:
                seen.add(source)
                way.append((source, iter(source.inputs)))
                break
        else:
            finished.append(tensor)
            way.pop()
    sums = dict.fromkeys(finished)
    sums[self] = gradient
    for tensor in reversed(finished):
        if tensor.is_leaf:
            tensor.grad = sums[tensor] if tensor.grad is None else tensor.grad + sums[tensor]
            continue
        tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(sums[tensor]), strict=True):
            if source.requires_grad:
                part = part.unbroadcast(source.shape)
                sums[source] = part if sums[source] is None else sums[source] + part


class WritingWithNumPy:
    def check_saved(self):
        if [version for _, version in self.saved] != [each.version for each, _ in self.saved]:
            raise RuntimeError("a saved value was changed")

    def sub_(self, other):
        if grad_mode.enabled and any(each.requires_grad for each in (self, other)):
            raise RuntimeError("not while operations are recorded")
        np.subtract(self.data, other.data, out=self.data)
        self.version = self.version + 1
        return self


class WritingIntoASlice:
    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError
        self.data[...] = self.data - other.data
        self.version += 1
        return self

    def check_saved(self):
        for each, version in self.saved:
            if each.version > version:
                raise RuntimeError("changed")


class NoGradWithAStack:
    before: ClassVar[list[bool]] = []

    def __enter__(self):
        self.before.append(grad_mode.enabled)
        grad_mode.enabled = False

    def __exit__(self, kind, value, traceback):
        grad_mode.enabled = self.before.pop()


@contextmanager
def no_grad_as_a_generator():
    before = grad_mode.enabled
    grad_mode.enabled = False
    try:
        yield
    finally:
        grad_mode.enabled = before


def sin_with_minus(self):
    def formula(g):
        return [(math.pi / 2 + self).sin() * g]

    return self.result(np.sin(self.data), [self], formula, [self])


def sin_by_a_square(self):
    """The cosine as 1 minus twice the square of the sine of half the angle."""

    def formula(g):
        half = (self * 0.5).sin()
        return (g * (half * half * -2.0 + 1.0),)

    return self.result(np.sin(self.data), (self,), formula, saved=(self,))


def forward_in_one_expression(slopes, order, leaf):
    found = {}
    for node in order:
        found[node] = float(node == leaf) + sum(
            s * found[source] for source, s in slopes[node].items()
        )
    return found


def forward_from_zeros(slopes, order, leaf):
    found = dict.fromkeys(order, 0.0) | {leaf: 1.0}
    for node in order:
        for source in slopes[node]:
            found[node] += found[source] * slopes[node][source]
    return found


RIGHT = [
    ("own-tensor", BasicsInAnotherOrder),
    ("own-tensor", BasicsWithDefaults),
    ("record-result", result_that_returns_early),
    ("record-result", result_by_the_constructor),
    ("own-operations", OperationsWithNamedFormulas),
    ("own-operations", OperationsWithOtherMasks),
    ("walk-back", walk_over_a_sorted_list),
    ("walk-back", walk_in_an_order_found_before),
    ("stale-value", WritingWithNumPy),
    ("stale-value", WritingIntoASlice),
    ("nested-no-grad", NoGradWithAStack),
    ("nested-no-grad", no_grad_as_a_generator),
    ("sixth-operation", sin_with_minus),
    ("sixth-operation", sin_by_a_square),
    ("forward-slopes", forward_in_one_expression),
    ("forward-slopes", forward_from_zeros),
]


@pytest.mark.parametrize("exercise", EXERCISE.values(), ids=lambda exercise: exercise.id)
def test_the_part_of_the_course_is_no_answer(exercise):
    report = judge(exercise, getattr(engine, exercise.name))
    assert report.earned == 0
    assert "is switched off while your answer runs" in str(report)


def test_a_part_that_inherits_from_the_course_is_no_answer():
    class Operations(engine.Operations):
        pass

    assert judge(EXERCISE["Operations"], Operations).earned == 0


def test_a_part_leaves_recording_on():
    class no_grad:
        def __enter__(self):
            grad_mode.enabled = False

        def __exit__(self, *error):
            pass

    assert judge(EXERCISE["no_grad"], no_grad).earned < 2
    assert grad_mode.enabled


def test_a_context_manager_made_of_a_function_is_an_answer():
    assert EXERCISE["no_grad"].is_answer(no_grad_as_a_generator) is None


@pytest.mark.parametrize(
    ("answer", "what"),
    [(lambda: None, "a function"), (3, "a whole number"), (Opaque("a function", ""), "a function")],
)
def test_what_stands_in_place_of_a_class_is_told(answer, what):
    said = EXERCISE["Basics"].is_answer(answer)
    assert said.startswith(f"`Basics` should be a class, and it is {what}.")
