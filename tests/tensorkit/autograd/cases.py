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
    "log1p": lambda m, x: m.log1p(abs(x)),
    "square": lambda m, x: m.square(x),
    "atan": lambda m, x: m.atan(x),
    "erf": lambda m, x: m.erf(x),
    "rounding": lambda m, x: (m.floor(x) + m.ceil(x) + m.trunc(x) + m.round(x)) * x,
    "aliases": lambda m, x: m.absolute(m.subtract(x, 1).multiply(x)).divide(2).true_divide(3),
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
    "pow 2": lambda m, x: x**2,
    "pow 3": lambda m, x: x**3,
    "pow 0": lambda m, x: x**0 + x,
    "pow -1.5": lambda m, x: (abs(x) + 0.5) ** -1.5,
    "number pow": lambda m, x: 2 ** x.contiguous(),
    "sum": lambda m, x: (x * x).sum(),
    "sum 0": lambda m, x: (x * x).sum(0) if x.dim() else x.sum(0),
    "sum keepdim": lambda m, x: (x * x).sum(-1, keepdim=True),
    "sum dims": lambda m, x: (x * x).sum(tuple(range(x.dim()))),
    "mean": lambda m, x: (x * x).mean(),
    "prod": lambda m, x: x.prod() * x,
    "prod 0": lambda m, x: m.prod(x * x, 0),
    "prod keepdim": lambda m, x: x.prod(-1, True) * x,
    "cumsum": lambda m, x: m.cumsum(x * x, 0),
    "cumsum -1": lambda m, x: x.cumsum(-1) * x,
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
    "var unbiased": lambda m, x: x.var(1, correction=0, keepdim=True),
    "var correction": lambda m, x: m.var(x, (0, 1), correction=0.5),
    "std": lambda m, x: x.std(),
    "std -1": lambda m, x: m.std(x, -1, correction=0),
    "std keepdim": lambda m, x: m.std(x, dim=0, keepdim=True) * x,
    "prod with a zero": lambda m, x: m.prod(_write(x * 1, (0, 1), 0.0), 0) * x,
    "prod with zeros": lambda m, x: _write(_write(x * 1, (0, 1), 0.0), (1, 1), 0.0).prod(0) * x,
    "prod of all with a zero": lambda m, x: _write(x * 1, (0, 1), 0.0).prod() * x,
    "norm": lambda m, x: x.norm(),
    "norm 2": lambda m, x: m.norm(x, 2, -1) * 3,
    "sort": lambda m, x: x.sort().values ** 2,
    "sort 0": lambda m, x: m.sort(x, 0, descending=True)[0] * x,
    "sort stable": lambda m, x: x.sort(stable=True).values * x,
    "topk": lambda m, x: x.topk(1).values ** 2,
    "topk 0": lambda m, x: m.topk(x, 2, 0, largest=False)[0] ** 3,
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
    "in place log": lambda m, x: (x * x).log1p_() * (x * x + 1).log_() + x,
    "in place powers": lambda m, x: (x * 1).exp_() * (x * 1).pow_(2),
    "in place atan": lambda m, x: (x * 1).atan_() * x,
    "in place erf": lambda m, x: (x * 1).erf_(),
    "in place rounding": lambda m, x: (
        ((x * 1).floor_() + (x * 1).round_().trunc_() + (x * 1).ceil_()) * x
    ),
    "clamp_": lambda m, x: (x * 1).clamp_(-1, 1) * x,
    "fill_": lambda m, x: (x * x).fill_(x[0, 0]) * x,
    "zero_": lambda m, x: (x * x).zero_() * x,
}

