"""The source that is shown is the one that runs."""

import inspect
from pathlib import Path

import pytest

import tensorkit as tk
from tensorkit import explain


def test_the_lines_are_those_of_the_file() -> None:
    (only,) = explain.source(tk.no_grad).excerpts
    path = inspect.getsourcefile(tk.no_grad)
    assert path is not None
    assert path.endswith(only.file)
    with Path(path).open() as file:
        lines = file.read().splitlines()
    assert lines[only.first - 1 : only.first - 1 + len(only.lines)] == only.lines
    assert f"# {only.location}" in repr(explain.source(tk.no_grad))


def test_an_operation_comes_with_its_gradients() -> None:
    forward, gradients = explain.source(tk.mul).excerpts
    assert any("def mul(" in line for line in forward.lines)
    assert gradients.lines[0].startswith("mul.grad(")


def test_a_notebook_highlights_it() -> None:
    text = explain.source(tk.no_grad)._repr_markdown_()
    assert text.startswith("`tensorkit/")
    assert "```python\nclass no_grad" in text


def test_what_has_no_source_is_refused() -> None:
    with pytest.raises(TypeError, match="shows functions and classes, not 3"):
        explain.source(3)
