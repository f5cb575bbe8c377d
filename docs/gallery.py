# %% [markdown]
# # Gallery of pictures and explanations
#
# Every picture here is drawn from live tensors. It shows itself in a notebook, carries the same in
# words (`picture.alt`), and is written to a file by `picture.save("name.svg")` (also `.html` and
# `.txt`, charts `.png`). The colours can be told apart by colour-blind readers, and nothing is said
# by colour alone.

# %%
import numpy as np

import tensorkit as tk
from tensorkit import explain, viz

# %% [markdown]
# ## Memory: which tensors see which box
#
# `viz.memory` draws a storage and the tensors over it.

# %%
a = tk.arange(6).reshape(2, 3)
turned = a.T
row = a[1]
viz.memory(a, row, turned)

# %% [markdown]
# A large storage is shortened; a stride of 0 shows as `:`.

# %%
big = tk.arange(1000).reshape(20, 50)
viz.memory(big=big, column=big[:, 7], wide=big[3].unsqueeze(0).expand(4, 50))

# %% [markdown]
# ## Indexing: what an index takes, view or copy

# %%
viz.indexing(tk.arange(24).reshape(4, 6), np.s_[1:3, ::2])

# %%
viz.indexing(tk.arange(12).reshape(3, 4), tk.tensor([2, 0]))

# %%
viz.indexing(tk.arange(24).reshape(2, 3, 4), np.s_[..., 1])

# %% [markdown]
# ## Broadcasting

# %%
viz.broadcast(tk.tensor([[1], [2], [3]]), tk.tensor([10, 20, 30, 40]))

# %%
viz.broadcast((8, 1, 6, 1), (7, 1, 5))

# %%
scores = tk.ones(3, 4)
weights = tk.ones(3)
explain.broadcast(scores, weights)

# %% [markdown]
# ## The autograd graph

# %%
x = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
w = tk.tensor([[0.5, -1.0], [0.25, 2.0]], requires_grad=True)
b = tk.zeros(2, requires_grad=True)
h = (x @ w + b).tanh()
loss = (h * h).mean()
viz.graph(loss)

# %% [markdown]
# What repeats is folded.

# %%
layers = [tk.eye(2).mul(0.9).requires_grad_() for _ in range(30)]
deep = x
for layer in layers:
    deep = (deep @ layer).relu()
viz.graph(deep.sum())

# %% [markdown]
# ## Backward, step by step
#
# The numbers are the engine's order. Below, for comparison, the recursion that does not wait: where
# paths meet, it gets the gradient wrong.

# %%
x = tk.tensor([1.0, 2.0], requires_grad=True)
a = x * 3.0
b = a.sin()
loss = (a * b + a).sum()
viz.backward(loss, naive=True)

# %% [markdown]
# ## What is kept for backward

# %%
inputs = tk.ones(64, 20)
first = tk.full((20, 30), 0.1, requires_grad=True)
second = tk.full((30, 1), 0.1, requires_grad=True)
loss = (((inputs @ first).tanh() @ second).sigmoid() ** 2).mean()
viz.saved(loss)

# %% [markdown]
# ## Why is my grad None?

# %%
w = tk.tensor([1.0, 2.0], requires_grad=True)
h = w * 3
h.sum().backward()
explain.no_grad(h)

# %% [markdown]
# Under `autograd.recording()` causes and lines are known.

# %%
w = tk.tensor([1.0, 2.0], requires_grad=True)
with tk.autograd.recording():
    h = w * 3
    cut = h.detach()
    result = cut * 2
explain.no_grad(result)

# %%
w = tk.tensor([1.0, 2.0], requires_grad=True)
with tk.autograd.recording(), tk.no_grad():
    w = w - 0.1
explain.no_grad(w)

# %% [markdown]
# ## Who changed my saved tensor?

# %%
x = tk.tensor([1.0, 2.0], requires_grad=True)
with tk.autograd.recording():
    y = x.exp()
    loss = (y * y).sum()
    y += 1
