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
# # Tensors
#
# A photo, a sentence, a day of temperatures: before a network can work with it, it becomes a
# tensor. In this chapter you make tensors, take them apart, choose what kind of numbers they hold,
# and see what they look like in memory. At the end you can predict the shape and the dtype of a
# result before you run it, and you know when two names share one piece of memory.
#
# The library here is `tensorkit`. It uses PyTorch's names, follows PyTorch's rules and prints what
# PyTorch prints, so what you type here also works after `import torch`.
#
# **Time and difficulty.** Reading takes about 35 minutes. The core exercises take about 30 minutes;
# they are easy, 1 or 2 of 5. Exercises marked *further* can wait; they give no points.
#
# **How it works.** Read, run the examples with Shift+Enter, change them, run them again. Under each
# exercise stands a cell such as `check("what-shape")`. It tells you which case failed, what came
# back and what to try next, as often as you like. For a hint add a cell with the + in the toolbar
# (or press Esc, then B) and run `hint("what-shape")` in it. `solution("what-shape")` gives a worked
# answer after a few attempts. After you reopen the notebook, run its first cell first, the one with
# the imports.

# %%
import numpy as np

import tensorkit as tk
from course import check, hint, progress, solution
from tensorkit import viz

# %% [markdown]
# ## What a tensor is
#
# A tensor is a block of numbers of one kind, plus a note on how to read it. `tk.tensor` makes one
# from a list; its type is `tk.Tensor`. Here are six numbers, read as 2 rows of 3.

# %%
t = tk.tensor([[1, 2, 3], [4, 5, 6]])
t

# %% [markdown]
# Three attributes describe it. The **shape** (`t.shape`) says how many rows and columns there are,
# the **dtype** (`t.dtype`) what kind of number each element is, the **device** (`t.device`) where
# the numbers lie. tensorkit prints PyTorch's names: `torch.int64` is `tk.int64`.

# %%
print(t.shape)
print(t.dtype)
print(t.device)

# %% [markdown]
# In memory there are no rows. The six numbers stand side by side in one piece of memory, the
# **storage**, and the shape says where a row ends. The picture is drawn from the tensor itself;
# what it says about strides comes later in this chapter.

# %% role="show"
viz.memory(t=t)

# %% [markdown]
# **What to notice.** When something fails later on, print these three first. Very often a shape, a
# dtype or a device is not what you thought.

# %% [markdown]
# ## Dimensions and parts
#
# The number of dimensions is `ndim`: how many sizes the shape has, and how many indices it takes to
# reach one number. Dimensions are counted from 0: rows are dimension 0, columns dimension 1. From
# the end they are counted with minus: the last one is -1.
#
# | `ndim` | Name | Example | Shape |
# |---|---|---|---|
# | 0 | scalar | a temperature | `[]` |
# | 1 | vector | the temperatures of 24 hours | `[24]` |
# | 2 | matrix | 7 days of 24 hours | `[7, 24]` |
# | 3 | 3-d tensor | a colour photo: height, width, 3 colours | `[480, 640, 3]` |
# | 4 | 4-d tensor | a batch of 8 photos: photo, colour, height, width | `[8, 3, 480, 640]` |

# %%
scalar = tk.tensor(21.5)
vector = tk.tensor([21.5, 20.0, 19.5])
matrix = tk.tensor([[21.5, 20.0], [18.0, 17.5], [23.0, 22.0]])

for each in (scalar, vector, matrix):
    print(each.ndim, each.shape)

# %% [markdown]
# You can read the number of dimensions off the brackets: as many as open before the first number.
# So `tk.tensor(21.5)` and `tk.tensor([21.5])` both hold one number, but the first has no dimension,
# and the second has one dimension of size 1.
#
# `tk.zeros` makes a tensor of any shape, filled with zeros. `size()` is the shape once more,
# `size(0)` its first entry, and `numel()` counts the elements. None of them looks at the numbers,
# so they answer at once, however large the tensor is.

# %%
photos = tk.zeros(8, 3, 32, 32)
print(photos.ndim, photos.shape)
print(photos.size(), photos.size(0), photos.size(-1))
print(photos.numel(), "numbers")

# %% [markdown]
# `torch.Size([8, 3, 32, 32])` is that shape; we write `[8, 3, 32, 32]`, and a tuple means the same.
# The shape `[]` has one element, the shape `[0, 5]` has none: the product of no sizes at all is 1,
# and a product with a 0 in it is 0.
#
# > **You will read elsewhere** that a photo is H × W × C (height, width, colour) and a batch
# > N × C × H × W. Look closely: the colours have moved. Image files keep them last; PyTorch's
# > layers want them before height and width. A shape does not say what its dimensions mean, so
# > write it down in a comment.

