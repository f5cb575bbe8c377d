"""The exercise top-scores: pick, or keep the places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def top_scores(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    """The scores above the limit, and all scores with the others set to 0."""
    passed = scores > limit
    return scores[passed], tk.where(passed, scores, 0.0)


def _limit_included(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = scores >= limit
    return scores[passed], tk.where(passed, scores, 0.0)


def _ones_instead(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = scores > limit
    return scores[passed], tk.where(passed, 1.0, 0.0)


def _where_exchanged(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = scores > limit
    return scores[passed], tk.where(passed, 0.0, scores)


def _the_mask(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = scores > limit
    return passed, tk.where(passed, scores, 0.0)


def _the_same_twice(scores: tk.Tensor, limit: float) -> tuple[tk.Tensor, tk.Tensor]:
    passed = tk.where(scores > limit, scores, 0.0)
    return passed, passed


def _picked_afterwards(scores: tk.Tensor, limit: float, picks: Any) -> Any:
    kept = tk.where(scores > limit, scores, 0.0)
    return kept[picks(kept)], kept


PICKED_AFTERWARDS = (
    "Your first result leaves out scores that are above a limit below 0, because they are 0 or "
    "negative themselves. Pick from `scores` by the condition: `scores[scores > limit]`."
)


@exercise("top-scores", answer=top_scores, points=0, difficulty=2, minutes=5, further=True)
class TopScores(Exercise):
    """Pick, or keep the places

    **Input:** `scores`, a float vector, and `limit`, a number.

    **Output:** a pair: a vector of the scores above `limit`, in their order; and a vector as long
    as `scores`, in which every score that is not above `limit` is 0. `scores` itself stays as it
    is.

    ```python
    top_scores(tk.tensor([85.0, 67.0, 95.0]), 80)
    # (tensor([85., 95.]), tensor([85.,  0., 95.]))
    ```
    """

    hints = (
        "A mask as index picks. `tk.where(condition, a, b)` keeps the places.",
        "`passed = scores > limit` serves both: `scores[passed]` and `tk.where(passed, scores, "
        "0.0)`.",
    )
    usual_mistakes = {
        "the limit included": (
            _limit_included,
            "A score equal to the limit is not above it: `>`, not `>=`.",
        ),
        "ones": (
            _ones_instead,
            "Where the score passes, the score itself should stand, not 1.",
        ),
        "where exchanged": (
            _where_exchanged,
            "Your second result keeps the scores that did not pass. `where` takes its second "
            "argument where the condition is True.",
        ),
        "the mask itself": (
            _the_mask,
            "Your first result is the mask. Use it as an index: `scores[passed]`.",
        ),
        "the places": (
            lambda scores, limit: (
                (scores > limit).nonzero(),
                tk.where(scores > limit, scores, 0.0),
            ),
            "Your first result says where the scores stand. Asked for are the scores themselves: "
            "`scores[passed]`.",
            r"nonzero",
        ),
        "the same twice": (
            _the_same_twice,
            "Your first result still has the places of the others. A mask as index leaves only "
            "what passes.",
        ),
        "the limit itself": (
            lambda scores, limit: (scores[scores > limit], scores.clamp(min=limit)),
            "`clamp` sets the others to the limit. They should become 0: `tk.where(scores > "
            "limit, scores, 0.0)`.",
        ),
        "positive ones": (
            lambda scores, limit: _picked_afterwards(scores, limit, lambda kept: kept > 0),
            PICKED_AFTERWARDS,
        ),
        "what is not 0": (
            lambda scores, limit: _picked_afterwards(scores, limit, lambda kept: kept != 0),
            PICKED_AFTERWARDS,
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([85.0, 67.0, 95.0]), 80, label="three scores")
        yield case(*_scores(draw, 1, 1, -1, -1, 1), label="five scores")
        low, high = draw.integers(3, 10, 49), draw.integers(3, 51, 90)
        mixed = [float(number) for pair in zip(low, high, strict=True) for number in pair]
        yield case(tk.tensor(mixed), 50, label="any scores")
        yield case(*_scores(draw, 0, 1, -1, 0), label="scores at the limit")
        yield case(*_scores(draw, -1, 0, 0, -1, 1), label="at the limit and above")
        mixed = [2.0, -float(draw.integer(5, 9)), 0.0, -float(draw.integer(1, 3))]
        yield case(tk.tensor(mixed), -4, label="a limit below 0")
        below = [-float(draw.integer(1, 3)), 0.0, -float(draw.integer(5, 9))]
        yield case(tk.tensor(below), -4, label="none above 0")
        five, limit = _scores(draw, 1, -1, -1, 1, 1)
        yield case(five[::2], limit, label="every second (non-contiguous)")
        two, limit = _scores(draw, 1, -1)
        yield case(two.half(), limit, label="half the memory (float16)")
        yield case(*_scores(draw, 1), label="a single score (size 1)")
        yield case(tk.tensor([]), 1, label="no scores (empty)")


def _scores(draw: Draw, *sides: int) -> tuple[tk.Tensor, int]:
    """Scores above the limit (1), below it (-1) or equal to it (0), and the limit."""
    limit = draw.integer(40, 60)
    scores = [limit + side * draw.integer(1, 119) / 4 for side in sides]
    return tk.tensor(scores).float(), limit
