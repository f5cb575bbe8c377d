"""A learner's parts of the engine of chapter 10: tried one by one, then assembled.

`tensor_with` puts a part among the course's, `tried` runs a program on the class that results, and
`assemble` joins all parts that are right into one text, which is the learner's own library.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from course import engine
from course.shared.errors import CourseError

PARTS = ("Basics", "result", "Operations", "propagate", "Writing", "no_grad", "sin")
"""The parts of the engine, by the names that learners give them, in the order of the chapter."""

Part = type | FunctionType


def tensor_with(part: Any) -> type:
    """A class `Tensor` with this part in it; all its other parts are the course's.

    part: a class whose methods become the tensor's, or a function that becomes a method. Its name
    says which part it is. Raises CourseError if the engine has no part of this name.

    >>> def propagate(self, gradient):
    ...     self.inputs[0].grad = gradient
    >>> Tensor = tensor_with(propagate)
    >>> x = Tensor(3.0, requires_grad=True)
    >>> (x * 2.0).backward()
    >>> x.grad
    Tensor(1.)
    """
    name = getattr(part, "__name__", type(part).__name__)
    if name not in PARTS:
        raise CourseError(f"The engine has no part called {name!r}; it has {', '.join(PARTS)}.")
    return _composed(name, part)


def _composed(name: str, part: Any) -> type:
    parts = {key: getattr(engine, key) for key in PARTS} | {name: part}
    del parts["no_grad"]  # a block, no part of a tensor
    classes = [value for value in parts.values() if isinstance(value, type)]
    methods = {key: value for key, value in parts.items() if not isinstance(value, type)}
    return type("Tensor", (*classes, engine.TensorBase), methods)


def tried(part: Any, name: str, program: str, looks: tuple[str, ...]) -> dict[str, Any]:
    """What some expressions are after a program on a tensor that has this part.

    program: statements on `Tensor`, `grad_mode`, `no_grad` and `np`. looks: the expressions.
    Whatever the program raises is raised here, and recording is on again afterwards.
    """
    if not isinstance(part, Part):  # the answer is in another process
        result: dict[str, Any] = part.call_there("tried", name, program, looks)
        return result
    names = {
        "Tensor": _composed(name, part),
        "grad_mode": engine.grad_mode,
        "no_grad": engine.no_grad,
        "np": np,
    }
    if name == "no_grad":
        names[name] = part
    try:
        exec(_compiled(program), names)
        return {look: _copied(eval(look, names)) for look in looks}
    finally:
        engine.grad_mode.enabled = True


@lru_cache(maxsize=100)
def _compiled(program: str) -> CodeType:
    return compile(program, "<program>", "exec")


def _copied(value: Any) -> Any:
    if isinstance(value, memoryview):  # what NumPy's own numbers and arrays call `data`
        return value.tolist()
    return value.copy() if isinstance(value, np.ndarray) else value


# The parts together


class Assembled:
    """A learner's library: its text, and who wrote each part."""

    def __init__(self, source: str, owners: dict[str, str]) -> None:
        self.source, self.owners = source, owners
        self.module = _module(source)
        self.Tensor, self.no_grad = self.module.Tensor, self.module.no_grad

    def __repr__(self) -> str:
        written = sum(owner == LEARNER for owner in self.owners.values())
        lines = [f"{name}: {owner}" for name, owner in self.owners.items()]
        return "\n".join([*lines, f"{written} of {len(PARTS)} parts are yours."])


LEARNER = "yours"


def assemble(*parts: Any) -> Assembled:
    """One library of all parts that pass their checks; the others are the course's.

    parts: the answers to the exercises of chapter 10.
    """
    answers = {getattr(part, "__name__", ""): part for part in parts}
    text = inspect.getsource(engine)
    owners = {}
    for name in PARTS:
        problem, source = _source_or_reason(name, answers.get(name))
        owners[name] = f"the course's; {problem}" if problem else LEARNER
        if not problem:
            text = text.replace(inspect.getsource(getattr(engine, name)), source + "\n")
    return Assembled(text, owners)


def _source_or_reason(name: str, answer: Any) -> tuple[str, str]:
    """Why this answer is no part of the library, or "" and its text."""
    from course.notebook.check import judge
    from course.notebook.exercise import load

    exercise = next(
        definition for definition in load("10_engine").values() if definition.name == name
    )
    source = _source_of(name, answer)
    if answer is None or exercise.is_not_started(answer, source):
        return "yours is not written yet", ""
    if judge(exercise, answer).status != "passed":
        return f'see `check("{exercise.id}")`', ""
    if source is None:
        return "run the cell of yours once more, its text was not found", ""
    if missing := _missing(source):
        return f"yours needs `{missing[0]}`, which stands outside of it", ""
    return "", source


def _source_of(name: str, answer: Any) -> str | None:
    """The text of a function or a class, in the file or the cell where its code comes from."""
    members = vars(answer).values() if isinstance(answer, type) else [inspect.unwrap(answer)]
    codes = [member.__code__ for member in members if isinstance(member, FunctionType)]
    text = "".join(linecache.getlines(codes[0].co_filename)) if codes else ""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(member.lineno for member in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    return None


def _missing(source: str) -> list[str]:
    """The names that a part uses and neither it nor the engine nor Python defines."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    known = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    known |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    known |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    return sorted({node.id for node in names} - known - set(vars(engine)) - set(dir(builtins)))


def _module(source: str) -> ModuleType:
    name = "my_tensor"
    module = ModuleType(name)
    # so that a traceback shows its lines
    linecache.cache[f"{name}.py"] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, f"{name}.py", "exec"), vars(module))
    return module
