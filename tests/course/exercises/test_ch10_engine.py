"""Chapter 10. RIGHT: answers that test_right_answers tries; the assembled library trains."""

from __future__ import annotations

import ast
import inspect
import math
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
import pytest

from course import engine
from course.engine import assembly, grad_mode, numbers
from course.engine.assembly import assemble, tensor_with
from course.notebook.check import judge
from course.notebook.exercise import load
from course.notebook.plain import Opaque
from course.shared.errors import CourseError

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
        nothing = np.zeros_like(self.data)
        return self.result(np.sum(self.data), [self], lambda g: [g + nothing])


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


def test_the_parts_of_the_course_make_one_library_that_needs_numpy_alone():
    mine = assemble(*OWN.values())
    assert mine.whose == dict.fromkeys(assembly.PARTS, "yours")
    assert repr(mine).endswith("7 of 7 parts are yours.")
    imported = [node for node in ast.walk(ast.parse(mine.source)) if isinstance(node, ast.Import)]
    assert [each.name for node in imported for each in node.names] == ["itertools", "numpy"]
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(ast.parse(mine.source)))


def test_the_text_of_a_learners_part_stands_in_the_library():
    mine = assemble(renamed(walk_over_a_sorted_list, "propagate"))
    assert "waiting.sort(key=lambda each: each.number)" in mine.source
    assert "max(arrived" not in mine.source
    x = mine.Tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.data.tolist() == [2.0, 4.0]


def renamed(part, name):
    """The part under the name of the exercise, with its text as a cell of that name has it."""
    source = inspect.getsource(part).replace(part.__name__, name)
    return from_cell(source, name)


def from_cell(source, name):
    import linecache

    file = f"<cell {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"np": np, "grad_mode": grad_mode, "numbers": numbers, "no_grad": engine.no_grad}
    exec(compile(source, file, "exec", dont_inherit=True), names)
    return names[name]


@pytest.mark.parametrize("name", [n for n, answer in OWN.items() if inspect.isfunction(answer)])
def test_a_wrong_part_is_left_out_and_its_check_is_named(name):
    wrong = renamed(EXERCISE[name].mistakes()[0].answer, name)
    assert assemble(wrong).whose[name] == f'the course\'s; see `check("{EXERCISE[name].id}")`'


def test_a_part_that_is_not_written_is_left_out():
    stub = from_cell(EXERCISE["propagate"].released_source, "propagate")
    mine = assemble(stub)
    assert mine.whose["propagate"] == "the course's; yours is not written yet"
    assert repr(mine).endswith("0 of 7 parts are yours.")


def test_a_part_that_needs_what_stands_outside_of_it_is_left_out():
    source = inspect.getsource(walk_over_a_sorted_list).replace(
        "walk_over_a_sorted_list", "propagate"
    )
    cell = source.replace("waiting.sort(key=lambda each: each.number)", "by_number(waiting)")
    cell += "\n\ndef by_number(tensors):\n    tensors.sort(key=lambda each: each.number)\n"
    whose = assemble(from_cell(cell, "propagate")).whose
    assert whose["propagate"] == "the course's; yours needs `by_number`, which stands outside of it"


@pytest.mark.parametrize("name", ["Basics", "no_grad"])
def test_the_text_of_a_class_in_a_cell_is_found(name):
    part = from_cell(EXERCISE[name].solution_source, name)
    assert assemble(part).whose[name] == "yours"


def test_a_name_that_is_no_part_is_refused():
    with pytest.raises(CourseError, match="no part called 'sums'"):
        tensor_with(from_cell("def sums(self): pass", "sums"))


@pytest.mark.parametrize("exercise", EXERCISE.values(), ids=lambda exercise: exercise.id)
def test_the_part_of_the_course_is_no_answer(exercise):
    report = judge(exercise, getattr(engine, exercise.name))
    assert report.earned == 0
    assert "what you are asked to write here" in str(report)


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


# the worked gradients of the source chapters


