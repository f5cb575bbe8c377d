"""PyTorch's sentences for which tensorkit has words of its own: the class is compared, not the text.

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
        ]
    )
)


def same_words(ours, theirs):
    """Whether two first lines are the same, where PyTorch's is one that tensorkit keeps."""
    return ours == theirs or OTHER_WORDS.search(theirs) is not None
