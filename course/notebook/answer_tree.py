"""The syntax tree of an answer, as the sentences about it read it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from course.notebook.runner import Outcome


@dataclass(frozen=True)
class Slip:
    """A slip's name, and a sentence that says what the code does and what to write."""

    name: str
    sentence: str


@dataclass(frozen=True)
class AnswerTree:
    """The syntax tree of an answer, and what the answer and a right one did."""

    tree: ast.AST
    parents: dict[ast.AST, ast.AST]
    lines: list[str]
    outcome: Outcome
    right: Outcome

    def nodes(self, kind: type[ast.AST] | tuple[type[ast.AST], ...]) -> Iterator[Any]:
        """The nodes of this kind in the order of the text."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, kind)]
        return iter(sorted(nodes, key=lambda node: (getattr(node, "lineno", 0), -_length(node))))

    def said(self, pattern: str) -> re.Match[str] | None:
        """Where the class and message of the exception that the answer raised have this in them."""
        error = self.outcome.error
        text = f"{type(error).__name__}: {self.outcome.message[0]}"
        return re.search(pattern, text) if error is not None else None

    @property
    def text(self) -> str:
        """The whole answer."""
        return "\n".join(self.lines)

    @property
    def line(self) -> str:
        """The line of the answer that raised; "" if that is not known."""
        return self.outcome.place.partition(": ")[2].strip()

    def raised_in(self, node: ast.AST) -> bool:
        """Whether this part of the code stands in the line that raised, if that is known."""
        first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", None)
        return not self.line or self.line in [line.strip() for line in self.lines[first - 1 : last]]

    def in_the_line(self, kind: type[ast.AST] | tuple[type[ast.AST], ...]) -> list[Any]:
        """The nodes of this kind within the line that raised; none if that is not known."""
        if not self.line:
            return []
        nodes = [node for node in self.nodes(kind) if self.raised_in(node)]
        return [node for node in nodes if node.lineno == node.end_lineno]


def _length(node: ast.AST) -> int:
    return len(ast.dump(node))
