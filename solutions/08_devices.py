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
# A graphics card has a memory of its own and thousands of small processors, and it works while your
# program goes on. That is where its speed comes from, and most of the mistakes. In this chapter you
# write code that runs on any device, see what a transfer costs and who waits for whom, and keep an
# eye on memory.
#
# If your computer has no GPU, this chapter simulates one. It computes with NumPy and behaves like
# the real thing: a memory of its own, the same errors, books of every transfer. Its times are those
# of a model; they say what waits for what, not how fast a GPU is. On a computer with an NVIDIA GPU
# and CuPy the same cells use the GPU.
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
# Every tensor lies on a device: `x.device`. CUDA is NVIDIA's platform for computing on its cards,
# and `cuda` the name of the device. `tk.cuda.is_available()` says whether one can be used,
# `device_count()` how many there are; they are numbered from 0.

# %%
print(tk.cuda.is_available(), tk.cuda.device_count() >= 1)
device = tk.device("cuda" if tk.cuda.is_available() else "cpu")
print(device)

# %% [markdown]
# That line stands at the top of most programs: one variable, `device`, that everything else uses. A
# `tk.device` names a place and does nothing else. Newer programs ask `tk.accelerator` instead of
# `tk.cuda`; here the answers are the same.
#
# > **You will read elsewhere** that this sets the default device. It sets a variable. The default
# > is set by `tk.set_default_device`.
#
# `get_device_name` and `get_device_properties` describe the card. Here it is whatever you have:

# %% tags=["nbval-ignore-output"]
print(tk.cuda.get_device_name(0))
print(f"{tk.cuda.get_device_properties(0).total_memory / 1e9:.1f} GB")

# %% [markdown]
# > **You will read elsewhere** of `total_mem`. The attribute is called `total_memory`.
#
# Without `device=` everything is on the CPU. A GPU that nobody names does nothing. A tensor can be
# made on the device, or moved there. `x.to(device)` gives a tensor there; `x` stays where it was.
# `x.cuda()` and `x.cpu()` are short for the two common cases, and `x.is_cuda` asks whether it is on
# a GPU.
#
# > **You will read elsewhere** a plain `x.cuda()` as the way to move. Without a GPU that line is an
# > error, and the rest of the program does not run. `x.to(device)` works in both cases.

# %%
x = tk.tensor([1.0, 2.0, 3.0])
y = tk.tensor([4.0, 5.0, 6.0], device=device)
x_there = x.to(device)
print(x.device, x_there.device, y.device)
print(x_there + y)
print((x_there + y).cpu())

# %% [markdown]
# The printed tensor says where it is. Moving it made a second storage, on the other side of the
# bus: a later write to one is not seen by the other.

# %% role="show"
viz.memory(x=x, x_there=x_there)

# %% [markdown]
# Results stay where they were computed, however small they are; and what is there already is not
# moved again: `x_there.to(device) is x_there`.

# %%
print(x_there.to(device) is x_there, x_there.is_cuda)
print(tk.zeros_like(y).device, y.sum().device)

# %% [markdown]
# NumPy works in the host's memory. To get there, take the history off, then come back to the CPU:
# `t.detach().cpu().numpy()`.

# %%
try:
    y.numpy()
except TypeError as error:
    print(str(error).splitlines()[0])
print(y.cpu().numpy())

# %% exercise="as-array"

# %% [markdown]
# **What to notice.** `to` and `cpu` return a tensor, as nearly everything does. `x.to(device)` on a
# line of its own does nothing at all.

# %% [markdown]
# ## When devices do not match
#
# Operands must be on the same device. If they are not, the library does not move them in secret: it
# says so.

# %%
a = tk.randn(3, 3)
b = tk.randn(3, 3, device=device)
try:
    a @ b
except RuntimeError as error:
    print(str(error).partition("!")[0])

# %% [markdown]
# A hidden transfer would cost more than the operation. So you decide what moves, and when. In the
# picture a constant is sent in each of four steps, above, and once before all of them, below. A bar
# `to` is a transfer, a bar `multiply` the operation for which it was made. (Of a real GPU the
# picture shows transfers and waits alone.)

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
# > **You will read elsewhere** that operands must always be on one device. There is an exception: a
# > CPU tensor without dimensions counts as a number, and may meet a GPU tensor.

