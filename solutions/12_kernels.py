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
# # Kernels
#
# A **kernel** computes an operation on one kind of device, as in chapter 11. On a GPU it is a
# function that runs in thousands of threads at once. In this chapter you write them: for elements, for matrices, for sums.
# You see what the memory is asked for, find races, and repair them.
#
# You write in Python, with CUDA's words. On a GPU the text is compiled. This chapter runs on the
# simulated device, also where there is a GPU. It runs the threads one after the other, and it
# notices what a GPU does not: an index out of bounds, a race, a barrier that some threads miss. It
# counts what the memory is asked for. It does not measure time.
#
# The core exercises take about 71 minutes, reading and running the cells about 35 more. Exercises
# marked *further* give no points.

# %%
import math

import tensorkit as tk
from course import check, hint, progress, solution
from tensorkit import cuda, viz

tk.manual_seed(0)
_ = cuda.simulate()

# %% [markdown]
# ## One thread for each element
#
# A launch has *blocks*, and each block has the same number of *threads*. Every thread runs the
# whole function. What differs is its number: `threadIdx.x` counts within the block, `blockIdx.x`
# counts the blocks, and `blockDim.x` is the number of threads in a block. `cuda.grid(1)` puts them
# together: `blockIdx.x * blockDim.x + threadIdx.x` is the number of the thread in the whole
# launch.
#
# A kernel knows less than Python: numbers, `if`, `while`, `for` over a `range`, elements of tensors,
# `a if c else b`, `max`, `min`, `abs`, `int`, `float`, `math.exp` and its relatives. It has no `return`,
# and one comparison at a time: `0 <= i and i < n`. A name that begins as an integer stays one, so a
# sum of floats begins with `0.0`.
#
# Usually there are more threads than elements, since all blocks have one size. So the first line
# finds the thread's element, and the second is the **guard**: a thread beyond the end does
# nothing.


# %%
@cuda.kernel
def double(x, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = 2.0 * x[i]


x = tk.arange(10.0, device="cuda")
out = tk.zeros(10, device="cuda")
launch = double[3, 4](x, out, 10)
print(out)

# %% [markdown]
# `double[3, 4]` says how it is launched: 3 blocks of 4 threads. That makes 12 threads for 10
# elements. A kernel returns nothing; it fills a tensor that it is given. In the picture a box is an
# element, and the number in it is the thread of block 0 that touches it. Two of its words are
# explained later in this chapter: *coalesced*, where it is about memory, and *phase*, where threads
# wait for each other.

# %% role="show"
viz.kernel(launch)

# %% [markdown]
# Without the guard the last two threads reach outside. A GPU would read or write whatever lies
# there. The simulated device raises a `KernelError`, which names the element, the line and the
# thread that was there:


# %%
@cuda.kernel
def without_guard(x, out, n):
    i = cuda.grid(1)
    out[i] = 2.0 * x[i]


try:
    without_guard[3, 4](x, out, 10)
except RuntimeError as error:
    print(error)

# %% exercise="one-thread-each"

# %% [markdown]
# **What to notice.** The number of blocks is rounded up: `-(-n // threads)`. The guard belongs to
# that rounding.

# %% [markdown]
# ## More elements than threads
#
# A thread may work on several elements. In a **grid-stride** loop it begins with its own number
# and steps by the number of all threads of the launch. So any launch covers all elements, and
# neighbouring threads stay beside each other in every step.


# %%
@cuda.kernel
def negate(x, out, n):
    for i in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x):
        out[i] = -x[i]


x, out = tk.arange(10.0, device="cuda"), tk.zeros(10, device="cuda")
print(negate[1, 4](x, out, 10))
print(out)

# %% [markdown]
# Four threads, ten elements: threads 0 and 1 take three each, threads 2 and 3 take two. The
# picture shows the first step. The transactions that a launch counts are explained below.

# %% role="show"
viz.kernel(negate[1, 4](x, out, 10))

