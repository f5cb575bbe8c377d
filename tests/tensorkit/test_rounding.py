"""Sums of a product, rounded once: exact fractions are the oracle."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorkit.rounding import multiply_add

finite = st.floats(-1e9, 1e9, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-9)

single = st.floats(-(2.0**30), 2.0**30, width=32).filter(lambda x: x == 0 or abs(x) > 1e-9)


@given(x=finite, y=finite, rest=finite, close=st.booleans())
def test_float64_is_rounded_once(x, y, rest, close):
    z = -x * y if close else rest
    exact = float(Fraction(x) * Fraction(y) + Fraction(z))
    assert multiply_add(np, np.float64(x), y, z, np.dtype("float64")) == exact


@given(x=single, y=single, rest=single, close=st.booleans())
def test_float32_is_rounded_once(x, y, rest, close):
    z = -float(np.float32(x * y)) if close else rest
    got = multiply_add(np, np.float64(x), y, z, np.dtype("float32"))
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    off = abs(Fraction(float(got)) - exact)
    for neighbour in (np.nextafter(got, np.float32(s)) for s in (-np.inf, np.inf)):
        assert off <= abs(Fraction(float(neighbour)) - exact)


def test_infinities_and_nans_pass_through():
    with np.errstate(all="ignore"):
        values = multiply_add(np, np.array([np.inf, 1e308, np.nan]), 2.0, 1.0, np.dtype("float64"))
    assert values[:2].tolist() == [np.inf, np.inf]
    assert np.isnan(values[2])
