"""equal, isclose and allclose against PyTorch."""

from hypothesis import given
from hypothesis import strategies as st
from tk_oracle import assert_same_outcome, broadcastable_pairs, torch, twins

import tensorkit as tk

tolerances = st.sampled_from([0, 1e-8, 1e-5, 0.1, 0.5, -1])


@given(pair=broadcastable_pairs())
def test_equal_is_pytorchs(pair):
    x, y = pair
    assert_same_outcome(lambda: torch.equal(x.torch, y.torch), lambda: tk.equal(x.tk, y.tk))
    assert_same_outcome(lambda: torch.equal(x.torch, x.torch), lambda: tk.equal(x.tk, x.tk))


@given(
    pair=st.one_of(
        broadcastable_pairs(),
        broadcastable_pairs(["float32"]),
        broadcastable_pairs(["int64"]),
        broadcastable_pairs(["float64"]),
    ),
    rtol=tolerances,
    atol=tolerances,
    equal_nan=st.booleans(),
)
def test_isclose_and_allclose_are_pytorchs(pair, rtol, atol, equal_nan):
    x, y = pair
    for name in ("isclose", "allclose"):
        assert_same_outcome(
            lambda name=name: getattr(torch, name)(x.torch, y.torch, rtol, atol, equal_nan),
            lambda name=name: getattr(tk, name)(x.tk, y.tk, rtol, atol, equal_nan),
            is_laid_out=False,
        )


@given(x=twins())
def test_a_tensor_is_close_to_itself_unless_it_holds_nan(x):
    assert tk.allclose(x.tk, x.tk, equal_nan=True)


def test_bools_are_close_within_one():
    for atol in (0, 1):
        pairs = [(m, m.tensor([True]), m.tensor([False])) for m in (torch, tk)]
        found = [str(m.isclose(x, y, atol=atol)) for m, x, y in pairs]
        assert found[1] == found[0]
