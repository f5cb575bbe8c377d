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
# Transposing a matrix turns its rows into columns. For a large matrix that takes no longer than for
# a small one. This chapter shows why: a shape is only a way of reading, and most operations on
# shapes change the way of reading and leave the numbers where they are. At the end you can tell a
# view from a copy without trying, and you know what to do when a view does not fit.
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
# read it: the **shape**, the **stride** of each dimension (how many elements to move on for the
# next entry), and the **offset** (where to begin). `stride()` and `storage_offset()` tell them;
# `stride(0)` is the stride of dimension 0 alone.

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
# White is the storage, with the positions above it. Below each element stand the indices under
# which the tensors know it: element `[0, 0]` of `part` is `[1, 1]` of `t`. The arrows show one step
# in each dimension.
#
# `part` has the strides of `t`: its rows are still 4 elements apart, although only 2 of each are
# shown. It begins at position 5, after one whole row and one element.
#
# In general, element `[i, j]` stands at position
#
# $$\text{offset} + i \cdot \text{stride}_0 + j \cdot \text{stride}_1$$

# %% exercise="position-of"

# %% [markdown]
# **What to notice.** An index is a multiplication and an addition for each dimension. No search, no
# chain of rows: that is why it takes the same time wherever the element stands.

# %% [markdown]
# ## Transpose: two strides change places
#
# `.T` exchanges the two dimensions of a matrix, and `transpose(a, b)` exchanges any two; -1 is the
# last, -2 the one before it. Look at the strides.

# %%
m = tk.tensor([[1, 2, 3], [4, 5, 6]])
print(m.shape, m.stride())
print(m.T)
print(m.T.shape, m.T.stride())

# %% role="show"
viz.memory(m=m, turned=m.T)

# %% [markdown]
# Not one number was moved. Both tensors look at the same storage, so a write through one is seen
# through the other:

# %%
turned = m.T
turned[0, 1] = 99
print(m)

# %% [markdown]
# `permute` reorders all dimensions at once. It lists, for each new dimension, which old one it is.

# %%
x = tk.zeros(2, 3, 4)
print(x.stride())
print(x.permute(2, 0, 1).shape, x.permute(2, 0, 1).stride())
print(x.transpose(0, 2).shape, x.mT.shape)

# %% [markdown]
# > **You will read elsewhere** that `.T` swaps the dimensions of any tensor. It is meant for
# > matrices. With more dimensions it reverses all of them, and PyTorch warns that this will go; say
# > `permute`, or `.mT` for the last two.

# %% exercise="transposed-layout"

# %% [markdown]
# **What to notice.** A transpose of a billion numbers takes as long as a transpose of six. What it
# costs comes later, when somebody reads the elements in the new order.

# %% [markdown]
# ## Contiguous
#
# A tensor is **contiguous** if reading it row after row walks through the storage element by
# element. `is_contiguous()` tells. A fresh tensor is; its transpose is not.

# %%
m = tk.arange(6).reshape(2, 3)
print(m.is_contiguous(), m.T.is_contiguous())
print(m[:, :2].is_contiguous(), m[1:].is_contiguous())

# %% [markdown]
# Two columns of three leave gaps. Leaving out a row at the beginning leaves none.
#
# `contiguous()` gives a tensor with the same numbers in the order in which they are read. If they
# lie so already you get the tensor itself; otherwise a copy.

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
# Your function can replace the one inside tensorkit. Within the block below the library asks yours
# whenever it wants to know whether a tensor is contiguous. (`transplant` belongs to this course;
# as long as your function is not written, the library keeps its own.)

# %% role="show"
with transplant(contiguous_by_hand) as asked:
    print(tk.zeros(2, 3).is_contiguous(), tk.zeros(2, 3).T.is_contiguous())
    print(tk.arange(6).reshape(2, 3).T.contiguous().stride())
print(asked)

# %% [markdown]
# **What to notice.** Being contiguous is a property of shape and stride alone. The numbers do not
# matter, and neither does where the tensor came from.

# %% [markdown]
# ## view and reshape
#
# `view` reads the same storage with another shape. It never copies: if no strides can describe the
# new shape, it is an error. `reshape` does the same where it can and copies where it must.

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
# After a transpose the elements are read in another order than they lie in memory. A vector has
# only one stride, and no single stride walks to the positions 0, 4, 8, 1, 5, ...

# %%
try:
    v.T.view(12)
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# > **You will read elsewhere** that `view` needs contiguous memory, and that the error says "not
# > contiguous". Neither is quite so. It needs strides that fit: the tensor below is not contiguous,
# > and its last dimension can still be divided in two. The error speaks of size and stride.

# %%
y = tk.arange(24).reshape(2, 3, 4).transpose(0, 1)
print(y.is_contiguous(), y.view(3, 2, 2, 2).stride())

# %% exercise="column-after-column"

