"""What a learner reads when the library raises: the sentence, and the own line before it."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="nocolor")
for cell in sys.argv[1:]:
    shell.run_cell(cell)
"""
BEGIN = "import tensorkit as tk\nfrom course import check"


def printed(*cells: str) -> str:
    """What a notebook prints for these cells."""
    command = [sys.executable, "-c", PROGRAM, *cells]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_traceback_ends_at_the_learners_line() -> None:
    text = printed(BEGIN, "tk.ones(3) + tk.ones(4)")
    assert "----> 1 tk.ones(3) + tk.ones(4)" in text
    assert "must match the size of tensor b (4)" in text
    assert ".py" not in text


def test_the_learners_own_function_that_the_library_called_is_shown() -> None:
    source = "x = tk.ones(2, requires_grad=True)\nx.register_hook(lambda g: g @ tk.ones(3))\n"
    text = printed(BEGIN, source + "(x * 2).sum().backward()")
    assert "----> 3 (x * 2).sum().backward()" in text
    assert "----> 2 x.register_hook(lambda g: g @ tk.ones(3))" in text
    assert ".py" not in text


def test_an_error_of_any_class_that_passed_the_library_shows_no_file_of_it() -> None:
    own = "tk.autograd.functional.jacobian(lambda x: 1 / 0, tk.ones(2))"
    of_python = "tk.load('nowhere/model.pt')"
    text = printed(BEGIN, own, of_python)
    assert f"----> 1 {own}" in text
    assert f"----> 1 {of_python}" in text
    assert ".py" not in text


def test_tb_shows_the_library_too() -> None:
    text = printed(BEGIN, "tk.ones(3).view(5)", "print('again')", "%tb")
    before, after = text.split("again")
    assert "views.py" not in before
    assert "views.py" in after


@pytest.mark.parametrize("source", ["{}['a']", "1 / 0", "int('x')"])
def test_an_error_of_the_learners_own_is_shown_whole(source: str) -> None:
    assert f"----> 1 {source}" in printed(BEGIN, source)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("def board(rows, columns)\n    return rows", "SyntaxError: expected ':'"),
        ("def board(rows):\nreturn rows", "IndentationError: expected an indented block"),
    ],
)
def test_a_cell_that_python_cannot_read_is_shown_by_its_line_alone(
    source: str, sentence: str
) -> None:
    text = printed(BEGIN, source)
    assert sentence in text
    assert ".py" not in text


def test_a_syntax_error_that_a_running_cell_meets_is_shown_with_its_call() -> None:
    text = printed(BEGIN, "eval('1 +')")
    assert "eval('1 +')" in text
    assert "SyntaxError: invalid syntax" in text


@pytest.mark.parametrize(
    ("source", "name"), [("tk.zeors(3)", "zeros"), ("tk.ones(3).reshap(3, 1)", "reshape")]
)
def test_a_name_with_a_typing_error_is_answered_with_the_nearest_one(
    source: str, name: str
) -> None:
    assert f"Did you mean: '{name}'?" in printed(BEGIN, source)


def test_a_handler_of_the_learners_own_stays() -> None:
    own = "get_ipython().set_custom_exc((KeyError,), lambda *args, **options: print('mine'))"
    assert printed(own, BEGIN, "{}['a']") == "mine\n"
