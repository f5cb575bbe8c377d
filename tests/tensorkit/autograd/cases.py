"""The operations with gradients, as expressions that run in PyTorch and in tensorkit alike.

``m`` is the module (torch or tensorkit), the other parameters are tensors.
"""

UNARY = {
    "neg": lambda m, x: -x,
    "abs": lambda m, x: abs(x),
    "reciprocal": lambda m, x: x.reciprocal(),
    "sign": lambda m, x: m.sign(x) * x,
    "exp": lambda m, x: m.exp(x),
    "log": lambda m, x: m.log(abs(x) + 0.5),
    "sqrt": lambda m, x: m.sqrt(abs(x) + 0.5),
    "sin": lambda m, x: m.sin(x),
    "cos": lambda m, x: m.cos(x),
    "tanh": lambda m, x: m.tanh(x),
    "sigmoid": lambda m, x: m.sigmoid(x),
    "relu": lambda m, x: m.relu(x) * x,
    "clone": lambda m, x: x.clone() * 1.0,
    "contiguous": lambda m, x: x.contiguous() * x,
    "add number": lambda m, x: x + 2 + (3 + x),
    "add alpha": lambda m, x: m.add(x, x, alpha=3),
    "sub number": lambda m, x: (x - 2) * (3 - x),
    "sub alpha": lambda m, x: m.sub(x, x * x, alpha=3),
    "mul number": lambda m, x: x * 2 * x,
    "div number": lambda m, x: x / 4,
    "number div": lambda m, x: 4 / x,
    "remainder number": lambda m, x: (x % 0.7) * x,
    "div floor": lambda m, x: m.div(x, 0.3, rounding_mode="floor") * x,
    "div trunc": lambda m, x: m.div(x, 0.3, rounding_mode="trunc") * x,
    "pow 2": lambda m, x: x**2,
    "pow 3": lambda m, x: x**3,
    "pow 0": lambda m, x: x**0 + x,
    "pow -1.5": lambda m, x: (abs(x) + 0.5) ** -1.5,
    "number pow": lambda m, x: 2**x,
    "sum": lambda m, x: (x * x).sum(),
    "sum 0": lambda m, x: (x * x).sum(0) if x.dim() else x.sum(0),
    "sum keepdim": lambda m, x: (x * x).sum(-1, keepdim=True),
    "sum dims": lambda m, x: (x * x).sum(tuple(range(x.dim()))),
    "mean": lambda m, x: (x * x).mean(),
    "mean -1": lambda m, x: (x * x).mean(-1),
    "mean keepdim": lambda m, x: (x * x).mean(0, True),
    "softmax": lambda m, x: x.softmax(-1),
    "softmax 0": lambda m, x: m.softmax(x * x, 0),
    "log_softmax": lambda m, x: x.log_softmax(-1) * x,
    "logsumexp": lambda m, x: m.logsumexp(x, 0) if x.numel() else x * x,
    "logsumexp keepdim": lambda m, x: m.logsumexp(x, -1, True) if x.numel() else x * x,
    "logsumexp all": lambda m, x: x.logsumexp(tuple(range(x.dim()))) if x.numel() else x * x,
    "clamp": lambda m, x: x.clamp(-1, 1) * x,
    "clamp min": lambda m, x: m.clamp(x, min=0.3) * x,
    "clamp max": lambda m, x: m.clip(x, max=0.3) * x,
    "unsqueeze": lambda m, x: x.unsqueeze(0) * x,
    "squeeze": lambda m, x: x.unsqueeze(0).squeeze() * 2,
    "squeeze 0": lambda m, x: x.unsqueeze(0).squeeze(0) * x,
    "squeeze dims": lambda m, x: x.unsqueeze(0).squeeze((0,)) * x,
    "flatten": lambda m, x: x.flatten() ** 2,
    "reshape": lambda m, x: x.reshape(-1) ** 2 if x.numel() else x * x,
    "expand": lambda m, x: x.expand(2, *x.shape) ** 2,
    "permute": lambda m, x: x.permute(tuple(range(x.dim()))[::-1]) ** 2,
    "transpose": lambda m, x: x.transpose(0, -1) ** 2,
    "where": lambda m, x: m.where(x > 0, x * x, x),
    "where number": lambda m, x: m.where(x > 0.1, x * x, 0.5),
    "ellipsis": lambda m, x: x[...] * x,
    "index": lambda m, x: x[None] ** 2,
    "double": lambda m, x: (x.float() * 2).double() * 1,
}

