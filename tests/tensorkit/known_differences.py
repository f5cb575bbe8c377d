"""Where tensorkit's behaviour differs from PyTorch 2.13 on purpose, each with its reason.

Differences that no expression below can show:
- A failed in-place operation leaves its tensor unchanged; PyTorch may have written a part of it
  (integer division by zero).
- arange and linspace may differ in the last digit: PyTorch adds up in blocks whose width depends
  on the processor. So may randn and powers: logarithms, cosines and powers are approximations.
- Casting numbers that an integer dtype cannot hold (from tensors, not numbers) is undefined in C.
- A read-only NumPy array: PyTorch lets a tensor write to it, tensorkit raises.
- A view made under no_grad of a tensor that requires grad: PyTorch says requires_grad=True (it
  asks the base), but no gradient ever reaches the base through it. tensorkit says False.
- Gradients from autograd.grad are contiguous; PyTorch's strides there are whatever its formulas
  left. `.grad` of leaves has PyTorch's strides.
- Second derivatives show the nodes of our formulas, not PyTorch's TanhBackwardBackward and such.

Keys are expressions that the differential tests would otherwise compare; a test checks that each
of them still differs, so that this list cannot rot.
"""

KNOWN_DIFFERENCES = {
    # Mixing with NumPy arrays: PyTorch 2.13 lets `tensor + array` through NumPy's deprecated
    # __array_wrap__ (DeprecationWarning, float64 result) and refuses `array * tensor`. tensorkit
    # refuses both the same way and names tk.from_numpy.
    "t3 + np.array([1., 2., 3.])": "mixing with arrays is refused, in both orders",
    "np.array([1., 2., 3.]) + t3": "mixing with arrays is refused, in both orders",
    "t3 == np.array([1., 2., 3.])": "mixing with arrays is refused, in both orders",
    "np.sin(t3)": "NumPy's functions do not take tensors: tensor.numpy() first",
    # Not in this version; each raises a sentence that says so.
    "m[True]": "masks and lists of positions are a later step",
    "m[[0, 1]]": "masks and lists of positions are a later step",
    "m[torch.tensor([0, 1])]": "masks and lists of positions are a later step",
    "m[m > 1]": "masks and lists of positions are a later step",
    "m['a']": "PyTorch's message about new() misleads; ours lists the valid indices",
    "torch.tensor(1 + 2j)": "there are no complex numbers",
    # Words of Python itself for missing or extra arguments.
    "torch.full((2,))": "Python's own sentence for a missing argument",
    "torch.abs()": "Python's own sentence for a missing argument",
    "torch.linspace(0, 1)": "Python's own sentence for a missing argument",
    # NumPy 2's protocol: PyTorch warns (DeprecationWarning) and fails where tensorkit shares.
    "np.asarray(m, copy=False)": "tensorkit shares the memory, as asked",
    "torch.Tensor([1., 2.])": "the old constructor is refused: use tk.tensor",
}
