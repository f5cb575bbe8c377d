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
# A network is arithmetic on whole tensors. In this chapter you compute with them: element by
# element, as matrix products, along a dimension, and you join what you have. At the end you can
# write a dense layer in one line and average the predictions of several models.
#
# **Time and difficulty.** Reading takes about 25 minutes. The core exercises take about 35 minutes;
# they are easy to middling, 1 to 3 of 5. Exercises marked *further* can wait; they give no points.

# %%
import tensorkit as tk
from course import check, hint, progress, solution
from tensorkit import viz

# %% [markdown]
# ## Element by element
#
# Between two tensors of the same shape, `+`, `-`, `*`, `/` and `**` take the elements pair by pair.
# A Python number goes to every element.

# %%
a = tk.tensor([1.0, 2.0, 3.0, 4.0])
b = tk.tensor([10.0, 20.0, 30.0, 40.0])
print(a + b)
print(a - b)
print(a * b)
print(a / b)
print(a**2)

# %% [markdown]
# > **You will read elsewhere** that `a - b` prints `tensor([-9., -18., -27., -36.])`, and that a
# > single 8 prints `tensor(8.0)`. Numbers that differ in length are padded to one width, and a
# > float without a fraction ends in the point: `tensor(8.)`.
#
# `a * b` has a name in mathematics, the Hadamard product. It is not the matrix product; that one
# comes below.
#
# The same goes for functions: `sqrt`, `exp`, `log`, `sin`, `cos`, `tanh` and `abs` work on each
# element. Each is a function, `tk.sqrt(a)`, and a method, `a.sqrt()`.

# %%
print(tk.sqrt(a))
print(tk.exp(a))
print(tk.log(a))
print(a.sin())
print(tk.abs(tk.tensor([-3.0, -1.0, 2.0])))

# %% [markdown]
# Where a function has no answer it does not complain. The logarithm of 0 is `-inf`, the square root
# of -1 is `nan`, *not a number*, and what is computed with a `nan` is `nan` again. What is too
# large for the dtype becomes `inf`.

# %%
print(tk.log(tk.tensor([1.0, 0.0])))
print(tk.tensor([-1.0, 4.0]).sqrt() + 1)
print(tk.exp(tk.tensor([1.0, 100.0])))

# %% [markdown]
# `clamp` sets what is below `min` to `min` and what is above `max` to `max`; one of them is enough.

# %%
print(tk.tensor([-5.0, 3.0, 300.0]).clamp(min=0, max=255))
print(tk.tensor([-5.0, 3.0, 300.0]).clamp(min=0))

# %% [markdown]
# **A number, a row.** Adding a number to a matrix adds it to every element. Adding a vector as long
# as a row adds it to every row. This is how a bias joins the outputs of a layer.

# %%
table = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print(table + 10)
row = tk.tensor([100.0, 200.0, 300.0])
print(table + row)

# %% role="show"
viz.broadcast(table=table, row=row)

# %% [markdown]
# The row was not copied to make this work. Which shapes fit together follows rules of its own;
# until chapter 04, "a row is added to every row" is all you need.

# %% exercise="softplus"

# %% [markdown]
# **What to notice.** An operation on elements keeps the shape. It raises no error where a number is
# too large or has no answer, so look for `inf` and `nan` yourself when a result surprises you.

# %% [markdown]
# ## In place: the underscore
#
# `a.add(1)` makes a new tensor and leaves `a` alone; it is what `a + 1` does. `a.add_(1)`, with an
# underscore, writes the result into `a`. Every method whose name ends in `_` writes into the tensor
# before the dot: `mul_`, `clamp_`, `zero_`, ...

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
# `x += 1` is `add_` too: it writes into the tensor, and every other name for that tensor sees it.

# %%
same = x
x += 100
print(same)

# %% role="show"
viz.memory(x=x, same=same, y=y)

# %% [markdown]
# The result must fit into the tensor. A whole-number tensor cannot take in halves:

# %%
counts = tk.tensor([1, 2, 3])
try:
    counts.add_(0.5)
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(counts)

# %% exercise="brighter"

# %% [markdown]
# **What to notice.** In place saves the memory of a new tensor, and that is all it saves. The old
# values are gone, also for whoever else used the tensor. In chapter 06 you see what that means for
# gradients. When in doubt, write the version without the underscore.

# %% [markdown]
# ## Matrix products
#
# `A @ B` takes row `i` of `A` and column `j` of `B`, multiplies them element by element and adds
# the products up. That is entry `[i, j]` of the result:
#
# $$(AB)_{ij} = \sum_k A_{ik} B_{kj}$$

# %%
A = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
B = tk.tensor([[5.0, 6.0], [7.0, 8.0]])
print(A @ B)

# %% [markdown]
# The 19 at the top left is 1 · 5 + 2 · 7: row 0 of `A` with column 0 of `B`. In memory the elements
# of the row stand side by side, those of the column a whole row apart:

# %% role="show"
viz.memory(A=A, row=A[0], B=B, column=B[:, 0])

# %% [markdown]
# `tk.matmul(A, B)` is the same as `@`, and `tk.mm` is the
# same for two matrices and nothing else. `tk.equal` says whether two tensors have the same shape
# and the same elements.

# %%
print(tk.equal(A @ B, tk.matmul(A, B)), tk.equal(A @ B, tk.mm(A, B)))
print(tk.equal(A @ B, A * B))

# %% [markdown]
# A matrix times a vector gives a vector, a vector times a vector one number. `tk.dot` does only the
# latter.

# %%
v = tk.tensor([1.0, 2.0])
print(A @ v)

x = tk.tensor([1.0, 2.0, 3.0])
y = tk.tensor([4.0, 5.0, 6.0])
print(x @ y)
print(tk.dot(x, y))

# %% [markdown]
# The inner sizes must agree: `[2, 3] @ [3, 4]` gives `[2, 4]`, and `[2, 3] @ [2, 3]` is an error.

# %%
left = tk.ones(2, 3)
try:
    left @ left
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# The repair is usually a transpose. `left.T` exchanges rows and columns.

# %%
print(left.T.shape, (left @ left.T).shape)

# %% [markdown]
# And `@` mixes no dtypes. Arithmetic on elements promotes; a product asks you to decide:

# %%
try:
    tk.ones(2, 2) @ tk.tensor([[1, 2], [3, 4]])
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% exercise="dense"

# %% [markdown]
# **What to notice.** Write the shapes above the line when you write a product. If the inner sizes
# do not stand side by side, something has to be turned.

# %% [markdown]
# ## Many products at once
#
# With more than two dimensions `@` multiplies the last two, and all the others are a *batch*: 2
# matrices of 3 by 4 times 2 matrices of 4 by 5 are 2 products of 3 by 5. `tk.bmm` does the same for
# exactly three dimensions. In a Transformer every attention head is such a product.

# %%
tk.manual_seed(0)
batch_a = tk.randn(2, 3, 4)
batch_b = tk.randn(2, 4, 5)
print(tk.bmm(batch_a, batch_b).shape)
print((batch_a @ batch_b).shape)

# %% [markdown]
# An index picks one matrix out of a batch: this is the left factor of product 1.

# %% role="show"
viz.indexing(batch_a, 1)

# %% [markdown]
# The same numbers may be added up in another order, and float32 rounds after each step. So results
# that mean the same are compared with `tk.allclose`, which allows a small difference, not with
# `equal`.

# %%
by_hand = batch_a[1] @ batch_b[1]
print(tk.allclose(tk.bmm(batch_a, batch_b)[1], by_hand))
print(tk.tensor(0.1) + 0.2 == 0.3, tk.allclose(tk.tensor(0.1) + 0.2, tk.tensor(0.3)))

# %% exercise="batch-product"

# %% [markdown]
# **What to notice.** A batch is computed in one call, without a loop in Python. On small matrices
# that is many times faster; on a GPU it is the difference between one launch and thousands.

# %% [markdown]
# ## Reductions: many numbers become few
#
# `sum`, `mean`, `max` and their like take everything together, unless you say along which
# dimension.

# %%
sales = tk.tensor([[3.0, 5.0, 1.0], [4.0, 0.0, 8.0]])
print(sales.sum(), sales.mean(), sales.max())

# %% [markdown]
# `dim` names the dimension that disappears. `sales` has shape `[2, 3]`: after `sum(dim=0)` three
# numbers are left, after `sum(dim=1)` two.

# %%
print(sales.sum(dim=0))
print(sales.sum(dim=1))
print(sales.mean(dim=-1))

# %% [markdown]
# `dim=-1` is the last one, as with indices. `max(dim=1)` answers twice: how large, and where.
# `argmax` says only where, and so does `argmin` for the smallest.

# %%
best = sales.max(dim=1)
print(best.values, best.indices)
print(sales.argmax(dim=1), sales.argmax())

# %% [markdown]
# Without `dim`, `argmax` counts through the whole tensor, row after row: 8.0 stands at position 5.
#
# `std` is the standard deviation, the square root of `var`. Both divide by one less than the number
# of elements, as statisticians do for a sample; `correction=0` divides by the number itself.

# %%
print(sales.std(dim=1))
print(sales.var(dim=1, correction=0))

# %% [markdown]
# With `keepdim=True` the dimension stays, with size 1. That is what you need to compute with the
# original afterwards: each row minus its own mean, say. `amin` and `amax` are `min` and `max`
# without the positions.

# %%
print(sales.mean(dim=1).shape, sales.mean(dim=1, keepdim=True).shape)
print(sales / sales.amax(dim=1, keepdim=True))
print(sales - sales.amin(dim=1, keepdim=True))

# %% role="show"
viz.broadcast(sales=sales, means=sales.mean(dim=1, keepdim=True))