# %% [markdown]
# An index picks one entry of a dimension, and that dimension is gone. The first entry has index 0,
# the last one -1.

# %%
week = tk.tensor([[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]])
print(week[0])
print(week[-1])
print(week[1, 2])

# %% [markdown]
# A slice `start:stop:step` picks several entries, and the dimension stays. As in Python's lists the
# stop is not included, and what you leave out means "from the beginning", "to the end", "one by
# one".

# %%
print(week[0:2])
print(week[:, 1])
print(week[:, ::2])
print(week[1:2].shape, "is not", week[1].shape)

# %% [markdown]
# > **You will read elsewhere** that printing one element shows a bare number such as `23`. It shows
# > `tensor(23)`: a single element is still a tensor, with no dimension left.
#
# A negative step, such as `x[::-1]`, is an error: tensors, unlike lists, are not read backwards.
#
# The picture shows what `week[0:2, ::2]` takes. `np.s_[0:2, ::2]` hands that index to a function.
# What its title says of a view and of strides comes later in this chapter.

# %% role="show"
viz.indexing(week, np.s_[0:2, ::2])

# %% exercise="what-shape"

# %% [markdown]
# **What to notice.** One rule settles every case: a whole number removes its dimension, a slice
# keeps it.

# %% [markdown]
# ## Making tensors, and writing into them
#
# You rarely type the numbers. `ones`, `full` and `eye` make tensors from a shape: all ones, one
# number everywhere, ones on the diagonal.

# %%
print(tk.ones(2, 3))
print(tk.full((2, 3), 7.5))
print(tk.eye(3))

# %% [markdown]
# Two functions make rows of numbers. `arange` is given the **step**, and stops before the end.
# `linspace` is given the **number of points**, and includes the end.

# %%
print(tk.arange(5))
print(tk.arange(0, 10, 2))
print(tk.linspace(0, 1, 5))

# %% [markdown]
# With a fractional step, `arange` is a gamble. 1.3 should be left out here, and rounding brings it
# in:

# %%
print(tk.arange(1, 1.3, 0.1))

# %% [markdown]
# So use `arange` to count in whole numbers, and `linspace` to divide a distance.
#
# The functions that end in `_like`, such as `zeros_like` and `ones_like`, take shape and dtype from
# another tensor.

# %%
print(tk.zeros_like(week))
print(tk.ones_like(tk.linspace(0, 1, 5)))

# %% exercise="linspace-by-hand"

# %% [markdown]
# Networks begin with random numbers, and batches are drawn at random. Four functions cover most of
# it; `tk.manual_seed` says where their row of numbers begins. Set it once, at the top of a program,
# and a result can be repeated, by you or by somebody else.

# %%
tk.manual_seed(0)
print(tk.rand(3))
print(tk.randn(3))
print(tk.randint(0, 10, (3,)))
print(tk.randperm(5))

# %% [markdown]
# `rand` draws evenly from 0 up to but not including 1. `randn` draws from the bell curve with mean
# 0 and standard deviation 1, `randint` whole numbers from 0 to 9 here, and `randperm` shuffles 0 to
# 4. The same seed gives the same numbers again, even those that PyTorch draws on a CPU:

# %%
tk.manual_seed(0)
print(tk.rand(3))

# %% [markdown]
# What can be read with an index can be written with it. A single number on the right fills all the
# places on the left.

# %%
seats = tk.zeros(3, 6, dtype=tk.int64)
seats[0, 0] = 7
seats[1] = 1
seats[2, ::2] = 5
print(seats)

# %% [markdown]
# The last assignment wrote to columns 0, 2 and 4 of row 2, and to nothing else. Steps work in
# several dimensions at once: `seats[::2, 1::2]` means rows 0, 2, ... and columns 1, 3, ...

# %% role="show"
viz.indexing(seats, np.s_[::2, 1::2])

# %% exercise="checkerboard"

# %% [markdown]
# **What to notice.** Edges are where such code goes wrong: being off by one post, or by one gap, is
# so common that it has a name, the fence post error. Slices help: there is no loop and no special
# case. For a single square or an empty board they are simply empty, and writing to an empty slice
# writes nothing.

