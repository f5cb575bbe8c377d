"""PyTorch's sentences for which tensorkit has its own words: the class is compared, not the text.

Each row is a pattern of PyTorch's first line. The reason is one for all: an operation refuses what
its declaration excludes in one generic sentence ("PyTorch's sentence for arguments of a wrong kind"
in the list of what went).
"""

import re

OTHER_WORDS = re.compile(
    "|".join(
        [
            r"must have the same dtype, but got|^expected m1 and m2 to have the same dtype",
            r"^the derivative for '_?unique",
            r"^both arguments to linear need to be at least 1D",
            r"^Can not infer total number of classes from empty tensor",
            r"^inconsistent tensor size, expected tensor",
            r"^einsum\(\): (more|fewer|subscript|output|the)",
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
            r"^slice\(\) cannot be applied to a 0-dim",
            r"^(Storage size|Stride) calculation overflowed|^numel: integer multiplication",
            r"Dimension size must be non-negative|got multiple values for argument",
            r"^type \(string\) must not include|^Device index must not be negative",
            r"is out of bounds for bool|must be greater or equal to 0, got -1$",
            r"^only integer tensors of a single element",
            r"int too big to convert|failed to unpack the object at pos",
            r"^\w+ did not match \w+$",
            r"^attempting to assign a gradient",
            r"^Inference tensors cannot be saved|^Inplace update to inference tensor",
            r"^A view was created in no_grad mode|^You must implement",
            r"returned an invalid gradient at index \d - got|^Legacy autograd function",
            r"^only Tensors of floating point",
            r"^hook '.+' has changed the (type|size) of value|^expected Variable, but hook",
            r"^assigned grad expected to be a Tensor",
            r"^can't retain_grad on Tensor that has requires_grad=False",
            r'^"round_vml_cpu" not implemented',
            r"^requires_grad_\(\): argument",
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
            r"^minlength should be",
            r"^Expected (weight to be|normalized_shape to be|tensor for argument #1 'indices')",
            r"^For 1D input, 1D target",
            r"^nll_loss_nd\(\)",
            r"^'weight' must be 2-D",
            r"is different to the input size .* is deprecated",
            r"^Found dtype \w+ but expected",
            r"_kernel_impl\" not implemented",
            r"^the derivative for '_?unique",
            # views, indices, gathering
            r"^narrow\(\): length must be",
            r"^start out of range|^permute\(sparse_coo\)|failed to unpack",
            r"^select\(\): index|^as_strided: Negative|^mismatch in length of strides",
            r"^narrow\(\): length must be",
            r"^start out of range|^permute\(sparse_coo\)|failed to unpack",
            r"^split(_with_sizes)?\(?\)? expects|^split_size can only|split_sizes' \(position 2\)",
            r"^movedim: repeated dim|^diagonal dimensions cannot be",
            r"^expected Tensor as element 0 in argument 0, but got list",
            r"^(repeat|flip)\(\) missing 1 required",
            r"^repeats must have the same size|^Repeats must be non-negative",
            r"^stack expects a non-empty",
            r"^where\(\): argument 'condition'",
            r"^(squeeze|transpose|flatten|unsqueeze|select|as_strided|view|reshape)\(\), argument",
            r"Expected dtype int32 or int64 for index|dtype of indices should be Long",
            r"same number of dimensions as input tensor|^Size does not match at dimension",
            r"^masked_fill_ only supports boolean masks",
            r"^too many indices for tensor of dimension \d \(got|in range of \[-3, 2\], but got 4",
            r"^index_add_\(\): |^source tensor shape must match self",
            r"and to be no larger size than src",
            r"^scatter_add\(\): argument 'src'|^scatter\(\): Expected self.dtype",
            r"^(select|slice)\(\) cannot be applied",
            r"index -?\d+ is out of bounds for dimension 0 with size 0",
            r"^index is out of bounds for dimension with size 0|^shape mismatch: (ind|val)",
            r"^expand\(|^new\(\): invalid data type|^permute\(\): duplicate dims",
            r"^(select|slice)\(\) cannot be applied|^expand\(|^new\(\): invalid data type",
            r"^permute\(\): duplicate dims|^shape mismatch: (ind|val)",
            r"index -?\d+ is out of bounds for dimension 0 with size 0",
            r"^index is out of bounds for dimension with size 0",
        ]
    )
)


def same_words(actual, expected):
    """Whether two first lines are the same, where PyTorch's is one that tensorkit keeps."""
    return actual == expected or OTHER_WORDS.search(expected) is not None
