"""The course on a CUDA device, a simulated one where there is no other: same text, full marks."""

from __future__ import annotations

import parity
import pytest

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.exercise import chapters, load


@pytest.fixture
def cuda():
    if tk.cuda.is_available():
        yield
    else:
        with tk.cuda.simulate():
            yield


@pytest.fixture
def cuda_by_default(cuda):
    tk.set_default_device("cuda")
    yield
    tk.set_default_device(None)


OF_THE_CPU = {"shuffled-apart", "another-answer-each-time"}
"""Their generators are of the CPU, and as in PyTorch draw no numbers for another device."""


@pytest.mark.parametrize("chapter", chapters())
def test_right_answers_get_full_marks_where_new_tensors_are_on_the_device(chapter, cuda_by_default):
    for exercise in (exercise for id, exercise in load(chapter).items() if id not in OF_THE_CPU):
        report = judge(exercise, exercise.reference, seed=3)
        assert report.status == "passed", str(report)


@pytest.mark.parametrize(
    "chapter", sorted({*chapters()} - {"08_devices", "11_dispatch", "12_kernels"})
)  # which simulate one themselves
def test_a_chapter_prints_the_same_where_there_is_a_device(chapter, request):
    sources = list(parity.teaching_cells(chapter))
    without = parity.printed(sources, "tensorkit", chapter)
    request.getfixturevalue("cuda")
    assert parity.printed(sources, "tensorkit", chapter) == without
