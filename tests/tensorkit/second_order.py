"""Second derivatives beside finite differences of the first ones."""

import numpy as np

import tensorkit as tk


def gradgradcheck(func, inputs):
    """Whether the second derivatives of ``func`` agree with finite differences of the first.

    The gradients with which the outputs start are varied, too.
    """
    args = _as_tuple(inputs)
    starts = []
    for y in _as_tuple(func(*args)):
        values = np.linspace(0.5, 1.5, y.numel()).reshape(tuple(y.shape))
        starts.append(tk.tensor(values, dtype=y.dtype, device=y.device, requires_grad=True))

    def first_derivatives(*values):
        own, gradients = values[: len(args)], values[len(args) :]
        varied = [x for x in own if x.requires_grad]
        ys = _as_tuple(func(*own))
        found = tk.autograd.grad(ys, varied, gradients, create_graph=True, allow_unused=True)
        return tuple(tensor for tensor in found if tensor is not None and tensor.requires_grad)

    return tk.autograd.gradcheck(first_derivatives, (*args, *starts))


def _as_tuple(values):
    return (values,) if isinstance(values, tk.Tensor) else tuple(values)
