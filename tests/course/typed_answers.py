"""Answers that beginners typed, who had nothing but the released notebooks.

A file in `answers/` holds those of a chapter. Of each answer: the exercise, whether it is right,
what a wrong one is told, then what its author meant, and the code without its docstring. What is
told is the name of a mistake, a slip or a relation, or the words of the rule that it breaks; "the
rule" of a prediction is that of its question. "-" stands where nothing is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "answers"
CHAPTERS = sorted(path.stem for path in HERE.glob("*.md"))


@dataclass(frozen=True)
class Typed:
    """One answer."""

    exercise: str
    is_right: bool
    told: str
    meaning: str
    source: str


def typed(chapter: str) -> Iterator[Typed]:
    """The answers of a chapter's file."""
    text = (HERE / f"{chapter}.md").read_text(encoding="utf-8")
    for entry in text.split("\n## ")[1:]:
        head, _, rest = entry.partition("\n")
        meaning, _, code = rest.partition("```python\n")
        exercise, label, *words = head.split(" | ")
        source = code.partition("\n```")[0]
        yield Typed(exercise, label == "right", "".join(words), meaning.strip(), source)
