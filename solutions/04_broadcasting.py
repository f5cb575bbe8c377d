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
# You can add two tensors of different shapes if the shapes fit together: the smaller tensor is read
# again and again. This is called **broadcasting**. This chapter has its three rules, and then two
# other ways to pick elements, by mask and by list. At the end you can compute all distances between
# two sets of points in one line, and you know which index gives a view and which gives a copy.
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
# 1. Align the shapes at the right.
# 2. If one shape has fewer dimensions, put sizes of 1 in front of it.
# 3. In each dimension the sizes must be equal, or one of them must be 1. A size of 1 stretches.
#
# A number has no dimensions, so it fits every shape, also a shape without elements such as `[0]`. A
# row fits a matrix whose rows have the same length. A column, of shape `[n, 1]`, gives one number
# to each row.

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
# A column and a row give a table, because both stretch. You use this when you need every pair of
# two vectors:

# %%
print((tk.zeros(4, 1) + tk.zeros(1, 5)).shape)
print((tk.zeros(8, 1, 6, 1) + tk.zeros(7, 1, 5)).shape)

# %% role="show"
viz.broadcast((4, 1), (1, 5))

# %% [markdown]
# **When shapes do not fit.** The message names the sizes and the dimension. A common mistake is a
# vector with one number for each row:

# %%
per_row = tk.tensor([10.0, 20.0])
try:
    a * per_row
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# Aligned at the right, the 2 of `per_row` is below the 3. You need a column, of shape `[2, 1]`.
# `unsqueeze(1)` adds that dimension.

# %%
print(a * per_row.unsqueeze(1))

# %% role="show"
explain.broadcast(a, per_row)

# %% [markdown]
# It is worse if the shapes fit by accident. A square matrix accepts a vector as a row, without an
# error. The first line below subtracts the mean of row 0 from column 0, which is wrong. No warning
# appears:

# %%
square = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
print(square - square.mean(dim=1))
print(square - square.mean(dim=1, keepdim=True))

# %% exercise="broadcast-shape"

# %% [markdown]
# In the block below, the library calls your function whenever it combines two shapes. Until you
# write your function, the library uses its own.

# %% role="show"
with transplant(broadcast_shape) as asked:
    table = tk.tensor([[10.0], [20.0], [30.0]]) + tk.tensor([1.0, 2.0, 3.0, 4.0])
    print(table)
print(asked)

# %% [markdown]
# **What to notice.** The rules use shapes only. They do not know what a dimension means: a vector
# of 3 prices also fits 3 measurements. When you test a formula, use sizes that are all different.

# %% [markdown]
# ## A column times a row, and what stretching costs
#
# The multiplication table of 1 to 5 is a column times a row. Here is a smaller table, with sums
# instead of products:

# %%
rows = tk.arange(3).unsqueeze(1)
columns = tk.arange(4).unsqueeze(0)
print(rows.shape, columns.shape)
print(rows + 10 * columns)

# %% role="show"
viz.broadcast(rows=rows, tens=10 * columns)

# %% [markdown]
# `unsqueeze(0)` is not needed here, because a missing dimension counts as 1.

# %% exercise="multiplication-table"

# %% [markdown]
# **What stretching costs.** Nothing is copied when a dimension stretches. `expand` shows why: the
# stretched dimension has stride 0, as at the end of chapter 03. The same element is read again and
# again.

# %%
column = tk.tensor([[10.0], [20.0]])
wide = column.expand(2, 3)
print(wide)
print(wide.stride(), column.stride())

# %% role="show"
viz.memory(column=column, wide=wide)

# %% [markdown]
# In an expanded tensor several places are the same element, so writing into it raises an error. Use
# `clone()` first. `repeat` gives the same numbers as a copy, which needs the memory.

# %%
try:
    wide.add_(1)
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(column.repeat(1, 3).stride())

# %% [markdown]
# `tk.broadcast_to` does the same as `expand`; you give it the whole shape as a tuple.

# %%
print(tk.broadcast_to(row, (2, 3)))

# %% [markdown]
# The rules are the same with more dimensions. Subtract `[4, 2]`, four rows of 2, from `[3, 1, 2]`,
# three rows of 2 with a dimension of size 1 between them. The result has shape `[3, 4, 2]`: its
# entry `[i, j]` is row `i` of the first minus row `j` of the second.

# %%
first = tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).unsqueeze(1)
second = tk.tensor([[0.0, 0.0], [10.0, 10.0], [1.0, 2.0], [5.0, 0.0]])
print(first.shape, second.shape, (first - second).shape)
print((first - second)[2, 3], "is [5, 6] - [5, 0]")

# %% role="show"
viz.broadcast(first=first, second=second)

# %% exercise="nearest-centre"

# %% [markdown]
# **What to notice.** Broadcasting is stride 0. The operands need no more memory, but the result
# does. 1,000 points and 1,000 centres give a table of a million differences. So broadcasting saves
# the loop, not the memory of the result.

# %% [markdown]
# ## Masks
#
# A comparison gives a tensor of True and False, a **mask**. Used as an index, a mask picks the
# elements where it is True. A mask without any True picks none.

