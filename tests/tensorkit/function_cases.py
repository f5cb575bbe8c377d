"""Calls of ``nn.functional`` on which PyTorch, finite differences and devices agree.

name -> (shapes of the tensors that require grad, what to compute with m = torch or tk)
"""

import numpy as np


def _F(m):
    return m.nn.functional


def _probabilities(x):
    return x.sigmoid() * 0.9 + 0.05


def _classes(m, *shape, n=3):
    return m.arange(int(np.prod(shape, dtype=int))).reshape(shape) % n


CASES = {
    "linear": ([(4, 3), (2, 3), (2,)], lambda m, x, w, b: _F(m).linear(x, w, b)),
    "linear vector": ([(3,), (2, 3), (2,)], lambda m, x, w, b: _F(m).linear(x, w, b)),
    "linear batch": ([(2, 4, 3), (2, 3), (2,)], lambda m, x, w, b: _F(m).linear(x, w, b)),
    "linear without bias": ([(2, 4, 3), (2, 3)], lambda m, x, w: _F(m).linear(x, w)),
    "linear transposed": (
        [(4, 2, 3), (2, 3), (2,)],
        lambda m, x, w, b: _F(m).linear(x.transpose(0, 1), w, b),
    ),
    "addmm": ([(2,), (4, 3), (3, 2)], lambda m, b, x, y: m.addmm(b, x, y)),
    "gelu": ([(4, 3)], lambda m, x: _F(m).gelu(x)),
    "gelu transposed": ([(4, 3)], lambda m, x: _F(m).gelu(x.t())),
    "silu": ([(4, 3)], lambda m, x: _F(m).silu(x)),
    "softplus": ([(4, 3)], lambda m, x: _F(m).softplus(x * 20, 2.0, 10.0)),
    "leaky relu": ([(4, 3)], lambda m, x: _F(m).leaky_relu(x.t(), 0.2)),
    "layer norm": ([(4, 3), (3,), (3,)], lambda m, x, w, b: _F(m).layer_norm(x, (3,), w, b)),
    "layer norm plain": ([(2, 4, 3)], lambda m, x: _F(m).layer_norm(x, (3,), eps=0.1)),
    "layer norm scaled": ([(4, 3), (3,)], lambda m, x, w: _F(m).layer_norm(x, (3,), w)),
    "embedding": ([(5, 2)], lambda m, w: _F(m).embedding(m.tensor([[0, 4, 4], [1, 0, 0]]), w)),
    "mse": ([(4, 3), (4, 3)], lambda m, x, y: _F(m).mse_loss(x, y)),
    "mse sum": ([(4, 3), (4, 3)], lambda m, x, y: _F(m).mse_loss(x, y, reduction="sum")),
    "mse none": ([(4, 3), (4, 3)], lambda m, x, y: _F(m).mse_loss(x, y, reduction="none")),
    "l1": ([(4, 3), (4, 3)], lambda m, x, y: _F(m).l1_loss(x, y * 3)),
    "cross entropy": ([(4, 3)], lambda m, x: _F(m).cross_entropy(x, _classes(m, 4))),
    "cross entropy one": ([(3,)], lambda m, x: _F(m).cross_entropy(x, m.tensor(1))),
    "cross entropy sum": (
        [(4, 3)],
        lambda m, x: _F(m).cross_entropy(x, _classes(m, 4), reduction="sum"),
    ),
    "cross entropy none": (
        [(4, 3)],
        lambda m, x: _F(m).cross_entropy(x, _classes(m, 4), reduction="none"),
    ),
    "nll": ([(4, 3)], lambda m, x: _F(m).nll_loss(x, _classes(m, 4))),
    "bce": (
        [(4, 3), (4, 3)],
        lambda m, x, y: _F(m).binary_cross_entropy(_probabilities(x), _probabilities(y)),
    ),
    "bce with logits": (
        [(4, 3), (4, 3)],
        lambda m, x, y: _F(m).binary_cross_entropy_with_logits(x * 5, y),
    ),
    "softmax": ([(4, 3)], lambda m, x: _F(m).softmax(x, dim=1) * x),
    "log softmax": ([(4, 3)], lambda m, x: _F(m).log_softmax(x, dim=0) * x),
    "leaky relu in place": ([(4, 3)], lambda m, x: _F(m).leaky_relu(x * 1, 0.2, inplace=True) * x),
}


def leaves_of(m, shapes, dtype):
    leaves = []
    for place, shape in enumerate(shapes):
        count = int(np.prod(shape, dtype=int))
        values = np.sin(np.arange(1, count + 1) * 1.7 + place).reshape(shape)
        leaves.append(m.tensor(values.tolist(), dtype=getattr(m, dtype)).requires_grad_())
    return leaves
