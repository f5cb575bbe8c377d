"""Where tensorkit's behaviour differs from PyTorch 2.13 on purpose, each with its reason.

Differences that no expression below can show:
- Where a gradient cannot fit (a tensor got another shape in place under no_grad, the source of a
  scatter is larger than its index), backward's refusal does not name the node. Where it fits, that
  of a leaf that got another shape is summed to that; PyTorch refuses, or keeps the old shape.
- float() of a tensor that requires grad gives the number; PyTorch warns, once in a process.
- mse_loss(x, y, "sum") and other losses take `reduction` in third place; PyTorch's third place is
  size_average, which it warns of.
- A failed in-place operation leaves its tensor unchanged; PyTorch may have written a part of it
  (integer division by zero).
- arange and linspace round as PyTorch does on processors with fused multiply-add (all common
  ones) and vectors of 32 bytes; elsewhere, and in ranges of more than 32,768 numbers, which it
  divides among threads, the last digit may differ. So may randn and powers: logarithms, cosines
  and powers are approximations.
- With alpha, add and sub round the product and then the sum; PyTorch rounds once. float16 is
  computed and rounded by NumPy after each step of an operation; PyTorch's kernels compute such a
  step, and numbers that are operands, in float32. The last digit may differ.
- alpha is a Python number.
- A number that float16 does not hold (1e-8, 70000) is refused as a factor, a divisor and a slope of
  leaky_relu; PyTorch computes with it in float32. // takes only numbers that it holds exactly.
- float16 is added up in float32 everywhere; PyTorch adds up repeated positions of index_add and of
  the gradients of x[index], index_select and embedding in float16.
- Bools have no powers. copy.copy of a tensor that is no leaf is refused, as a deep copy is.
- The remainder where the quotient is too large for the dtype (float32: 1e10 % 1e-30): PyTorch's
  vectors give nan, tensorkit the exact remainder.
- A 0-d tensor of -inf or -0. to the power of a 0-d tensor of 0.5: NumPy takes the root of it.
- Views of one storage that are pickled together share one again; PyTorch's have one each.
- In-place operations on a strided view of the operand's own memory (`v[::2] += v[:5]`) read all of
  it before they write; PyTorch reads what it has already written, in an order of its own.
- `x.data[1:].add_(x[:-1])` reads the old values, too; PyTorch refuses what is shared in part,
  and tensorkit does so only within one history, `x[1:].add_(x[:-1])`.
- norm("fro") takes any number of dimensions.
- A custom operation returns one tensor, has no keyword-only arguments and is made for one kind of
  device; in PyTorch it may return several, have such arguments and name several kinds.
- NumPy names axis= and keepdims= are taken by reductions, softmax, cat, stack, view operations,
  not by sort, topk, gather and their like.
- A dimension given as None means none given (`x.max(None)`); PyTorch refuses it where it has
  another signature without one. keepdim=True alone is taken by mean and sum.
- Strides in dimensions of size 0 and 1, by which no element is found, are NumPy's, also of views;
  as are those of some broadcasts of tensors whose memory is in another order. What positions or a
  mask pick (x[index], gather, index_select) is contiguous, the tensors of nonzero share no storage.
- x[index] takes one `...`, and positions that are integers: x[[0, 1.5]] is refused. Positions in a
  tensor without elements are looked at, also where nothing is read or written.
- gradcheck does not warn of inputs that are not float64; where it fails it says so.
- gather, scatter, index_select and index_add take an index of as many dimensions as the tensor (a
  vector for slices), and no tensor without dimensions.
- masked_fill and where convert a tensor that is filled in by a node of its own.
- A row or a matrix times matrices goes by bmm; in PyTorch mostly by mv and mm.
- einsum multiplies its operands from left to right with NumPy's einsum, so its nodes and the
  strides of its results are its own. A letter has one size: sizes of 1 do not broadcast.
- var and std with dim=() mean all dimensions, and so do their gradients; PyTorch's count one.
- solve, inv, sort and argsort give contiguous tensors; sort(stable=) shows SortBackward0, too.
- topk names any of several equal elements, PyTorch perhaps another one.
- clamp takes bools with limits that are bools; clamp_ names the dtype as other operations do
  (Char, not "signed char"). softmax of integers without elements is refused like any other of
  integers; isinf and isfinite of integers without elements may have other strides.
- Casting numbers that an integer dtype cannot hold (from tensors, not numbers) is undefined in C.
- A read-only NumPy array: PyTorch lets a tensor write to it, tensorkit raises.
- A view made under no_grad of a tensor that requires grad: PyTorch says requires_grad=True (it
  asks the base), but no gradient ever reaches the base through it. tensorkit says False. After a
  write to the base both refuse to compute with it while gradients are recorded.
- Gradients from autograd.grad are contiguous; PyTorch's strides there are whatever its formulas
  left. `.grad` of leaves has PyTorch's strides.
- x[index] keeps its own copy of index tensors for backward; PyTorch keeps the tensor and refuses
  if it was changed since.
- Each part that split, chunk and unbind give has a node of its own and may be written to in
  place; PyTorch's parts share one node and refuse.
- A backward that fails leaves every `.grad` as it was; PyTorch has added to some leaves by then.
- Hooks of leaves run when all gradients are known; PyTorch runs each when its leaf is reached.
- A `Function` whose forward writes to a view takes the view as its first argument.
- Losses show MulBackward0 and DivBackward0 where PyTorch, which multiplies by a C++ number there,
  shows MulBackward1 and DivBackward1.
- A keyword that a function lacks, or a missing argument, is refused in Python's words where
  PyTorch's function has several signatures. ~ and bitwise_not refuse floats in the same words.
- `_base` and `_is_view()` tell of floating-point views only: nothing else needs to know them.
- masked_fill_ refuses to write to expanded tensors, as other operations do.
- Tensors take no attributes of the user's: `x.name = 3` raises. They would make all tensors larger.
- A number may stand first in every operation of two tensors: eq(1, x) is eq(x, 1).
- The sign of a zero that clamp, maximum, minimum or index_add takes from one of two zeros.
- A second derivative of leaky_relu or nll_loss alone: PyTorch gives zeros, to tensorkit their
  slopes do not depend on x.
- Second derivatives of prod where a zero stands beside inf or nan: PyTorch gives nan also where the
  other numbers alone decide.
- First derivatives of prod where partial products overflow in one order and not in another.
- gelu of inf in float32 is inf; PyTorch's vectors give nan.
- backward(inputs=) with a tensor that is no leaf does not run that tensor's own node; PyTorch does,
  refuses what was written to since, and uses up what the node saved.
- Second derivatives show the nodes of our formulas, not PyTorch's SigmoidBackwardBackward and such
  (tanh has PyTorch's).

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
    "i3 + np.bool_(True)": "NumPy's bool counts as Python's; PyTorch takes it for a float",
    "i3 * np.bool_(True)": "NumPy's bool counts as Python's; PyTorch takes it for a float",
    "torch.full((2,), np.bool_(True))": "NumPy's bool counts as Python's",
    # Not in this version; each raises a sentence that says so.
    "torch.tensor(1 + 2j)": "there are no complex numbers",
    "torch.eq(1, t3)": "a number may stand first in every operation of two tensors",
    "torch.zeros([1] * 65).ndim": "NumPy's arrays have at most 64 dimensions",
    # NumPy 2's protocol: PyTorch warns (DeprecationWarning) and fails where tensorkit shares.
    "np.asarray(m, copy=False)": "tensorkit shares the memory, as asked",
    "torch.Tensor([1., 2.])": "the old constructor is refused: use tk.tensor",
}
