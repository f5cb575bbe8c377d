"""Names that PyTorch has and tensorkit does not: asked for, they are refused with a sentence.

Whoever implements one takes it off the list; a test reminds of it.
"""

# one word after the other: as lists these would be pages
FUNCTIONS = frozenset(
    """
    asarray bfloat16 complex64 complex128 cuda einsum float_power linalg median outer rsub
    """.split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(
    """
    H bfloat16 median outer resize_ scatter_ squeeze_ storage transpose_ unfold unsqueeze_
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