try:
    loss.backward()
except RuntimeError as error:
    explanation = explain.inplace(error)
explanation

# %% [markdown]
# ## Training

# %%
target = tk.tensor([1.0, -1.0, 0.5])
guess = tk.zeros(3, requires_grad=True)
history = {"loss": [], "accuracy": []}
for _ in range(25):
    error = ((guess - target) ** 2).mean()
    history["loss"].append(error.item())
    history["accuracy"].append((guess - target).abs().lt(0.1).float().mean().item())
    guess.grad = None
    error.backward()
    with tk.no_grad():
        guess -= 0.3 * guess.grad
viz.training(history)

# %%
module = {"first": first, "second": second, "unused": tk.ones(3, requires_grad=True)}
(((inputs @ first).tanh() @ second).sigmoid() ** 2).mean().backward()
viz.gradients(module)

# %%
path, point = [], [-1.5, 2.0]
for _ in range(30):
    path.append(tuple(point))
    point = [point[0] - 0.2 * point[0], point[1] - 0.4 * point[1]]
viz.landscape(lambda x, y: x * x + 10 * y * y, path)

# %% [markdown]
# ## A CUDA device, real or simulated
#
# What a cell asks of a CUDA device is noted in a ledger. The naive loop below sends each batch by
# itself and waits for each result; the right one sends all of them at once and waits at the end.

# %%
batches = tk.ones(4, 32, 64)
with tk.cuda.simulate():
    weights = tk.full((64, 16), 0.1, device="cuda")
    with tk.cuda.record() as naive:
        total = 0.0
        for batch in batches:
            total += (batch.to("cuda") @ weights).relu().mean().item()
    with tk.cuda.record() as right:
        total = tk.zeros((), device="cuda")
        for batch in batches.to("cuda"):
            total += (batch @ weights).relu().mean()
        total = total.item()
viz.timeline(naive, right)

# %% [markdown]
# `viz.kernel` draws a launch of a kernel of your own: what the first warps of block 0 touch, with
# a column for each phase between barriers. A dashed line means that the memory sends more than is
# needed.


# %%
@tk.cuda.kernel
def column_sums(x, out, n):
    part = tk.cuda.shared(8, tk.float32)
    t = tk.cuda.threadIdx.x
    part[t] = 0.0
    for row in range(n):
        part[t] += x[t, row]
    tk.cuda.syncthreads()
    out[t] = part[7 - t]


with tk.cuda.simulate():
    launch = column_sums[1, 8](tk.ones(8, 64, device="cuda"), tk.zeros(8, device="cuda"), 2)
viz.kernel(launch)

# %% [markdown]
# Every picture is drawn of tensors on a CUDA device too: what is shown is copied to the host.

# %%
with tk.cuda.simulate():
    there = tk.arange(6, device="cuda").reshape(2, 3)
    picture = viz.memory(there=there, turned=there.T, here=there.cpu())
picture

# %% [markdown]
# The times of this chart are made up: they show how the picture looks.

# %%
cpu = {10**k: 1e-6 + 10**k * 1e-9 for k in range(1, 8)}
cuda = {10**k: 2e-5 + 10**k * 1e-11 for k in range(1, 8)}
viz.benchmark({"cpu": cpu, "cuda": cuda})

# %% [markdown]
# ## Dispatch: which layers a call passes
#
# The call is made, and the layers say what they did. Of a module each operation is drawn.

# %%
viz.dispatch(tk.add, tk.ones(2, 3, requires_grad=True), tk.arange(3))

# %%
viz.dispatch(tk.nn.Linear(3, 2), tk.ones(4, 3))

# %%
with tk.no_grad():
    reasons = explain.dispatch(tk.mul, tk.ones(2, requires_grad=True), 3)
reasons

# %% [markdown]
# ## What cannot be drawn gets a sentence

# %%
viz.graph(tk.ones(3))

# %%
viz.indexing(tk.arange(6), 9)
