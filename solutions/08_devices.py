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
# # Devices
#
# A graphics card (GPU) has its own memory and thousands of small processors, and it works while
# your program continues. This makes it fast, and it causes most of the mistakes. In this chapter
# you write code that runs on any device, see what a transfer costs and when the program waits, and
# watch how much memory is in use.
#
# If your computer has no GPU, this chapter simulates one. The simulated GPU computes with NumPy and
# follows the same rules as a real one: it has its own memory, raises the same errors and keeps a
# record of every transfer. Its times come from a model. They show what waits for what, not how fast
# a GPU is. On a computer with an NVIDIA GPU and CuPy the same cells use the GPU.
#
# The core exercises take about 35 minutes, reading and running the cells about 20 more. Exercises
# marked *further* give no points.

# %%
import numpy as np

import tensorkit as tk
from course import check, hint, progress, solution
from tensorkit import viz

# %% role="show"
if not tk.cuda.is_available():
    tk.cuda.simulate()

# %% [markdown]
# ## A device, and how tensors get there
#
# Every tensor is on a device: `x.device`. CUDA is NVIDIA's platform for computing on its cards, and
# `cuda` is the name of the device. `tk.cuda.is_available()` says whether a GPU can be used.
# `device_count()` gives the number of GPUs; they are numbered from 0.

# %%
print(tk.cuda.is_available(), tk.cuda.device_count() >= 1)
device = tk.device("cuda" if tk.cuda.is_available() else "cpu")
print(device)

# %% [markdown]
# Most programs begin with the second line: they make one variable, `device`, and use it everywhere.
# A `tk.device` only names a device; it does not change the default. Newer programs use
# `tk.accelerator` instead of `tk.cuda`; here the results are the same.
#
# `get_device_name` and `get_device_properties` describe the card. This cell shows yours:

# %% tags=["nbval-ignore-output"]
print(tk.cuda.get_device_name(0))
print(f"{tk.cuda.get_device_properties(0).total_memory / 1e9:.1f} GB")

# %% [markdown]
# Without `device=` a tensor is on the CPU. You can make a tensor on the device or move it there.
# `x.to(device)` returns a tensor on the device; `x` itself stays where it was. `x.cuda()` and
# `x.cpu()` are short for the two common cases. `x.cuda()` raises an error without a GPU;
# `x.to(device)` works with and without one. `x.is_cuda` says whether `x` is on a GPU.

# %%
x = tk.tensor([1.0, 2.0, 3.0])
y = tk.tensor([4.0, 5.0, 6.0], device=device)
x_there = x.to(device)
print(x.device, x_there.device, y.device)
print(x_there + y)
print((x_there + y).cpu())

# %% [markdown]
# The printed tensor says where it is. Moving it made a second storage, in the other memory. A later
# write to one of the two does not change the other.

# %% role="show"
viz.memory(x=x, x_there=x_there)

# %% [markdown]
# A result stays on the device where it was computed, even if it is a single number. A tensor that
# is already on the device is not moved again: `to` returns the same tensor.

# %%
print(x_there.to(device) is x_there, x_there.is_cuda)
print(tk.zeros_like(y).device, y.sum().device)

# %% [markdown]
# NumPy works in the memory of the CPU, so the tensor must be moved there first.

# %%
try:
    y.numpy()
except TypeError as error:
    print(str(error).splitlines()[0])
print(y.cpu().numpy())

# %% exercise="as-array"

# %% [markdown]
# **What to notice.** `to` and `cpu` return a tensor, like nearly all methods. A line `x.to(device)`
# alone, without `=`, has no effect.

# %% [markdown]
# ## When devices do not match
#
# Operands must be on the same device. If they are not, the library raises an error. It does not
# move them for you.

# %%
a = tk.randn(3, 3)
b = tk.randn(3, 3, device=device)
try:
    a @ b
except RuntimeError as error:
    print(str(error).partition("!")[0])

