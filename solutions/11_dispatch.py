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
# # Dispatch
#
# `a + b` is one line for every device, every dtype, with and without gradients. Which code runs?
# Between the call and the code stands the **dispatcher**. It is a table, a look-up and a few layers
# around it. In this chapter you write each of them, watch every operation of a training step, and
# add a device and an operation of your own.
#
# The core exercises take about 52 minutes, reading and running the cells about 25 more. The exercise
# marked *further* gives no points.

# %%
import numpy as np

import tensorkit as tk
from course import check, hint, progress, solution, transplant
from tensorkit import explain, nn, optim, viz
from tensorkit.nn import functional as F
from tensorkit.utils.data import DataLoader, TensorDataset

# %% role="show"
if not tk.cuda.is_available():
    tk.cuda.simulate()

# %% [markdown]
# ## From a call to a kernel
#
# A **kernel** is the function that computes an operation on one kind of device. Before it runs, a
# call may pass layers. Each does one thing, and is skipped if it has nothing to do:
#
# | Layer | What it does | Skipped if |
# |---|---|---|
# | autograd | gives the result a node | recording is off, or no input requires grad |
# | modes | calls a function of yours in place of the operation | no mode is on |
# | promotion | gives the operands one dtype and one shape | they have them |
# | device | looks up the kernel of the operands' device | never |
#
# They stand in this order, from the outside in. PyTorch has the same layers. Its promotion comes
# last, inside of the kernel.

# %%
a = tk.ones(2, requires_grad=True)
n = tk.tensor([1, 2])

explain.dispatch(tk.add, a, n)

# %% [markdown]
# `explain.dispatch` makes the call, and the layers say what they did. `viz.dispatch` draws the
# same. Dashed layers were skipped:

# %% role="show"
b = tk.ones(2)
viz.dispatch(tk.add, a, b)

# %% [markdown]
# A layer of a network is two operations, and each of them goes its own way:

# %%
viz.dispatch(nn.Linear(3, 2), tk.ones(4, 3))

# %% [markdown]
# For the exercise you need a few tensors, and a **mode**, a `tk.utils.DispatchMode`: a block in
# which a function of yours sees every operation. This one passes everything on. How it works comes
# later in this chapter.


