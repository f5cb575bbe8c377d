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
# # Memory
#
# A transpose turns the rows of a matrix into columns. It takes the same time for a large matrix as
# for a small one. This chapter shows why: a shape only says how memory is read, and most operations
# on shapes change how memory is read and move no number. At the end you can tell a view from a copy
# without trying, and you know what to do when a view is not possible.
#
# **Time and difficulty.** Reading takes about 20 minutes. The core exercises take about 45 minutes;
# most are 2 or 3 of 5, one is 4. Exercises marked *further* can wait; they give no points.

# %%
import tensorkit as tk
from course import check, hint, progress, solution, transplant
from tensorkit import viz

# %% [markdown]
# ## Storage, shape, stride, offset
#
# All numbers of a tensor lie in one flat piece of memory, its **storage**. Three things say how to
# read it. The **shape** has the size of each dimension. The **stride** of a dimension says how many
# elements you go forward to reach its next entry. The **offset** says at which element the tensor
# begins. `stride()` and `storage_offset()` give them; `stride(0)` is the stride of dimension 0
# alone.

# %%
t = tk.arange(12).reshape(3, 4)
print(t)
print(t.shape, t.stride(), t.storage_offset())

# %%
part = t[1:, 1:3]
print(part)
print(part.shape, part.stride(), part.storage_offset())

# %% role="show"
viz.memory(t=t, part=part)

# %% [markdown]
# The first row of boxes is the storage; the positions stand above the boxes. Below each element you
# see its indices in each tensor: element `[0, 0]` of `part` is `[1, 1]` of `t`. The arrows show one
# step in each dimension.
#
# `part` has the strides of `t`: its rows are still 4 elements apart, although it has only 2
# elements of each row. It begins at position 5, after one whole row and one element.
#
# In general, element `[i, j]` stands at position
#
# $$\text{offset} + i \cdot \text{stride}_0 + j \cdot \text{stride}_1$$

# %% exercise="position-of"

# %% [markdown]
# **What to notice.** An index costs one multiplication and one addition for each dimension. Nothing
# is searched, so it takes the same time for every element.

# %% [markdown]
# ## Transpose: two strides are exchanged
#
# `.T` exchanges the two dimensions of a matrix. `transpose(a, b)` exchanges any two dimensions; -1
# is the last one, -2 the one before it. Look at the strides.

# %%
m = tk.tensor([[1, 2, 3], [4, 5, 6]])
print(m.shape, m.stride())
print(m.T)
print(m.T.shape, m.T.stride())

# %% role="show"
viz.memory(m=m, turned=m.T)

# %% [markdown]
# No number was moved. Both tensors use the same storage, so a write through one name shows in the
# other:

# %%
turned = m.T
turned[0, 1] = 99
print(m)

# %% [markdown]
# `permute` reorders all dimensions at once. For each new dimension you name the old one. `mT`
# exchanges the last two dimensions.

# %%
x = tk.zeros(2, 3, 4)
print(x.stride())
print(x.permute(2, 0, 1).shape, x.permute(2, 0, 1).stride())
print(x.transpose(0, 2).shape, x.mT.shape)

# %% exercise="transposed-layout"

# %% [markdown]
# **What to notice.** A transpose of a billion numbers takes as long as a transpose of six. The cost
# comes later, when the elements are read in the new order.

# %% [markdown]
# ## Contiguous
#
# A tensor is **contiguous** if you read its elements, row after row, in the order in which they lie
# in the storage, without gaps. `is_contiguous()` says whether it is. A new tensor is contiguous;
# its transpose is not.

# %%
m = tk.arange(6).reshape(2, 3)
print(m.is_contiguous(), m.T.is_contiguous())
print(m[:, :2].is_contiguous(), m[1:].is_contiguous())

# %% [markdown]
# `m[:, :2]` leaves gaps, because it skips one element in each row. `m[1:]` leaves none, because it
# skips a whole row at the beginning. A dimension of size 1 makes no difference: you never take a
# step in it, so its stride does not matter.
#
# `contiguous()` gives a contiguous tensor with the same numbers. If the tensor is contiguous
# already, you get the tensor itself; otherwise you get a copy.

# %%
print(m.contiguous() is m)
apart = m.T.contiguous()
print(apart.stride(), apart.is_contiguous())
apart[0, 0] = 99
print(m[0, 0])

