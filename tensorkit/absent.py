"""Names that PyTorch has and tensorkit does not: asked for, they are refused with a sentence.

Whoever implements one takes it off the list; a test reminds of it.
"""

# one word after the other: as lists these would be pages
FUNCTIONS = frozenset(
    """
    amax amin argmax argmin argsort asarray autograd bfloat16 bmm cat chunk clamp complex64
    complex128 concat cos cuda cumsum dot einsum exp flatten flip float_power gather isfinite isinf
    isnan linalg load log logical_and logical_not logical_or logical_xor matmul max maximum mean
    median min minimum mm mv nn no_grad nonzero norm optim outer permute prod relu reshape round
    rsub save sigmoid sin softmax sort split sqrt square squeeze stack std sum tanh transpose tril
    triu true_divide unique unsqueeze utils var where
    """.split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(
    """
    H T all amax amin any argmax argmin argsort backward bfloat16 bmm broadcast_to chunk clamp
    clamp_ cos cumsum data detach detach_ diagonal dot exp exp_ expand expand_as flatten
    flip gather grad grad_fn index_select is_leaf isfinite isinf isnan log log_ logical_and
    logical_not logical_or logical_xor mT masked_fill masked_fill_ masked_select matmul max
    maximum mean median min minimum mm movedim mv narrow nonzero norm normal_ outer permute prod
    ravel register_hook relu repeat requires_grad requires_grad_ reshape reshape_as resize_
    retain_grad round scatter_ sigmoid sign sin softmax sort split sqrt square squeeze squeeze_
    std storage sum swapaxes t tanh tile topk trace transpose transpose_ tril triu true_divide
    trunc unbind unfold uniform_ unique unsqueeze_ var view view_as where
    """.split()  # noqa: SIM905
)
_INSTEAD = {
    "bfloat16": "tk.float16 or tk.float32",
    "complex64": "two real tensors",
    "cuda": 'device="cpu"',
    "data": "the tensor itself",
    "float_power": "x.double() ** y",
    "reshape": "x.as_strided(size, stride)",
    "square": "x * x",
    "storage": "x.untyped_storage()",
    "true_divide": "tk.div",
    "view": "x.as_strided(size, stride)",
}


def sentence(owner: str, name: str) -> str:
    """What is said about a name that PyTorch has: ``torch.exp is not part of tensorkit yet``."""
    instead = f"; use {_INSTEAD[name]} instead" if name in _INSTEAD else ""
    return f"{owner}.{name} is not part of tensorkit yet{instead}"