# %% exercise="grid-stride"

# %% [markdown]
# **What to notice.** The loop has the guard in it: the range ends at `n`. And the launch no longer
# depends on `n`: the same kernel runs with one thread, which helps to find a mistake.

# %% [markdown]
# ## What the memory sends
#
# Threads run in groups of 32 neighbours, called **warps**. When a warp reads, the memory sends
# pieces of 128 bytes, whole or not at all. One piece is a **transaction**. If the 32 threads read
# 32 neighbours of 4 bytes, one transaction is enough: the read is **coalesced**. If each element
# lies in another piece, there are 32 transactions, and most of what they bring is thrown away.
#
# Here are two kernels that add up a matrix with 32 rows and 64 columns. In the first a thread has
# a row, and in the second a thread has a column.


# %%
@cuda.kernel
def sum_of_row(x, out, rows, columns):
    row = cuda.grid(1)
    if row < rows:
        total = 0.0
        for j in range(columns):
            total += x[row, j]
        out[row] = total


@cuda.kernel
def sum_of_column(x, out, rows, columns):
    column = cuda.grid(1)
    if column < columns:
        total = 0.0
        for j in range(rows):
            total += x[j, column]
        out[column] = total


matrix = tk.ones(32, 64, device="cuda")
with cuda.profile() as profile:
    by_rows = sum_of_row[1, 32](matrix, tk.zeros(32, device="cuda"), 32, 64)
    by_columns = sum_of_column[2, 32](matrix, tk.zeros(64, device="cuda"), 32, 64)
print([launch.counts.loads for launch in profile])
print([launch.counts.transactions for launch in profile])

# %% [markdown]
# Both read 2,048 elements. A thread that walks along its row looks orderly, but the 32 threads of
# the warp are in 32 different rows at any moment. A launch prints its counts, and in brackets the
# least number of transactions that its arguments allow:

# %% role="show"
print(by_rows)
print(by_columns)

# %% role="show"
viz.kernel(by_rows)

# %% role="show"
viz.kernel(by_columns)

# %% [markdown]
# In the picture a dashed line around the boxes means that more is sent than is needed. Now six
# kernels that do nothing but read once:


# %%
@cuda.kernel
def neighbours(x):
    i = cuda.grid(1)
    value = x[0, i]


@cuda.kernel
def backwards(x):
    i = cuda.grid(1)
    value = x[0, 31 - i]


@cuda.kernel
def shifted(x):
    i = cuda.grid(1)
    value = x[0, i + 1]


@cuda.kernel
def every_second(x):
    i = cuda.grid(1)
    value = x[0, 2 * i]


@cuda.kernel
def one_for_all(x):
    value = x[0, 0]


@cuda.kernel
def down(x):
    i = cuda.grid(1)
    value = x[i, 0]


def transactions(kernel):
    return kernel[1, 32](matrix).counts.transactions


# %% exercise="how-many-transactions"

# %% [markdown]
# **What to notice.** Do not ask where one thread reads next. Ask where its 31 neighbours read now.

# %% [markdown]
# ## Two dimensions
#
# Blocks and threads may have two dimensions. `double[(2, 3), (8, 4)]` launches 2 x 3 blocks of 8 x
# 4 threads, and `cuda.grid(2)` gives two numbers, x first. Threads along x are neighbours in a
# warp. So x belongs to the last dimension of a tensor, the one whose elements lie beside each
# other.
#
# Broadcasting needs no memory and no rule here. An operand that is stretched along a dimension is
# indexed without it:


# %%
@cuda.kernel
def outer(x, y, out, rows, columns):
    column, row = cuda.grid(2)
    if row < rows and column < columns:
        out[row, column] = x[row] * y[column]


table = tk.zeros(3, 5, device="cuda")
launch = outer[(2, 2), (4, 2)](x[:3], x[:5], table, 3, 5)
print(table)

# %% [markdown]
# `x` has no column and `y` no row. In the picture several threads read one element of them: the
# number after the plus sign says how many more.

