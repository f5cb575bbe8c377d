"""What autograd knows of a tensor: its ``_node``.

    None         does not require grad
    LEAF         a leaf that requires grad
    a Node       the result of a recorded operation: see ``autograd.graph``
    VIEW         a view, or None so far: ``history.edge_of`` finds out when it matters
    HIDDEN_VIEW  the same, made under no_grad
    INFERENCE    made in inference mode

None is by far the commonest, and what every operation looks for first.
"""


class Mark:
    """A value of ``_node`` that is no node."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


LEAF, VIEW, HIDDEN_VIEW, INFERENCE = map(Mark, ("LEAF", "VIEW", "HIDDEN_VIEW", "INFERENCE"))
