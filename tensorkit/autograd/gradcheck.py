"""Gradients compared with finite differences, to first and to second order.

The whole Jacobian is compared, column by column: small inputs in float64 only.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit.autograd.engine import grad
from tensorkit.autograd.grad_mode import enable_grad
from tensorkit.autograd.node import requires_grad
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import TensorkitError
from tensorkit.ops import copying


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
    args = _as_tuple(inputs)
    varied = [x for x in args if requires_grad(x)]
    if not varied:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for number, x in enumerate(args):
        if requires_grad(x) and x.dtype is not dtypes.float64:
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=2,
            )
    try:
        for place, output in enumerate(_outputs(func, args)):
            _compare(func, args, varied, place, output, eps, (rtol, atol))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(
    func: Any, args: Any, varied: Any, place: int, output: Any, eps: float, near: Any
) -> None:
    """Raise GradcheckError where a Jacobian of one output is not what finite differences give."""
    jacobians = [np.zeros((x._array.size, output._array.size)) for x in varied]
    for column in range(output._array.size if requires_grad(output) else 0):
        start = copying.filled(output, 0)
        start._array.reshape(-1)[column] = 1
        found = grad(output, varied, start, retain_graph=True, materialize_grads=True)
        for jacobian, gradient in zip(jacobians, found, strict=True):
            jacobian[:, column] = _host(gradient)
    for number, (x, got) in enumerate(zip(varied, jacobians, strict=True)):
        want = np.zeros_like(got)
        for row, index in enumerate(np.ndindex(x._array.shape)):
            ends = []
            for step in (eps, -eps):
                moved = copying.filled(x, 0)
                moved._array[...] = x._array
                moved._array[index] += step
                moved.requires_grad_()
                results = _outputs(func, tuple(moved if arg is x else arg for arg in args))
                ends.append(_host(results[place]))
            want[row] = (ends[0] - ends[1]) / (2 * eps)
        if not requires_grad(output) and want.any():
            raise GradcheckError("Numerical gradient for function expected to be zero")
        if not np.isclose(got, want, *near).all():
            raise GradcheckError(
                f"Jacobian mismatch for output {place} with respect to input {number},",
                f"numerical: {want.tolist()}",
                f"analytical: {got.tolist()}",
                "" if x.dtype is dtypes.float64 else "The input should be float64.",
            )


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **options: Any
) -> bool:
    """Whether the second derivatives of ``func`` agree with finite differences of the first.

    ``grad_outputs`` are the gradients that the outputs start with (default: fixed numbers between
    0.5 and 1.5); second derivatives with respect to them are checked too. ``options`` are those of
    ``gradcheck``.

    >>> x = tk.tensor([0.5, 1.], dtype=tk.float64, requires_grad=True)
    >>> tk.autograd.gradgradcheck(lambda x: x * x * x, x)
    True
    """
    args = _as_tuple(inputs)
    given = [*map(_start, _outputs(func, args))] if grad_outputs is None else grad_outputs

    def first_derivatives(*values: Any) -> tuple[Any, ...]:
        own, gradients = values[: len(args)], values[len(args) :]
        varied = [x for x in own if requires_grad(x)]
        ys = _outputs(func, own)
        found = grad(ys, varied, gradients, create_graph=True, allow_unused=True)
        return tuple(gradient for gradient in found if requires_grad(gradient))

    return gradcheck(first_derivatives, (*args, *_as_tuple(given)), **options)


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, TensorBase) else tuple(values)


def _outputs(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The outputs that depend on the varied inputs; all, if none does: they should be constant."""
    with enable_grad():
        found = _as_tuple(func(*args))
    return tuple(each for each in found if requires_grad(each)) or found


def _start(output: Tensor) -> Tensor:
    values = np.linspace(0.5, 1.5, output._array.size).reshape(output._array.shape)
    start = copying.filled(output, 0)
    start._array[...] = output.device.backend.from_host(values, "gradgradcheck")
    return start.requires_grad_()


def _host(x: Any) -> Any:
    return x.device.backend.to_host(x._array, "gradcheck").reshape(-1).astype(np.float64)
