"""The definition: cells, stubs, draws."""

from __future__ import annotations

import pytest
import sample

from course.notebook.check import judge
from course.notebook.exercise import Draw, Exercise, exercise, load
from course.shared.errors import CourseError

STRIDES, NEGATED = load()["sample-strides"], load()["sample-negated"]


def test_the_answer_cell_holds_the_reference_between_markers():
    lines = STRIDES.answer_source.splitlines()
    assert lines[0].startswith("def strides_of(shape)")
    assert lines.index("    ### BEGIN SOLUTION") < lines.index("    return tuple(strides)")
    assert lines[-1] == "    ### END SOLUTION"


def test_the_released_cell_is_silent_and_holds_no_answer():
    assert STRIDES.released_source.endswith("    # YOUR CODE HERE\n    pass")
    namespace: dict[str, object] = {}
    exec(STRIDES.released_source, namespace)
    assert callable(namespace["strides_of"])


def test_a_repair_is_released_with_its_fault():
    assert NEGATED.released_source.endswith("    t *= -1\n    return t")


def test_a_released_program_begins_with_the_decorator_of_its_first_line():
    assert '    @tk.library.custom_op("mine::softsign"' in load()["custom-op"].released_source


@pytest.mark.parametrize("body", ["pass", "...", '"""Other words."""\n    pass', "pass  # hm"])
def test_a_stub_with_other_comments_is_not_started(body):
    source = f"def strides_of(shape):\n    {body}\n"
    assert STRIDES.is_not_started(sample.strides_of, source)


@pytest.mark.parametrize("body", ["return None", "x = 1", "raise ValueError"])
def test_any_code_is_a_start(body):
    assert not STRIDES.is_not_started(sample.strides_of, f"def strides_of(shape):\n    {body}\n")


def test_a_draw_depends_on_its_seed_alone():
    assert Draw("a").floats(5, -1, 1) == Draw("a").floats(5, -1, 1)
    assert Draw("a").floats(5, -1, 1) != Draw("b").floats(5, -1, 1)
    assert all(1 <= size <= 5 for size in Draw(3).shape())
    assert len(set(Draw(3).distinct(4, 1, 4))) == 4


def test_two_exercises_of_one_name_are_refused():
    with pytest.raises(CourseError, match="Two exercises are called 'sample-strides'"):

        @exercise("sample-strides", answer=sample.strides_of, points=1, difficulty=1, minutes=1)
        class Other(Exercise):
            """Other"""


@pytest.mark.parametrize("points", [2.1, 0.1, -1, float("nan"), float("inf")])
def test_points_that_a_check_could_not_give_in_full_are_refused(points):
    with pytest.raises(CourseError, match=f"odd: points={points} is not a multiple of 0.25"):

        @exercise("odd", answer=sample.strides_of, points=points, difficulty=1, minutes=1)
        class Odd(Exercise):
            """Odd"""

    assert "odd" not in load()


def test_chapters_come_in_order():
    of_chapters = [exercise.chapter for exercise in load().values() if exercise.chapter != "sample"]
    assert of_chapters == sorted(of_chapters)


def test_an_answer_that_empties_its_argument_leaves_the_next_check_alone():
    def empties(graph, root):
        order, todo = [], [root]
        while todo:
            node = todo.pop()
            order.append(node)
            todo += graph.pop(node)
        return order

    orders = load("05_autograd")["backward-order"]
    judge(orders, empties)
    assert judge(orders, orders.reference).status == "passed"
