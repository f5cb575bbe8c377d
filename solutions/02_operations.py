# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Operations
#
# A network computes with whole tensors. In this chapter you compute element by element, multiply
# matrices, add up along a dimension, and join tensors. At the end you can write a dense layer in
# one line and average the predictions of several models.
#
# **Time and difficulty.** Reading takes about 25 minutes. The core exercises take about 35 minutes;
# they are easy to medium, 1 to 3 of 5. Exercises marked *further* can wait; they give no points.

# %%
import tensorkit as tk
from course import check, hint, progress, solution
from tensorkit import viz

# %% [markdown]
# ## Element by element
#
# With two tensors of the same shape, `+`, `-`, `*`, `/` and `**` work element by element. With a
# tensor and a Python number, the number is used for every element.

# %%
a = tk.tensor([1.0, 2.0, 3.0, 4.0])
b = tk.tensor([10.0, 20.0, 30.0, 40.0])
print(a + b)
print(a - b)
print(a * b)
print(a / b)
print(a**2)

# %% [markdown]
# Numbers are padded to the same width when they are printed. That is why there is a space in
# `tensor([ -9., -18., -27., -36.])`.
#
# In mathematics `a * b` is called the Hadamard product. It is not the matrix product, which comes
# later in this chapter.
#
# Functions work element by element too: `sqrt`, `exp`, `log`, `sin`, `cos`, `tanh` and `abs`. Each
# of them is a function, `tk.sqrt(a)`, and a method, `a.sqrt()`.

# %%
print(tk.sqrt(a))
print(tk.exp(a))
print(tk.log(a))
print(a.sin())
print(tk.abs(tk.tensor([-3.0, -1.0, 2.0])))

# %% [markdown]
# A function raises no error where it has no result. The logarithm of 0 is `-inf`. The square root
# of -1 is `nan`, *not a number*, and every calculation with `nan` gives `nan` again. A result that
# is too large for the dtype becomes `inf`.

# %%
print(tk.log(tk.tensor([1.0, 0.0])))
print(tk.tensor([-1.0, 4.0]).sqrt() + 1)
print(tk.exp(tk.tensor([1.0, 100.0])))

# %% [markdown]
# `clamp` limits the elements: values below `min` become `min`, values above `max` become `max`. You
# can leave out one of the two.

# %%
print(tk.tensor([-5.0, 3.0, 300.0]).clamp(min=0, max=255))
print(tk.tensor([-5.0, 3.0, 300.0]).clamp(min=0))

# %% [markdown]
# **A number, a row.** A number is added to every element of a matrix. A vector that is as long as a
# row is added to every row. A layer adds its bias in this way.

# %%
table = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print(table + 10)
row = tk.tensor([100.0, 200.0, 300.0])
print(table + row)

# %% role="show"
viz.broadcast(table=table, row=row)

# %% [markdown]
# The row was not copied for this. Chapter 04 has the rules for which shapes fit together. Until
# then it is enough to know that a row is added to every row.

# %% exercise="softplus"

# %% [markdown]
# **What to notice.** An operation on elements keeps the shape. It raises no error if a number is
# too large or has no result. If a result surprises you, look for `inf` and `nan`.

# %% [markdown]
# ## In place: the underscore
#
# `a.add(1)` makes a new tensor and does not change `a`; it is the same as `a + 1`. `a.add_(1)`,
# with an underscore, writes the result into `a`. Every method whose name ends in `_` writes into
# its own tensor: `mul_`, `clamp_`, `zero_`, ...

# %%
x = tk.tensor([1.0, 2.0, 3.0])
y = x.add(10)
print(x, y)

x.add_(10)
print(x)
x.mul_(2)
print(x)
x.clamp_(min=23, max=25)
print(x)

# %% [markdown]
# `x += 1` works in place too: it writes into the tensor, and every other name for this tensor shows
# the change.

# %%
same = x
x += 100
print(same)

# %% role="show"
viz.memory(x=x, same=same, y=y)

