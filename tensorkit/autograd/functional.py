"""Derivatives of functions: ``jacobian``, ``hessian``, ``hvp``.

``func`` takes tensors and gives a tensor or a tuple of tensors; what comes back has the structure
of its results and inputs. ``create_graph`` makes the derivatives differentiable.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tensorkit import absent
from tensorkit.autograd import engine
from tensorkit.autograd.grad_mode import enable_grad
from tensorkit.autograd.node import requires_grad
from tensorkit.base import TensorBase
from tensorkit.errors import AutogradError
from tensorkit.ops import copying, joining, views

Func = Callable[..., Any]


@absent.explains_options
def jacobian(func: Func, inputs: Any, create_graph: bool = False) -> Any:
    """All partial derivatives of ``func`` at ``inputs``, of shape (*output, *input).

    One backward per element of the output.

    >>> tk.autograd.functional.jacobian(lambda x: x * x, tk.tensor([1., 3.]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    xs, given = _called("jacobian", func, inputs, create_graph)
    blocks: list[Any] = []
    for y in _as_tuple("jacobian", "outputs of the user-provided function", given):
        rows = []
        for number in range(y._array.size):
            start = copying.filled(y, 0)
            start._array.reshape(-1)[number] = 1
            rows.append(_grad([y], xs, [start], create_graph))
        block = []
        for at, x in enumerate(xs):
            joined = joining.stack([row[at] for row in rows]) if rows else x.detach()[None][:0]
            block.append(views.reshape(joined, (*y.shape, *x.shape)))
        blocks.append(_as_given(inputs, block, create_graph))
    return tuple(blocks) if isinstance(given, tuple) else blocks[0]


@absent.explains_options
def hessian(func: Func, inputs: Any, create_graph: bool = False) -> Any:
    """All second partial derivatives of ``func``, which gives one number.

    >>> tk.autograd.functional.hessian(lambda x: (x * x * x).sum(), tk.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """

    def gradient(*xs: Any) -> Any:
        return _first_derivatives("hessian", func, xs)[2]

    found = jacobian(gradient, _as_tuple("hessian", "inputs", inputs), create_graph)
    return found if isinstance(inputs, tuple) else found[0][0]


@absent.explains_options
def hvp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """The result of ``func``, one number, and its Hessian times ``v``.

    >>> x, v = tk.tensor([1., 2.]), tk.tensor([1., 0.])
    >>> tk.autograd.functional.hvp(lambda x: (x * x * x).sum(), x, v)
    (tensor(9.), tensor([6., 0.]))
    """
    xs, y, first = _first_derivatives("hvp", func, inputs, create_graph)
    vectors = None if v is None else _as_tuple("hvp", "v", v)
    if vectors is not None and len(vectors) != len(xs):
        raise AutogradError(f"hvp(): v has {len(vectors)} tensors, and there are {len(xs)} inputs")
    found = _grad(first, xs, vectors, create_graph)
    return _as_given(None, [y], create_graph), _as_given(inputs, found, create_graph)


__getattr__ = absent.missing("torch.autograd.functional")


def _called(name: str, func: Func, inputs: Any, create_graph: bool) -> tuple[Any, Any]:
    """Fresh inputs that require grad, and what the function gives for them."""
    with enable_grad():
        xs = tuple(
            views.alias(x) if create_graph and requires_grad(x) else x.detach().requires_grad_()
            for x in _as_tuple(name, "inputs", inputs)
        )
        return xs, func(*xs)


def _first_derivatives(
    name: str, func: Func, inputs: Any, create_graph: bool = True
) -> tuple[Any, Any, Any]:
    """The inputs, the one number that ``func`` gives, its gradients, to be differentiated again."""
    xs, given = _called(name, func, inputs, create_graph)
    (y, *others) = _as_tuple(name, "outputs of the user-provided function", given)
    if others or y._array.size != 1:
        raise AutogradError(
            f"The Tensor returned by the function given to {name} should contain a single element",
            repair="jacobian(func, inputs), or return y.sum()",
        )
    with enable_grad():
        return xs, y, _grad([y], xs, None, True)


def _as_tuple(name: str, what: str, values: Any) -> tuple[Any, ...]:
    """The tensors, where one may be given alone."""
    several = values if isinstance(values, tuple) else (values,)
    for each in several:
        if not isinstance(each, TensorBase):
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors, not "
                f"{type(each).__name__}"
            )
    return several


def _as_given(inputs: Any, found: Sequence[Any], create_graph: bool) -> Any:
    """Results in the form of the inputs, without history unless it was asked for."""
    found = tuple([x if create_graph else x.detach() for x in found])
    return found if isinstance(inputs, tuple) else found[0]


def _grad(ys: Sequence[Any], xs: Any, starts: Any, create_graph: bool) -> tuple[Any, ...]:
    """``autograd.grad`` of those outputs that require grad; zeros where nothing depends on them."""
    pairs = zip(ys, starts or [None] * len(ys), strict=True)
    known = [(y, start) for y, start in pairs if requires_grad(y)]
    if not known:
        return tuple(copying.filled(x, 0) for x in xs)
    ys, starts = zip(*known, strict=True)
    options = {"retain_graph": True, "create_graph": create_graph, "materialize_grads": True}
    return engine.grad(ys, xs, starts, **options)
