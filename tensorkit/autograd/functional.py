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
from tensorkit.base import Tensor, TensorBase
from tensorkit.errors import AutogradError
from tensorkit.ops import copying, joining, views

Func = Callable[..., Any]


def jacobian(func: Func, inputs: Any, create_graph: bool = False) -> Any:
    """All partial derivatives of ``func`` at ``inputs``, of shape (*output, *input).

    One backward per element of the output.

    >>> tk.autograd.functional.jacobian(lambda x: x * x, tk.tensor([1., 3.]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    xs, ys, x_alone, y_alone = _called("jacobian", func, inputs, create_graph)
    blocks = []
    for y in ys:
        rows = []
        for number in range(y._array.size):
            start = copying.filled(y, 0)
            start._array.reshape(-1)[number] = 1
            rows.append(_grad([y], xs, [start], create_graph))
        blocks.append([_stacked([row[at] for row in rows], y, x) for at, x in enumerate(xs)])
    return _alone([_alone(_finished(block, create_graph), x_alone) for block in blocks], y_alone)


def _stacked(rows: list[Any], y: Tensor, x: Tensor) -> Tensor:
    """Rows of one block as a tensor of shape (*output, *input)."""
    joined = joining.stack(rows) if rows else x.detach()[None][:0]
    return views.reshape(joined, (*y.shape, *x.shape))


def hessian(func: Func, inputs: Any, create_graph: bool = False) -> Any:
    """All second partial derivatives of ``func``, which gives one number.

    >>> tk.autograd.functional.hessian(lambda x: (x * x * x).sum(), tk.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """

    def gradient(*xs: Any) -> Any:
        return _first_derivatives("hessian", func, xs)[2]

    alone = isinstance(inputs, TensorBase)
    found = jacobian(gradient, (inputs,) if alone else inputs, create_graph)
    return found[0][0] if alone else found


def hvp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """The result of ``func``, one number, and its Hessian times ``v``.

    >>> x, v = tk.tensor([1., 2.]), tk.tensor([1., 0.])
    >>> tk.autograd.functional.hvp(lambda x: (x * x * x).sum(), x, v)
    (tensor(9.), tensor([6., 0.]))
    """
    xs, y, first = _first_derivatives("hvp", func, inputs, create_graph)
    found = _grad(first, xs, _vector("hvp", v, xs), create_graph)
    alone = isinstance(inputs, TensorBase)
    return _finished([y], create_graph)[0], _alone(_finished(found, create_graph), alone)


def __getattr__(name: str) -> Any:
    raise AttributeError(absent.sentence("torch.autograd.functional", name))


def _called(
    name: str, func: Func, inputs: Any, create_graph: bool
) -> tuple[tuple[Any, ...], tuple[Any, ...], bool, bool]:
    """Fresh inputs that require grad, the outputs, and which of the two came alone."""
    given, x_alone = _as_tuple(name, "inputs", inputs)
    with enable_grad():
        xs = tuple(
            views.alias(x) if create_graph and requires_grad(x) else x.detach().requires_grad_()
            for x in given
        )
        ys, y_alone = _as_tuple(name, "outputs of the user-provided function", func(*xs))
    return xs, ys, x_alone, y_alone


def _first_derivatives(
    name: str, func: Func, inputs: Any, create_graph: bool = True
) -> tuple[Any, Any, Any]:
    """The inputs, the one number that ``func`` gives, its gradients, to be differentiated again."""
    xs, ys, _, alone = _called(name, func, inputs, create_graph)
    if not alone or ys[0]._array.size != 1:
        raise AutogradError(
            f"The Tensor returned by the function given to {name} should contain a single element",
            repair="jacobian(func, inputs), or return y.sum()",
        )
    with enable_grad():
        return xs, ys[0], _grad(ys, xs, None, True)


def _vector(name: str, v: Any, like: Sequence[Any]) -> tuple[Any, ...]:
    """``v`` as a tuple, a tensor of the same shape for each of ``like``; one number needs none."""
    if v is None and len(like) == 1 and like[0]._array.size == 1:
        return (copying.filled(like[0], 1),)
    several = () if v is None else _as_tuple(name, "v", v)[0]
    got, wanted = ([tuple(each.shape) for each in given] for given in (several, like))
    if got != wanted:
        raise AutogradError(
            f"{name}(): v has shapes {got}, but the inputs have {wanted}",
            repair="v = tk.ones_like(x)",
        )
    return several


def _as_tuple(name: str, what: str, values: Any) -> tuple[tuple[Any, ...], bool]:
    """The tensors, and whether there was one alone."""
    several = values if isinstance(values, tuple) else (values,)
    for each in several:
        if not isinstance(each, TensorBase):
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors, not "
                f"{type(each).__name__}"
            )
    return several, not isinstance(values, tuple)


def _alone(values: Sequence[Any], is_alone: bool) -> Any:
    return values[0] if is_alone else tuple(values)


def _finished(tensors: Sequence[Any], create_graph: bool) -> tuple[Any, ...]:
    """The tensors without history, unless it was asked for."""
    return tuple(tensors) if create_graph else tuple(x.detach() for x in tensors)


def _grad(ys: Sequence[Any], xs: Any, starts: Any, create_graph: bool) -> tuple[Any, ...]:
    """``autograd.grad`` of those outputs that require grad; zeros where nothing depends on them."""
    pairs = zip(ys, starts or [None] * len(ys), strict=True)
    known = [(y, start) for y, start in pairs if requires_grad(y)]
    if not known:
        return tuple(copying.filled(x, 0) for x in xs)
    ys, starts = zip(*known, strict=True)
    options = {"retain_graph": True, "create_graph": create_graph, "materialize_grads": True}
    return engine.grad(ys, xs, starts, **options)