# %% role="show"
viz.memory(m=m, turned=m.T, apart=apart)

# %% exercise="which-layout"

# %% exercise="contiguous-by-hand"

# %% [markdown]
# Your function can replace the one in tensorkit. In the block below, the library calls your
# function whenever it needs to know whether a tensor is contiguous. `transplant` belongs to this
# course. Until you write your function, the library uses its own.

# %% role="show"
with transplant(contiguous_by_hand) as asked:
    print(tk.zeros(2, 3).is_contiguous(), tk.zeros(2, 3).T.is_contiguous())
    print(tk.arange(6).reshape(2, 3).T.contiguous().stride())
print(asked)

# %% [markdown]
# **What to notice.** Shape and strides alone decide whether a tensor is contiguous. The numbers and
# the offset do not matter.

# %% [markdown]
# ## view and reshape
#
# `view` reads the same storage with another shape. It never copies; if no strides can describe the
# new shape, it raises an error. `reshape` does the same where possible, and copies otherwise.

# %%
x = tk.arange(12)
v = x.view(3, 4)
v[0, 0] = 999
print(x[0])
print(x.view(2, -1).shape)

# %%
flat = v.T.reshape(12)
flat[0] = -1
print(v[0, 0], "is still there: this reshape was a copy")

# %% role="show"
viz.memory(x=x, v=v, flat=flat)

# %% [markdown]
# After a transpose, the elements are read in another order than the one in memory. A vector has
# only one stride, and no single stride leads to the positions 0, 4, 8, 1, 5, ...

# %%
try:
    v.T.view(12)
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# `view` does not always need a contiguous tensor. It needs strides that can describe the new shape.
# The tensor below is not contiguous, and its last dimension can still be split in two:

# %%
y = tk.arange(24).reshape(2, 3, 4).transpose(0, 1)
print(y.is_contiguous(), y.view(3, 2, 2, 2).stride())

# %% exercise="stereo"

# %% [markdown]
# **What to notice.** `view` never copies, so use it if a later write must show in the original. Use
# `reshape` if it does not matter. If a write has no effect, you may have written into a copy by
# mistake.

# %% [markdown]
# ## Photos: channels last, channels first
#
# Image files store a photo as height, width, channel (NHWC with the batch in front). PyTorch's
# layers want channel, height, width (NCHW). `permute` moves the channels without moving a pixel in
# memory.

# %%
photos = tk.zeros(8, 32, 32, 3, dtype=tk.uint8)
moved = photos.permute(0, 3, 1, 2)
print(photos.shape, moved.shape)
print(photos.stride(), moved.stride())

# %% [markdown]
# `photos.reshape(8, 3, 32, 32)` has the same shape, but the result is wrong: it reads the numbers
# in the old order. Here is the difference on a photo of two pixels. Each pixel has the channels 1,
# 2, 3:

# %%
photo = tk.tensor([[[1, 2, 3], [1, 2, 3]]])
moved = photo.permute(2, 0, 1)
mixed = photo.reshape(3, 1, 2)
print(moved.tolist())
print(mixed.tolist())

# %% role="show"
viz.memory(photo=photo, moved=moved, mixed=mixed)

# %% [markdown]
# All three tensors use the same six numbers. Channel 0 of `moved` has the positions 0 and 3, where
# the two ones are. Channel 0 of `mixed` has the positions 0 and 1.

# %% exercise="channels-first"

# %% [markdown]
# **What to notice.** Two tensors of the same shape can mean different things. `permute` moves the
# dimensions, and each number keeps its meaning. `reshape` keeps the order of the numbers, and their
# meaning may change.

# %% [markdown]
# ## squeeze and unsqueeze
#
# `unsqueeze(d)` inserts a dimension of size 1 as dimension `d`. `squeeze(d)` removes it again. Both
# give views. You need them to make a batch of a single photo, and to undo that.

# %%
x = tk.tensor([1, 2, 3])
print(x.unsqueeze(0).shape, x.unsqueeze(1).shape, x.unsqueeze(-1).shape)

photo = tk.zeros(3, 32, 32)
print(photo.unsqueeze(0).shape)

# %% role="show"
viz.memory(x=x, row=x.unsqueeze(0), column=x.unsqueeze(1))