# %%
scores = tk.tensor([85.0, 92.0, 67.0, 78.0, 95.0])
passed = scores > 80
print(passed)
print(scores[passed])
print(passed.sum(), (~passed).sum())

# %% [markdown]
# `~` means *not*, `&` means *and*, `|` means *or*. Put each comparison in brackets, because Python
# computes `&` before `>`. Python's own `and` needs a single True or False, and a mask has many.

# %%
print(scores[(scores > 70) & (scores < 90)])
try:
    scores[(scores > 70) and (scores < 90)]
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# A mask picks elements, so you lose their positions. `where` keeps the positions: it takes the
# element of its second argument where the condition is True, and that of the third where it is
# False.

# %%
print(tk.where(scores > 80, scores, 0.0))

# %% role="show"
viz.indexing(scores, passed)

# %% exercise="top-scores"

# %% [markdown]
# **What to notice.** The size of `scores[passed]` depends on the numbers, not on the shape. On a
# GPU the program must wait for those numbers; `where` does not have to wait.

# %% [markdown]
# ## Lists
#
# A list of numbers as an index picks these entries, in the order of the list. A number may occur
# more than once. A tensor of int64 works in the same way.

# %%
print(scores[[0, 2, 4]])
print(scores[[4, 4, 0]])

t = tk.tensor([[10, 20, 30], [40, 50, 60], [70, 80, 90]])
print(t[[2, 0]])
print(t[:, tk.tensor([0, 2])])

# %% [markdown]
# An index tensor may have several dimensions. Each of its numbers is replaced by the entry that it
# picks:

# %%
print(t[tk.tensor([[0, 1], [2, 2]])].shape)

# %% [markdown]
# Two lists are read in pairs, not as a grid: `[0, 1, 2]` with `[2, 1, 0]` picks `t[0, 2]`, `t[1,
# 1]` and `t[2, 0]`.

# %%
print(t[[0, 1, 2], [2, 1, 0]])

# %% [markdown]
# You can combine this with slices, with `...` for all dimensions that you do not name, and with
# `None` for a new dimension of size 1.

# %%
print(t[0:2, 1:3])
print(t[..., 1])
print(t[None].shape, t[:, None].shape)

# %% role="show"
viz.indexing(t, ([0, 1, 2], [2, 1, 0]))

# %% exercise="which-index"

# %% exercise="one-hot"

# %% [markdown]
# **What to notice.** A list can name entries in any order and more than once. No strides can
# describe such a result, so it is always a copy.

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
# You can write *directly to an index* of any kind, because that writes into the tensor on the left.

# %%
x[x > 2] = 0
x[[0, 1]] += 10
print(x)

# %% [markdown]
# If you pick with a mask first and then write into the result, you write into a copy:

# %%
x = tk.arange(5)
x[x > 2][0] = 99
print(x)

# %% exercise="cleaned"

# %% [markdown]
# **What to notice.** `x[mask] = 0` is one operation: a write. `x[mask][0] = 99` is two: pick, then
# write into what was picked. With slices both change `x`, so this mistake is easy to make.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a number to each element | `a + 10` | |
# | a row to each row | `a + row` | aligned at the right |
# | a number to each row | `a + column`, `a + v.unsqueeze(1)` | a column is `[n, 1]` |
# | every pair of two vectors | `v.unsqueeze(1) * w` | column times row |
# | to see the stretched tensor | `x.expand(2, 3)` | stride 0, no copy, no writing |
# | to repeat in memory | `x.repeat(1, 3)` | a copy |
# | elements by condition | `x[x > 0]` | a copy; the size depends on the numbers |
# | several conditions | `(x > 0) & (x < 9)`, `~mask` | brackets; never `and` |
# | to keep the positions | `tk.where(mask, x, 0.0)` | a new tensor |
# | entries by number | `x[[2, 0, 0]]` | a copy, in that order |
# | pairs | `x[rows, columns]` | no grid |
# | to write by mask or list | `x[mask] = 0` | directly to the index |
# | a new dimension | `x[None]`, `x[:, None]` | a view |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | Each entry of a multiplication table is the product of its row and column indices. | Indices begin at 0, so that table begins with a row of zeros. The usual table multiplies the numbers from 1. |
# | The third argument of `where` must be a tensor, `tk.tensor(0.0)`. | A Python number works too. |
# | A DataLoader picks its random samples with a list as index. | It takes one sample after the other, each by a whole number, and stacks them. |

# %% [markdown]
# ## In tensorkit
#
# This is tensorkit's version of your `broadcast_shape`. It puts ones in front of the shorter shape
# and then compares the shapes from the right. Most of the lines make the error message.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain, layout

explain.source(layout.broadcast_shapes)

# %% [markdown]
# **A question.** What does the loop do with the shapes `(3, 1)` and `(4,)`, and where does the 3 of
# the result come from?
#
# <details><summary>The answer</summary>
#
# `(4,)` becomes `(1, 4)`. In the last dimension the sizes are 1 and 4: `size_a` is 1, so the 4 is
# taken. In the first dimension the sizes are 3 and 1: `size_a`, the 3, is taken. The result is `(3,
# 4)`.
#
# </details>

# %%
progress("04_broadcasting")

# %% [markdown]
# **Next:** [Autograd](../05_autograd/05_autograd.ipynb)
