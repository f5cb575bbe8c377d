"""Grades an instructor's plain cell of asserts on the checker's side.

The cell runs here; the names in it that the learner's notebook defines stand for answers over there
(`remote`). So `assert double(3) == 6` compares plain data here, and nothing of the learner's runs.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import traceback
from typing import Any

import numpy as np

import tensorkit as tk
from course.errors import TimeLimit
from course.grading.remote import Caller, TimeLimitThere, words_of
from course.grading.session import Died
from course.grading.wire import WireError
from course.limited import limited
from course.report import Report, Row

_OURS = {"np": np, "numpy": np, "tk": tk, "torch": tk, "tensorkit": tk}


def judge(caller: Caller, source: str, name: str, points: float) -> Report:
    """Full points if the cell runs to its end, those of its last expression if that is a number."""
    try:
        tree = ast.parse(source)
    except SyntaxError as problem:
        return _report(name, points, 0.0, f"The check itself cannot be read ({problem}).")
    namespace: dict[str, Any] = {"__builtins__": builtins, **_OURS}
    last: list[Any] = []
    try:
        for wanted in sorted(_free(tree) - namespace.keys() - vars(builtins).keys()):
            exists, value, _ = caller.look(wanted)
            if exists:
                namespace[wanted] = value
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            limited(lambda: last.append(_run(tree, namespace)), caller.budget.seconds + 1)
    except (Died, WireError, TimeLimit) as problem:
        if not isinstance(problem, Died | TimeLimitThere):
            caller.session.end()  # perhaps within a message: it cannot be used any more
        return _report(name, points, 0.0, str(problem) or "It did not end in time.")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _report(name, points, 0.0, _why(error))
    earned = last[0]
    if type(earned) in (int, float) and 0 <= earned <= points:
        return _report(name, points, float(earned), "")
    return _report(name, points, points, "")


def _report(name: str, points: float, earned: float, message: str) -> Report:
    status = "passed" if earned >= points else "partly" if earned else "failed"
    row = Row("the instructor's check", "passed" if status == "passed" else "failed", tip=message)
    return Report(name, name, status, points, earned, message, rows=(row,))


def _run(tree: ast.Module, namespace: dict[str, Any]) -> Any:
    """Run the statements; the value of the last one, if it is an expression."""
    statements, value = list(tree.body), None
    last = statements.pop() if statements and isinstance(statements[-1], ast.Expr) else None
    exec(compile(ast.Module(statements, []), "<check>", "exec"), namespace)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<check>", "eval"), namespace)
    return value


def _free(tree: ast.Module) -> set[str]:
    """The names that the cell reads and may not define itself."""
    return {it.id for it in ast.walk(tree) if isinstance(it, ast.Name)}


def _why(error: BaseException) -> str:
    """What failed, without the line of a check that may be hidden."""
    (first, _), where = words_of(error)
    if where:
        return f"Your code raised {type(error).__name__}: {first} ({where})"
    if isinstance(error, AssertionError):
        return first or "One of the instructor's checks failed."
    frames = [it for it in traceback.extract_tb(error.__traceback__) if it.filename == "<check>"]
    line = f" in line {frames[-1].lineno} of the check" if frames else ""
    return f"{type(error).__name__}{line}: {first}"