# %% role="show"
viz.kernel(launch)

# %% exercise="add-bias"

# %% [markdown]
# **What to notice.** `column, row = cuda.grid(2)`: x first. With the two exchanged the values can
# still be right, and every read is scattered.

# %% [markdown]
# ## A race
#
# In a sum many threads change one element. `out[0] += x[i]` looks like one step, but it is three:
# read the old value, add, write the new one. Two threads may read the same old value, and then one
# addition is lost. Which one depends on who comes first. That is a **race**: two threads touch one
# element, one of them writes, and nothing orders the two.
#
# On a GPU a race often gives the right result, until it does not. The simulated device runs the
# threads of a block in a random order and looks at the accesses: it finds the race whatever the
# result is.


# %%
@cuda.kernel
def largest(x, out, n):
    i = cuda.grid(1)
    if i < n:
        out[0] = max(out[0], x[i])


ten = tk.arange(10.0, device="cuda")
try:
    largest[1, 16](ten, tk.zeros(1, device="cuda"), 10)
except RuntimeError as error:
    print(str(error).partition("\n")[0])

# %% [markdown]
# For sums there is a repair: `cuda.atomic_add(out, index, value)` makes one step of the three, and
# no other thread comes in between. Here threads count how many elements fall into each of three
# classes:


# %%
@cuda.kernel
def histogram(x, out, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic_add(out, int(x[i]) % 3, 1)


counts = tk.zeros(3, dtype=tk.int32, device="cuda")
launch = histogram[2, 8](ten, counts, 10)
print(counts)

# %% role="show"
viz.kernel(launch)

# %% exercise="racing-sum"

# %% [markdown]
# **What to notice.** Additions to one element wait for each other, so an atomic sum of many
# numbers is slow on a GPU. And their order is not known: the last digits of a sum of floats may
# differ from run to run.

# %% [markdown]
# ## Shared memory and barriers
#
# The threads of one block can work together. `cuda.shared(shape, dtype)` is memory of the block:
# small, at most 48 KB, and much faster than global memory on a GPU. Its size is written as
# numbers, since it is set aside before the kernel runs.
#
# `cuda.syncthreads()` is a **barrier**: no thread of the block goes on before all have come to it.
# What was written before it may be read after it, by anybody in the block. The part between two
# barriers is a *phase*, and within a phase the order of the threads is not known.


# %%
@cuda.kernel
def reversed_blocks(x, out):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i]
    cuda.syncthreads()
    out[i] = part[7 - t]


numbers, turned = tk.arange(16.0, device="cuda"), tk.zeros(16, device="cuda")
launch = reversed_blocks[2, 8](numbers, turned)
print(turned)

# %% [markdown]
# The picture has a column for each phase. Without the barrier the read of `part[7 - t]` could come
# before another thread has written it: the device would report a race.

# %% role="show"
viz.kernel(launch)

# %% [markdown]
# A barrier is for all threads of the block. In an `if` that some threads do not enter, those
# inside may wait for ever:


# %%
@cuda.kernel
def some_wait(x, n):
    i = cuda.grid(1)
    if i < n:
        x[i] = 1.0
        cuda.syncthreads()


try:
    some_wait[1, 16](tk.zeros(10, device="cuda"), 10)
except RuntimeError as error:
    print(str(error).partition("\n")[0])

# %% exercise="tree-sum"

# %% [markdown]
# **What to notice.** Two rounds that read and write the same places need a barrier between them,
# also in a loop. And a thread that has nothing to add still comes to the barrier.

# %% [markdown]
# ## A matrix product in tiles
#
# In a matrix product every number is used many times. The plain kernel reads it again each time:


# %%
@cuda.kernel
def plain_matmul(a, b, out, n):
    column, row = cuda.grid(2)
    value = 0.0
    for k in range(n):
        value += a[row, k] * b[k, column]
    out[row, column] = value


