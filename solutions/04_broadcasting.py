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
# # Broadcasting and indexing
#
# Two tensors need not have the same shape to be added: if the shapes fit, the smaller one is read
# again and again. This chapter has the three rules, and then the other ways of picking elements, by
# mask and by list. At the end you can compute all distances between two sets of points in one line,
# and you know which picks are views and which are copies.
#
# **Time and difficulty.** Reading takes about 20 minutes. The core exercises take about 40 minutes;
# most are 2 or 3 of 5, one is 4. Exercises marked *further* can wait; they give no points.

# %%
import tensorkit as tk
from course import check, hint, progress, solution, transplant
from tensorkit import explain, viz

# %% [markdown]
# ## Three rules
#
# 1. Line the shapes up at the right.
# 2. Where one of them has no dimension, it counts as 1.
# 3. In each dimension the sizes must be equal, or one of them must be 1. A size of 1 stretches.
#
# A number has no dimensions, so it fits beside everything. A row fits beside a matrix with rows of
# its length. A column, of shape `[n, 1]`, gives each row a number of its own.

# %%
a = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print(a + 10)

row = tk.tensor([100.0, 200.0, 300.0])
print(a + row)

column = tk.tensor([[10.0], [20.0]])
print(a * column)

# %% role="show"
viz.broadcast(a, column)

# %% [markdown]
# If both stretch, a column and a row make a table. That is the pattern behind every "each with
# each":

# %%
print((tk.zeros(4, 1) + tk.zeros(1, 5)).shape)
print((tk.zeros(8, 1, 6, 1) + tk.zeros(7, 1, 5)).shape)

# %% role="show"
viz.broadcast((4, 1), (1, 5))

# %% [markdown]
# **When shapes do not fit.** The message names the sizes and the dimension. A vector as long as a
# *column* is the classic:

# %%
per_row = tk.tensor([10.0, 20.0])
try:
    a * per_row
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# Lined up at the right, the 2 of `per_row` stands under the 3. What you mean is a column: shape
# `[2, 1]`. `unsqueeze(1)` gives it that dimension.

# %%
print(a * per_row.unsqueeze(1))

# %% role="show"
explain.broadcast(a, per_row)

# %% [markdown]
# Worse is what fits by accident. In a square matrix the row rule applies silently. The first line
# below subtracts the mean of row 0 from column 0, and nothing warns you:

# %%
square = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
print(square - square.mean(dim=1))
print(square - square.mean(dim=1, keepdim=True))

# %% exercise="broadcast-shape"

# %% [markdown]
# Inside the block below, the library asks your function whenever two shapes meet. As long as it is
# not written, the library keeps its own.

# %% role="show"
with transplant(broadcast_shape) as asked:
    table = tk.tensor([[10.0], [20.0], [30.0]]) + tk.tensor([1.0, 2.0, 3.0, 4.0])
    print(table)
print(asked)

# %% [markdown]
# **What to notice.** The rules look at shapes only. They cannot know whether your row is a row of
# the right thing: a vector of 3 prices fits beside 3 measurements as well. When you test a formula,
# use sizes that differ.

# %% [markdown]
# ## A column times a row, and what stretching costs
#
# The multiplication table of 1 to 5 is a column times a row. Here is the smaller brother of it,
# sums instead of products:

# %%
rows = tk.arange(3).unsqueeze(1)
columns = tk.arange(4).unsqueeze(0)
print(rows.shape, columns.shape)
print(rows + 10 * columns)

# %% role="show"
viz.broadcast(rows=rows, tens=10 * columns)

# %% [markdown]
# `unsqueeze(0)` is not needed here: a missing dimension counts as 1 anyway.
#
# > **You will read elsewhere** that each entry is the product of its row and column *indices*.
# > Indices begin at 0, and the table then begins with a row of zeros. Say which one you mean.

# %% exercise="multiplication-table"

# %% [markdown]
# **What stretching costs.** Nothing is copied while a dimension stretches. `expand` shows what
# happens: the stretched dimension gets stride 0, which you met at the end of chapter 03: the same
# element is read again and again.

# %%
column = tk.tensor([[10.0], [20.0]])
wide = column.expand(2, 3)
print(wide)
print(wide.stride(), column.stride())

# %% role="show"
viz.memory(column=column, wide=wide)

# %% [markdown]
# Because several places are one element, writing into an expanded tensor is refused; `clone()` it
# first. `repeat` looks the same and is a copy: it takes the memory.

# %%
try:
    wide.add_(1)
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(column.repeat(1, 3).stride())

# %% [markdown]
# `broadcast_to` is `expand` with the whole shape as a tuple.

# %%
print(tk.broadcast_to(row, (2, 3)))

# %% exercise="nearest-centre"

# %% [markdown]
# **What to notice.** Stride 0 is all there is to broadcasting: the operands stay small. The result
# does not. 1,000 points and 1,000 centres make a table of a million differences. Broadcasting saves
# the loop, not the memory of the result.

# %% [markdown]
# ## Masks
#
# A comparison gives a tensor of True and False. As an index it picks the elements where it is True.