# %% [markdown]
# ## Kinds of numbers
#
# All elements of a tensor have one dtype. It decides how many bytes an element takes and which
# numbers it can hold.
#
# | dtype | Bytes | Holds | Typical use |
# |---|---|---|---|
# | `tk.bool` | 1 | False, True | answers to a question |
# | `tk.uint8` | 1 | 0 to 255 | colours |
# | `tk.int8` | 1 | -128 to 127 | saving memory |
# | `tk.int16` | 2 | -32,768 to 32,767 | sound |
# | `tk.int32` | 4 | whole numbers up to about 2 · 10⁹ | saving memory |
# | `tk.int64` | 8 | whole numbers up to about 9 · 10¹⁸ | counts, indices |
# | `tk.float16` | 2 | about 3 digits, up to 65,504 | saving memory |
# | `tk.float32` | 4 | about 7 digits, up to about 3 · 10³⁸ | nearly everything in a network |
# | `tk.float64` | 8 | about 16 digits, up to about 10³⁰⁸ | precise calculations |
#
# `element_size()` tells the bytes of one element; times the number of elements that is the memory.
# A batch of 64 small photos takes 0.8 MB in float32, and a quarter of that in uint8.

# %%
batch = tk.zeros(64, 3, 32, 32)
print(batch.element_size(), "bytes each")
print(batch.numel() * batch.element_size(), "bytes in all")

# %% role="show"
three = [1.0, 2.0, 3.0]
viz.memory(
    float32=tk.tensor(three),
    float16=tk.tensor(three, dtype=tk.float16),
    uint8=tk.tensor(three, dtype=tk.uint8),
)

# %% [markdown]
# If you do not choose, a default does: whole numbers become int64, floats become float32.

# %%
print(tk.tensor([1, 2, 3]).dtype)
print(tk.tensor([1.0, 2.0, 3.0]).dtype)
print(tk.tensor([True, False]).dtype)
print(tk.tensor([1, 2, 3], dtype=tk.float16).dtype)

# %% [markdown]
# `zeros`, `ones`, `eye`, `linspace`, `rand` and `randn` make float32. `arange` and `full` look at
# the numbers that you give them, and `randint` and `randperm` make int64.
#
# Data from NumPy keeps its dtype, and NumPy's floats have 64 bits:

# %%
print(tk.arange(3).dtype, tk.arange(3.0).dtype)
print(tk.from_numpy(np.array([0.1, 0.2])).dtype)

# %% [markdown]
# > **You will read elsewhere** that float32 is the default nearly everywhere. It is the default for
# > new *floats*. `tk.arange(12)` and `tk.tensor([1])` are int64, and `from_numpy` keeps float64.

# %% [markdown]
# **When two dtypes meet.** Arithmetic goes element by element. If two tensors of different dtypes
# meet, the result takes the higher kind: bool, then whole numbers, then floats. Within one kind the
# wider dtype wins. uint8 with int8 gives int16: neither of the two holds both 200 and -100. This
# rule is called **promotion**.

# %%
whole = tk.tensor([1, 2, 3])
print(whole + tk.tensor([0.5, 0.5, 0.5]))
print(whole + tk.tensor([True, False, True]))
print((tk.ones(2) + tk.ones(2, dtype=tk.float64)).dtype)
print((tk.ones(2, dtype=tk.uint8) + tk.ones(2, dtype=tk.int8)).dtype)

# %% [markdown]
# A plain Python number is more polite. It changes the dtype only if it is of a higher kind;
# otherwise the tensor keeps its own. A tensor without dimensions is just as polite. And `/` always
# gives a float.