a, b = tk.rand(16, 16, device="cuda"), tk.rand(16, 16, device="cuda")
product = tk.zeros(16, 16, device="cuda")
plain = plain_matmul[(4, 4), (4, 4)](a, b, product, 16)
print((product - a @ b).abs().max().item() < 1e-5)
print(plain.counts.loads, "loads, at least", plain.least.loads)

# %% [markdown]
# Each of the 256 threads reads 32 numbers. A block of 4 x 4 threads can share: it brings a tile of
# `a` and a tile of `b` into shared memory, and then every number is read there by four threads. So
# each thread reads 8 numbers from global memory in place of 32.

# %% role="show"
viz.kernel(plain)

# %% exercise="tiled-matmul"

# %% [markdown]
# After the exercise, compare the loads with those above:

# %% role="show"
try:
    print(matmul[(4, 4), (4, 4)](a, b, product, 16))
except RuntimeError as error:
    print(str(error).partition("\n")[0])

# %% [markdown]
# **What to notice.** There are two barriers in each turn. The first lets nobody read a tile that
# is not complete. The second lets nobody write the next tile while others still read this one.

# %% [markdown]
# ## Softmax in one launch
#
# An operation is a launch, and each launch goes through global memory: it reads its operands and
# writes its result. Softmax in operations is five of them.

# %%
scores = tk.rand(4, 8, device="cuda")
with cuda.record() as ledger:
    shifted_scores = scores - scores.amax(dim=1, keepdim=True)
    exponentials = shifted_scores.exp()
    probabilities = exponentials / exponentials.sum(dim=1, keepdim=True)
print(ledger.counts())

# %% [markdown]
# The times in the picture are those of a model, which counts bytes and launches. They are no
# measurement, but they show what a GPU would wait for: five launches, one after the other.

# %% role="show"
viz.timeline(ledger)

# %% [markdown]
# In one kernel a row is read by one block. The threads share their columns and put what each has
# found together in shared memory, as in the tree. The kernel still reads the row three times: for
# the largest, for the sum and for the results. What falls away are four launches, and the tensors
# in between, which are written and read again. Whoever writes kernels for deep learning spends
# much time on this: making one launch of several.

# %% exercise="softmax-rows"

# %% [markdown]
# **What to notice.** A shared array that is used a second time needs a barrier before the second
# use as well.

# %% [markdown]
# ## Scans and banks
#
# Shared memory has 32 **banks**. Word number `w`, of 4 bytes, lies in bank `w % 32`. A bank gives
# one word at a time. If two threads of a warp want two words of one bank, the warp waits once
# more: a **bank conflict**. If they want the same word, both get it.


# %%
@cuda.kernel
def with_step(out, step):
    part = cuda.shared(1024, tk.float32)
    t = cuda.threadIdx.x
    part[step * t] = 1.0
    out[t] = part[step * t]


filled = tk.zeros(32, device="cuda")
for step in (1, 2, 3, 32):
    print(step, with_step[1, 32](filled, step).counts.bank_conflicts)

# %% [markdown]
# With a step of 2 two threads share each bank; with a step of 3 every thread has a bank of its
# own, since 3 and 32 have no common divisor; with a step of 32 all want bank 0. There are two
# accesses, a write and a read, and each of them waits.

# %% role="show"
viz.kernel(with_step[1, 32](filled, 2))

# %% exercise="exclusive-scan"

# %% exercise="bank-conflict"

# %% [markdown]
# **What to notice.** One unused column costs 128 bytes here and removes 992 waits. Such a padding
# is found in many kernels.

# %% [markdown]
# ## Your kernel in the library
#
# Chapter 11 has shown the table in which an operation finds its kernel. With
# `tk.library.register_kernel(operation, device, function)` you put one there: a function that takes
# tensors and returns a new one. `tk.library.scope()` ends that with its block. `tk.empty_like(x)`
# makes a tensor like `x` whose elements are still to be filled. Here is a kernel for `tk.abs`:


