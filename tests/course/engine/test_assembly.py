"""The library that a learner's parts and the course's make together."""

from __future__ import annotations

import ast
import inspect
import linecache

import numpy as np
import pytest

from course import engine
from course.engine import assembly, grad_mode, numbers
from course.engine.assembly import assemble, tensor_with
from course.notebook.exercise import load
from course.shared.errors import CourseError

EXERCISE = {
    exercise.name: exercise
    for exercise in load("10_engine").values()
    if exercise.name in assembly.PARTS
}
OWN = {name: exercise.reference for name, exercise in EXERCISE.items()}
PROPAGATE = EXERCISE["propagate"].solution_source.replace(
    "max(arrived, key=lambda tensor: tensor.number)",
    "sorted(arrived, key=lambda tensor: tensor.number)[-1]",
)


def test_the_parts_of_the_course_make_one_library_that_needs_numpy_alone():
    assembled = assemble(*OWN.values())
    assert assembled.owners == dict.fromkeys(assembly.PARTS, "yours")
    assert repr(assembled).endswith("7 of 7 parts are yours.")
    imported = [
        node for node in ast.walk(ast.parse(assembled.source)) if isinstance(node, ast.Import)
    ]
    assert [alias.name for node in imported for alias in node.names] == ["itertools", "numpy"]
    assert not any(
        isinstance(node, ast.ImportFrom) for node in ast.walk(ast.parse(assembled.source))
    )


def test_the_text_of_a_learners_part_stands_in_the_library():
    assembled = assemble(from_cell(PROPAGATE, "propagate"))
    assert "sorted(arrived, key=lambda tensor: tensor.number)[-1]" in assembled.source
    assert "max(arrived" not in assembled.source
    x = assembled.Tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.data.tolist() == [2.0, 4.0]


def renamed(part, name):
    """The part under the name of the exercise, with its text as a cell of that name has it."""
    source = inspect.getsource(part).replace(part.__name__, name)
    return from_cell(source, name)


def from_cell(source, name):
    file = f"<cell {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"np": np, "grad_mode": grad_mode, "numbers": numbers, "no_grad": engine.no_grad}
    exec(compile(source, file, "exec", dont_inherit=True), names)
    return names[name]


@pytest.mark.parametrize("name", [n for n, answer in OWN.items() if inspect.isfunction(answer)])
def test_a_wrong_part_is_left_out_and_its_check_is_named(name):
    wrong = renamed(EXERCISE[name].mistakes()[0].answer, name)
    assert assemble(wrong).owners[name] == f'the course\'s; see `check("{EXERCISE[name].id}")`'


def test_a_part_that_is_not_written_is_left_out():
    stub = from_cell(EXERCISE["propagate"].released_source, "propagate")
    assembled = assemble(stub)
    assert assembled.owners["propagate"] == "the course's; yours is not written yet"
    assert repr(assembled).endswith("0 of 7 parts are yours.")


def test_a_part_that_needs_what_stands_outside_of_it_is_left_out():
    in_order = "sorted({}, key=lambda tensor: tensor.number)"
    cell = PROPAGATE.replace(in_order.format("arrived"), "by_number(arrived)")
    cell += f"\n\ndef by_number(tensors):\n    return {in_order.format('tensors')}\n"
    told = assemble(from_cell(cell, "propagate")).owners["propagate"]
    assert told == "the course's; yours needs `by_number`, which stands outside of it"


@pytest.mark.parametrize("name", ["Basics", "no_grad"])
def test_the_text_of_a_class_in_a_cell_is_found(name):
    part = from_cell(EXERCISE[name].solution_source, name)
    assert assemble(part).owners[name] == "yours"


def test_a_name_that_is_no_part_is_refused():
    with pytest.raises(CourseError, match="no part called 'sums'"):
        tensor_with(from_cell("def sums(self): pass", "sums"))
