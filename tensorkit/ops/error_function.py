"""The error function, which no array library has: rational approximations.

float64: W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of
Computation 23 (1969): below 0.46875 ``x R(x^2)``, above ``1 - exp(-x^2) R(x)``. float32:
``tanh(x P(x^2))``, whose polynomial was fitted to ``atanh(erf(x)) / x`` by weighted least squares;
its relative error is 1e-7, what float32 can just show.
"""

from math import pi, sqrt
from typing import Any

import numpy as np

from tensorkit.dispatch import op
from tensorkit.ops.blocks import in_blocks
from tensorkit.ops.elementary import exp

# numerator and denominator, or a polynomial: lowest coefficient first
# fmt: off
_SMALL = (
    (3.20937758913846947e03, 3.77485237685302021e02, 1.13864154151050156e02,
     3.16112374387056560e00, 1.85777706184603153e-1),
    (2.84423683343917062e03, 1.28261652607737228e03, 2.44024637934444173e02,
     2.36012909523441209e01, 1.0),
)
_LARGE = (
    (1.23033935479799725e03, 2.05107837782607147e03, 1.71204761263407058e03,
     8.81952221241769090e02, 2.98635138197400131e02, 6.61191906371416295e01,
     8.88314979438837594e00, 5.64188496988670089e-1, 2.15311535474403846e-8),
    (1.23033935480374942e03, 3.43936767414372164e03, 4.36261909014324716e03,
     3.29079923573345963e03, 1.62138957456669019e03, 5.37181101862009858e02,
     1.17693950891312499e02, 1.57449261107098347e01, 1.0),
)
_SINGLE = tuple(np.array(each, np.float32) for each in (  # arrays are added faster than numbers
    1.128379274229331, 0.10276905577258814, -0.00019182899863344688, -0.0006197879053020732,
    8.763928233858581e-05, -5.668938352197733e-06, 1.4188889672433178e-07,
))
# fmt: on


@op(to_floating=True)
def erf(xp: Any, input: Any) -> Any:
    """The error function: how much of a normal distribution lies within ``x * sqrt(2)``.

    >>> tk.erf(tk.tensor([0., 1., 10.]))
    tensor([0.0000, 0.8427, 1.0000])
    """
    if input.dtype.char == "e":
        return erf.definition.forward(xp, input.astype(xp.float32)).astype(input.dtype)
    kernel = _single if input.dtype.char == "f" else _double
    return in_blocks(xp, kernel, input)


erf.grad(input=lambda g, input: 2 / sqrt(pi) * g * exp(-input * input))


def _fraction(z: Any, coefficients: Any) -> Any:
    """A quotient of two polynomials."""
    numerator, denominator = (_polynomial(z, each) for each in coefficients)
    numerator /= denominator
    return numerator


def _polynomial(z: Any, coefficients: Any) -> Any:
    """A polynomial by Horner's rule."""
    value = z * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= z
    value += coefficients[0]
    return value


def _single(xp: Any, x: Any) -> Any:
    if xp is not np:
        return xp.tanh(x * _polynomial(xp.asarray(x * x), [each[()] for each in _SINGLE]))
    result = np.asarray(_polynomial(np.asarray(x * x), _SINGLE))
    np.multiply(result, x, result)
    return np.tanh(result, result)


def _double(xp: Any, x: Any) -> Any:
    size = xp.asarray(xp.minimum(xp.absolute(x), 6.0))
    near = x * _fraction(xp.asarray(xp.minimum(size, 0.5) ** 2), _SMALL)
    if xp.__name__ == "numpy" and not (size > 0.46875).any():  # a GPU would have to wait
        return near
    far = 1 - xp.exp(-size * size) * _fraction(size, _LARGE)
    return xp.where(size <= 0.46875, near, xp.copysign(far, x))