# %%
def my_abs(x):
    @cuda.kernel
    def absolute(x, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = abs(x[i])

    out, n = tk.empty_like(x), x.numel()
    absolute[-(-n // 32), 32](x.reshape(-1), out.reshape(-1), n)
    return out


with tk.library.scope(), cuda.profile() as profile:
    _ = tk.library.register_kernel(tk.abs, "cuda", my_abs)
    print(tk.abs(x - 5))
print(len(profile), "launch")

# %% [markdown]
# The gradient still comes from the library: autograd records the operation, not the kernel. The
# picture shows the launch behind `tk.abs`:

# %% role="show"
viz.kernel(profile[0])

# %% exercise="own-relu"

# %% [markdown]
# With your kernel registered, a small network learns the absolute value. Nothing in its code knows
# of the kernel:

# %% role="show"
tk.manual_seed(0)
if my_relu(tk.ones(1, device="cuda")) is not None:  # once it is written
    with tk.library.scope(), cuda.profile() as profile:
        _ = tk.library.register_kernel(tk.relu, "cuda", my_relu)
        net = tk.nn.Sequential(tk.nn.Linear(1, 8), tk.nn.ReLU(), tk.nn.Linear(8, 1))
        net = net.to("cuda")
        optimizer = tk.optim.SGD(net.parameters(), lr=0.1)
        inputs = tk.linspace(-1, 1, 32, device="cuda").reshape(32, 1)
        losses = []
        for _ in range(40):
            loss = ((net(inputs) - inputs.abs()) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    print(losses[-1] < losses[0] / 4, len(profile), "launches of the kernel")

# %% [markdown]
# **What to notice.** The kernel computes the forward only. It works below autograd, on tensors
# that are contiguous and on the device.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a kernel | `@cuda.kernel` above a function | it returns nothing |
# | a launch | `kernel[blocks, threads](x, out, n)` | at most 1,024 threads in a block |
# | blocks for `n` elements | `-(-n // threads)` | and a guard |
# | the thread's number | `i = cuda.grid(1)` | `column, row = cuda.grid(2)` |
# | all elements, any launch | `range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x)` | |
# | few transactions | neighbouring threads, neighbouring elements | pieces of 128 bytes |
# | a sum in one element | `cuda.atomic_add(out, i, value)` | the order is not known |
# | memory of a block | `cuda.shared((16, 16), tk.float32)` | at most 48 KB |
# | to wait for the block | `cuda.syncthreads()` | all threads, never in an `if` |
# | no bank conflict | rows of 33 in place of 32 | 32 banks of 4 bytes |
# | counts | `with cuda.profile() as profile:` | on the simulated device |
# | to see it | `viz.kernel(launch)` | block 0, up to four of its warps |
#
# What can stand in a kernel: numbers, `if`, `while`, `for` over a `range`, elements of tensors,
# and `max`, `min`, `abs`, `int`, `float`, `math.exp` and its relatives. What else Python has is
# refused when the kernel is defined, with the line and what to write instead.

# %% [markdown]
# ## In tensorkit
#
# The simulated device runs your function nearly as it is: in place of a barrier stands a `yield`, a
# shared array is asked for by its name, and floats are rounded to float32. So a block is a list of
# generators, one for each thread, with what CUDA's words mean there. Each phase asks every one of
# them to go on. Your tensors come as objects whose `x[i]` calls a method, which notes the access and
# checks the bounds.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain
from tensorkit.cuda import kernel_run

explain.source(kernel_run.Memory.at, kernel_run.run_block)

# %% [markdown]
# **A question.** All threads of a phase run before any thread of the next one. How can the device
# notice that a thread has read an element before another thread has written it, if in its own
# order the write came first?
#
# <details><summary>The answer</summary>
#
# It does not look at the values. It notes who touched what in the phase. If two threads touched
# one element and one of them wrote, the order was luck, whatever it was.
#
# </details>

# %%
progress("12_kernels")
