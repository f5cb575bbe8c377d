"""PyTorch's sentences for which tensorkit has its own words: the class is compared, not the text.

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
            r"argument '\w+' (\(position \d\) )?must be (bool|int|tuple of ints|float|Number), not",
            r"^(std and var only support|linalg.vector_norm: Expected a floating point)",
            r"Expected reduction dim",
            r"^(torch\.)?linalg[._]",
            r"does not support bool",
            r"^(max|min|prod|var|std)\(\) received an invalid combination",
            r"^bincount only supports",
            r"^bincount\(\): argument 'weights'",
            r"^weights should be 1-d",
            r"^minlength should be",
            r"_kernel_impl\" not implemented",
        ]
    )
)


def same_words(ours, theirs):
    """Whether two first lines are the same, where PyTorch's is one that tensorkit keeps."""
    return ours == theirs or OTHER_WORDS.search(theirs) is not None
