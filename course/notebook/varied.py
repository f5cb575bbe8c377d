"""Numbers that differ from learner to learner in the questions of a prediction (`Varied`).

They are drawn when a question is asked, in the notebook and in grading alike, from the setting
`variants`, the learner's name and the exercise. The released notebook is the same for everybody.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from course.shared.settings import settings


@dataclass(frozen=True)
class Varied:
    """Numbers of some questions that are replaced by other numbers for each learner.

    numbers: as the released questions write them, "4" or "4.0", in ascending order.
    low, high: the least and the greatest number that may replace one; the order stays ascending.
    questions: a question has these numbers if it holds one of these pieces of text.
    """

    numbers: tuple[str, ...]
    low: int
    high: int
    questions: tuple[str, ...]

    def is_in(self, question: str) -> bool:
        """Whether this question has these numbers."""
        return any(piece in question for piece in self.questions)

    def written(self, drawn: list[int]) -> Mapping[str, str]:
        """The text that replaces each number, with a decimal point where the number has one."""
        points = [".0" if "." in number else "" for number in self.numbers]
        texts = [f"{number}{point}" for number, point in zip(sorted(drawn), points, strict=True)]
        return dict(zip(self.numbers, texts, strict=True))


PUT_THESE = "Put the lines below into the answer cell, and a prediction in place of each `...`"
"""What a learner does with their own questions, which a check prints."""


class Value(str):
    """A wrong prediction as an expression, so that its value follows from the learner's numbers."""

    __slots__ = ()


def seed_for(learner: str, exercise_id: str) -> str | None:
    """The seed of a learner's own numbers; None where everybody has the released ones."""
    key = settings().variants
    if not (key and learner):
        return None
    text = f"{learner}\n{exercise_id}"
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def replaced(text: str, numbers: Mapping[str, str]) -> str:
    """The text with other numbers.

    >>> replaced("tk.zeros(4, 3)[:3] has 3.5 or 4.", {"3": "5", "4": "7"})
    'tk.zeros(7, 5)[:5] has 3.5 or 7.'
    """
    pattern = rf"(?<![\w.])(?:{'|'.join(map(re.escape, numbers))})(?!\w|\.\d)"
    return re.sub(pattern, lambda match: numbers[match[0]], text)
