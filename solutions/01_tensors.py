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
# A network works with numbers. A photo, a sentence or a day of temperatures becomes a tensor first.
# In this chapter you make tensors, read parts of them, choose a dtype, and see how they lie in
# memory. At the end you can predict the shape and the dtype of a result before you run it, and you
# know when two names share one piece of memory.
#
# The library is `tensorkit`. It has PyTorch's names, follows PyTorch's rules and prints what
# PyTorch prints. So what you type here also works in PyTorch.
#
# **Time and difficulty.** Reading takes about 35 minutes. The core exercises take about 30 minutes;
# they are easy, 1 or 2 of 5. Exercises marked *further* can wait; they give no points.
#
# **How it works.** Read the text, run the examples with Shift+Enter, change them, run them again.
# Under each exercise there is a cell such as `check("what-shape")`. It tells you which case failed,
# what your code returned, and what to try next. You can run it as often as you like. For a hint add
# a cell with the + in the toolbar (or press Esc, then B) and run `hint("what-shape")` in it.
# `solution("what-shape")` shows a worked answer after a few attempts. After you reopen the
# notebook, run its first cell first, the one with the imports.

# %%
import numpy as np

import tensorkit as tk
from course import check, hint, progress, solution
from tensorkit import viz

# %% [markdown]
# ## What a tensor is
#
# A tensor is a block of numbers of one kind, together with a shape that says how to read them.
# `tk.tensor` makes a tensor from a list; its type is `tk.Tensor`. Here are six numbers, read as 2
# rows of 3.

# %%
t = tk.tensor([[1, 2, 3], [4, 5, 6]])
t

# %% [markdown]
# Three attributes describe a tensor. The **shape** (`t.shape`) says how many rows and columns there
# are. The **dtype** (`t.dtype`) says what kind of number each element is. The **device**
# (`t.device`) says where the numbers lie. tensorkit prints PyTorch's names, so `tk.int64` is
# printed as `torch.int64`.

# %%
print(t.shape)
print(t.dtype)
print(t.device)

# %% [markdown]
# In memory there are no rows. The six numbers stand side by side in one piece of memory, the
# **storage**. The shape says where a row ends. The picture is drawn from the tensor itself. The
# word *strides* in it is explained later in this chapter.

# %% role="show"
viz.memory(t=t)

# %% [markdown]
# **What to notice.** When something fails, print these three attributes first. Very often the
# shape, the dtype or the device is not what you thought.

# %% [markdown]
# ## Dimensions and parts
#
# The number of dimensions is `ndim`. It says how many sizes the shape has, and how many indices you
# need to reach one number. Dimensions are counted from 0: the rows of a matrix are dimension 0, its
# columns dimension 1. You can also count from the end: the last dimension is -1.
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
# Count the brackets that open before the first number: that is the number of dimensions.
# `tk.tensor(21.5)` and `tk.tensor([21.5])` both hold one number. The first has no dimension, the
# second has one dimension of size 1.
#
# `tk.zeros` makes a tensor of any shape, filled with zeros. `size()` is the shape again, `size(0)`
# is its first entry, and `numel()` is the number of elements. None of them reads the elements, so
# they are fast for a tensor of any size.

# %%
photos = tk.zeros(8, 3, 32, 32)
print(photos.ndim, photos.shape)
print(photos.size(), photos.size(0), photos.size(-1))
print(photos.numel(), "numbers")

# %% [markdown]
# `torch.Size([8, 3, 32, 32])` is how a shape is printed. In the text we write `[8, 3, 32, 32]`; a
# tuple means the same. The number of elements is the product of the sizes. The shape `[]` has one
# element, because a product of no numbers is 1. The shape `[0, 5]` has no elements.
#
# Look at the last two lines of the table: the colours are in another place. Image files store a
# photo as height, width, colour (H × W × C). PyTorch's layers want a batch as photo, colour,
# height, width (N × C × H × W). A shape does not say what its dimensions mean, so write it down in
# a comment.

# %% [markdown]
# An index picks one entry of a dimension and removes that dimension. The first entry has index 0,
# the last has index -1. A single element is still a tensor, without dimensions: it is printed as
# `tensor(23)`, not as `23`.