def leaf(value):
    return engine.Tensor(value, requires_grad=True)


def linear_model():
    w, b = leaf([[0.5], [1.5]]), leaf([0.1])
    y = engine.Tensor([[1.0, 2.0]]) @ w + b
    loss = (y - 5.0) * (y - 5.0)
    loss.backward()
    return y, loss, w.grad, b.grad


def polynomial():
    x = leaf(3.0)
    (x * x + x * 2.0 + 1.0).backward()
    vector = leaf([1.0, 2.0, 3.0])
    (vector * vector).sum().backward()
    return x.grad, vector.grad


def added_up():
    x = leaf(2.0)
    (x * x).backward()
    first = x.grad
    (x * x * x).backward()
    second = x.grad
    x.zero_grad()
    (x * x * x).backward()
    return first, second, x.grad


def two_weights():
    w1, w2, b = leaf(3.0), leaf(-2.0), leaf(1.0)
    y = w1 * 4.0 + w2 * 5.0 + b
    loss = (y - 10.0) * (y - 10.0)
    loss.backward()
    return y, loss, w1.grad, w2.grad, b.grad


def never_cleared():
    w = leaf(2.0)
    found = []
    for _ in range(3):
        (w * 3.0 * w * 3.0).backward()
        found.append(w.grad)
    return found


def slope_of_a_slope():
    x = leaf(3.0)
    y = x * x * x
    y.backward(create_graph=True)
    slope = x.grad
    x.zero_grad()
    slope.backward()
    return y, slope, x.grad


def sine_of_a_square():
    x = leaf(math.pi)
    (x * x).sin().backward()
    return [x.grad]


@pytest.mark.parametrize(
    ("example", "printed"),
    [
        (linear_model, [[[3.6]], [[1.96]], [[-2.8], [-5.6]], [-2.8]]),
        (polynomial, [8.0, [2.0, 4.0, 6.0]]),
        (added_up, [4.0, 16.0, 12.0]),
        (two_weights, [3.0, 49.0, -56.0, -70.0, -14.0]),
        (never_cleared, [36.0, 72.0, 108.0]),
        (slope_of_a_slope, [27.0, 27.0, 18.0]),
        (sine_of_a_square, [-5.67174]),
    ],
)
def test_the_engine_finds_what_the_source_chapters_print(example, printed):
    for found, expected in zip(example(), printed, strict=True):
        np.testing.assert_allclose(found.data, expected, atol=1e-5)


def test_the_engine_finds_what_tensorkit_finds():
    import tensorkit as tk

    random = np.random.default_rng(0)
    shapes = {"x": (4, 3), "w": (3, 5), "b": (5,), "v": (5, 2), "s": (4, 1)}
    values = {name: random.normal(size=shape) for name, shape in shapes.items()}

    def program(x, w, b, v, s):
        out = ((x @ w + b).relu() * s) @ v
        return (out * out).sum() + (b * b).sum()

    ours = {name: leaf(value) for name, value in values.items()}
    theirs = {name: tk.from_numpy(value).requires_grad_() for name, value in values.items()}
    program(**ours).backward()
    program(**theirs).backward()
    for name in shapes:
        np.testing.assert_allclose(ours[name].grad.data, theirs[name].grad.numpy())


def test_a_graph_of_twenty_thousand_operations_is_walked():
    x = y = leaf(1.0)
    for _ in range(10_000):
        y = y * 1.0 + 1.0
    y.backward()
    assert x.grad.item() == 1.0


def test_numpy_on_the_left_gives_a_tensor():
    product = np.ones(2) * leaf([2.0, 3.0])
    assert product.requires_grad
    assert repr(product) == "Tensor([2., 3.])"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: engine.Tensor(1.0).backward(), "does not require grad"),
        (lambda: leaf([1.0, 2.0]).backward(), "only for scalar outputs"),
    ],
)
def test_backward_says_what_it_needs(wrong, words):
    with pytest.raises(RuntimeError, match=words):
        wrong()
