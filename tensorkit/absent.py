"""Names that PyTorch has and tensorkit does not: asked for, they are refused with a sentence.

Whoever implements one takes it off the list; a test reminds of it.
"""

# one word after the other: as lists these would be pages
FUNCTIONS = frozenset(
    """
    argsort asarray bfloat16 chunk complex64 complex128 concat cuda cumsum einsum flip
    float_power isfinite isinf isnan linalg load logical_and logical_not logical_or
    logical_xor median nn nonzero norm optim outer prod round rsub save sort split square
    tril triu true_divide unique utils
    """.split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(
    """
    H all any argsort bfloat16 broadcast_to chunk cumsum diagonal expand_as flip
    isfinite isinf isnan logical_and logical_not logical_or logical_xor
    median movedim narrow nonzero norm normal_ outer prod ravel
    repeat reshape_as resize_ round scatter_ sort split square squeeze_ storage swapaxes tile
    topk trace transpose_ tril triu true_divide trunc unbind unfold uniform_ unique unsqueeze_
    view_as
    """.split()  # noqa: SIM905
)
_INSTEAD = {
    "bfloat16": "tk.float16 or tk.float32",
    "complex64": "two real tensors",
    "cuda": 'device="cpu"',
    "float_power": "x.double() ** y",
    "square": "x * x",
    "storage": "x.untyped_storage()",
    "true_divide": "tk.div",
}


def sentence(owner: str, name: str) -> str:
    """What is said about a name that PyTorch has: ``torch.exp is not part of tensorkit yet``."""
    instead = f"; use {_INSTEAD[name]} instead" if name in _INSTEAD else ""
    return f"{owner}.{name} is not part of tensorkit yet{instead}"
