"""The stride rules, as properties on integers; PyTorch's answers are checked in ops/."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorkit import layout
from tensorkit.errors import ShapeError

shapes = st.lists(st.integers(0, 4), max_size=5).map(tuple)


@given(shape=shapes)
def test_contiguous_strides_are_contiguous_and_dense(shape):
    strides = layout.contiguous_strides(shape)
    assert layout.is_contiguous(shape, strides)
    assert layout.is_dense(shape, strides)
    assert not layout.overlaps_itself(shape, strides)


@given(shape=shapes)
def test_the_extent_of_a_dense_layout_is_its_number_of_elements(shape):
    assert layout.extent(shape, layout.contiguous_strides(shape)) == layout.Size(shape).numel()


@given(a=shapes, b=shapes)
def test_broadcasting_is_symmetric(a, b):
    def run(*pair):
        try:
            return layout.broadcast_shapes(*pair)
        except ShapeError as error:
            return str(error).splitlines()[0].rpartition("dimension")[2]

    assert run(a, b) == run(b, a)


def test_a_shape_error_shows_both_shapes_aligned():
    with pytest.raises(ShapeError) as caught:
        layout.broadcast_shapes((2, 10, 3), (4, 3))
    assert "  a:  2  10   3\n  b:      4   3\n          ^" in str(caught.value)
    assert "at non-singleton dimension 1\n" in str(caught.value)


def test_size_is_a_tuple_that_prints_as_pytorchs():
    size = layout.Size([2, 3])
    assert repr(size) == "torch.Size([2, 3])"
    assert size == (2, 3)
    assert repr(size[1:]) == "torch.Size([3])"
    assert repr((1, *size[:1])) == "(1, 2)"
    assert repr((1,) + size) == "torch.Size([1, 2, 3])"  # noqa: RUF005
    assert size.numel() == 6


def test_one_element_is_the_same_place_whatever_its_stride():
    # x[i, ::2] += 1 on a single column writes an element onto itself
    own, other = layout.Layout((1,), (2,), 3), layout.Layout((1,), (1,), 3)
    assert not layout.overlap_partially(own, other)
    assert layout.overlap_partially(layout.Layout((2,), (1,), 0), layout.Layout((2,), (1,), 1))