# %%
print((b * tk.tensor(2.0)).device)

# %% exercise="which-device"

# %% [markdown]
# **What to notice.** The usual culprit is a constant that was made inside a function: a mask, an
# `arange`, a tensor of zeros. Where everything is on the CPU nobody notices it.

# %% [markdown]
# ## Code that runs on any device
#
# Three habits make a program run everywhere. One variable `device` at the top. Data and model moved
# there once. And constants made where the tensor is: `device=x.device`, or `zeros_like`.

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
# The history of the result says where each part of it lies, all on one device:

# %% role="show"
viz.graph(output)

# %% [markdown]
# With several GPUs, `cuda:1` is the second; write `"cuda"` where you mean the current one. On a Mac
# with Apple silicon PyTorch has the device `mps`; `tk.backends.mps.is_available()` asks for it, and
# in tensorkit the answer is always no: it knows NVIDIA's cards only.

# %%
print(tk.device("cuda:0"), tk.device("cpu").type, tk.device("cuda", 0).index)

# %% role="show"
print(tk.backends.mps.is_available())

# %% [markdown]
# A name that is none is an error, and so is a GPU that is not there:

# %%
for name in ("gpu", "cuda:99"):
    try:
        tk.zeros(1, device=name)
    except RuntimeError as error:
        print(name, "->", type(error).__name__)

# %% exercise="any-device"

# %% exercise="to-device"

# %% [markdown]
# **What to notice.** A function should ask its arguments for their device, not the program for its
# default: `set_default_device` changes where *new* tensors are made and moves nothing, and
# functions of other people's may not expect it. A function that asks also works with two GPUs.

# %% [markdown]
# ## What a transfer costs
#
# An operation on the GPU begins with a *launch*: the host writes down what to do and goes on. A
# launch takes a few microseconds, whether it is for ten numbers or for ten million. A transfer has
# to pass the bus between the two memories, and the host waits for it.
#
# `tk.cuda.record()` keeps a ledger of what happens. Here each of eight results comes back on its
# own, and then all of them together:

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
# Every `.item()` waits until the GPU has done everything that was asked of it, and then the GPU
# waits for the host to ask for more. `print(t)`, `if t > 0:`, `t.tolist()` and picking with a mask
# wait in the same way: the host needs to know a number. Without the waits the launches follow one
# another without a gap.

# %% exercise="fewer-waits"

# %% [markdown]
# **What to notice.** Ask for numbers rarely: once in an epoch, not in every step. And send data in
# large pieces; a transfer has a fixed price as well.

# %% [markdown]
# ## Memory
#
# The memory of a GPU is small, 8 to 24 GB on common cards, and what was freed is kept for the next
# tensor, since asking the driver is slow. So there are two numbers: `memory_allocated`, what
# tensors use, and `memory_reserved`, what is held. Memory is given out in blocks of 512 bytes.

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
# `del` gave the memory back to the pool, and the pool kept it. `empty_cache` gives what nobody uses
# back to the driver, for *other* programs; your own would have reused it anyway.

# %%
reserved = tk.cuda.memory_reserved()
tk.cuda.empty_cache()
print(tk.cuda.memory_reserved() < reserved)

# %% [markdown]
# > **You will read elsewhere** that `empty_cache` gives memory back to the operating system, shown
# > by `memory_allocated`. It is the driver's, and the number that falls is `memory_reserved`.
#
# If it does not fit, the message says how much was wanted and how much there is. Smaller batches,
# `no_grad` and `del` help; `empty_cache` does not. A simulated memory lies in your computer's own:
# to run out of it on purpose, simulate a small one, as here.

# %% role="show"
with tk.cuda.simulate(total_memory=1_000_000):
    try:
        tk.zeros(1000, 1000, device="cuda")
    except tk.cuda.OutOfMemoryError as error:
        print(str(error).splitlines()[0])

# %% exercise="largest-batch"

# %% [markdown]
# `del` takes a name away, not a storage. Here one row of a hundred is kept. The row is a view and
# keeps all 40,000 bytes; `big[0].clone()` would have kept 400.

# %% role="show"
big = tk.zeros(100, 100, device=device)
row = big[0]
del big
viz.memory(row=row)

# %% [markdown]
# **What to notice.** A storage lives as long as a name for any tensor on it. In notebooks results
# of old cells hold memory; `del` them, or restart the kernel.