# Shapes, positions and products, for matrices of at least two rows and two columns
MATRIX |= {
    "cat": lambda m, x: m.cat([x, x * x, x[:1]]) * 2,
    "cat 1": lambda m, x: m.cat([x, x[:, :1]], 1) ** 2,
    "stack": lambda m, x: m.stack([x, x * x], 1) * 2,
    "split": lambda m, x: x.split(2)[0] ** 2,
    "split sizes": lambda m, x: x.split([1, x.shape[0] - 1])[1] ** 2,
    "chunk": lambda m, x: x.chunk(2, 1)[0] * x.chunk(2, 1)[0],
    "unbind": lambda m, x: x.unbind(1)[1] ** 2,
    "iterate": lambda m, x: sum(row * row for row in x),
    "part and whole": lambda m, x: (x * x + x[1:2, :1]) * x,
    "narrow": lambda m, x: x.narrow(1, 1, 1) ** 2,
    "movedim": lambda m, x: x.movedim(0, 1) ** 2,
    "diagonal": lambda m, x: x.diagonal() ** 2,
    "flip": lambda m, x: x.flip(0, 1) * x,
    "repeat": lambda m, x: x.repeat(2, 1, 3) ** 2,
    "mask": lambda m, x: x[x > 0] ** 2,
    "mask of rows": lambda m, x: x[x[:, 0] > 0] ** 2,
    "positions": lambda m, x: x[[0, 1, 0]] ** 2,
    "positions of columns": lambda m, x: x[:, [1, 0, 1, 1]] ** 2,
    "pairs of positions": lambda m, x: x[[0, 1, 0], [1, 1, 1]] ** 2,
    "position and slice": lambda m, x: x[1, m.tensor([0, 0, 1])] ** 2,
    "apart": lambda m, x: x[None][[0, 0], :, [1, 1]] ** 2,
    "write mask": lambda m, x: _write(x * x, x > 0, 3.0) * x,
    "write positions": lambda m, x: _write(x * x, [1, 0], x[:2] * 3) * x,
    "write positions broadcast": lambda m, x: _write(x * x, [1, 0], x[0] * 3) * x,
    "write part of a view": lambda m, x: _write(x * x, (0, m.tensor([0, 1])), x[1, 0]) * x,
    "index_select": lambda m, x: x.index_select(1, m.tensor([1, 1, 0])) ** 2,
    "index_add": lambda m, x: x.index_add(0, m.tensor([1, 1]), x[:2] ** 2, alpha=3) * x,
    "gather": lambda m, x: x.gather(1, m.tensor([[0, 0, 1], [1, 0, 0]])) ** 2,
    "gather 0": lambda m, x: x.gather(0, m.tensor([[1, 1]])) ** 2,
    "scatter": lambda m, x: x.scatter(1, m.tensor([[1], [0]]), x[:2, :1] ** 2) * x,
    "scatter number": lambda m, x: x.scatter(1, m.tensor([[1], [0]]), 2.0) * x,
    "scatter_add": lambda m, x: x.scatter_add(0, m.tensor([[0, 0], [0, 1]]), x[:2, :2] ** 2) * x,
    "scatter_add_": lambda m, x: (x * x).scatter_add_(1, m.tensor([[1, 1]]), x[1:2, :2]) * x,
    "masked_fill": lambda m, x: x.masked_fill(x > 0, 2.0) * x,
    "masked_fill tensor": lambda m, x: x.masked_fill(x > 0, x[0, 0]) * x,
    "masked_fill_": lambda m, x: (x * x).masked_fill_(x[:1] > 0, x[1, 1]) * x,
    "outer product": lambda m, x: m.outer(x[0], x[1]),
    "addmm": lambda m, x: m.addmm(x[0], x, x.t() @ x),
    "einsum": lambda m, x: m.einsum("ij,kj->ik", x, x),
    "einsum diagonal": lambda m, x: m.einsum("ii->i", x @ x.t()),
    "einsum of three": lambda m, x: m.einsum("ij,kj,kl->il", x, x, x),
    "einsum batched": lambda m, x: m.einsum("bij,kj->bik", x[None], x),
    "einsum of one": lambda m, x: m.einsum("ij->j", x * x),
    "solve": lambda m, x: m.linalg.solve(_regular(m, x), x),
    "solve vector": lambda m, x: m.linalg.solve(_regular(m, x), x[:, 0]),
    "inv": lambda m, x: m.linalg.inv(_regular(m, x)),
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
}


def _write(x, index, value):
    x[index] = value
    return x


def _regular(m, x):
    """A square matrix with an inverse."""
    return x @ x.t() + m.eye(x.shape[0], dtype=x.dtype) * 3


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
