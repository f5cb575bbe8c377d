"""The picture of memory: what it says, that it is the same every time, that it is accessible."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorkit as tk
from tensorkit import viz
from tensorkit.viz._memory import MOST_BOXES, _describe, _seen

SVG = "{http://www.w3.org/2000/svg}"


def _matrix(n_rows=2, n_columns=3):
    return tk.arange(n_rows * n_columns).as_strided((n_rows, n_columns), (n_columns, 1))


def test_the_text_names_every_number():
    a = _matrix()
    text = viz.memory(a=a, column=a[:, 1]).alt
    assert "storage: 6 elements, int64, 48 bytes" in text
    assert "shape (2, 3), strides (3, 1), offset 0, contiguous" in text
    assert "shape (2,), strides (3,), offset 1, not contiguous" in text


def test_views_share_a_row_and_other_storages_get_their_own():
    a = _matrix()
    rows = _describe([("a", a), ("b", a[0]), ("c", a.clone())])
    assert [[lane.name for lane in row.lanes] for row in rows] == [["a", "b"], ["c"]]


def test_what_shares_memory_is_on_one_row_and_a_clone_on_its_own():
    array = np.arange(6.0)
    a = tk.from_numpy(array)
    views = {
        "view": a.view(2, 3),
        "turned": a.view(2, 3).T,
        "permuted": a.view(1, 2, 3).permute(2, 0, 1),
        "part": a[1:5:2],
        "wide": a[:1].expand(4),
        "detached": a.detach(),
    }
    text = viz.memory(a=a, again=tk.from_numpy(array), **views, copy=a.clone()).alt
    shared, own = text.split("storage 2: ")
    for name in ("a", "again", *views):
        assert f"\n  {name} " in shared
    assert "\n  copy " in own
    assert text.endswith("A write to a box is seen by every tensor with an index in its column.")


def test_memory_seen_as_two_dtypes_is_drawn_once_for_each():
    array = np.arange(4, dtype=np.int32)
    ints, floats = tk.from_numpy(array), tk.from_numpy(array.view(np.float64))
    first, second = _describe([("ints", ints), ("floats", floats)])
    assert "4 elements, int32" in first.title
    assert "2 elements, float64" in second.title
    assert len(second.boxes) == len(second.values) == len(second.lanes[0].seen) == 2


@given(
    shape=st.lists(st.integers(0, 4), max_size=3).map(tuple),
    steps=st.lists(st.integers(0, 5), min_size=3, max_size=3),
    offset=st.integers(0, 3),
)
def test_a_box_is_marked_exactly_if_the_tensor_sees_it(shape, steps, offset):
    strides = tuple(steps[: len(shape)])
    x = tk.arange(64).as_strided(shape, strides, offset)
    flat = x.tolist()
    while flat and isinstance(flat, list) and isinstance(flat[0], list):
        flat = [value for part in flat for value in part]
    seen = set(flat) if isinstance(flat, list) else {flat}
    if 0 in shape:
        seen = set()
    assert set(_seen(x, list(range(64)))) == seen


def test_many_elements_are_shortened():
    x = tk.arange(10_000).as_strided((100, 100), (100, 1))
    (row,) = _describe([("x", x), ("y", x[50:, ::7])])
    assert len(row.values) <= MOST_BOXES
    assert {0, 9_999, 5_000, 5_007, 5_100} <= set(row.boxes)


@pytest.mark.parametrize("x", [tk.tensor(2.5), tk.empty(0), tk.tensor([True, False])])
def test_unusual_tensors_are_drawn(x):
    picture = viz.memory(x)
    assert "1 element" in picture.alt or f"{x.numel()} elements" in picture.alt
    ET.fromstring(picture.svg)


def test_the_picture_is_the_same_every_time_and_holds_no_addresses():
    a = _matrix()
    first, second = viz.memory(a, a[1]), viz.memory(_matrix(), tk.zeros(0))
    assert first.svg == viz.memory(a, a[1]).svg
    assert str(a.data_ptr()) not in first.svg + first.alt
    assert " id=" not in first.svg + second.svg


def test_the_picture_has_a_title_a_description_and_a_role():
    picture = viz.memory(_matrix())
    root = ET.fromstring(picture.svg)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text.startswith("Memory of tensor 1")
    assert root.find(f"{SVG}desc").text == picture.alt


def test_a_notebook_gets_svg_and_text():
    bundle = viz.memory(_matrix())._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}


def test_save_writes_svg_and_text_and_refuses_other_endings(tmp_path):
    picture = viz.memory(_matrix())
    picture.save(tmp_path / "a.svg")
    picture.save(str(tmp_path / "a.txt"))
    assert (tmp_path / "a.svg").read_text() == picture.svg
    assert (tmp_path / "a.txt").read_text() == picture.alt + "\n"
    with pytest.raises(ValueError, match=r"saved as \.svg, \.html or \.txt"):
        picture.save(tmp_path / "a.jpg")


@pytest.mark.parametrize("value", [[1, 2], 3, None])
def test_what_is_not_a_tensor_is_refused_with_a_sentence(value):
    with pytest.raises(TypeError, match=r"viz\.memory\(\) wants a tensor; tensor 1 is of class"):
        viz.memory(value)
    with pytest.raises(TypeError, match="got none"):
        viz.memory()


def test_wide_values_leave_the_picture_as_wide_as_a_page():
    tk.manual_seed(0)
    picture = viz.memory(x=tk.rand(6, 8) * 1e-5)
    assert float(ET.fromstring(picture.svg).get("width")) <= 1000


def test_an_expanded_dimension_is_said_to_stay_at_one_place():
    column = tk.arange(3).reshape(3, 1)
    picture = viz.memory(column.expand(3, 4))
    for text in (picture.alt, picture.svg):
        assert "+0 in dimension 1: every column is the same place" in text
        assert "a colon is every index of a dimension" in text
    assert "+0" not in viz.memory(column).alt


def _box_widths(picture):
    boxes = [
        box for box in ET.fromstring(picture.svg).iter(f"{SVG}rect") if box.get("height") == "34"
    ]
    return {float(box.get("width")) for box in boxes}


def test_boxes_of_several_dtypes_are_as_wide_as_their_elements_are_large():
    half, single, double = (
        tk.ones(3, dtype=dtype) for dtype in (tk.float16, tk.float32, tk.float64)
    )
    narrow, middle, wide = sorted(_box_widths(viz.memory(half, single, double)))
    assert (middle, wide) == (2 * narrow, 4 * narrow)


def test_boxes_that_would_not_fit_the_page_are_not_to_scale():
    picture = viz.memory(tk.ones(20, dtype=tk.uint8), tk.ones(20, dtype=tk.float64))
    assert len(_box_widths(picture)) == 1
    assert float(ET.fromstring(picture.svg).get("width")) <= 1000


def test_save_refuses_png_and_says_what_to_write_instead(tmp_path):
    with pytest.raises(ValueError, match=r"a chart also as \.png.*Try: picture\.save\('a\.svg'\)"):
        viz.memory(_matrix()).save(tmp_path / "a.png")
