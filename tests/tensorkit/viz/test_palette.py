"""The colours: every text can be read upon its ground, and neighbours differ in grey."""

from itertools import pairwise

import pytest

from tensorkit.viz import drawing


def _luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one, other):
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


GROUNDS = ["PAPER", "LEAF", "RESULT", "FOLDED", "PLAIN", "WRONG", "RIGHT"]
PAIRS = [*drawing.SERIES, *((getattr(drawing, ground), drawing.INK) for ground in GROUNDS)]
PAIRS += [(getattr(drawing, ground), drawing.SOFT) for ground in GROUNDS]
PAIRS += [
    (drawing.DARK[getattr(drawing, ground)], drawing.DARK[text])
    for ground in GROUNDS
    for text in (drawing.INK, drawing.SOFT)
]


@pytest.mark.parametrize(("ground", "text"), PAIRS)
def test_text_has_the_contrast_that_wcag_asks_for(ground, text):
    assert _contrast(ground, text) >= 4.5


def test_neighbours_differ_in_grey():
    for (one, _), (other, _) in pairwise(drawing.SERIES):
        assert _contrast(one, other) > 1.1