# %%
scores = tk.tensor([85.0, 92.0, 67.0, 78.0, 95.0])
passed = scores > 80
print(passed)
print(scores[passed])
print(passed.sum(), (~passed).sum())

# %% [markdown]
# `~` turns a mask around; `&` is and, `|` is or. Put the comparisons in brackets: `&` binds more
# strongly than `>`. Python's own `and` asks for a single True or False, which a mask is not.

# %%
print(scores[(scores > 70) & (scores < 90)])
try:
    scores[(scores > 70) and (scores < 90)]
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# A mask picks, so the places are lost. `where` keeps them: it takes from its second argument where
# the condition is True, and from the third elsewhere.

# %%
print(tk.where(scores > 80, scores, 0.0))

# %% [markdown]
# > **You will read elsewhere** that the third argument must be a tensor, `tk.tensor(0.0)`. A number
# > will do.

# %% role="show"
viz.indexing(scores, passed)

# %% exercise="top-scores"

# %% [markdown]
# **What to notice.** The size of `scores[passed]` depends on the numbers, not on the shape. On a
# GPU that means waiting for the numbers; `where` needs no waiting.

# %% [markdown]
# ## Lists
#
# A list of numbers picks entries in that order, as often as they are named. So does a tensor of
# int64.

# %%
print(scores[[0, 2, 4]])
print(scores[[4, 4, 0]])

t = tk.tensor([[10, 20, 30], [40, 50, 60], [70, 80, 90]])
print(t[[2, 0]])
print(t[:, tk.tensor([0, 2])])

# %% [markdown]
# Two lists are read in pairs, not as a grid: `[0, 1, 2]` with `[2, 1, 0]` walks along a diagonal.

# %%
print(t[[0, 1, 2], [2, 1, 0]])

# %% [markdown]
# And with what you know already: slices, `...` for all dimensions that are not named, `None` for a
# new one.

# %%
print(t[0:2, 1:3])
print(t[..., 1])
print(t[None].shape, t[:, None].shape)

# %% role="show"
viz.indexing(t, ([0, 1, 2], [2, 1, 0]))

# %% [markdown]
# > **You will read elsewhere** that a DataLoader picks its random samples by such a list. It does
# > not: it asks the data set for one sample after the other, by whole numbers, and stacks them.

# %% exercise="which-index"

# %% exercise="one-hot"

# %% [markdown]
# **What to notice.** Lists may repeat and may be in any order, so no stride can describe the
# result. That is why it is always a copy.

# %% [markdown]
# ## View or copy, and writing
#
# Whole numbers, slices, `None` and `...` give views. A mask or a list gives a copy.

# %%
x = tk.arange(5)
by_slice = x[3:]
by_mask = x[x > 2]
print(by_slice, by_mask)

# %% role="show"
viz.memory(x=x, by_slice=by_slice, by_mask=by_mask)

# %% [markdown]
# Writing *right behind the index* works with all of them, because that is a write into the tensor
# on the left.

# %%
x[x > 2] = 0
x[[0, 1]] += 10
print(x)

# %% [markdown]
# But if you pick with a mask first and write into the result, you write into a copy:

# %%
x = tk.arange(5)
x[x > 2][0] = 99
print(x)

# %% exercise="cleaned"

# %% [markdown]
# **What to notice.** `x[mask] = 0` is one operation, `x[mask][0] = 99` is two: pick, then write.
# With slices both have the same effect, and that is why the mistake is so easy to make.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a number to each element | `a + 10` | |
# | a row to each row | `a + row` | lined up at the right |
# | a number to each row | `a + column`, `a + v.unsqueeze(1)` | a column is `[n, 1]` |
# | each with each | `v.unsqueeze(1) * w` | column times row |
# | to see the stretched tensor | `x.expand(2, 3)` | stride 0, no copy, no writing |
# | to repeat for real | `x.repeat(1, 3)` | a copy |
# | elements by condition | `x[x > 0]` | a copy; the size depends on the numbers |
# | conditions together | `(x > 0) & (x < 9)`, `~mask` | brackets; never `and` |
# | to keep the places | `tk.where(mask, x, 0.0)` | a new tensor |
# | entries by number | `x[[2, 0, 0]]` | a copy, in that order |
# | pairs | `x[rows, columns]` | no grid |
# | to write by mask or list | `x[mask] = 0` | right behind the index |
# | a new dimension | `x[None]`, `x[:, None]` | a view |

# %% [markdown]
# ## In tensorkit
#
# Your `broadcast_shape`, as tensorkit has it. The shorter shape is filled up with ones, then the
# shapes are compared from the right. Most of the lines are the error message.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain, layout

explain.source(layout.broadcast_shapes)

# %% [markdown]
# **A question.** What does the loop do with the shapes `(3, 1)` and `(4,)`, and where in it does
# the 3 come from?
#
# <details><summary>The answer</summary>
#
# `(4,)` becomes `(1, 4)`. At the last dimension the sizes are 1 and 4, and 4 is kept, because
# `size_a` is 1; at the first they are 3 and 1, and `size_a`, the 3, is kept. The shape is `(3, 4)`.
#
# </details>

# %%
progress("04_broadcasting")
