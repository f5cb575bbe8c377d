"""Grades an instructor's plain cell of asserts on the checker's side.

The cell runs in this process. A name in it that an answer defines stands for the answer on the
learner's side (`remote`). So `assert double(3) == 6` compares plain data here, and nothing of the
learner's runs here. A check that needs any other name of the notebook is refused (`Broken`), and so
is one that could run or open what a learner wrote.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import math
import traceback
from collections.abc import Iterable
from typing import Any

import numpy as np

import tensorkit as tk
from course.grading.remote import Caller, TimeLimitThere, is_from_there, is_ours, words_of
from course.grading.session import Died
from course.notebook import matching
from course.notebook.history import global_names
from course.notebook.limited import limited
from course.notebook.matching import Cell
from course.notebook.report import Report, Row
from course.sandbox.wire import WireError
from course.shared.errors import TimeLimit

_LIBRARIES = {"np": np, "numpy": np, "tk": tk, "torch": tk, "tensorkit": tk}
_MODULES = """
cmath collections copy decimal fractions functools itertools math numpy operator random re
statistics string tensorkit unittest
"""
_RUNS_TEXT = "__import__ breakpoint compile eval exec globals input locals open vars"


class Broken(Exception):
    """A check that cannot be run beside the gradebook; its text says why."""


def read(source: str, cells: Iterable[Cell]) -> tuple[ast.Module, set[str]]:
    """The program of a check, and the names in it that are the learner's.

    cells: of the instructor's notebook with the answers. Raises Broken.
    """
    try:
        tree = ast.parse(source)
        names, bound = _names(tree)
    except (SyntaxError, ValueError) as problem:
        raise Broken(f"it cannot be read ({problem})") from None
    answers = _names_in(cells)
    for node in ast.walk(tree):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for module in modules:
            if module.partition(".")[0] not in _MODULES.split():
                raise Broken(f"it imports {module or 'a neighbour'}, beside the gradebook")
    unknown = sorted(names - answers - bound)
    if runs := [name for name in unknown if name in _RUNS_TEXT.split()]:
        raise Broken(f"it calls `{runs[0]}`, which may run or open what a learner wrote")
    if unknown:
        raise Broken(
            f"it reads `{unknown[0]}`, which learners can change: import or define it in the check"
        )
    return tree, names & answers


def judge(caller: Caller, source: str, name: str, points: float, cells: Iterable[Cell]) -> Report:
    """Full points if the cell runs to its end, those of its last expression if that is a number."""
    try:
        tree, wanted = read(source, cells)
    except Broken as problem:
        return _report(name, points, 0.0, f"This check was refused: {problem}.")
    namespace: dict[str, Any] = {"__builtins__": builtins, **_LIBRARIES}
    last: list[Any] = []
    try:
        for variable in sorted(wanted):
            look = caller.look(variable)
            if look.exists:
                namespace[variable] = look.value
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            limited(lambda: last.append(_run(tree, namespace)), caller.budget.seconds + 1)
    except (Died, WireError, TimeLimit) as problem:
        reason = str(problem) or "It did not end in time."
        if not isinstance(problem, TimeLimitThere):
            caller.session.end_because(reason)  # a message may be half sent
        return _report(name, points, 0.0, reason)
    except BaseException as error:
        if is_ours(error):
            raise
        return _report(name, points, 0.0, _reason(error))
    earned = _earned(tree.body[-1] if tree.body else None, last[0], points)
    return _report(name, points, earned, "")


_COMPUTES = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Name)
_NUMBERS = {"abs", "float", "int", "len", "max", "mean", "min", "prod", "round", "sum"}


def _earned(last: ast.stmt | None, value: Any, points: float) -> float:
    """The points that the last expression gives; all points if it computes no number."""
    if isinstance(value, tk.Tensor | np.ndarray) and math.prod(value.shape) == 1:
        value = value.item()
    if isinstance(value, bool | np.bool_):
        return points if value else 0.0
    if isinstance(value, int | float | np.integer | np.floating):
        return 0.0 if value != value else float(min(max(value, 0.0), points))
    return 0.0 if isinstance(last, ast.Expr) and _is_about_points(last.value) else points


def _is_about_points(expression: ast.expr) -> bool:
    """Whether an expression computes a number: an answer of many elements makes it none."""
    called = expression.func if isinstance(expression, ast.Call) else None
    name = getattr(called, "id", getattr(called, "attr", None))
    return isinstance(expression, _COMPUTES) or name in _NUMBERS


def _report(name: str, points: float, earned: float, message: str) -> Report:
    status = "passed" if earned >= points else "partly" if earned else "failed"
    row = Row("the instructor's check", "passed" if status == "passed" else "failed", tip=message)
    return Report(name, name, status, points, earned, message, rows=(row,))


def _run(tree: ast.Module, namespace: dict[str, Any]) -> Any:
    """Run the statements; the value of the last one, if it is an expression.

    The asserts count under PYTHONOPTIMIZE too.
    """
    statements, value = list(tree.body), None
    last = statements.pop() if statements and isinstance(statements[-1], ast.Expr) else None
    exec(compile(ast.Module(statements, []), "<check>", "exec", optimize=0), namespace)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<check>", "eval", optimize=0), namespace)
    return value


def _names_in(cells: Iterable[Cell]) -> set[str]:
    """The names that the answer cells define."""
    answers: set[str] = set()
    for cell in cells:
        if cell["cell_type"] == "code" and matching.is_answer(cell):
            with contextlib.suppress(SyntaxError, ValueError):
                answers |= _names(ast.parse(cell["source"]))[1]
    return answers


def _names(program: ast.Module) -> tuple[set[str], set[str]]:
    """The global names that a program reads, and those that it binds.

    Names of Python and of the libraries are left out.
    """
    bound, read = global_names(ast.unparse(program))
    return read - (_LIBRARIES.keys() | vars(builtins).keys() - set(_RUNS_TEXT.split())), bound


def _reason(error: BaseException) -> str:
    """What failed, without the line of a check that may be hidden."""
    (first, _), place = words_of(error)
    if is_from_there(error):
        return f"Your code raised {type(error).__name__}: {first}{place and f' ({place})'}"
    if isinstance(error, AssertionError):
        return first or "One of the instructor's checks failed."
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<check>"
    ]
    line = f" in line {frames[-1].lineno} of the check" if frames else ""
    return f"{type(error).__name__}{line}: {first}"