# %%
week = tk.tensor([[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]])
print(week[0])
print(week[-1])
print(week[1, 2])

# %% [markdown]
# A slice `start:stop:step` picks several entries and keeps the dimension. As in Python's lists, the
# stop is not included. Without a start, the slice begins at the first entry. Without a stop, it
# goes to the end. Without a step, the step is 1.

# %%
print(week[0:2])
print(week[:, 1])
print(week[:, ::2])
print(week[1:2].shape, "is not", week[1].shape)

# %% [markdown]
# A negative step, such as `x[::-1]`, is an error. Lists can be read backwards in this way, tensors
# cannot.
#
# The picture shows which elements `week[0:2, ::2]` takes. `np.s_[0:2, ::2]` is a way to give that
# index to a function. The words *view* and *strides* in the picture are explained later in this
# chapter.

# %% role="show"
viz.indexing(week, np.s_[0:2, ::2])

# %% exercise="what-shape"

# %% [markdown]
# **What to notice.** One rule is enough for every case: a whole number removes its dimension, a
# slice keeps it.

# %% [markdown]
# ## Making tensors, and writing into them
#
# You rarely type the numbers of a tensor. `ones`, `full` and `eye` make a tensor from a shape:
# `ones` fills it with ones, `full` with one number that you choose, and `eye` puts ones on the
# diagonal.

# %%
print(tk.ones(2, 3))
print(tk.full((2, 3), 7.5))
print(tk.eye(3))

# %% [markdown]
# Two functions make rows of numbers. `arange` takes the **step** and stops before the end.
# `linspace` takes the **number of points** and includes the end.

# %%
print(tk.arange(5))
print(tk.arange(0, 10, 2))
print(tk.linspace(0, 1, 5))

# %% [markdown]
# Do not use `arange` with a fractional step. The end, 1.3, should not be included here, but
# rounding includes it:

# %%
print(tk.arange(1, 1.3, 0.1))

# %% [markdown]
# So use `arange` for whole numbers, and `linspace` to divide a distance into equal parts.
#
# Functions that end in `_like`, such as `zeros_like` and `ones_like`, take the shape and the dtype
# of another tensor.

# %%
print(tk.zeros_like(week))
print(tk.ones_like(tk.linspace(0, 1, 5)))

# %% exercise="linspace-by-hand"

# %% [markdown]
# A network begins with random numbers, and its data is drawn in random order. Four functions cover
# most needs. `tk.manual_seed` sets where the random numbers begin. Set it once, at the top of a
# program: then the program gives the same result each time, on your computer and on others.

# %%
tk.manual_seed(0)
print(tk.rand(3))
print(tk.randn(3))
print(tk.randint(0, 10, (3,)))
print(tk.randperm(5))

# %% [markdown]
# `rand` draws numbers between 0 and 1, evenly; 0 is possible, 1 is not. `randn` draws from the
# normal distribution with mean 0 and standard deviation 1. `randint` draws whole numbers, here from
# 0 to 9, and `randperm` puts the numbers 0 to 4 into random order. The same seed gives the same
# numbers again. They are the numbers that PyTorch draws on a CPU:

# %%
tk.manual_seed(0)
print(tk.rand(3))

# %% [markdown]
# You can also write with an index. A single number on the right fills every place that the index
# picks.

# %%
seats = tk.zeros(3, 6, dtype=tk.int64)
seats[0, 0] = 7
seats[1] = 1
seats[2, ::2] = 5
print(seats)

# %% [markdown]
# The last assignment wrote to columns 0, 2 and 4 of row 2, and nowhere else. You can use steps in
# several dimensions at once: `seats[::2, 1::2]` means rows 0, 2, ... and columns 1, 3, ...

# %% role="show"
viz.indexing(seats, np.s_[::2, 1::2])

# %% exercise="checkerboard"

# %% [markdown]
# **What to notice.** Such code often fails at the edges. To be wrong by one row or one column is so
# common that it has a name: *off-by-one error*. Slices help, because there is no loop and no
# special case. For a single square or an empty board a slice is empty, and writing to an empty
# slice writes nothing.