# %% [markdown]
# The dtype of the tensor must be able to hold the result. A tensor of whole numbers cannot hold
# halves:

# %%
counts = tk.tensor([1, 2, 3])
try:
    counts.add_(0.5)
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(counts)

# %% exercise="brighter"

# %% [markdown]
# **What to notice.** An in-place operation saves the memory of a new tensor, and nothing else. The
# old values are lost, also for other code that uses the tensor. Chapter 06 shows what this means
# for gradients. If you are not sure, use the version without the underscore.

# %% [markdown]
# ## Matrix products
#
# For entry `[i, j]` of the result, `A @ B` takes row `i` of `A` and column `j` of `B`, multiplies
# them element by element and adds up the products:
#
# $$(AB)_{ij} = \sum_k A_{ik} B_{kj}$$

# %%
A = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
B = tk.tensor([[5.0, 6.0], [7.0, 8.0]])
print(A @ B)

# %% [markdown]
# The 19 at the top left is 1 · 5 + 2 · 7: row 0 of `A` with column 0 of `B`. In memory the elements
# of the row are neighbours. The elements of the column are a whole row apart:

# %% role="show"
viz.memory(A=A, row=A[0], B=B, column=B[:, 0])

# %% [markdown]
# `tk.matmul(A, B)` is the same as `A @ B`. `tk.mm` is the same too, but only for two matrices.
# `tk.equal` says whether two tensors have the same shape and the same elements.

# %%
print(tk.equal(A @ B, tk.matmul(A, B)), tk.equal(A @ B, tk.mm(A, B)))
print(tk.equal(A @ B, A * B))

# %% [markdown]
# A matrix times a vector gives a vector. A vector times a vector gives one number; `tk.dot` does
# only this.

# %%
v = tk.tensor([1.0, 2.0])
print(A @ v)

x = tk.tensor([1.0, 2.0, 3.0])
y = tk.tensor([4.0, 5.0, 6.0])
print(x @ y)
print(tk.dot(x, y))

# %% [markdown]
# The inner sizes must be equal: `[2, 3] @ [3, 4]` gives `[2, 4]`, and `[2, 3] @ [2, 3]` is an
# error.

# %%
left = tk.ones(2, 3)
try:
    left @ left
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# You usually repair this with a transpose: `left.T` exchanges rows and columns.

# %%
print(left.T.shape, (left @ left.T).shape)

# %% [markdown]
# `@` does not promote dtypes as arithmetic on elements does. You must cast one of the two:

# %%
try:
    tk.ones(2, 2) @ tk.tensor([[1, 2], [3, 4]])
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% exercise="dense"

# %% [markdown]
# **What to notice.** When you write a product, write both shapes beside each other: `[2, 3] [3,
# 4]`. The two sizes in the middle must be equal. If they are not, you need a transpose.

# %% [markdown]
# ## Many products at once
#
# With more than two dimensions, `@` multiplies the last two dimensions. The other dimensions are a
# *batch*. 2 matrices of 3 by 4 times 2 matrices of 4 by 5 give 2 products of 3 by 5. `tk.bmm` does
# the same for exactly three dimensions. Every attention head of a Transformer computes such
# products.

# %%
tk.manual_seed(0)
batch_a = tk.randn(2, 3, 4)
batch_b = tk.randn(2, 4, 5)
print(tk.bmm(batch_a, batch_b).shape)
print((batch_a @ batch_b).shape)

# %% [markdown]
# An index picks one matrix of a batch. The picture shows `batch_a[1]`:

# %% role="show"
viz.indexing(batch_a, 1)

# %% [markdown]
# A computer may add the same numbers in a different order, and float32 rounds after each step. So
# two results that should be equal can differ a little. Compare floats with `tk.allclose`, which
# allows a small difference, not with `equal`.

# %%
by_hand = batch_a[1] @ batch_b[1]
print(tk.allclose(tk.bmm(batch_a, batch_b)[1], by_hand))
print(tk.tensor(0.3) - 0.1 == 0.2, tk.allclose(tk.tensor(0.3) - 0.1, tk.tensor(0.2)))

