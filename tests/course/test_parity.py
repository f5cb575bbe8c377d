"""Each chapter prints the same text with PyTorch, or says why it does not."""

from __future__ import annotations

import parity
import pytest

pytest.importorskip("torch", reason="needs PyTorch: pip install torch==2.13.0")
pytestmark = pytest.mark.rest


@pytest.mark.parametrize("chapter", parity.chapters())
def test_a_chapter_prints_the_same_with_pytorch(chapter):
    if reason := parity.why_not_compared(chapter):
        pytest.skip(reason)
    cells = parity.compared(chapter)
    assert len(cells) >= 3
    for cell in cells:
        assert cell.tensorkit == cell.torch or cell.reason, cell.source


def test_a_difference_is_noticed():
    source = "import tensorkit as tk\nprint(tk.__name__)"
    assert parity.printed([source], "torch", "01_tensors") == ["torch\n"]
    assert parity.printed([source], "tensorkit", "01_tensors") == ["tensorkit\n"]
