"""What ran in this notebook: the cells, in order, and which of them failed.

A check needs it to tell an answer that was never run from one whose last edit did not run. IPython
reports every cell, those with a SyntaxError too; outside IPython there is no history.
"""

from __future__ import annotations

import ast
import os
import re
import symtable
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

UNKNOWN = "unknown"
LONGEST = 20_000
"""The most characters of a cell that is read."""
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Run:
    """One execution of one cell: the number in its brackets, its text, how it ended."""

    number: int | None
    """None while it is graded, where the number differs from the learner's."""
    source: str
    cell_id: str | None
    error: str | None
    """The name of the exception's class, None if the cell ran to its end, or `UNKNOWN`."""
    message: str = ""
    """What the exception said."""
    bound: frozenset[str] = frozenset()
    """The names that mean another object after this run than before it."""

    def is_about(self, exercise_id: str, name: str) -> bool:
        """True if this cell defines `name`, or tried to, or is the exercise's answer cell."""
        if self.cell_id == exercise_id:
            return True
        if name not in self.source:
            return False
        # no part matches across lines: that would take quadratic time
        head = rf"[ \t]*(?:async[ \t]+def|def|class)[ \t]+{re.escape(name)}\b"
        pattern = rf"^(?:{head}|{re.escape(name)}[ \t]*(?::[^=\n]+)?=(?!=))"
        return re.search(pattern, self.source, re.MULTILINE) is not None

    def defines(self) -> list[str]:
        """The functions, classes and names that this cell defines at its top level."""
        return list(self._defined)

    @cached_property
    def _defined(self) -> tuple[str, ...]:
        # the names are kept, not the tree, which takes a hundred times the memory of its text
        names: list[str] = []
        for statement in _statements(self.source):
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                names.append(statement.name)
            elif isinstance(statement, ast.Assign):
                names += [target.id for target in statement.targets if isinstance(target, ast.Name)]
        return tuple(names)

    def leaves_out(self, name: str) -> bool:
        """True if nothing in this cell binds `name`; False where that cannot be told."""
        names = bound_names(self.source)
        return bool(_statements(self.source)) and name not in names and "*" not in names

    def imports(self, name: str) -> bool:
        """True if an import of this cell gives `name` its value."""
        lines = [line for line in _statements(self.source) if isinstance(line, _IMPORTS)]
        return any(name == (alias.asname or alias.name) for line in lines for alias in line.names)

    @property
    def place(self) -> str:
        """The cell as the learner sees it, `cell [7]`; empty in grading, whose numbers differ."""
        is_theirs = self.number is not None and not os.environ.get("NBGRADER_EXECUTION")
        return f"cell [{self.number}]" if is_theirs else ""