# %% exercise="batch-product"

# %% [markdown]
# **What to notice.** A batch is computed in one call, without a loop in Python. For small matrices
# that is many times faster. On a GPU a batch needs one start of the GPU instead of thousands.

# %% [markdown]
# ## Reductions: many numbers become few
#
# `sum`, `mean` and `max` reduce the whole tensor to one number, unless you name a dimension.

# %%
sales = tk.tensor([[3.0, 5.0, 1.0], [4.0, 0.0, 8.0]])
print(sales.sum(), sales.mean(), sales.max())

# %% [markdown]
# `dim` names the dimension that is removed. `sales` has shape `[2, 3]`: `sum(dim=0)` leaves three
# numbers, `sum(dim=1)` leaves two.

# %%
print(sales.sum(dim=0))
print(sales.sum(dim=1))
print(sales.mean(dim=-1))

# %% [markdown]
# `dim=-1` is the last dimension, as with indices. `max(dim=1)` returns two tensors: the largest
# values and their positions. `argmax` returns only the positions; `argmin` returns the positions of
# the smallest values.

# %%
best = sales.max(dim=1)
print(best.values, best.indices)
print(sales.argmax(dim=1), sales.argmax())

# %% [markdown]
# Without `dim`, `argmax` counts through the whole tensor, row after row: 8.0 is at position 5.
#
# `std` is the standard deviation, the square root of the variance `var`. Both divide by the number
# of elements minus one, as statisticians do for a sample. With `correction=0` they divide by the
# number of elements.

# %%
print(sales.std(dim=1))
print(sales.var(dim=1, correction=0))

# %% [markdown]
# A tensor can have no elements: `tk.zeros(0)` has the shape `[0]`. A sum begins at 0, so the sum of
# no elements is 0; a sum along a dimension works in the same way. The mean of no elements is `nan`,
# because it divides 0 by 0. There is no largest element, so `max` raises an error.

# %%
empty = tk.zeros(2, 0)
print(empty.sum(dim=1), empty.mean())

# %% [markdown]
# With `keepdim=True` the dimension stays and has size 1. You need this to compute with the original
# tensor afterwards, for example to subtract from each row its own mean. `amin` and `amax` are `min`
# and `max` without the positions.

# %%
print(sales.mean(dim=1).shape, sales.mean(dim=1, keepdim=True).shape)
print(sales / sales.amax(dim=1, keepdim=True))
print(sales - sales.amin(dim=1, keepdim=True))

# %% role="show"
viz.broadcast(sales=sales, means=sales.mean(dim=1, keepdim=True))

# %% exercise="which-result"

# %% exercise="standard-rows"

# %% [markdown]
# **What to notice.** If two dimensions have the same size, a mistake can stay hidden.
# `sales.mean(dim=1)` has shape `[2]`. For a square matrix such a vector fits beside the rows, there
# is no error, and the result is wrong. With `keepdim=True` the result is right for every matrix.

# %% [markdown]
# ## Another shape
#
# `reshape` gives the same elements, in the same order, another shape. The product of the sizes must
# stay the same. One size may be `-1`; it is computed from the others.

# %%
x = tk.arange(12, dtype=tk.float32)
print(x.reshape(3, 4))
print(x.reshape(2, -1).shape)
print(x.reshape(3, 4).flatten().shape)

# %% role="show"
viz.memory(x=x, table=x.reshape(3, 4))

# %% [markdown]
# `flatten` makes one vector of all elements. If the sizes do not fit, the message says so:

# %%
try:
    x.reshape(5, -1)
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% exercise="block-means"

# %% [markdown]
# **What to notice.** `reshape` keeps the order: the first element stays first, the last stays last.
# It does not exchange rows and columns. That is a transpose, the topic of chapter 03.

# %% [markdown]
# ## Joining: cat and stack
#
# `tk.cat` joins tensors along a dimension that they already have. `tk.stack` makes a new dimension,
# with one entry for each tensor.