# %% exercise="which-result"

# %% exercise="standard-rows"

# %% [markdown]
# **What to notice.** Where two dimensions have the same size, a mistake stays hidden.
# `sales.mean(dim=1)` has shape `[2]`; with a square matrix it fits beside the rows without an
# error, along the wrong direction. `keepdim=True` says what you mean.

# %% [markdown]
# ## Another shape
#
# `reshape` reads the same elements, in the same order, into another shape. The sizes must multiply
# to the same number; one of them may be `-1`, which means "whatever is left".

# %%
x = tk.arange(12, dtype=tk.float32)
print(x.reshape(3, 4))
print(x.reshape(2, -1).shape)
print(x.reshape(3, 4).flatten().shape)

# %% role="show"
viz.memory(x=x, table=x.reshape(3, 4))

# %% [markdown]
# `flatten` makes a vector of everything. If the sizes do not fit, the message says which number of
# elements there is:

# %%
try:
    x.reshape(5, -1)
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% exercise="block-means"

# %% [markdown]
# **What to notice.** `reshape` moves nothing past anything else: the first element stays first, the
# last stays last. To exchange rows and columns is another thing, and has another name.

# %% [markdown]
# ## Joining: cat and stack
#
# `tk.cat` joins tensors along a dimension that they have. `tk.stack` makes a new dimension, with an
# entry for each tensor.

# %%
a = tk.tensor([[1, 2], [3, 4]])
b = tk.tensor([[5, 6], [7, 8]])
print(tk.cat([a, b], dim=0))
print(tk.cat([a, b], dim=1))
print(tk.stack([a, b]))
print(tk.cat([a, b]).shape, tk.stack([a, b], dim=0).shape)

# %% [markdown]
# Both copy. Along dimension 1 `cat` puts a row of `a` beside a row of `b`; `stack` keeps each
# tensor in one piece.

# %% role="show"
viz.memory(joined=tk.cat([a, b], dim=1), stacked=tk.stack([a, b]))

# %% [markdown]
# So four photos of shape `[3, 32, 32]` are stacked to a batch of shape `[4, 3, 32, 32]`, and two
# batches are joined to a larger one with `cat`. For `cat` all other sizes must agree, for `stack`
# all sizes:

# %%
try:
    tk.cat([tk.zeros(2, 3), tk.zeros(2, 4)])
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# Several models that vote are a typical case. Stacked, their predictions have one dimension for the
# models, and the mean over it is the ensemble's prediction:

# %%
one = tk.tensor([0.9, 0.1])
two = tk.tensor([0.8, 0.2])
three = tk.tensor([0.7, 0.3])
votes = tk.stack([one, two, three])
print(votes.shape, votes.mean(dim=0))

# %% exercise="ensemble"

# %% [markdown]
# **What to notice.** `cat` keeps the number of dimensions, `stack` adds one. If you want to
# average, count or vote over the tensors afterwards, they need a dimension of their own.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | pair by pair | `a + b`, `a * b`, `a ** 2` | keeps the shape |
# | a function of each element | `tk.exp(a)`, `a.sqrt()` | no answer: `nan` or `inf`, no error |
# | to write into a tensor | `a.add_(1)`, `a += 1` | every other name sees it |
# | limits | `a.clamp(0, 255)` | `clamp_` in place |
# | a matrix product | `A @ B` | inner sizes agree, dtypes too |
# | rows and columns exchanged | `A.T` | the usual repair |
# | many products | `a @ b`, `tk.bmm(a, b)` | the last two dimensions |
# | one number of all | `x.sum()`, `x.mean()`, `x.max()` | |
# | one number per row | `x.sum(dim=1)` | `dim` disappears; `keepdim=True` keeps size 1 |
# | where the largest is | `x.argmax(dim=1)` | a position, not a value |
# | another shape | `x.reshape(3, -1)`, `x.flatten()` | same elements, same order |
# | to join | `tk.cat([a, b], dim=0)` | along a dimension that is there |
# | to stack | `tk.stack([a, b])` | a new dimension |
# | to compare | `tk.equal(a, b)`, `tk.allclose(a, b)` | `allclose` for floats |

# %% [markdown]
# ## In tensorkit
#
# tensorkit's `softplus` has your formula, and the same care for large numbers. `xp` is the array
# library that computes, here NumPy. The second part is the slope of the function; chapter 05 says
# what that is for.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain
from tensorkit.nn import functional as F

explain.source(F.softplus)

# %% [markdown]
# **A question.** `xp.where` chooses between two results, and both are computed for every element.
# What keeps `exp` from giving `inf` for an element of 1000?
#
# <details><summary>The answer</summary>
#
# `xp.minimum(scaled, threshold)` cuts it to 20 before `exp` sees it. What comes of the 20 is thrown
# away: `where` takes the element itself there.
#
# </details>

# %%
progress("02_operations")