def bound_names(source: str) -> set[str]:
    """Every name that a cell binds anywhere, as `globals()["f"] = ...` does, too; "*" for a star.

    >>> sorted(bound_names("other, f = 1, 2\\nfor g in (3, 4): pass"))
    ['f', 'g', 'other']
    """
    names: set[str] = set()
    for node in (node for statement in _statements(source) for node in ast.walk(statement)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            names.add(str(getattr(node.slice, "value", "")))
    return names


def without_magics(cell: str) -> str:
    """The text of a cell without its lines for IPython and for the shell."""
    return re.sub(r"(?m)^[%!].*$", "", cell)


def global_names(program: str) -> tuple[set[str], set[str]]:
    """The global names that a program binds, and those that it reads.

    Raises what Python raises for a text that is no program.

    >>> bound, read = global_names("def f(a):\\n    b = sum(a)\\n    return helper(b)")
    >>> sorted(bound), sorted(read)
    (['f'], ['helper', 'sum'])
    """
    top = symtable.symtable(program, "a program", "exec")
    bound = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
    read: set[str] = set()
    scopes = [top]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        referenced = [symbol for symbol in scope.get_symbols() if symbol.is_referenced()]
        read |= {symbol.get_name() for symbol in referenced if scope is top or symbol.is_global()}
    return bound, read


def changed_names(source: str) -> set[str]:
    """The names whose values a cell may change in place: by an entry or by a method.

    >>> sorted(changed_names("f['a'] = 1\\ng.update(a=1)\\nh |= {}\\nprint(i['a'])"))
    ['f', 'g', 'h']
    """
    changed: list[ast.AST] = []
    for node in (node for statement in _statements(source) for node in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed.append(node.value)
        elif isinstance(node, ast.AugAssign):
            changed.append(node.target)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed += [node.func.value] * (node.func.attr in _CHANGING)
    return {node.id for node in changed if isinstance(node, ast.Name)}


_CHANGING = ("update", "setdefault", "pop", "popitem", "clear")
"""Methods that change a dictionary."""


def _statements(source: str) -> list[ast.stmt]:
    if len(source) > LONGEST:
        return []
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: too deep
        return []


_runs: list[Run] = []
_before: dict[str, Any] = {}
"""The values of the notebook's names when the cell that runs now began."""
_running: list[Run] = []
"""The cell that runs now."""


def is_notebook() -> bool:
    """True where the value of a cell is shown as HTML."""
    return hasattr(ipython(), "kernel")


def ipython() -> Any:
    """IPython's shell, None elsewhere."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None


def runs() -> list[Run]:
    """Every cell that ran, in order; of those before the course was imported only the text."""
    return list(_runs)


def is_of_this_cell(name: str, value: Any) -> bool:
    """True if the cell that runs now gave `name` this value."""
    return bool(_before) and _before.get(name) is not value


def running_cell() -> str | None:
    """The id of the cell that runs now; None where cells have no ids."""
    return _running[-1].cell_id if _running else None


def runs_until_now() -> list[Run]:
    """Every cell that ran and, with what it has bound so far, the one that runs now."""
    return [*_runs, *running_now()]


def running_now() -> list[Run]:
    """The cell that runs now, with what it has bound so far; none outside of a notebook."""
    now = _running if _before else []
    return [replace(run, bound=_bound(ipython())) for run in now]


def watch() -> None:
    """Begin to note the cells of this notebook; a second call changes nothing."""
    shell = ipython()
    if shell is None or getattr(shell, "_course_watches", False):
        return
    shell._course_watches = True
    for number, source in enumerate(shell.user_ns.get("In", [""])[1:-1], start=1):
        _runs.append(Run(number, source, None, UNKNOWN))
    shell.events.register("pre_run_cell", lambda info: _begin(shell, info))
    shell.events.register("post_run_cell", lambda result: _end(shell, result))


def _begin(shell: Any, info: Any) -> None:
    _before.clear()
    _before.update(shell.user_ns)
    # IPython counts up before this or after, as its version has it
    number = len(shell.history_manager.input_hist_parsed)
    cell_id = getattr(info, "cell_id", None)
    _running[:] = [Run(number, info.raw_cell or "", cell_id, None)]


def _bound(shell: Any) -> frozenset[str]:
    """The names that mean another object now than when this cell began."""
    return frozenset(  # a name may be bound to None
        name for name, value in shell.user_ns.items() if _before.get(name, _before) is not value
    )


def _end(shell: Any, result: Any) -> None:
    if result is None or result.info is None or not result.info.store_history:
        return
    error = result.error_before_exec or result.error_in_exec
    _runs.append(
        Run(
            result.execution_count or 0,
            # without magics, so that Python can read it
            getattr(result.info, "transformed_cell", None) or result.info.raw_cell or "",
            getattr(result.info, "cell_id", None),
            None if error is None else type(error).__name__,
            message_of(error),
            _bound(shell),
        )
    )
    _before.clear()


def message_of(error: BaseException | None) -> str:
    if isinstance(error, SyntaxError):  # its text ends with the name of a file that is no file
        return f"{error.msg}, line {error.lineno}"
    try:
        lines = str(error).splitlines() if error is not None else []
    except Exception:  # an exception of the learner's own
        lines = []
    return lines[0] if lines else ""
