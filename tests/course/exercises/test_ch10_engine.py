"""Chapter 10. RIGHT: answers that test_right_answers tries; the joined engine names faults."""

from __future__ import annotations

import re
from collections import Counter, deque
from types import FunctionType

import pytest

import tensorkit as tk
from course import engine
from course.engine import parts as parts
from course.notebook.check import judge
from course.notebook.exercise import load
from course.shared.errors import CourseError

CHAPTER = load("10_engine")
OWN = {it.name: it.reference for it in CHAPTER.values() if it.name in engine.STEPS}


def record_in_a_loop(graph, operation, inputs, value):
    name = operation + str(len(graph))
    graph[name] = {"operation": "constant", "inputs": [], "value": value, "requires_grad": False}
    for it in inputs:
        if graph[it]["requires_grad"]:
            graph[name].update(operation=operation, inputs=inputs, requires_grad=True)
    return name


def record_with_two_returns(graph, operation, inputs, value):
    name = f"{operation}{len(graph)}"
    if sum(graph[it]["requires_grad"] for it in inputs) > 0:
        graph[name] = {
            "requires_grad": True,
            "value": value,
            "operation": operation,
            "inputs": [*inputs],
        }
        return name
    graph[name] = {"operation": "constant", "inputs": [], "value": value, "requires_grad": False}
    return name


def order_with_counter(graph, root):
    found = {root: None}
    waiting = deque(found)
    while waiting:
        new = dict.fromkeys(it for it in graph[waiting.popleft()] if it not in found)
        found.update(new)
        waiting.extend(new)
    uses = Counter(source for node in found for source in graph[node])
    ready, order = deque([root]), []
    while ready:
        node = ready.popleft()
        order.append(node)
        for source, n in Counter(graph[node]).items():
            uses[source] -= n
            if not uses[source]:
                ready.append(source)
    return order


def order_by_depth_with_a_list(graph, root):
    finished, seen = [], {root}
    way = [(root, iter(graph[root]))]
    while way:
        node, left = way[-1]
        for source in left:
            if source not in seen:
                seen.add(source)
                way.append((source, iter(graph[source])))
                break
        else:
            finished.append(node)
            way.pop()
    return finished[::-1]


def formulas_in_a_table(operation, upstream, inputs, out):
    return {
        "add": lambda a, b: [upstream.clone(), upstream.clone()],
        "mul": lambda a, b: [b * upstream, a * upstream],
        "matmul": lambda a, b: [tk.matmul(upstream, b.t()), tk.matmul(a.t(), upstream)],
        "sum": lambda a: [tk.ones_like(a) * upstream],
        "tanh": lambda a: [upstream - upstream * out**2],
    }[operation](*inputs)


def formulas_by_autograd(operation, upstream, inputs, out):
    inputs = [it.detach().clone().requires_grad_() for it in inputs]
    result = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "matmul": lambda a, b: a @ b,
        "sum": lambda a: parts.sum_to(a, tuple(upstream.shape)),
        "tanh": tk.tanh,
    }[operation](*inputs)
    return list(tk.autograd.grad(result, inputs, grad_outputs=upstream))


def walk_with_zeros(graph, order):
    gradients = {name: tk.zeros_like(graph[name]["value"]) for name in order}
    gradients[order[0]] = tk.ones_like(graph[order[0]]["value"])
    for name in order:
        for source, gradient in parts.contributions(graph, name, gradients[name]):
            gradients[source] = gradients[source] + gradient
    return gradients


def walk_with_copies(graph, order):
    gradients = {order[0]: graph[order[0]]["value"] * 0 + 1}
    for name in order:
        for source, gradient in parts.contributions(graph, name, gradients[name]):
            if source in gradients:
                gradients[source] += gradient
            else:
                gradients[source] = gradient.clone()
    return gradients


