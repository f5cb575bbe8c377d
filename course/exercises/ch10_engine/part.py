"""What the exercises of chapter 10 share: a case is a program on a class with a learner's part."""

from __future__ import annotations

import inspect
from typing import Any

from course.engine.assembly import tried
from course.notebook import compare
from course.notebook.exercise import Case, Exercise, case
from course.notebook.plain import Seen


class Part(Exercise):
    """A part of the engine, tried among the course's other parts."""

    imports = "from course.engine import grad_mode, no_grad, numbers"

    def run(self, answer: Any, *args: Any) -> Any:
        program, *looks = args
        return Seen(tried(answer, self.name, program, tuple(looks)))

    def is_answer(self, answer: Any) -> str | None:
        kind = compare.kind(answer)
        if isinstance(self.reference, type) and (kind == "a function" or not callable(answer)):
            return (
                f"`{self.name}` should be a class, and it is {kind}. Begin the answer cell "
                f"with `class {self.name}:` and run it again."
            )
        return super().is_answer(answer)

    def describe_call(self, args: tuple[Any, ...], show: Any) -> str:
        program, *looks = args
        begin = "" if self.name == "no_grad" else f"Tensor = tensor_with({self.name})\n"
        return "\n".join([f"{begin}{program}", *looks])


def program_case(
    label: str, program: str, *looks: str, weight: float = 1.0, raises: bool = False
) -> Case:
    return case(inspect.cleandoc(program), *looks, label=label, weight=weight, raises=raises)


def names_of(part: type) -> tuple[str, ...]:
    """The methods of a part of the course, by the names under which they are refused."""
    members = (name for name, member in vars(part).items() if inspect.isfunction(member))
    return tuple(f"course.engine.{part.__name__}.{name}" for name in members)