# %% [markdown]
# **What to notice.** `view` is a promise that nothing is copied, so use it where a later write must
# be seen. `reshape` is for when you do not care. And a copy that you did not notice is a typical
# reason why a write has no effect.

# %% [markdown]
# ## Photos: channels last, channels first
#
# Image files store a photo as height, width, channel (NHWC with the batch in front); PyTorch's
# layers want channel, height, width (NCHW). `permute` moves the channels without touching a pixel.

# %%
photos = tk.zeros(8, 32, 32, 3, dtype=tk.uint8)
moved = photos.permute(0, 3, 1, 2)
print(photos.shape, moved.shape)
print(photos.stride(), moved.stride())

# %% [markdown]
# `photos.reshape(8, 3, 32, 32)` has the same shape and is wrong: it reads the old order as if it
# were the new one. Here is the difference on a photo of two pixels, each with the channels 1, 2, 3:

# %%
photo = tk.tensor([[[1, 2, 3], [1, 2, 3]]])
moved = photo.permute(2, 0, 1)
mixed = photo.reshape(3, 1, 2)
print(moved.tolist())
print(mixed.tolist())

# %% role="show"
viz.memory(photo=photo, moved=moved, mixed=mixed)

# %% [markdown]
# All three look at the same six numbers. Channel 0 of `moved` are the positions 0 and 3, the two
# ones; channel 0 of `mixed` are the positions 0 and 1.

# %% exercise="channels-first"

# %% [markdown]
# **What to notice.** Two tensors of the same shape may mean different things. `permute` moves
# dimensions and keeps what belongs together; `reshape` keeps the order and forgets what it meant.

# %% [markdown]
# ## squeeze and unsqueeze
#
# `unsqueeze(d)` puts a dimension of size 1 at place `d`; `squeeze(d)` takes it away again. Both are
# views. You need them to make a batch of a single photo, and to undo it.

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
# `squeeze(1)` did nothing: dimension 1 has size 3. Both count from the end too: `squeeze(-1)` looks
# at the last dimension. And `squeeze()` without a number takes every
# dimension of size 1, also one that you wanted to keep.
#
# > **You will read elsewhere** that `squeeze()` drops the batch dimension. With a batch of one grey
# > photo, `[1, 1, 28, 28]`, it drops the channel too. Name the dimension.

# %% exercise="without-batch"

# %% [markdown]
# **What to notice.** A dimension of size 1 costs nothing: one more number in shape and stride.

# %% [markdown]
# ## Any strides at all
#
# `as_strided` makes a view with whatever shape, stride and offset you write. With a stride of 0 one
# element is read again and again; with overlapping rows an element stands in several places.

# %%
x = tk.arange(6)
print(x.as_strided((3, 2), (2, 1)))
print(x.as_strided((2, 3), (0, 1)))

# %% role="show"
viz.memory(x=x, repeated=x.as_strided((2, 3), (0, 1)))

# %% exercise="sliding-windows"

# %% [markdown]
# **What to notice.** All of this chapter's operations could be written with `as_strided`. It checks
# only that you stay inside the storage, so prefer the others where they say what you mean.

# %% [markdown]
# ## A chain
#
# Views compose. Each step of a chain reads what the one before it describes, and only the steps
# that must copy do.

# %%
tk.manual_seed(42)
A = tk.randn(3, 3)
B = tk.randn(3, 3)
product = A @ B
result = product.T.flatten()
print(result)
print(result.argmax())

# %% [markdown]
# The product is new memory, `.T` is a view of it, `flatten` has to copy, because a transpose is not
# contiguous.

# %% role="show"
viz.memory(product=product, turned=product.T, result=result)

# %% exercise="product-chain"

# %% [markdown]
# **What to notice.** `argmax` of a flattened tensor is a position in the flattened order. To get
# row and column back, divide by the length of a row: the quotient is the row, the rest the column.

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
# | numbers of your own | `x.clone()` | copy |
# | a dimension more | `x.unsqueeze(0)` | view |
# | a dimension less | `x.squeeze(0)` | view; always name the dimension |
# | a part | `x[1:, ::2]` | view |
# | any strides | `x.as_strided(shape, stride, offset)` | view |
# | to know | `x.stride()`, `x.storage_offset()`, `x.is_contiguous()` | |

# %% [markdown]
# ## In tensorkit
#
# A transposition, and your `contiguous_by_hand`. The first lets NumPy exchange two sizes and their
# strides. The second goes from the last dimension to the first and compares each stride with the
# one that a tensor without gaps would have, `expected`.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain, layout

explain.source(tk.transpose, layout.is_contiguous)

# %% [markdown]
# **A question.** Which of the two reads an element of the tensor?
#
# <details><summary>The answer</summary>
#
# Neither does. Both work on sizes and strides alone, so they take as long for six elements as for
# six million.
#
# </details>

# %%
progress("03_memory")
