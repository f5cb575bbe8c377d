"""Gradients compared with finite differences.

The whole Jacobian is compared, column by column: small inputs in float64 only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.autograd.engine import as_tuple
from tensorkit.autograd.functional import jacobian
from tensorkit.autograd.grad_mode import enable_grad
from tensorkit.autograd.node import requires_grad
from tensorkit.base import Tensor
from tensorkit.errors import TensorkitError


class GradcheckError(TensorkitError, RuntimeError):
    """A gradient that finite differences do not confirm."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Whether the gradients of ``func`` at ``inputs`` agree with finite differences.

    ``inputs`` is a tensor or a tuple of arguments; those that require grad are varied by ``eps``
    and should be float64. ``func`` gives a tensor or a tuple of tensors. Raises GradcheckError, or
    gives False if ``raise_exception`` is off, where the two differ by more than
    ``atol + rtol * |numerical|``.

    >>> x = tk.tensor([0.5, 1.], dtype=tk.float64, requires_grad=True)
    >>> tk.autograd.gradcheck(lambda x: x * x, x)
    True
    """
    args = as_tuple(inputs)
    varied = [x for x in args if requires_grad(x)]
    if not varied:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )

    def outputs(*values: Any) -> tuple[Tensor, ...]:
        """Those that depend on the varied inputs; all, if none does: they should be constant."""
        given = iter(values)
        with enable_grad():
            found = as_tuple(func(*[next(given) if requires_grad(x) else x for x in args]))
        return tuple(y for y in found if requires_grad(y)) or found

    try:
        _compare(outputs, varied, eps, (rtol, atol))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(outputs: Callable[..., Any], varied: list[Any], eps: float, near: Any) -> None:
    """Raise GradcheckError where a Jacobian is not what finite differences give."""
    analytical = jacobian(outputs, tuple(varied))
    for number, x in enumerate(varied):
        differences = []  # for each element of x those of all outputs
        for index in np.ndindex(x._array.shape):
            ends = []
            for step in (eps, -eps):
                moved = x.detach().clone()
                moved._array[index] += step
                values = [*varied[:number], moved.requires_grad_(), *varied[number + 1 :]]
                ends.append([_host(y) for y in outputs(*values)])
            differences.append([(up - down) / (2 * eps) for up, down in zip(*ends, strict=True)])
        for output, y in enumerate(outputs(*varied)):
            got = _host(analytical[output][number]).reshape(y._array.size, x._array.size).T
            want = np.array([each[output] for each in differences]).reshape(got.shape)
            if not requires_grad(y) and want.any():
                raise GradcheckError("Numerical gradient for function expected to be zero")
            if not np.isclose(got, want, *near).all():
                raise GradcheckError(
                    f"Jacobian mismatch for output {output} with respect to input {number},",
                    f"numerical: {want.tolist()}",
                    f"analytical: {got.tolist()}",
                    "" if x.dtype is dtypes.float64 else "The input should be float64.",
                )


def _host(x: Any) -> Any:
    return x.device.backend.to_host(x._array, "gradcheck").reshape(-1).astype(np.float64)
