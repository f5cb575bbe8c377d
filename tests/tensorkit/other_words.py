"""PyTorch sentences that tensorkit words in its own way: only the class of the error is compared.

Each row is a pattern of PyTorch's first line. The reason is one for all: an operation refuses what
its declaration excludes in one generic sentence ("PyTorch's sentence for arguments of a wrong kind"
in the list of what went).
"""

import re

OTHER_WORDS = re.compile(
    "|".join(
        [
            r"must have the same dtype, but got",
            r"have same dtype, but found",
            r"vector \+ matrix @ vector expected",
            r"^1D tensors expected, but got",
            r"^batch1 must be a 3D tensor",
            r"must be a matrix, got",
            r"^expected scalar type",
            r"^addmv input tensors",
            r"^Input dtypes must be the same",
            r"\(\) (got an unexpected|takes|received an invalid|missing)",
            r"argument '\w+' (\(position \d+\) )?must be",
            r"int too big to convert",
            r"^attempting to assign a gradient with dtype",
            r"^can't retain_grad on Tensor that has requires_grad=False",
            r"^Can't detach views in-place",
            r"^all inputs have to be Tensors or GradientEdges",
            r"^Expected output to be a torch.Tensor",
            r"^cannot register a hook on a tensor that doesn't require gradient",
        ]
    )
)


def same_words(ours, theirs):
    """Whether two first lines are the same, where PyTorch's is one that tensorkit keeps."""
    return ours == theirs or OTHER_WORDS.search(theirs) is not None