# %% [markdown]
# ## Measuring
#
# The host goes on while the GPU works. So a clock that is stopped after a launch has measured the
# launch. `tk.cuda.synchronize()` waits until everything is done. To **synchronise** is to do just
# that: before the clock starts and before it stops. And run once without the clock: the first call
# prepares things.

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
# The device has its own clock, too. Two of `tk.cuda.Event` are put into its queue, and
# `elapsed_time` is the time between them, in milliseconds. It is known once the device has come to
# both, so the host waits before it asks:

# %% tags=["nbval-ignore-output"]
start, end = tk.cuda.Event(enable_timing=True), tk.cuda.Event(enable_timing=True)
start.record()
m @ m
end.record()
tk.cuda.synchronize()
print(f"{start.elapsed_time(end):.3f} ms")

# %% [markdown]
# A benchmark compares sizes, because the answer depends on them. This one measures on your own
# machine. A simulated GPU computes on the CPU, and at once: there the two columns say nothing about
# GPUs, and a clock that forgets to `synchronize` shows about the same.

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

# %% [markdown]
# > **You will read elsewhere** that a GPU is 10, 50 or 100 times faster. It depends: large matrix
# > products gain most, a product of 64 by 64 may well be slower than on the CPU, and data that are
# > sent for a single operation never pay. Measure your own.

# %% exercise="break-even"

# %% [markdown]
# **What to notice.** `time.time()` may jump when the clock of the computer is set; `perf_counter`
# is made for measuring.

# %% [markdown]
# ## Mixed precision, in outline
#
# GPUs compute several times faster in float16, and it takes half the memory. But float16 ends at
# 65,504, and small gradients round to 0. So one keeps the parameters and sums in float32, computes
# the products in float16, and multiplies the loss by a large number before backward, so that the
# gradients stay in range, and divides them afterwards.

# %%
gradient = tk.tensor([2e-8, 3e-8])
print(gradient.half())
print((gradient * 1024).half().float() / 1024)

# %% [markdown]
# The smallest float16 above 0 is about 6e-8. So 2e-8 became 0, and 3e-8 was rounded up to twice its
# size; multiplied by 1024 on the way, both came through. Side by side, with the bytes that they
# take:

# %% role="show"
viz.memory(single=gradient, half=gradient.half(), scaled=(gradient * 1024).half())

# %% [markdown]
# What was multiplied before backward has to be divided before the step. If the number was too
# large, something is `inf` by then, and such a step is left out.

# %% exercise="unscaled"

# %% [markdown]
# **What to notice.** In PyTorch `torch.autocast` and a gradient scaler do this for you. Now you
# know what they do.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a device | `tk.device("cuda" if tk.cuda.is_available() else "cpu")` | once, at the top |
# | a tensor there | `tk.zeros(3, device=device)` | better than moving it |
# | to move | `x.to(device)`, `x.cuda()`, `x.cpu()` | returns a tensor; `x` stays |
# | a constant for `x` | `tk.arange(n, device=x.device)` | the usual culprit |
# | NumPy | `t.detach().cpu().numpy()` | |
# | a number | `t.item()` | the host waits: rarely |
# | to wait | `tk.cuda.synchronize()` | before a clock starts and stops |
# | memory in use | `tk.cuda.memory_allocated()` | falls with `del` |
# | memory held | `tk.cuda.memory_reserved()` | falls with `empty_cache()` |
# | to see what happens | `with tk.cuda.record() as ledger:`, `viz.timeline(ledger)` | |
# | a GPU without a GPU | `tk.cuda.simulate()` | the same errors, the same books |

# %% [markdown]
# ## In tensorkit
#
# A kind of device is one entry of a table: a name, and a function that finds what computes there.
# The CPU's gives NumPy; that of `cuda` gives CuPy, or the simulated device. You could add one of
# your own.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import devices, explain

explain.source(tk.register_device, devices.find_backend)

# %% [markdown]
# **A question.** What does `find_backend` give for a device that nobody has registered, and how
# does it come about?
#
# <details><summary>The answer</summary>
#
# `None`. `_kinds.get` finds no entry and gives `lambda: None` instead, a function that is called as
# any other and gives `None`. Who asked knows what the program wanted, and words the error.
#
# </details>

# %%
progress("08_devices")