# %% [markdown]
# A hidden transfer would cost more than the operation, so you decide what moves, and when. The
# picture compares two programs. The upper one sends a constant in each of four steps, the lower one
# sends it once before them. Each bar beside `host to device` is a transfer, each bar beside
# `launch: running` is work of the GPU. (For a real GPU the picture shows only transfers and waits.)

# %% role="show"
with tk.cuda.record() as each_time:
    for _ in range(4):
        b * tk.arange(3.0).to(device)

with tk.cuda.record() as once:
    constant = tk.arange(3.0).to(device)
    for _ in range(4):
        b * constant

viz.timeline(each_time, once)

# %% [markdown]
# There is one exception: a CPU tensor without dimensions counts as a number and can be combined
# with a GPU tensor.

# %%
print((b * tk.tensor(2.0)).device)

# %% exercise="which-device"

# %% [markdown]
# **What to notice.** The usual reason for this error is a constant that was made inside a function:
# a mask, an `arange`, a tensor of zeros. If everything is on the CPU, the mistake does not show.

# %% [markdown]
# ## Code that runs on any device
#
# Three habits make a program run on any device. Make one variable `device` at the top. Move the
# data and the model there once. Make constants where the tensor is, with `device=x.device` or
# `zeros_like`.

# %%
tk.manual_seed(0)
X = tk.randn(64, 10, device=device)
W = tk.randn(10, 5, device=device, requires_grad=True)
bias = tk.zeros(5, device=device)

output = X @ W + bias
print(output.shape, output.device == X.device)

result = output.detach().cpu().numpy()
print(type(result).__name__, result.shape)

# %% [markdown]
# The picture shows the device of each part of the computation. All are the same:

# %% role="show"
viz.graph(output)

# %% [markdown]
# With several GPUs, `cuda:1` is the second one; `"cuda"` is the current one. On a Mac with Apple
# silicon PyTorch has the device `mps`, and `tk.backends.mps.is_available()` says whether it can be
# used. In tensorkit the answer is always False, because it supports NVIDIA's cards only.

# %%
print(tk.device("cuda:0"), tk.device("cpu").type, tk.device("cuda", 0).index)

# %% role="show"
print(tk.backends.mps.is_available())

# %% [markdown]
# An unknown name is an error, and so is a GPU that does not exist:

# %%
for name in ("gpu", "cuda:99"):
    try:
        tk.zeros(1, device=name)
    except RuntimeError as error:
        print(name, "->", type(error).__name__)

# %% exercise="any-device"

# %% exercise="to-device"

# %% [markdown]
# **What to notice.** A function should use the device of its arguments, not the default device.
# `set_default_device` changes where *new* tensors are made, and moves nothing. A function that uses
# the device of its arguments also works with two GPUs.

# %% [markdown]
# ## What a transfer costs
#
# An operation on the GPU begins with a *launch*: the CPU, also called the *host*, tells the GPU
# what to do and continues. A launch takes a few microseconds, for ten numbers as for ten million. A
# transfer goes through the connection between the two memories, and the host waits for it.
#
# `tk.cuda.record()` keeps a *ledger*, a list of all launches, transfers and waits. On a real GPU
# launches are not in it, nor waits inside of a mask. The first program below fetches each of eight
# results alone, the second fetches all of them together:

# %% role="show"
batches = [tk.rand(1000, device=device) for _ in range(8)]

with tk.cuda.record() as naive:
    total = 0.0
    for batch in batches:
        total += batch.square().mean().item()

with tk.cuda.record() as right:
    means = [batch.square().mean() for batch in batches]
    total = tk.stack(means).sum().item()

print(naive)
print(right)

# %% role="show"
viz.timeline(naive, right)

# %% [markdown]
# Each `.item()` waits until the GPU has finished everything. After that, the GPU waits until the
# host launches more work. `print(t)`, `if t > 0:`, `t.tolist()` and an index with a mask wait too,
# because the host needs to know a number. Without these waits the GPU works without a break.

# %% exercise="fewer-waits"

# %% [markdown]
# **What to notice.** Fetch numbers rarely: once in an epoch, not in each step. And send data in
# large pieces, because each transfer has a fixed cost.

