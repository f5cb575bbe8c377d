"""Replies that a learner's process forges change nothing."""

from __future__ import annotations

import json

import pytest
from classroom import Class, cell_of, put_first

from course.grading import writer

FORGED = {
    "names": "bound=7",
    "names of names": "bound=[[1], {}, 'x' * 10**6]",
    "a text": "source='-' * 10**6, error='x' * 10**6, message=[1]",
    "outputs": "outputs=[{'output_type': ['x'], 'text': {}}, 7, {'data': 3}]",
    "seconds": "cpu=float('nan')",
    "half a surrogate": r"outputs=[{'output_type': 'stream', 'text': '\ud800'}]",
}


@pytest.mark.parametrize("name", FORGED)
def test_replies_of_the_wrong_shape_change_nothing(klass_once: Class, name: str) -> None:
    forge = (
        "from course.sandbox.learner import Learner\n"
        "own = Learner._run_cell\n"
        f"Learner._run_cell = lambda *a: own(*a) | dict({FORGED[name]})"
    )
    result = klass_once.grade(put_first(klass_once.honest(), forge))
    result.to_json().encode()
    assert result.score == 20


def test_a_forged_message_is_no_markdown(klass_once: Class) -> None:
    # which Formgrader renders, and a picture from elsewhere tells who looks, and when
    forge = (
        "from course.sandbox.learner import Learner\n"
        "own = Learner._run_cell\n"
        "forged = {'error': 'E', 'message': '\\n\\n![](https://elsewhere.org/x)'}\n"
        "Learner._run_cell = lambda *a: own(*a) | forged"
    )
    notebook = klass_once.honest()
    cell_of(notebook, str(klass_once.source.setup))["source"] += "\npass"
    result = klass_once.grade(put_first(notebook, forge))
    note = json.loads(writer.autograded(result, klass_once.source))["cells"][0]["source"]
    assert "elsewhere" in note
    assert "\n" not in note


def test_a_message_moves_nothing_in_a_terminal(klass_once: Class) -> None:
    notebook = klass_once.honest()
    cell_of(notebook, str(klass_once.source.setup))["source"] = (
        r"raise ValueError('\x1b[2J\u202eno')"
    )
    result = klass_once.grade(notebook)
    assert "[2J" in result.troubles[0]
    assert result.troubles[0].isprintable()
    assert result.score == 20


def test_a_forged_output_is_not_deep(klass_once: Class) -> None:
    # the worker reads it, and whoever has a few frames more on the stack cannot
    forge = (
        "from course.sandbox import learner, wire\n"
        "import json, types\n"
        "deep = '[' * 900 + ']' * 900\n"
        "dumps = lambda it: json.dumps(it).replace('\"deep\"', deep)\n"
        "wire.json = types.SimpleNamespace(dumps=dumps, loads=json.loads)\n"
        "own = learner.Learner._run_cell\n"
        "outputs = [{'output_type': 'display_data', 'data': {'text/plain': 'deep'}}]\n"
        "learner.Learner._run_cell = lambda *a: own(*a) | {'outputs': outputs}"
    )
    result = klass_once.grade(put_first(klass_once.honest(), forge))
    assert result.score == 20
    assert "[" * 20 not in result.to_json()