def sum_in_a_loop(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.sum(0)
    for dim, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(dim, keepdim=True)
    return gradient


def sum_from_the_right(gradient, shape):
    padded = (1,) * (gradient.ndim - len(shape)) + tuple(shape)
    dims = [dim for dim in range(-1, -gradient.ndim - 1, -1) if padded[dim] == 1]
    return (gradient.sum(dims) if dims else gradient).reshape(shape)


def recorded_another_way(graph, name, upstream):
    def run(operation, *inputs):
        return parts.apply(graph, operation, list(inputs))

    operation, inputs = graph[name]["operation"], graph[name]["inputs"]
    if operation == "mul":
        return [run("mul", other, upstream) for other in reversed(inputs)]
    if operation == "matmul":
        a, b = inputs
        return [
            run("matmul", upstream, run("transpose", b)),
            run("matmul", run("transpose", a), upstream),
        ]
    if operation == "tanh":  # g - g t t
        lost = run("mul", run("mul", upstream, name), name)
        return [run("add", upstream, run("mul", lost, parts.constant(graph, -1.0)))]
    return OWN["recorded_gradients"](graph, name, upstream)


def recorded_with_a_leaf_of_ones(graph, name, upstream):
    node = graph[name]
    if node["operation"] != "tanh":
        return OWN["recorded_gradients"](graph, name, upstream)
    ones = parts.leaf(graph, "all ones", tk.ones_like(node["value"]), requires_grad=False)
    turned = parts.leaf(graph, "turned", -graph[ones]["value"], requires_grad=False)
    square = parts.apply(graph, "mul", [name, name])
    slope = parts.apply(graph, "add", [ones, parts.apply(graph, "mul", [square, turned])])
    return [parts.apply(graph, "mul", [slope, upstream])]


def cross_entropy_with_one_hot(upstream, scores, labels):
    one_hot = (labels.unsqueeze(1) == tk.arange(scores.shape[1])).to(scores.dtype)
    return (scores.softmax(1) - one_hot) * (upstream / scores.shape[0])


def cross_entropy_by_autograd(upstream, scores, labels):
    scores = scores.detach().clone().requires_grad_()
    loss = tk.nn.functional.cross_entropy(scores, labels)
    return tk.autograd.grad(loss, scores, grad_outputs=upstream)[0]


def forward_in_one_expression(slopes, order, leaf):
    found = {}
    for node in order:
        found[node] = float(node == leaf) + sum(s * found[it] for it, s in slopes[node].items())
    return found


def forward_from_zeros(slopes, order, leaf):
    found = dict.fromkeys(order, 0.0) | {leaf: 1.0}
    for node in order:
        for source in slopes[node]:
            found[node] += found[source] * slopes[node][source]
    return found


RIGHT = [
    ("record-node", record_in_a_loop),
    ("record-node", record_with_two_returns),
    ("deep-order", order_with_counter),
    ("deep-order", order_by_depth_with_a_list),
    ("five-formulas", formulas_in_a_table),
    ("five-formulas", formulas_by_autograd),
    ("gradients-added", walk_with_zeros),
    ("gradients-added", walk_with_copies),
    ("sum-to", sum_in_a_loop),
    ("sum-to", sum_from_the_right),
    ("recorded-gradients", recorded_another_way),
    ("recorded-gradients", recorded_with_a_leaf_of_ones),
    ("sixth-operation", cross_entropy_with_one_hot),
    ("sixth-operation", cross_entropy_by_autograd),
    ("forward-slopes", forward_in_one_expression),
    ("forward-slopes", forward_from_zeros),
]


@pytest.mark.parametrize(("id", "answer"), RIGHT[:12])
@pytest.mark.rest
def test_another_right_part_runs_in_the_engine(id, answer):
    name = CHAPTER[id].name
    joined = engine.join(**{name: answer})
    assert joined.said == {name: "agrees with tensorkit"}
    assert joined.functions == {name: answer}


def test_the_six_reference_parts_make_an_engine():
    joined = engine.join(**OWN)
    assert joined.functions == OWN
    assert repr(joined).endswith("All 6 parts are yours, and 16 programs agree.")


@pytest.mark.parametrize("exercise", [it for it in CHAPTER.values() if it.name in engine.STEPS])
def test_the_part_of_the_course_is_no_answer(exercise):
    def imported(*args):
        return getattr(parts, exercise.name)(*args)

    for answer in (imported, getattr(parts, exercise.name)):
        report = judge(exercise, answer)
        assert report.earned == 0
        assert "what you are asked to write here" in str(report)


MISTAKES = [
    (it.name, mistake)
    for it in CHAPTER.values()
    if it.name in engine.STEPS
    for mistake in it.mistakes()
]


@pytest.mark.parametrize(
    ("name", "mistake"), MISTAKES, ids=[f"{name}: {it.name}" for name, it in MISTAKES]
)
@pytest.mark.rest
def test_a_wrong_part_is_named_and_left_out(name, mistake):
    joined = engine.join(**{name: mistake.answer})
    assert joined.said[name] != "agrees with tensorkit"
    assert f"`{name}` {joined.said[name]}." in repr(joined)
    assert re.search(r'See `check\("(.+)"\)`$', joined.said[name])[1] in CHAPTER
    assert joined.functions == {}


@pytest.mark.rest
def test_one_wrong_part_leaves_the_other_five_in_place():
    wrong = CHAPTER["sum-to"].mistakes()[1].answer
    joined = engine.join(**{**OWN, "sum_to": wrong})
    assert [it for it in joined.said if joined.said[it] != "agrees with tensorkit"] == ["sum_to"]
    assert joined.functions == {name: it for name, it in OWN.items() if name != "sum_to"}
    assert repr(joined).endswith("5 of 6 parts are yours, the others are the course's.")


def test_a_part_that_is_not_written_is_named_and_left_out():
    for it in CHAPTER.values():
        if it.name in engine.STEPS:
            released: dict[str, FunctionType] = {}
            # a text file, so that the source can be found as in a notebook
            exec(_compiled(it.released_source), {"tk": tk}, released)
            joined = engine.join(**{it.name: released[it.name]})
            assert joined.said == {it.name: "is not written yet"}
            assert repr(joined).endswith("0 of 6 parts are yours, the others are the course's.")


def _compiled(source):
    import linecache

    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(source, name, "exec", dont_inherit=True)


def test_a_part_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr(engine, "SECONDS", 0.2)

    def topological_order(graph, root):
        while True:
            pass

    joined = engine.join(topological_order=topological_order)
    assert joined.said["topological_order"].startswith("does not end within 0.2 seconds.")


def test_a_name_that_is_no_part_is_refused():
    with pytest.raises(CourseError, match="has no part 'sums'"):
        engine.join(sums=sum)


def test_the_engine_runs_on_the_learners_part_inside_the_block_only():
    asked = []

    def backward(graph, order):
        asked.append(order)
        return OWN["backward"](graph, order)

    def slope():
        (x,) = engine.leaves({}, x=tk.tensor(3.0))
        return (x * x).gradients()["x"].item()

    joined = engine.join(backward=backward)
    asked.clear()
    with joined:
        assert slope() == 6.0
    assert len(asked) == 1
    with pytest.raises(ZeroDivisionError), joined:
        _ = 1 / 0
    assert slope() == 6.0
    assert len(asked) == 1


@pytest.mark.rest
@pytest.mark.parametrize("program", engine.PROGRAMS, ids=lambda it: it.formula)
def test_pytorch_finds_the_same_for_the_programs(program):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch==2.13.0")
    expected = engine.in_tensorkit(program)
    values = {
        name: torch.tensor(it.tolist(), dtype=torch.float64, requires_grad=True)
        for name, it in program.values().items()
    }
    result = program.run(values)
    slopes = torch.autograd.grad(result, list(values.values()), create_graph=program.second)
    found = {"the value": result} | {
        f"the gradient of {name}": it for name, it in zip(values, slopes, strict=True)
    }
    if program.second:
        total = (values["x"] * 0.0).sum() + sum((it * it).sum() for it in slopes)
        second = torch.autograd.grad(total, list(values.values()), allow_unused=True)
        named = zip(values, second, strict=True)
        found |= {f"the second order of {name}": it for name, it in named if it is not None}
    assert found.keys() == expected.keys()
    for what, it in found.items():
        same = torch.tensor(expected[what].tolist(), dtype=torch.float64)
        torch.testing.assert_close(it.detach(), same)


def test_a_picture_tells_every_node():
    graph: parts.Graph = {}
    x, y = engine.leaves(graph, x=tk.tensor(2.0), y=tk.ones(2, 3))
    (x * y + 1.0).sum()
    assert str(engine.picture(graph)).splitlines() == [
        "A graph of 6 nodes",
        "x: leaf, 2",
        "y: leaf, 2 × 3 tensor",
        "mul2: mul of x and y, 2 × 3 tensor",
        "number3: constant, 1",
        "add4: add of mul2 and number3, 2 × 3 tensor",
        "sum5: sum of add4, 18",
    ]


def test_the_engine_follows_a_constant_nowhere():
    graph: parts.Graph = {}
    (x,) = engine.leaves(graph, x=tk.tensor(2.0))
    (c,) = engine.constants(graph, c=tk.tensor(5.0))
    assert (x * (c * c)).gradients().keys() == {"mul3", "x"}