# %%
a = tk.tensor([[1, 2], [3, 4]])
b = tk.tensor([[5, 6], [7, 8]])
print(tk.cat([a, b], dim=0))
print(tk.cat([a, b], dim=1))
print(tk.stack([a, b]))
print(tk.cat([a, b]).shape, tk.stack([a, b], dim=0).shape)

# %% [markdown]
# Both copy the elements. Along dimension 1, `cat` puts a row of `a` beside a row of `b`. `stack`
# keeps the elements of each tensor together.

# %% role="show"
viz.memory(joined=tk.cat([a, b], dim=1), stacked=tk.stack([a, b]))

# %% [markdown]
# So `stack` makes a batch of shape `[4, 3, 32, 32]` from four photos of shape `[3, 32, 32]`, and
# `cat` joins two batches to a larger one. For `stack` all sizes must be equal. For `cat` all sizes
# must be equal except along the joined dimension:

# %%
try:
    tk.cat([tk.zeros(2, 3), tk.zeros(2, 4)])
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# An *ensemble* is a group of models whose predictions are averaged. After `stack`, the first
# dimension counts the models, and the mean along it is the prediction of the ensemble:

# %%
one = tk.tensor([0.9, 0.1])
two = tk.tensor([0.8, 0.2])
three = tk.tensor([0.7, 0.3])
votes = tk.stack([one, two, three])
print(votes.shape, votes.mean(dim=0))

# %% exercise="ensemble"

# %% [markdown]
# **What to notice.** `cat` keeps the number of dimensions, `stack` adds one. If you want the mean
# or the largest value over several tensors, stack them: then they have a dimension of their own.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | element by element | `a + b`, `a * b`, `a ** 2` | keeps the shape |
# | a function of each element | `tk.exp(a)`, `a.sqrt()` | no result: `nan` or `inf`, no error |
# | to write into a tensor | `a.add_(1)`, `a += 1` | every other name shows it |
# | to limit the elements | `a.clamp(0, 255)` | `clamp_` in place |
# | a matrix product | `A @ B` | equal inner sizes, equal dtypes |
# | rows and columns exchanged | `A.T` | the usual repair |
# | many products | `a @ b`, `tk.bmm(a, b)` | the last two dimensions |
# | one number from all elements | `x.sum()`, `x.mean()`, `x.max()` | |
# | one number per row | `x.sum(dim=1)` | `dim` is removed; `keepdim=True` keeps size 1 |
# | where the largest is | `x.argmax(dim=1)` | a position, not a value |
# | another shape | `x.reshape(3, -1)`, `x.flatten()` | same elements, same order |
# | to join | `tk.cat([a, b], dim=0)` | along a dimension that exists |
# | to stack | `tk.stack([a, b])` | a new dimension |
# | to compare | `tk.equal(a, b)`, `tk.allclose(a, b)` | `allclose` for floats |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | `a - b` prints `tensor([-9., -18., -27., -36.])`. | It prints `tensor([ -9., -18., -27., -36.])`: all numbers have the same width. |
# | A single 8 prints `tensor(8.0)`. | It prints `tensor(8.)`: a float without a fraction ends in the point. |

# %% [markdown]
# ## In tensorkit
#
# tensorkit's `softplus` calls a function with the formula of the exercise, which is shown last. `xp`
# is the array library, here NumPy. The second part is the slope of `softplus`; chapter 05 explains
# what it is for.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain
from tensorkit.nn import functional as F
from tensorkit.ops import activations

explain.source(F.softplus, activations.log_of_one_more_than_exp)

# %% [markdown]
# **A question.** `xp.where` chooses between two results, and both are computed for every element.
# Why does `exp` not give `inf` for an element of 1000?
#
# <details><summary>The answer</summary>
#
# It is given `-xp.absolute(x)`, here -1000, and gives 0; `xp.maximum` adds the 1000.
#
# </details>

# %%
progress("02_operations")

# %% [markdown]
# **Next:** [Memory](../03_memory/03_memory.ipynb)