# %% [markdown]
# ## Memory
#
# The memory of a GPU is small: 8 to 24 GB on common cards. Asking the driver for memory is slow, so
# freed memory is kept for the next tensor. That is why there are two numbers: `memory_allocated` is
# what tensors use, `memory_reserved` is what the library holds. Memory is given out in blocks of
# 512 bytes.

# %%
before = tk.cuda.memory_allocated()
small = tk.zeros(1, device=device)
print(tk.cuda.memory_allocated() - before, "bytes for one number")

big = tk.zeros(1000, 1000, device=device)
print((tk.cuda.memory_allocated() - before) / 1e6, "MB")

del big
print(tk.cuda.memory_allocated() - before, "bytes")
print(tk.cuda.memory_reserved() - before > 4_000_000)

# %% [markdown]
# After `del` the memory is unused, but the library still holds it. `empty_cache` returns unused
# memory to the driver. This helps *other* programs; your own program would use the memory again
# anyway.

# %%
reserved = tk.cuda.memory_reserved()
tk.cuda.empty_cache()
print(tk.cuda.memory_reserved() < reserved)

# %% [markdown]
# If a tensor does not fit, the message says how much memory was needed and how much there is.
# Smaller batches, `no_grad` and `del` help; `empty_cache` does not. The cell below simulates a
# small memory in order to show this error.

# %% role="show"
with tk.cuda.simulate(total_memory=1_000_000):
    try:
        tk.zeros(1000, 1000, device="cuda")
    except tk.cuda.OutOfMemoryError as error:
        print(str(error).splitlines()[0])

# %% exercise="largest-batch"

# %% [markdown]
# `del` removes a name, not a storage. Here one row of a hundred is kept. The row is a view, so all
# 40,000 bytes stay in memory; `big[0].clone()` would need only 400.

# %% role="show"
big = tk.zeros(100, 100, device=device)
row = big[0]
del big
viz.memory(row=row)

# %% [markdown]
# **What to notice.** A storage stays in memory as long as a name refers to any tensor on it. In a
# notebook the results of old cells use memory; `del` them, or restart the kernel.

# %% [markdown]
# ## Measuring
#
# The host continues while the GPU works. If you stop a clock after a launch, you have measured only
# the launch. `tk.cuda.synchronize()` waits until the GPU has finished. **Synchronise** before you
# start the clock and before you stop it. And run the operation once before that, because the first
# call does extra work.

# %% role="show"
m = tk.rand(500, 500, device=device)
_ = m @ m
tk.cuda.synchronize()

with tk.cuda.record() as ledger:
    for _ in range(3):
        m @ m
    tk.cuda.synchronize()
viz.timeline(ledger)

# %% [markdown]
# The GPU has its own clock too. You put two `tk.cuda.Event` into its queue, and `elapsed_time`
# gives the time between them in milliseconds. Synchronise before you ask, because the GPU must have
# reached both:

# %% tags=["nbval-ignore-output"]
start, end = tk.cuda.Event(enable_timing=True), tk.cuda.Event(enable_timing=True)
start.record()
m @ m
end.record()
tk.cuda.synchronize()
print(f"{start.elapsed_time(end):.3f} ms")

# %% [markdown]
# A benchmark should compare several sizes, because the result depends on the size. This one
# measures your own machine. A simulated GPU computes on the CPU, and immediately. So there the two
# columns say nothing about GPUs, and `synchronize` makes no difference.

# %% tags=["nbval-ignore-output"]
import time


def seconds(size, where, runs=3):
    a = tk.rand(size, size, device=where)
    a @ a
    if a.is_cuda:
        tk.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(runs):
        a @ a
    if a.is_cuda:
        tk.cuda.synchronize()
    return (time.perf_counter() - begun) / runs


print(f"{'size':>5} | {'cpu':>11} | {'device':>11}")
for size in (64, 256, 512):
    on_cpu, on_gpu = seconds(size, "cpu"), seconds(size, device)
    print(f"{size:>5} | {on_cpu * 1000:>8.2f} ms | {on_gpu * 1000:>8.2f} ms")