# %%
y = tk.zeros(1, 3, 1, 4)
print(y.squeeze().shape, y.squeeze(0).shape, y.squeeze(1).shape)

# %% [markdown]
# `squeeze(1)` did nothing, because dimension 1 has size 3. Both functions also count from the end:
# `squeeze(-1)` means the last dimension. `squeeze()` without a number removes every dimension of
# size 1, even one that you want to keep.

# %% exercise="without-batch"

# %% [markdown]
# **What to notice.** A dimension of size 1 costs nothing: it adds one number to the shape and one
# to the strides.

# %% [markdown]
# ## Any strides at all
#
# `as_strided` makes a view with any shape, strides and offset that you choose. With a stride of 0,
# the same element is read again and again. Rows may also overlap: then one element is in several
# places.

# %%
x = tk.arange(6)
print(x.as_strided((3, 2), (2, 1)))
print(x.as_strided((2, 3), (0, 1)))

# %% role="show"
viz.memory(x=x, repeated=x.as_strided((2, 3), (0, 1)))

# %% exercise="sliding-windows"

# %% [markdown]
# **What to notice.** You could write every view of this chapter with `as_strided`. But it checks
# only that you stay inside the storage, so use the other operations where they say what you mean.

# %% [markdown]
# ## A chain
#
# You can combine these operations in a chain. Each step takes the result of the step before it, and
# only some steps copy.

# %%
tk.manual_seed(42)
A = tk.randn(3, 3)
B = tk.randn(3, 3)
product = A @ B
result = product.T.flatten()
print(result)
print(result.argmax())

# %% [markdown]
# The product has new memory. `.T` is a view of it. `flatten` has to copy here, because the
# transpose is not contiguous.

# %% role="show"
viz.memory(product=product, turned=product.T, result=result)

# %% exercise="product-chain"

# %% [markdown]
# **What to notice.** `argmax` of a flattened tensor is a position in the flattened order. Divide it
# by the length of a row to get the row and the column: the quotient is the row, the remainder is
# the column.

# %% [markdown]
# ## On one page
#
# | You want | Write | View or copy |
# |---|---|---|
# | rows and columns exchanged | `m.T`, `x.transpose(0, 2)`, `x.mT` | view |
# | all dimensions reordered | `x.permute(2, 0, 1)` | view |
# | another shape, never a copy | `x.view(3, -1)` | view, or an error |
# | another shape | `x.reshape(3, -1)`, `x.flatten()` | view where possible, else copy |
# | elements in reading order | `x.contiguous()` | the tensor itself, or a copy |
# | your own numbers | `x.clone()` | copy |
# | one more dimension | `x.unsqueeze(0)` | view |
# | one dimension less | `x.squeeze(0)` | view; always name the dimension |
# | a part | `x[1:, ::2]` | view |
# | any strides | `x.as_strided(shape, stride, offset)` | view |
# | to know | `x.stride()`, `x.storage_offset()`, `x.is_contiguous()` | |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | `.T` exchanges the dimensions of any tensor. | It is meant for matrices. For more dimensions it reverses all of them, and PyTorch warns that this will be removed. Use `permute`, or `.mT` for the last two. |
# | `view` needs contiguous memory. | It needs strides that can describe the new shape. |
# | The error of `view` says "not contiguous". | It says that the size is not compatible with size and stride. |
# | `squeeze()` removes the batch dimension. | It removes every dimension of size 1. For a batch of one grey photo, `[1, 1, 28, 28]`, the channel is removed too. Name the dimension. |

# %% [markdown]
# ## In tensorkit
#
# The first function is `transpose`, the second is your `contiguous_by_hand`. `transpose` lets NumPy
# exchange two sizes and their strides. `is_contiguous` goes from the last dimension to the first.
# It compares each stride with `expected`, the stride in a tensor without gaps.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain, layout

explain.source(tk.transpose, layout.is_contiguous)

# %% [markdown]
# **A question.** Which of the two reads an element of the tensor?
#
# <details><summary>The answer</summary>
#
# Neither. Both use sizes and strides alone, so they take the same time for six elements and for six
# million.
#
# </details>

# %%
progress("03_memory")

# %% [markdown]
# **Next:** [Broadcasting and indexing](../04_broadcasting/04_broadcasting.ipynb)