# %%
half = tk.tensor([1.0, 2.0], dtype=tk.float16)
print((half * 3.0).dtype)
print((whole * 3).dtype, (whole * 3.0).dtype)
print((tk.ones(2) + tk.tensor(1.0, dtype=tk.float64)).dtype)
print(whole / 2)
print(whole // 2)

# %% [markdown]
# Whole numbers do not grow when they run out of room. They start again from the other end, without
# a warning:

# %%
grey = tk.tensor([200, 100], dtype=tk.uint8)
print(grey + grey)

# %% [markdown]
# 200 + 200 is 400. uint8 has 256 values, and 400 - 256 is 144.

# %% exercise="which-dtype"

# %% [markdown]
# **What to notice.** Two things decide: the defaults where a tensor is made, and the order bool,
# whole number, float where two meet.

# %% [markdown]
# ## Casts, and what float16 costs
#
# A cast copies the elements into another dtype. `.float()`, `.double()`, `.half()`, `.long()` and
# `.bool()` are short for `.to(tk.float32)` and so on.

# %%
prices = tk.tensor([-2.7, 0.0, 2.7])
print(prices.long())
print(prices.bool())
print(prices.to(tk.float64))

# %% [markdown]
# Floats become whole numbers by cutting off the digits, towards 0: 2.7 becomes 2 and -2.7 becomes
# -2. Every number except 0 becomes True. No cast rescales anything.
#
# A cast to the dtype that is there already copies nothing: you get the very same tensor.

# %%
print(prices.float() is prices)

# %% role="show"
viz.memory(prices=prices, same=prices.float(), cut=prices.long())

# %% exercise="pixels"

# %% [markdown]
# **float16** takes 2 bytes where float32 takes 4. The price is range and precision. Its largest
# number is 65,504; what is larger becomes `inf`.

# %%
print(tk.tensor([65504.0], dtype=tk.float16) * 2)

# %% [markdown]
# And it keeps only about three digits. From 2048 to 4096 it holds the even numbers alone, beyond
# that fewer still: 4099 becomes 4100. 2049 does not exist, so adding 1 to 2048 changes nothing.

# %%
print(tk.tensor([2048.0], dtype=tk.float16) + 1)
print(tk.tensor([16777216.0]) + 1)
print(tk.tensor([4099.0], dtype=tk.float16))

# %% [markdown]
# The second line shows that float32 has the same limit, much further out, at 2²⁴ = 16,777,216.
#
# The next exercise adds up in a loop. `for value in x` walks through a vector; each `value` is a
# tensor without dimensions. `total += value` makes no new tensor: it writes into `total` itself, so
# a second name for that tensor shows the sum too.

# %%
x = tk.tensor([1.0, 2.0, 4.0])
total = tk.tensor(0.0)
same = total
for value in x:
    total += value
    print(value, total)
print(same)

# %% exercise="half-precision"

# %% [markdown]
# **What to notice.** A cast changes the dtype and keeps the numbers as well as the new dtype can;
# arithmetic changes the numbers. What was rounded away on the way cannot be brought back by a cast.
# So store in float16 if memory is short, and add up in float32. Programs that train in "mixed
# precision" do just that.

# %% [markdown]
# ## Strides, and why a slice is a view
#
# Memory is one long row of numbers. For each dimension the **stride** says how many elements to
# move on for the next entry; `stride()` tells it. For `t`, 2 rows of 3, that is 3 for the next row
# and 1 for the next column.

# %%
print(t)
print(t.stride())

# %% [markdown]
# So `t[i, j]` stands at position `3 * i + 1 * j`: `t[1, 2]` at position 5, the last of six. This
# multiplication is all that an index is.
#
# Every second column of `t` uses the same six numbers, with a larger stride.

# %%
columns = t[:, ::2]
print(columns)
print(columns.stride(), columns.is_contiguous())

# %% role="show"
viz.memory(t=t, columns=columns)

# %% [markdown]
# A tensor is **contiguous** (`is_contiguous()`) if its elements stand side by side in the order in
# which you read them, without gaps. `t` is; `columns` skips an element in each row.

# %% exercise="strides-of"

# %% [markdown]
# A slice only makes new shape and strides; it does not move the data, so it takes the same time for
# six elements or for six million. That has a consequence: a slice has no numbers of its own. Write
# through one name, and the other name shows it.

# %%
scores = tk.tensor([10, 20, 30, 40, 50])
middle = scores[1:4]
middle[0] = 99
print(middle)
print(scores)

# %% role="show"
viz.memory(scores=scores, middle=middle)

# %% [markdown]
# Such a tensor is called a **view**: its own shape and strides, over the storage of another. This
# one begins one element further on, which is its offset of 1.
#
# If you want numbers of your own, ask for a copy with `.clone()`.

# %%
apart = scores[1:4].clone()
apart[0] = 0
print(apart)
print(scores)

# %% role="show"
viz.memory(scores=scores, apart=apart)

# %% [markdown]
# **What to notice.** Basic indexing gives views, in PyTorch and in NumPy. Python's lists are
# different: a slice of a list is a copy.

# %% [markdown]
# ## Back to Python, and the bridge to NumPy
#
# `.item()` takes the number out of a tensor with one element. `.tolist()` gives nested lists of
# Python numbers, whatever the shape.

# %%
pi = tk.tensor(3.14)
print(pi)
print(pi.item())
print(week.tolist())

# %% [markdown]
# > **You will read elsewhere** that `tk.tensor(3.14).item()` is `3.14`. It is
# > `3.140000104904175`. float32 has no 3.14, only a neighbour that agrees in the first 7 digits,
# > and Python's float64 shows the rest.
#
# With more than one element it is not clear which number is meant:

# %%
try:
    week.item()
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# Printing rounds to 4 digits after the point and lines the columns up. If the numbers are far apart
# in size, all of them are shown with powers of ten. Large tensors are shortened. A whole float is
# shown as `2.` in a tensor of whole floats, and the dtype only when it is not a default: both tell
# `tensor([1., 2.])` from `tensor([1, 2])` at a glance. The tensor itself keeps every digit.

# %%
print(tk.tensor([1 / 3, 2.0, -10.5]))
print(tk.tensor([0.001, 1000.0]))
print(tk.tensor([True, False]))
print(tk.arange(2000))

# %% [markdown]
# **NumPy.** `tk.from_numpy` makes a tensor over the memory of an array. Nothing is copied, so it
# takes no time, and both see every change.

# %%
array = np.array([1.0, 2.0, 3.0])
shared = tk.from_numpy(array)
array[0] = 999.0
print(array)
print(shared)

# %% [markdown]
# > **You will read elsewhere** that this prints `tensor([999., 2., 3.])`. The tensor is float64,
# > because the array is, and it says so: `dtype=torch.float64`. Sooner or later such a tensor meets
# > a float32 one. If you want float32, say `.float()`, which makes a copy at the same time.

# %% [markdown]
# `.numpy()` goes the other way, and shares the memory too.

# %%
back = shared.numpy()
back[1] = -1.0
print(shared)
print(type(back).__name__, back.dtype)

# %% [markdown]
# `.clone()` ends the sharing:

# %%
separate = shared.clone()
array[2] = 0.0
print(shared)
print(separate)

# %% role="show"
viz.memory(shared=shared, separate=separate)

# %% exercise="private-copy"

# %% [markdown]
# **What to notice.** `from_numpy` and `.numpy()` share, `tk.tensor(...)` and `.clone()` copy, and a
# cast copies only if the dtype changes. When in doubt, make the experiment: write to one, look at
# the other.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | numbers of your own | `tk.tensor([[1, 2], [3, 4]])` | copies; ints: int64, floats: float32 |
# | a shape, filled | `tk.zeros(2, 3)`, `ones(2, 3)`, `eye(3)` | float32 |
# | a shape, any number | `tk.full((2, 3), 7.5)` | looks at its number: 7 gives int64 |
# | to count | `tk.arange(0, 10, 2)` | stops before the end |
# | to divide a distance | `tk.linspace(0, 1, 5)` | includes the end |
# | random numbers | `tk.rand`, `randn`, `randint`, `randperm` | `tk.manual_seed(0)` repeats them |
# | the same shape and dtype | `tk.zeros_like(t)` | also `ones_like`, `rand_like`, ... |
# | another dtype | `t.float()`, `t.long()`, `t.to(tk.float16)` | cuts towards 0, never rescales |
# | one entry | `t[0]`, `t[1, -1]` | a whole number removes its dimension |
# | several entries | `t[1:3]`, `t[:, ::2]` | a slice keeps it |
# | to write | `t[::2, 1::2] = 1` | a slice is a view: the original changes |
# | a copy | `t.clone()` | memory of its own |
# | the facts | `t.shape`, `t.dtype`, `t.device` | print them first when something fails |
# | the layout | `t.stride()`, `t.is_contiguous()` | strides count elements, not bytes |
# | memory | `t.numel() * t.element_size()` | in bytes |
# | a Python number | `t.item()`, `t.tolist()` | `item` needs exactly one element |
# | NumPy | `tk.from_numpy(a)`, `t.numpy()` | both share memory; dtypes are kept |

# %% [markdown]
# ## In tensorkit
#
# You wrote `strides_of`. This is the function that tensorkit asks for the strides of a tensor with
# memory of its own. It goes through the dimensions from the last to the first: a step along one of
# them passes over everything that the dimension to its right holds.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain, layout

explain.source(layout.contiguous_strides)

# %% [markdown]
# **A question.** The loop does not visit the last dimension. Why does that get the right stride all
# the same?
#
# <details><summary>The answer</summary>
#
# The list begins with ones, and the last dimension keeps its 1: neighbours in a row are neighbours
# in memory.
#
# </details>

# %%
progress("01_tensors")