# %%
class Log(tk.utils.DispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def logged(function):
    def call(*args):
        with Log():
            return function(*args)

    return call


a = tk.ones(2, requires_grad=True)
b = tk.ones(2)
c = tk.ones(2, device="cuda")
n = tk.tensor([1, 2])
two = tk.tensor(2)
mul, no_grad = tk.mul, tk.no_grad()

# %% exercise="which-layers"

# %% [markdown]
# **What to notice.** Most calls skip most layers. `b * b` on the CPU goes straight to
# `numpy.multiply`. tensorkit has a short path for such calls.

# %% [markdown]
# ## The table and its look-up
#
# Every operation has a table: from kinds of device to kernels. That of `relu` is
# `tk.relu.definition.kernels`. tensorkit's own operations have one entry, `"default"`. Their kernel
# is written for any array library, and the device brings the library: NumPy, CuPy, or the simulated
# one.

# %%
kernels = tk.relu.definition.kernels
for device in kernels:
    print(device, kernels[device].__module__, kernels[device].__name__)

# %% [markdown]
# `tk.library.register_kernel` adds an entry. A kernel is given tensors and returns a new one. Here
# is one for `relu` on CUDA devices. What is registered inside of `scope()` ends with the block.


# %%
def my_relu(x):
    print("my kernel computes", x.numel(), "elements")
    return tk.where(x > 0, x, 0.0)


with tk.library.scope():
    tk.library.register_kernel(tk.relu, "cuda", my_relu)
    print(tk.relu(tk.tensor([-1.0, 2.0], device="cuda")))
    print(tk.relu(tk.tensor([-1.0, 2.0])))

# %% [markdown]
# The CPU's `relu` is as it was. With the kernel in the table the call ends in it:

# %% role="show"
with tk.library.scope():
    tk.library.register_kernel(tk.relu, "cuda", lambda x: tk.where(x > 0, x, 0.0))
    picture = viz.dispatch(tk.relu, tk.ones(3, device="cuda"))
picture

# %% [markdown]
# If there is no kernel, the call raises an error, which names the operation and the device. The
# kernel of another device must not compute: its arrays lie in another memory. Here is an operation
# that has a kernel for the CPU only. `custom_op` makes such an operation; the last section explains
# it.


# %%
@tk.library.custom_op("mine::cube", mutates_args=(), device_types="cpu")
def cube(x: tk.Tensor) -> tk.Tensor:
    return x**3


try:
    cube(c)
except NotImplementedError as error:
    print(error)

# %% exercise="find-kernel"

# %% [markdown]
# Inside of this block tensorkit calls your function instead of its own (`transplant` belongs to
# this course, not to PyTorch). A network trains, forward and backward, and every kernel is found by
# you:

# %% role="show"
with transplant(find_kernel) as asked:
    tk.manual_seed(0)
    line = nn.Linear(1, 1)
    optimizer = optim.SGD(line.parameters(), lr=0.1)
    points = tk.tensor([[1.0], [2.0], [3.0]])
    for _ in range(100):
        optimizer.zero_grad()
        F.mse_loss(line(points), 2 * points + 1).backward()
        optimizer.step()
    print(f"slope {line.weight.item():.1f}, height {line.bias.item():.1f}")
print(asked)

# %% [markdown]
# **What to notice.** The table is the place where a library is open to others. For a new kind of
# chip its maker writes kernels and registers them. No program changes.

# %% [markdown]
# ## The layer of promotion
#
# A kernel computes in one dtype. So the operands get one before it is looked up. PyTorch decides by
# **kinds**: bool, whole numbers, floating point. The higher kind wins. Within a kind tensors with
# dimensions win over those without, and then the larger dtype wins.

# %%
half = tk.tensor(0.5)
print((tk.tensor([1, 2]) + half).dtype)
print((tk.ones(2) + tk.tensor(0.5, dtype=tk.float64)).dtype)
print((tk.ones(2) + tk.ones(1, dtype=tk.float64)).dtype)

# %% [markdown]
# In the second line the float64 number has no dimensions, so it counts less than the float32
# values. In the third it has one. `explain.dispatch` shows what the layer did:

# %% role="show"
explain.dispatch(tk.add, tk.tensor([1, 2]), half)

# %% exercise="promotion-layer"

# %% [markdown]
# **What to notice.** The rule about dimensions has a reason. A single number in a program is most
# often a setting, as `0.5`; it should not turn a million float32 values into float64. Operations
# that do not go element by element, such as a matrix product, promote nothing: for two dtypes they
# raise an error.

# %% [markdown]
# ## The layer of autograd
#
# Recording is a layer, too, and the outermost one. It lets the layers below compute the values, and
# then gives the result its node. If recording is off, or no input requires grad, it is skipped. So
# `no_grad` costs nothing and saves something: no node, no tensors kept for backward.

# %%
w = tk.tensor([3.0], requires_grad=True)
x = tk.tensor([2.0])
print((w * x).grad_fn, (w * x).grad_fn.saved)
with tk.no_grad():
    print((w * x).grad_fn)

# %% [markdown]
# The node keeps two entries: what the gradient of `w` needs, and None for `x`, which asks for no
# gradient. Under `no_grad` the same call takes a shorter way:

# %% role="show"
with tk.no_grad():
    shorter = viz.dispatch(tk.mul, w, x)
shorter

# %% exercise="autograd-layer"

# %% [markdown]
# **What to notice.** The kernel knows nothing of gradients, and autograd nothing of devices. That is
# why each is short, and why one formula serves every device.

# %% [markdown]
# ## A mode sees every operation
#
# A mode is a class with one method, `__torch_dispatch__`. While it is on, every operation calls this
# method instead: with the operation `func`, its arguments `args` and its options `kwargs`. What the
# method returns is the result. `types` is for subclasses of tensors; here it is empty.


# %%
class Shapes(tk.utils.DispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        print(func.__name__, tuple(result.shape))
        return result


layer, batch = nn.Linear(3, 2), tk.ones(4, 3)
with Shapes():
    layer(batch).sum().backward()

# %% [markdown]
# Two operations forward, then the sum, then backward: the formulas are made of operations, and the
# mode sees them as well. Inside of the method the mode is off, or `func(...)` would call it again.
#
# The layer of autograd is outside of the modes. So what a mode computes is not recorded, and what
# the mode returns gets the node:

# %% role="show"
with Shapes():
    picture = viz.dispatch(tk.exp, a)
picture

# %% exercise="logged-step"

# %% [markdown]
# The same for a whole step of a network, with the optimizer. `Counter` counts the names.

# %%
from collections import Counter


class Count(tk.utils.DispatchMode):
    def __init__(self):
        self.names = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names[func.__name__] += 1
        return func(*args, **(kwargs or {}))


tk.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = optim.SGD(network.parameters(), lr=0.05)
scores, classes = tk.rand(8, 64), tk.randint(0, 10, (8,))
with Count() as count:
    F.cross_entropy(network(scores), classes).backward()
    optimizer.step()
for name, times in count.names.most_common(4):
    print(name, times)

# %% [markdown]
# **What to notice.** PyTorch's class is `torch.utils._python_dispatch.TorchDispatchMode`, and its
# method is called the same way. With such modes PyTorch counts operations, fakes tensors without
# memory, and records programs to compile them.

# %% [markdown]
# ## Fewer launches
#
# Each operation on a GPU is a launch of its own: it reads its argument from memory and writes its
# result there. In a chain of operations element by element nobody needs the values in between. To
# **fuse** them means to compute the chain in one launch. A mode can do that: it sees every operation
# before it runs.
#
# The course has a kernel that computes several operations in one launch, `one_launch`. It writes
# into a tensor that is there already; `tk.empty_like` makes one whose values are not set. How such a
# kernel is written comes in chapter 12.

# %%
from course.engine.fusing import FUSABLE, one_launch

print(*FUSABLE)
with tk.cuda.simulate(), tk.cuda.record() as by_one:
    x = tk.tensor([1.0, 4.0], device="cuda")
    out = tk.empty_like(x)
    one_launch(["sqrt", "neg", "exp"], x, out)
print(out)

# %% [markdown]
# The same by three operations, and both beside each other. The times are those of the simulated
# device, a model:

# %% role="show"
with tk.cuda.simulate(), tk.cuda.record() as by_three:
    x = tk.tensor([1.0, 4.0], device="cuda")
    out = x.sqrt().neg().exp()
viz.timeline(by_three, by_one)

# %% exercise="fused-chain"

# %% [markdown]
# **What to notice.** To fuse, a library must know the next operations. An eager library computes
# each operation at once, so it does not know them. `torch.compile` records a program by a mode such
# as yours, and then fuses.

# %% [markdown]
# ## A device of your own
#
# A device is an entry of another table: a name, and a function that finds its **backend**;
# `tk.register_device` adds one. The backend is an object that knows the device: which library computes
# there, as NumPy does on the CPU, and how data go there and come back. The course has written one:
# `Counting` computes with NumPy, and adds up what every call costs. It asks a function of yours what
# that is: the operations on numbers, and the elements that are moved. Times their size, 4 for
# float32, these are bytes.


# %%
from course.engine.counting import Counting


def every_call_costs_one(name, shapes, shape):
    return 1, 0


counting = Counting(every_call_costs_one)
tk.register_device("counting", lambda: counting)

x = tk.ones(2, 3, device="counting")
print((x * 2 + 1).sum().item(), x.device)
counting

# %% [markdown]
# For the dispatcher this device is like any other. The kernels are tensorkit's own defaults, on the
# library that the device brings:

# %% role="show"
viz.dispatch(tk.mul, x, x)

# %% exercise="count-cost"

# %% [markdown]
# Now the network of chapter 09 on this device, with your function. Its program is not changed:
# `to(device)` is all. The data are 800 of the digits of chapter 09, by E. Alpaydin and C. Kaynak
# (1998), [UCI Machine Learning Repository](https://doi.org/10.24432/C50P49), under the licence
# [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/).


# %%
def train_for_an_epoch(model, loader, optimizer):
    device = next(model.parameters()).device
    model.train()
    total = 0.0
    for batch, its_targets in loader:
        batch, its_targets = batch.to(device), its_targets.to(device)
        loss = F.cross_entropy(model(batch), its_targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    return total / len(loader.dataset)


with np.load("digits.npz") as data:
    images = tk.from_numpy(data["images"]).float().flatten(1) / 16
    labels = tk.from_numpy(data["labels"]).long()

# %% role="show"
counting = Counting(cost)
for device in ("cpu", "counting"):
    tk.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = [train_for_an_epoch(model, loader, optimizer) for _ in range(3)]
    print(device, [round(loss, 3) for loss in losses])
counting

# %% [markdown]
# **What to notice.** The losses are the same on both devices, digit for digit. Nearly all operations
# are in the matrix products, and yet the other functions move more elements than they do: that is
# why GPUs have units of their own for products, and why the rest of a network often waits for
# memory.

# %% [markdown]
# ## An operation of your own
#
# A **custom operation** has a name, a table of kernels and a place in the dispatcher, so modes see it
# and devices can bring kernels for it. `custom_op` makes it of a function, `register_autograd` gives
# it a gradient, by two functions:
#
# - `setup_context(ctx, inputs, output)` is called after the forward. `ctx` is an object that belongs
#   to this call; `ctx.save_for_backward(...)` keeps tensors in it. `inputs` is the tuple of arguments.
# - `backward(ctx, g)` gets the same object, whose `ctx.saved_tensors` is the tuple that was kept, and
#   the gradient `g` of the result. It gives the gradient of each argument.
#
# The names are PyTorch's. PyTorch also needs the types of the arguments and of the result, and reads
# them from the annotations. Here is the cube, whose slope is $3 x^2$:


# %%
@tk.library.custom_op("mine::cube", mutates_args=())
def cube(x: tk.Tensor) -> tk.Tensor:
    return x**3


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def slope_of_cube(ctx, g):
    (x,) = ctx.saved_tensors
    return g * 3 * x**2


tk.library.register_autograd(cube, slope_of_cube, setup_context=keep)

x = tk.tensor([1.0, 2.0], requires_grad=True)
y = cube(x)
y.sum().backward()
print(y, x.grad)

# %% [markdown]
# `mutates_args=()` says that it writes to none of its arguments. In the dispatcher it stands like
# any other operation:

# %% role="show"
viz.dispatch(cube, x)

# %% [markdown]
# A wrong formula raises no error; the network only learns badly. `gradcheck` compares the formula
# with finite differences. In float64 it says whether the formula is right. In float32 the
# differences are too coarse, and it finds every formula wrong. With `raise_exception=False` it
# returns False where it would raise an error:

# %%
x = tk.tensor([0.5, -2.0], dtype=tk.float64, requires_grad=True)
print(tk.autograd.gradcheck(cube, x))

x = tk.tensor([0.5, -2.0], requires_grad=True)  # float32
print(tk.autograd.gradcheck(cube, x, raise_exception=False))

# %% exercise="custom-op"

# %% [markdown]
# **What to notice.** A custom operation hides what it is made of: a mode sees one call, autograd
# one node. That is what PyTorch's extensions are, from fused optimizers to the attention of large
# language models.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | to see the way of a call | `explain.dispatch(tk.add, a, b)` | it makes the call |
# | a kernel of your own | `tk.library.register_kernel(op, device, f)` | it gets tensors, and returns a new one |
# | that it ends | `with tk.library.scope():` | kernels and devices inside end with it |
# | to see every operation | `class Log(tk.utils.DispatchMode)` | the formulas of backward too |
# | a device | `tk.register_device(name, find)` | `find()` gives the backend, the same one as long as tensors of it live |
# | an operation | `@tk.library.custom_op("mine::name", mutates_args=())` | then `register_autograd` |
# | to trust its gradient | `tk.autograd.gradcheck(op, x)` | in float64 |
#
# | The layer | What you wrote | In PyTorch |
# |---|---|---|
# | autograd | `mul_with_autograd` | the key `Autograd` |
# | modes | `__torch_dispatch__` | the key `Python` |
# | promotion | `promoted` | `TensorIterator`, inside of the kernel |
# | device | `find_kernel` | the keys `CPU`, `CUDA`, and a fallback |

# %% [markdown]
# ## In tensorkit
#
# The layers of promotion and device, as they run once the common dtype is found. `find_kernel` is
# the function whose place yours took. Then the operands get the dtype, and the kernel runs.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import dispatch_layers, explain

explain.source(
    dispatch_layers.find_kernel,
    dispatch_layers.promote_operands,
    dispatch_layers.run_kernel,
)

# %% [markdown]
# **A question.** The kernel is looked up after the common dtype is found. Would it be right to look
# it up before?
#
# <details><summary>The answer</summary>
#
# Yes: the table has kinds of device, and promotion changes no device. A table with an entry for each
# dtype, as PyTorch's kernels have them inside, must be asked after promotion: before it, nobody
# knows which dtype the kernel will compute in.
#
# </details>

# %%
progress("11_dispatch")

# %% [markdown]
# **Next:** [Kernels](../12_kernels/12_kernels.ipynb)