# %% [markdown]
# ## Kinds of numbers
#
# All elements of a tensor have the same dtype. The dtype decides how many bytes an element takes
# and which numbers it can hold.
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
# `element_size()` gives the bytes of one element. Multiply it by the number of elements to get the
# memory of the tensor. A batch of 64 small photos takes 0.8 MB in float32 and a quarter of that in
# uint8.

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
# If you do not choose a dtype, you get a default: int64 for whole numbers, float32 for floats.

# %%
print(tk.tensor([1, 2, 3]).dtype)
print(tk.tensor([1.0, 2.0, 3.0]).dtype)
print(tk.tensor([True, False]).dtype)
print(tk.tensor([1, 2, 3], dtype=tk.float16).dtype)

# %% [markdown]
# `zeros`, `ones`, `eye`, `linspace`, `rand` and `randn` make float32. `arange` and `full` choose
# the dtype from the numbers that you give them. `randint` and `randperm` make int64.
#
# `tk.from_numpy` makes a tensor of a NumPy array and keeps its dtype. NumPy's floats have 64 bits:

# %%
print(tk.arange(3).dtype, tk.arange(3.0).dtype)
print(tk.from_numpy(np.array([0.1, 0.2])).dtype)

# %% [markdown]
# **Two dtypes in one operation.** Arithmetic works element by element. If the two tensors have
# different dtypes, the result has the higher kind. The order is bool, whole numbers, floats. Within
# one kind the result has the wider dtype. uint8 and int8 together give int16, because neither of
# them holds both 200 and -100. This rule is called **promotion**.

# %%
whole = tk.tensor([1, 2, 3])
print(whole + tk.tensor([0.5, 0.5, 0.5]))
print(whole + tk.tensor([True, False, True]))
print((tk.ones(2) + tk.ones(2, dtype=tk.float64)).dtype)
print((tk.ones(2, dtype=tk.uint8) + tk.ones(2, dtype=tk.int8)).dtype)

# %% [markdown]
# A plain Python number counts less. It changes the dtype only if it is of a higher kind; otherwise
# the tensor keeps its own dtype. The same holds for a tensor without dimensions beside one that has
# some. And `/` always gives a float.

