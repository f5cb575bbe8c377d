"""Chapter 01. RIGHT: other right answers, which test_right_answers tries; and what it promises.

That references pass, stubs earn nothing and usual mistakes are recognised is tested for all
exercises alike, in test_exercises.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import tensorkit as tk
from course.exercises.ch01_tensors.linspace_by_hand import evenly_spaced
from course.exercises.ch01_tensors.pixels import _photo
from course.exercises.ch01_tensors.strides_of import strides_of
from course.notebook.check import judge
from course.notebook.exercise import Draw, Exercise, Prediction, load

CHAPTER = load("01_tensors")
TEXT = Path(__file__).parents[3] / "solutions" / "01_tensors.py"


# other right answers


def checkerboard_by_loops(rows, columns):
    board = tk.zeros(rows, columns, dtype=tk.int64)
    for i in range(rows):
        for j in range(columns):
            board[i, j] = (i + j) % 2
    return board


def checkerboard_from_ones(rows, columns):
    board = tk.full((rows, columns), 1)
    board[::2, ::2] = 0
    board[1::2, 1::2] = 0
    return board


def checkerboard_row_by_row(rows, columns):
    board = tk.zeros(rows, columns).long()
    for i in range(rows):
        board[i, (i + 1) % 2 :: 2] += 1
    return board


def evenly_spaced_from_a_list(start, end, n):
    gaps = n - 1 if n > 1 else 1
    return tk.tensor([start + i * (end - start) / gaps for i in range(n)], dtype=tk.float32)


def evenly_spaced_as_a_mixture(start, end, n):
    if n == 1:
        return tk.tensor([float(start)])
    share = tk.arange(n) / (n - 1)
    return start * (1 - share) + end * share


def evenly_spaced_step_by_step(start, end, n):
    points = tk.zeros(n)
    for i in range(n):
        points[i] = start if i == 0 else start + (end - start) * i / (n - 1)
    return points


def grey_by_a_mean(image):
    return image.float().mean(dim=2) / 255


def grey_of_small_numbers(image):
    small = image / 255
    return (small[..., 0] + small[..., 1] + small[..., 2]) / 3


def grey_in_a_loop(image):
    grey = tk.zeros(image.shape[0], image.shape[1])
    for channel in range(3):
        grey += image[:, :, channel].to(tk.float32)
    return grey * (1 / 765)


def total_out_of_place(x):
    total = tk.zeros(())
    for i in range(len(x)):
        total = total + x[i].float()
    return total


def total_of_python_floats(x):
    return tk.tensor(sum(x.tolist(), start=0.0))


def total_in_float64(x):
    total = tk.tensor(0.0, dtype=tk.float64)
    for value in x:
        total += value
    return total.to(tk.float32)


def strides_by_products(shape):
    return tuple(math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))


def strides_by_recursion(shape):
    if len(shape) < 2:
        return (1,) * len(shape)
    rest = strides_by_recursion(shape[1:])
    return [rest[0] * max(shape[1], 1), *rest]


def copy_by_tensor(array):
    return tk.tensor(array[::2, ::2], dtype=tk.float32)


def copy_of_the_array(array):
    return tk.from_numpy(array[::2, ::2].copy()).float()


def copy_into_zeros(array):
    part = tk.from_numpy(array)[::2, ::2]
    own = tk.zeros(part.shape)
    own[...] = part
    return own


SHAPES_AS_LISTS = {
    "tk.tensor(7)": [],
    "tk.tensor([7, 8])[0]": [],
    "tk.zeros(4, 3)[1]": [3],
    "tk.zeros(4, 3)[1:2]": [1, 3],
    "tk.zeros(4, 3)[2:2]": [0, 3],
    "tk.zeros(4, 3)[:, 1]": [4],
    "tk.zeros(5, 4)[:3, ::3]": [3, 2],
    "tk.zeros(10)[::3]": [4],
    "tk.zeros(8, 3, 32, 32)[0, 0]": [32, 32],
}
SHAPES_AS_SIZES = {e: tk.zeros(shape).shape for e, shape in SHAPES_AS_LISTS.items()}

DTYPES_AS_OBJECTS = {
    "tk.tensor([1, 2, 3])": tk.int64,
    "tk.tensor([1, 2.5])": tk.float32,
    "tk.arange(4)": tk.int64,
    "tk.full((2,), 7)": tk.int64,
    "tk.from_numpy(np.array([0.5, 1.5]))": tk.float64,
    "tk.from_numpy(np.array([1, 2], dtype=np.uint8))": tk.uint8,
    "tk.tensor([1, 2, 3]) / 2": tk.float32,
    "tk.tensor([1, 2, 3]) * 0.5": tk.float32,
    "tk.ones(2, dtype=tk.float16) * 2.0": tk.float16,
    "tk.ones(2) + tk.tensor(1.0, dtype=tk.float64)": tk.float32,
    "tk.ones(2, dtype=tk.uint8) + 1": tk.uint8,
}
DTYPES_AS_PRINTED = {e: str(dtype) for e, dtype in DTYPES_AS_OBJECTS.items()}
DTYPES_AS_TYPED = {e: f"tk.{name[6:]}" for e, name in DTYPES_AS_PRINTED.items()}
DTYPES_AS_TITLES = {e: name[6:].title() for e, name in DTYPES_AS_PRINTED.items()}

RIGHT = [
    ("what-shape", SHAPES_AS_LISTS),
    ("what-shape", SHAPES_AS_SIZES),
    ("checkerboard", checkerboard_by_loops),
    ("checkerboard", checkerboard_from_ones),
    ("checkerboard", checkerboard_row_by_row),
    ("linspace-by-hand", evenly_spaced_from_a_list),
    ("linspace-by-hand", evenly_spaced_as_a_mixture),
    ("linspace-by-hand", evenly_spaced_step_by_step),
    ("which-dtype", DTYPES_AS_OBJECTS),
    ("which-dtype", DTYPES_AS_PRINTED),
    ("which-dtype", DTYPES_AS_TYPED),
    ("which-dtype", DTYPES_AS_TITLES),
    ("pixels", grey_by_a_mean),
    ("pixels", grey_of_small_numbers),
    ("pixels", grey_in_a_loop),
    ("half-precision", total_out_of_place),
    ("half-precision", total_of_python_floats),
    ("half-precision", total_in_float64),
    ("strides-of", strides_by_products),
    ("strides-of", strides_by_recursion),
    ("private-copy", copy_by_tensor),
    ("private-copy", copy_of_the_array),
    ("private-copy", copy_into_zeros),
]


# the chapter as a whole


def test_the_chapter_is_worth_twenty_points_a_tenth_of_them_for_predictions():
    points = {exercise.id: exercise.points for exercise in CHAPTER.values()}
    assert sum(points.values()) == 20
    assert (
        sum(exercise.points for exercise in CHAPTER.values() if isinstance(exercise, Prediction))
        == 2
    )


def test_the_text_does_not_print_the_answer_to_private_copy():
    answer = re.compile(r"\.float\(\)\.clone\(\)|dtype=tk\.float32\)\[::2")
    assert answer.search(CHAPTER["private-copy"].solution_source)
    assert not answer.search(TEXT.read_text(encoding="utf-8"))


# references agree with the library on what they write by hand

SHAPES = [(), (5,), (0,), (3, 4), (2, 0, 3), (4, 0), (0, 0, 3), (4, 1, 3), (2, 3, 4, 5)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_strides_are_those_of_a_new_tensor(shape):
    assert strides_of(shape) == tk.zeros(shape).stride()


@pytest.mark.parametrize("ends", [(0, 1), (2, -1), (-3.5, 4), (1.5, 1.5)])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 9])
def test_evenly_spaced_is_linspace(ends, n):
    answer, reference = evenly_spaced(*ends, n), tk.linspace(*ends, n)
    assert answer.dtype == reference.dtype
    np.testing.assert_allclose(answer.numpy(), reference.numpy(), rtol=1.3e-6, atol=1e-5)


# what the statements promise


def first_failure(exercise: Exercise, answer: object) -> str:
    return next(row for row in judge(exercise, answer).rows if row.status == "failed").got


def test_linspace_is_switched_off_in_linspace_by_hand():
    exercise = CHAPTER["linspace-by-hand"]
    assert "linspace is switched off while your answer runs" in first_failure(exercise, tk_linspace)
    assert tk.linspace(0, 1, 2).tolist() == [0, 1]


def tk_linspace(start, end, n):
    return tk.linspace(start, end, n)


def test_stride_is_switched_off_in_strides_of():
    exercise = CHAPTER["strides-of"]
    told = first_failure(exercise, lambda shape: tk.zeros(shape).stride())
    assert "Tensor.stride is switched off while your answer runs" in told
    assert tk.zeros(3, 4).stride() == (4, 1)


@pytest.mark.parametrize("exercise_id", ["what-shape", "which-dtype"])
def test_a_wrong_prediction_is_told_the_rule_and_not_the_value(exercise_id):
    exercise = CHAPTER[exercise_id]
    wrong = {
        e: next(other for other in exercise.right.values() if other != value)
        for e, value in exercise.right.items()
    }
    for row in judge(exercise, wrong).rows:
        assert row.status == "failed"
        assert row.tip.startswith(exercise.questions[row.label])
        assert row.expected == ""
        value = exercise.right[row.label]
        for spelled in (value,) if isinstance(value, str) else (str(value), str(list(value))):
            assert spelled not in row.tip


def test_every_question_of_a_prediction_counts():
    exercise = CHAPTER["which-dtype"]
    assert [case.weight for case in exercise.drawn(Draw(0))] == [1.0] * len(exercise.questions)


def test_a_shape_in_quotes_is_told_to_lose_them():
    exercise = CHAPTER["what-shape"]
    quoted = {expression: str(shape) for expression, shape in SHAPES_AS_LISTS.items()}
    assert "without quotes" in judge(exercise, quoted).message


@pytest.mark.parametrize(("whole", "real"), [("int", "float"), (int, float)])
def test_a_type_of_python_is_told_that_a_dtype_says_how_many_bits(whole, real):
    exercise = CHAPTER["which-dtype"]
    types = {e: real if dtype.startswith("float") else whole for e, dtype in exercise.right.items()}
    report = judge(exercise, types)
    assert report.mistake == "Python's types"
    assert report.earned == 0


def with_a_rounded_width(start, end, n):
    return tk.arange(n) * ((end - start) // (n - 1)) + start


def test_a_width_that_is_rounded_down_is_not_taken_for_a_single_point():
    report = judge(CHAPTER["linspace-by-hand"], with_a_rounded_width)
    assert report.mistake == "rounds the width down"


def slice_of_the_array(array):
    return tk.from_numpy(array[::2, ::2]).float()


def cast_to_float32(array):
    return tk.from_numpy(array)[::2, ::2].to(tk.float32)


@pytest.mark.parametrize("shared", [slice_of_the_array, cast_to_float32])
def test_every_way_to_share_now_and_then_is_recognised(shared):
    assert judge(CHAPTER["private-copy"], shared).mistake == "sometimes shared"


def test_a_copy_that_shares_is_told_so_in_one_line_per_observation():
    row = judge(CHAPTER["private-copy"], slice_of_the_array).rows[0]
    assert [line.partition(":")[0] for line in row.got.splitlines()] == [
        "at first",
        "after the array is filled with zeros",
    ]


def test_an_answer_that_changes_the_array_is_told_so():
    def careless(array):
        copy = tk.from_numpy(array[::2, ::2].copy()).float()
        array[...] = 5
        return copy

    report = judge(CHAPTER["private-copy"], careless)
    assert "It changes argument 1" in str(report)


def test_the_drawn_photos_do_not_fit_into_uint8():
    for seed in range(50):
        photo = np.array(_photo(Draw(seed), 3, 2))
        assert photo.shape == (3, 2, 3)
        assert photo.sum(axis=2).min() > 255
        assert photo.max() < 255