# For matrices of at least two rows and two columns
MATRIX = {
    "t": lambda m, x: x.t() * 2 * x.t(),
    "T": lambda m, x: x.T**2,
    "mT": lambda m, x: x.mT**2,
    "select": lambda m, x: x[1] * x[-1],
    "select method": lambda m, x: x.select(1, 0) * 2,
    "element": lambda m, x: x[1, 0] * x[0, 1],
    "slice": lambda m, x: x[1:, :1] * 3 * x[:1],
    "step": lambda m, x: x[::2, ::2] ** 2,
    "empty slice": lambda m, x: x[5:] * 2,
    "mixture": lambda m, x: x[None, ..., 1:] ** 2,
    "as_strided": lambda m, x: x.contiguous().as_strided((2, 2), (1, 1)) ** 2,
    "matmul": lambda m, x: x @ x.t(),
    "matmul transposed": lambda m, x: x.t() @ x,
    "mv": lambda m, x: x @ x[0],
    "vm": lambda m, x: x[0] @ x.t(),
    "dot": lambda m, x: x[0] @ x[1],
    "outer": lambda m, x: x[:, :1] @ x[:1],
    "batched": lambda m, x: x.expand(3, *x.shape) @ x.t().expand(3, *x.t().shape),
    "batched broadcast": lambda m, x: x.expand(3, 1, *x.shape) @ x.t().expand(2, *x.t().shape),
    "folded": lambda m, x: x.expand(3, *x.shape) @ x.t(),
    "folded vector": lambda m, x: x.expand(3, *x.shape) @ x[0],
    "matrix folded": lambda m, x: x.t() @ x.expand(3, *x.shape),
    "vector folded": lambda m, x: x[:, 0] @ x.expand(3, *x.shape),
    "var": lambda m, x: x.var(),
    "var 0": lambda m, x: x.var(0) * x,
    "var unbiased": lambda m, x: x.var(1, False, True),
    "var correction": lambda m, x: m.var(x, (0, 1), correction=0.5),
    "std": lambda m, x: x.std(),
    "std -1": lambda m, x: m.std(x, -1, unbiased=False),
    "std keepdim": lambda m, x: m.std(x, dim=0, keepdim=True) * x,
    "max": lambda m, x: x.max() * x,
    "min": lambda m, x: m.min(x * x),
    "max 0": lambda m, x: x.max(0).values ** 2,
    "min keepdim": lambda m, x: m.min(x, -1, True)[0] * x,
    "max of two": lambda m, x: m.max(x, x * x) * x,
    "amax": lambda m, x: x.amax() ** 2,
    "amax 0": lambda m, x: x.amax(0) ** 2,
    "amin keepdim": lambda m, x: x.amin((0, -1), True) * x,
    "view": lambda m, x: x.contiguous().view(-1) ** 2,
    "reshape transposed": lambda m, x: x.t().reshape(-1) ** 2,
    "write": lambda m, x: _write(x * 1, 0, x[1] * x[1]),
    "write number": lambda m, x: _write(x * x, 0, 3.0) * x,
    "write element": lambda m, x: _write(x * x, (0, 1), x[1, 1]) * x,
    "write all": lambda m, x: _write(x * x, ..., x.sum()) * x,
    "write slice": lambda m, x: _write(x * x, slice(None, None, 2), x[:1] * 2) * x,
    "into zeros": lambda m, x: _write(m.zeros(2, 2, dtype=x.dtype), 0, x[0, :2]) * 2,
    "in place": lambda m, x: (x * x).mul_(x).add_(x, alpha=2).sub_(1).div_(x * x + 1),
    "in place pow": lambda m, x: (x * x + 1).pow_(1.5),
    "in place exp": lambda m, x: (x * 1).exp_() * (x * 1).tanh_() * (x * 1).sigmoid_() + x,
    "in place sqrt": lambda m, x: (x * x).sqrt_() * (x * 1).relu_(),
    "in place sin": lambda m, x: (x * 1).sin_().cos_().neg_().abs_() * x,
    "in place view": lambda m, x: _through_view(x * x, lambda row: row.mul_(x[1])),
    "in place two views": lambda m, x: _through_two(x * x, x),
    "in place transposed": lambda m, x: _through_transposed(x * x, x),
    "copy_": lambda m, x: (x * x).copy_(x[:1] * 3),
    "clamp_": lambda m, x: (x * 1).clamp_(-1, 1) * x,
    "clamp_ tensor": lambda m, x: (x * 1).clamp_(min=x[:1] * 0.7) * x,
    "fill_": lambda m, x: (x * x).fill_(x[0, 0]) * x,
    "zero_": lambda m, x: (x * x).zero_() * x,
}

# For two tensors that broadcast
BINARY = {
    "add": lambda m, x, y: x + y,
    "sub": lambda m, x, y: x - y,
    "mul": lambda m, x, y: x * y,
    "div": lambda m, x, y: x / y,
    "remainder": lambda m, x, y: (x % y) * x,
    "pow": lambda m, x, y: (abs(x) + 0.5) ** y,
    "where": lambda m, x, y: m.where(x > y, x * y, y),
    "maximum": lambda m, x, y: m.maximum(x, y) * y,
    "minimum": lambda m, x, y: x.minimum(y) * y,
    "clamp": lambda m, x, y: x.clamp(y - 0.5, y + 0.5) * x,
    "clamp crossed": lambda m, x, y: x.clamp(y, 1 - y) * x,
    "clamp max": lambda m, x, y: m.clamp(x, max=y) * x,
    "div floor": lambda m, x, y: m.div(x, y, rounding_mode="floor") * y,
}


def _write(x, index, value):
    x[index] = value
    return x


def _through_view(x, change):
    change(x[0])
    return x * 2


def _through_two(x, other):
    first, second = x[0], x[:, 0]
    first.mul_(other[1])
    second.add_(other[0, 1], alpha=3)
    return x * second.sum() + first


def _through_transposed(x, other):
    x.t()[1].mul_(other[:, 0])
    return x * x