# %%
half = tk.tensor([1.0, 2.0], dtype=tk.float16)
print((half * 3.0).dtype)
print((whole * 3).dtype, (whole * 3.0).dtype)
print((tk.ones(2) + tk.tensor(1.0, dtype=tk.float64)).dtype)
print(whole / 2)
print(whole // 2)

# %% [markdown]
# A whole number that is too large for its dtype starts again from the smallest value, without a
# warning:

# %%
grey = tk.tensor([200, 100], dtype=tk.uint8)
print(grey + grey)

# %% [markdown]
# 200 + 200 is 400. uint8 has 256 values, so the result is 400 - 256 = 144.

# %% exercise="which-dtype"

# %% [markdown]
# **What to notice.** Two things decide the dtype: the default when a tensor is made, and the order
# bool, whole number, float when two tensors are combined.

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
# A cast to whole numbers cuts off the digits after the point: 2.7 becomes 2 and -2.7 becomes -2. In
# a cast to bool every number except 0 becomes True. No cast changes the scale of the numbers.
#
# A cast to the dtype that the tensor already has copies nothing. You get the same tensor.

# %%
print(prices.float() is prices)

# %% role="show"
viz.memory(prices=prices, same=prices.float(), cut=prices.long())

# %% exercise="pixels"

# %% [markdown]
# **float16** takes 2 bytes, float32 takes 4. In return float16 has a smaller range and fewer
# digits. Its largest number is 65,504; a larger result becomes `inf`.

# %%
print(tk.tensor([65504.0], dtype=tk.float16) * 2)

# %% [markdown]
# float16 keeps only about three digits. From 2048 to 4096 it has only the even numbers, and beyond
# that only every fourth number or fewer: 4099 becomes 4100. It has no 2049, so adding 1 to 2048
# changes nothing.

# %%
print(tk.tensor([2048.0], dtype=tk.float16) + 1)
print(tk.tensor([16777216.0]) + 1)
print(tk.tensor([4099.0], dtype=tk.float16))

# %% [markdown]
# The second line shows that float32 has the same limit, at a much larger number: 2²⁴ = 16,777,216.
#
# The next exercise adds numbers in a loop. `for value in x` goes through a vector; each `value` is
# a tensor without dimensions. `total += value` makes no new tensor. It writes into `total` itself,
# so a second name for that tensor shows the new sum too.

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
# **What to notice.** A cast changes the dtype and keeps the numbers as exactly as the new dtype
# allows. A later cast cannot bring back digits that are lost. So store numbers in float16 if memory
# is short, and add them in float32. Programs that train in "mixed precision" do exactly that.

# %% [markdown]
# ## Strides, and why a slice is a view
#
# Memory is one long row of numbers. Each dimension has a **stride**: how many elements you go
# forward in memory to reach the next entry of that dimension. `stride()` gives the strides. For
# `t`, 2 rows of 3, the stride is 3 for the next row and 1 for the next column.

# %%
print(t)
print(t.stride())

# %% [markdown]
# So `t[i, j]` stands at position `3 * i + 1 * j`. For `t[1, 2]` that is position 5, the last of
# six. An index is no more than this multiplication.
#
# Every second column of `t` uses the same six numbers with a larger stride.

# %%
columns = t[:, ::2]
print(columns)
print(columns.stride(), columns.is_contiguous())

# %% role="show"
viz.memory(t=t, columns=columns)

# %% [markdown]
# A tensor is **contiguous** (`is_contiguous()`) if its elements stand side by side, without gaps,
# in the order in which you read them. `t` is contiguous. `columns` is not: it skips an element in
# each row.

# %% exercise="strides-of"

# %% [markdown]
# A slice makes a new shape and new strides; it does not move the numbers. So it takes the same time
# for six elements and for six million. A slice has no numbers of its own. If you write through one
# name, the other name shows the change.

# %%
scores = tk.tensor([10, 20, 30, 40, 50])
middle = scores[1:4]
middle[0] = 99
print(middle)
print(scores)

# %% role="show"
viz.memory(scores=scores, middle=middle)

# %% [markdown]
# Such a tensor is called a **view**: it has its own shape and strides, and the storage of another
# tensor. This view begins one element later; that is its *offset* of 1.
#
# If you want a copy with its own memory, write `.clone()`.

# %%
apart = scores[1:4].clone()
apart[0] = 0
print(apart)
print(scores)

# %% role="show"
viz.memory(scores=scores, apart=apart)

# %% [markdown]
# **What to notice.** An index of whole numbers and slices gives a view, in PyTorch and in NumPy.
# Python's lists are different: a slice of a list is a copy.

# %% [markdown]
# ## Back to Python, and the bridge to NumPy
#
# `.item()` gives the Python number in a tensor with one element. `.tolist()` gives nested lists of
# Python numbers, for any shape.

# %%
pi = tk.tensor(3.14)
print(pi)
print(pi.item())
print(week.tolist())

# %% [markdown]
# Why `3.140000104904175`? float32 cannot hold 3.14. It holds the nearest number that it has, which
# agrees in the first 7 digits. Python's floats have 64 bits and show the rest.
#
# `item()` needs exactly one element:

# %%
try:
    week.item()
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# Without the `try` you see the name `ShapeError` in front of this message, where PyTorch has
# `RuntimeError`. tensorkit has a name for each kind of mistake: `ShapeError` for shapes and sizes,
# `DTypeError` for dtypes, and so on. `except RuntimeError` catches these too.
#
# A tensor is printed with 4 digits after the point, and in columns. If the numbers are very
# different in size, they are printed with powers of ten. Large tensors are shortened. A float
# without a fraction is printed as `2.`, so you can tell `tensor([1., 2.])` from `tensor([1, 2])`.
# The dtype is printed only if it is not a default. The tensor itself keeps every digit.

# %%
print(tk.tensor([1 / 3, 2.0, -10.5]))
print(tk.tensor([0.001, 1000.0]))
print(tk.tensor([True, False]))
print(tk.arange(2000))

# %% [markdown]
# **NumPy.** `tk.from_numpy` makes a tensor that uses the memory of an array. Nothing is copied, so
# it takes no time, and each of the two shows a change of the other.

# %%
array = np.array([1.0, 2.0, 3.0])
shared = tk.from_numpy(array)
array[0] = 999.0
print(array)
print(shared)

# %% [markdown]
# The tensor prints `dtype=torch.float64`, because the array is float64. If you want float32, write
# `.float()`. Here that makes a copy, because the dtype changes.

# %% [markdown]
# `.numpy()` makes an array from a tensor. It shares the memory too.

# %%
back = shared.numpy()
back[1] = -1.0
print(shared)
print(type(back).__name__, back.dtype)

# %% [markdown]
# `.clone()` makes a copy, which shares nothing:

# %%
separate = shared.clone()
array[2] = 0.0
print(shared)
print(separate)

# %% role="show"
viz.memory(shared=shared, separate=separate)

# %% exercise="private-copy"

# %% [markdown]
# **What to notice.** `from_numpy` and `.numpy()` share memory. `tk.tensor(...)` and `.clone()`
# copy. A cast copies only if the dtype changes. If you are not sure, try it: write to one, and look
# at the other.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | your own numbers | `tk.tensor([[1, 2], [3, 4]])` | copies; ints: int64, floats: float32 |
# | a filled tensor |`tk.zeros(2, 3)`, `ones(2, 3)`, `eye(3)` | float32 |
# | filled with any number |`tk.full((2, 3), 7.5)` | looks at its number: 7 gives int64 |
# | whole numbers in a row | `tk.arange(0, 10, 2)` | stops before the end |
# | equal distances | `tk.linspace(0, 1, 5)` | includes the end |
# | random numbers | `tk.rand`, `randn`, `randint`, `randperm` | `tk.manual_seed(0)` repeats them |
# | the same shape and dtype | `tk.zeros_like(t)` | also `ones_like`, `rand_like`, ... |
# | another dtype | `t.float()`, `t.long()`, `t.to(tk.float16)` | cuts towards 0, never rescales |
# | one entry | `t[0]`, `t[1, -1]` | a whole number removes its dimension |
# | several entries | `t[1:3]`, `t[:, ::2]` | a slice keeps it |
# | to write | `t[::2, 1::2] = 1` | a slice is a view: the original changes |
# | a copy | `t.clone()` | memory of its own |
# | what a tensor is | `t.shape`, `t.dtype`, `t.device` | print them first if something fails |
# | the layout | `t.stride()`, `t.is_contiguous()` | strides count elements, not bytes |
# | memory | `t.numel() * t.element_size()` | in bytes |
# | a Python number | `t.item()`, `t.tolist()` | `item` needs exactly one element |
# | NumPy | `tk.from_numpy(a)`, `t.numpy()` | both share memory; dtypes are kept |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | A photo is H × W × C and a batch is N × C × H × W, as if nothing moved. | Image files have the colours last, PyTorch's layers before height and width. Something has to move them. |
# | Printing one element of a tensor shows `23`. | It shows `tensor(23)`. `.item()` gives the number. |
# | float32 is the default nearly everywhere. | It is the default for new floats. `tk.arange(12)` and `tk.tensor([1])` are int64, and `from_numpy` keeps float64. |
# | `tk.tensor(3.14).item()` is `3.14`. | It is `3.140000104904175`, the nearest number in float32. |
# | `tk.from_numpy(np.array([999.0, 2.0, 3.0]))` prints `tensor([999., 2., 3.])`. | It prints `dtype=torch.float64` as well. |

# %% [markdown]
# ## In tensorkit
#
# This is the function with which tensorkit computes the strides of `x.contiguous()`, whose rows lie
# one after the other. It goes through the dimensions from the last to the first. One step along a
# dimension passes over everything that the dimension to its right holds.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain, layout

explain.source(layout.contiguous_strides)

# %% [markdown]
# **A question.** The loop does not visit the last dimension. Why is its stride right?
#
# <details><summary>The answer</summary>
#
# The list begins with ones, and the last dimension keeps its 1. Neighbours in a row are neighbours
# in memory.
#
# </details>

# %%
progress("01_tensors")

# %% [markdown]
# **Next:** [Operations](../02_operations/02_operations.ipynb)
