"""``x * y + z`` rounded once, as processors compute it and NumPy does not: floating-point arrays.

The exact result is kept as a sum of two numbers by error-free transformations: Dekker's product
and Knuth's sum. Rounding that sum to odd makes the last rounding the only one that counts
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 2008).
"""

from typing import Any

_SPLITTER = 2.0**27 + 1  # cuts the 53 digits of a float64 into two halves


def multiply_add(xp: Any, x: Any, y: Any, z: Any, dtype: Any) -> Any:
    """``x * y + z`` of float64 arrays or numbers, rounded once to ``dtype``, float32 or float64.

    For float32 the arguments must hold float32 values, so that the product is exact.

    >>> from tensorkit.rounding import multiply_add
    >>> x = np.float64(1 + 2.0**-52)
    >>> float(x * x - 1 - 2.0**-51), float(multiply_add(np, x, x, -1 - 2.0**-51, np.float64))
    (0.0, 4.930380657631324e-32)
    """
    product = x * y
    plain = product + z
    if dtype == xp.float32:
        if xp.__name__ == "numpy" and not _is_delicate(xp, product, z, xp.asarray(plain)):
            return plain.astype(dtype)
        exact = _odd_sum(xp, product, z)
    else:
        high, low = _product(x, y)
        sum_low, rest_low = _sum(z, low)
        sum_high, rest_high = _sum(high, sum_low)
        exact = sum_high + _odd_sum(xp, rest_low, rest_high)
    # Infinities and nans have no error terms; zeros keep the sign that the plain sum gives them.
    return xp.where(xp.isfinite(exact) & (exact != 0), exact, plain).astype(dtype)


def _is_delicate(xp: Any, x: Any, y: Any, total: Any) -> bool:
    """Whether a second rounding, to float32, of ``x + y`` could go astray.

    It could where the first one was not exact and gave a number halfway between two, or one below
    the range in which float32 has all its digits.
    """
    halfway = (total.view(xp.int64) & 0x1FFFFFFF) == 0x10000000
    if xp.count_nonzero(halfway) and xp.any(halfway & ((total - x != y) | (total - y != x))):
        return True
    return not xp.absolute(total).min(initial=1) >= 2.0**-125


def _sum(x: Any, y: Any) -> tuple[Any, Any]:
    """The rounded sum and its error."""
    total = x + y
    of_y = total - x
    return total, (x - (total - of_y)) + (y - of_y)


def _product(x: Any, y: Any) -> tuple[Any, Any]:
    """The rounded product and its error."""
    total = x * y
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    rest = x_low * y_low - (((total - x_high * y_high) - x_low * y_high) - x_high * y_low)
    return total, rest


def _halves(x: Any) -> tuple[Any, Any]:
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _odd_sum(xp: Any, x: Any, y: Any) -> Any:
    """The sum, rounded to the neighbour with an odd last digit unless it is exact."""
    total, rest = _sum(x, y)
    total, rest = xp.asarray(total), xp.asarray(rest)
    bits = total.view(xp.int64)
    # The neighbour towards the rest: one step away from zero if their signs agree.
    neighbour = bits + xp.where((rest > 0) == (total > 0), 1, -1)
    is_even = bits & 1 == 0
    return xp.where((rest != 0) & is_even, neighbour, bits).view(xp.float64)