# %% exercise="break-even"

# %% [markdown]
# **What to notice.** Use `time.perf_counter()` to measure. `time.time()` may jump when the
# computer's clock is set.

# %% [markdown]
# ## Mixed precision, in outline
#
# GPUs compute several times faster in float16, and float16 needs half the memory. But its largest
# number is 65,504, and small gradients become 0. *Mixed precision* combines both dtypes: parameters
# and sums stay in float32, products are computed in float16. The loss is multiplied by a large
# number before backward, so that the gradients stay in the range of float16. Afterwards the
# gradients are divided by this number.

# %%
gradient = tk.tensor([2e-8, 3e-8])
print(gradient.half())
print((gradient * 1024).half().float() / 1024)

# %% [markdown]
# The smallest float16 above 0 is about 6e-8. So 2e-8 became 0, and 3e-8 became twice its size.
# Multiplied by 1024 first, both are kept. The picture shows the three tensors and their bytes:

# %% role="show"
viz.memory(single=gradient, half=gradient.half(), scaled=(gradient * 1024).half())

# %% [markdown]
# The gradients must be divided before the step. If the factor was too large, some gradient is
# `inf`; then the step is left out.

# %% exercise="unscaled"

# %% [markdown]
# **What to notice.** In PyTorch `torch.autocast` and a gradient scaler do this for you.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a device | `tk.device("cuda" if tk.cuda.is_available() else "cpu")` | once, at the top |
# | a tensor on the device | `tk.zeros(3, device=device)` | better than moving it |
# | to move | `x.to(device)`, `x.cuda()`, `x.cpu()` | returns a tensor; `x` stays |
# | a constant for `x` | `tk.arange(n, device=x.device)` | else a device mismatch |
# | NumPy | `t.detach().cpu().numpy()` | |
# | a number | `t.item()` | the host waits: rarely |
# | to wait | `tk.cuda.synchronize()` | before a clock starts and stops |
# | memory in use | `tk.cuda.memory_allocated()` | falls with `del` |
# | memory held | `tk.cuda.memory_reserved()` | falls with `empty_cache()` |
# | to see what happens | `with tk.cuda.record() as ledger:`, `viz.timeline(ledger)` | |
# | a GPU without a GPU | `tk.cuda.simulate()` | the same errors, the same ledger |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | `device = torch.device("cuda")` sets the default device. | It sets a variable. `set_default_device` sets the default. |
# | The size of the memory is `total_mem`. | The attribute is called `total_memory`. |
# | `x.cuda()` is the way to move a tensor. | Without a GPU it raises an error. `x.to(device)` works with and without a GPU. |
# | Operands must always be on one device. | There is one exception: a CPU tensor without dimensions counts as a number. |
# | `empty_cache` returns memory to the operating system, and `memory_allocated` shows it. | The memory goes to the driver, and `memory_reserved` becomes smaller. |
# | A GPU is 10, 50 or 100 times faster. | It depends. Large matrix products gain most. A product of 64 by 64 may be slower than on the CPU. To send data for a single sum takes longer than the sum on the CPU. Measure your own program. |

# %% [markdown]
# ## In tensorkit
#
# tensorkit keeps its kinds of device in a table. An entry has a name and a function that returns
# the array library. For the CPU this is NumPy; for `cuda` it is CuPy or the simulated device. You
# could add a kind of your own.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import devices, explain

explain.source(tk.register_device, devices.find_backend)

# %% [markdown]
# **A question.** What does `find_backend` return for a device that is not in the table, and why?
#
# <details><summary>The answer</summary>
#
# `None`. `_kinds.get` finds no entry and returns `lambda: None` instead. Calling this function
# gives `None`. The caller of `find_backend` then raises the error.
#
# </details>

# %%
progress("08_devices")

# %% [markdown]
# **Next:** [Training](../09_training/09_training.ipynb)
