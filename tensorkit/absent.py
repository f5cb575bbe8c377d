"""Names that PyTorch has and tensorkit does not: asked for, they are refused with a sentence.

Whoever implements one takes it off the list; a test reminds of it.
"""

# one word after the other: as lists these would be pages
FUNCTIONS = frozenset(
    """
    argsort asarray bfloat16 complex64 complex128 cuda cumsum einsum float_power
    linalg median nonzero norm outer prod rsub sort unique
    """.split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(
    """
    H all any argsort bfloat16 cumsum median
    nonzero norm outer prod resize_ scatter_ sort squeeze_
    storage topk transpose_ unfold unique unsqueeze_
    """.split()  # noqa: SIM905
)
_INSTEAD = {
    "bfloat16": "tk.float16 or tk.float32",
    "complex64": "two real tensors",
    "cuda": 'device="cpu"',
    "float_power": "x.double() ** y",
    "storage": "x.untyped_storage()",
}


def sentence(owner: str, name: str) -> str:
    """What is said about a name that PyTorch has: ``torch.exp is not part of tensorkit yet``."""
    instead = f"; use {_INSTEAD[name]} instead" if name in _INSTEAD else ""
    return f"{owner}.{name} is not part of tensorkit yet{instead}"
