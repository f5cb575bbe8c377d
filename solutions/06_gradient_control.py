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
# # Gradient control
#
# Autograd records what you compute, and sometimes that is more than you want. In this chapter you
# clear gradients, stop the recording where you do not need it, and learn to read the errors that
# protect you from wrong gradients. At the end you can write a training step without help, and
# compute a batch that is too large for the memory in pieces.
#
# The core exercises take about 40 minutes, reading and running the cells about 20 more. Exercises
# marked *further* give no points.

# %%
import tensorkit as tk
from course import check, hint, progress, solution, transplant
from tensorkit import autograd, explain, nn, optim, viz

# %% [markdown]
# ## Gradients add up
#
# `backward` *adds* to `.grad`. After the second call `.grad` holds the sum of both gradients.

# %%
x = tk.tensor(2.0, requires_grad=True)
(x**2).backward()
print(x.grad)
(x**3).backward()
print(x.grad)

# %% [markdown]
# The gradient of $x^2$ is 4, and that of $x^3$ is 12. Clear the gradient before a new computation:
# `x.grad.zero_()` fills it with zeros, `x.grad = None` removes it.

# %%
x.grad.zero_()
(x**3).backward()
print(x.grad)

# %% [markdown]
# In this loop the gradient is 36 in each step. It is never cleared, so it becomes 36, 72, 108:

# %%
w = tk.tensor(2.0, requires_grad=True)
for _ in range(3):
    loss = (w * 3) ** 2
    loss.backward()
    print(w.grad.item())

# %% [markdown]
# An optimizer, such as `optim.SGD`, has the method `zero_grad()`: it sets the gradients of all its
# parameters to None. A model has it too.

# %%
optimizer = optim.SGD([w], lr=0.1)
optimizer.zero_grad()
print(w.grad)

# %% [markdown]
# The next exercise updates a parameter. `with tk.no_grad():` says that the lines in this block are
# not recorded, and `w -= ...` in it writes into `w` itself. The next section explains why an update
# is written in this way. In the exercise these two lines are right already.

# %% exercise="forgotten-zero"

# %% [markdown]
# The picture shows what happens if the gradient is not cleared. `w` begins at 0 and should reach 2,
# in steps against the gradient of $(w - 2)^2$. In one run each step uses its own gradient. In the
# other run each step uses the sum of its own gradient and all gradients before it.


# %% role="show"
def searched(clear):
    w, seen = tk.tensor(0.0, requires_grad=True), []
    for _ in range(12):
        if clear:
            w.grad = None
        ((w - 2) ** 2).backward()
        with tk.no_grad():
            w -= 0.25 * w.grad
        seen.append(w.item())
    return seen


ways = {"w, cleared": searched(True), "w, never cleared": searched(False)}
viz.training(ways, per="step")

# %% [markdown]
# **What to notice.** Gradients are added for good reasons. A parameter that is used in several
# places needs the sum, and so does a batch in pieces, at the end of this chapter. Only the steps of
# a loop must not be mixed, so clear the gradient in each step.

# %% [markdown]
# ## no_grad: compute without recording
#
# Inside `with tk.no_grad():` no operation is recorded. Use it for evaluation, which needs no
# gradients, and for the update of the parameters, which must not become part of the next graph.

# %%
w = tk.tensor(5.0, requires_grad=True)
y = w * 3
print(y.requires_grad)

with tk.no_grad():
    y = w * 3
    print(y.requires_grad, y.grad_fn)

# %% [markdown]
# You can also give it a function: `tk.no_grad()(f)` is `f` without recording. It works as a
# decorator too. It stops the recording, and nothing else: a tensor that you make inside with
# `requires_grad=True` still requires grad.
#
# Recording costs memory. Everything that the gradient formulas need is kept until backward.

# %% role="show"
x = tk.randn(64, 32)
weight = tk.randn(32, 8, requires_grad=True)
viz.saved((x @ weight).tanh().square().mean())

# %% [markdown]
# A parameter is a leaf that requires grad. You cannot write into such a leaf while operations are
# recorded:

# %%
w = tk.tensor([2.0], requires_grad=True)
try:
    w.add_(1)
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(w)

with tk.no_grad():
    w.add_(1)
print(w)

# %% [markdown]
# PyTorch raises a RuntimeError here. tensorkit's errors have names of their own that say what they
# are about, such as `AutogradError` here and `ShapeError` where shapes do not fit. Each of these is
# a RuntimeError, so `except RuntimeError` catches it in both libraries.

# %% exercise="sgd-step"

# %% [markdown]
# Now `optim.SGD` calls your function in each step. The points below lie on the line with slope 3
# and height 0.5. The training should find both numbers.

# %% role="show"
with transplant(sgd_step) as asked:
    tk.manual_seed(0)
    x = tk.randn(50, 1)
    y = 3 * x + 0.5
    w, b = tk.zeros(1, 1, requires_grad=True), tk.zeros(1, requires_grad=True)
    optimizer = optim.SGD([w, b], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        ((x @ w + b - y) ** 2).mean().backward()
        optimizer.step()
    print(f"slope {w.item():.2f}, height {b.item():.2f}")
print(asked)

# %% [markdown]
# **What to notice.** A training step has three parts: `loss.backward()`, the update, and clearing
# the gradients.

# %% [markdown]
# ## detach: the numbers without their history
#
# `detach()` gives a tensor that uses the same memory and has no history. For the rest of the graph
# it is a constant.

# %%
x = tk.tensor(3.0, requires_grad=True)
y = x**2
z = y.detach()
print(y.requires_grad, z.requires_grad, z.is_leaf)

(y * z).backward()
print(x.grad)

# %% [markdown]
# Without `detach`, $y \cdot z$ would be $x^4$ with the slope 108. Here `z` is the constant 9, so
# the slope is 9 · 6 = 54. In the graph only one path leads from the product back to `x`.

# %% role="show"
x = tk.tensor(3.0, requires_grad=True)
y = x**2
z = y.detach()
viz.graph(y * z)

# %% [markdown]
# `y` and `z` use the same memory, so writing to `z` changes `y`. If a node has saved `y` for its
# gradient formula, backward then raises an error; more on that below.

# %%
y = tk.tensor([1.0, 2.0], requires_grad=True) * 1
z = y.detach()
z[0] = 99.0
print(y[0].item())

# %% [markdown]
# NumPy has no history, so a tensor that requires grad does not become an array by accident. Detach
# it first: `y.detach().numpy()`.

# %%
try:
    y.numpy()
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% exercise="straight-through"

# %% [markdown]
# **What to notice.** Use `no_grad` for a block of code in which nothing should be recorded. Use
# `detach` for a single tensor that should be a constant while the rest is recorded: for example a
# target, a number for the log, or a tensor that you give to another library.

# %% [markdown]
# ## Which switch when: inference_mode, eval, freezing
#
# Three other switches are often confused with these two.
#
# `tk.inference_mode()` does not record either, and is a little faster. In return, its tensors
# cannot be used in a recorded computation later.

# %%
with tk.inference_mode():
    prediction = tk.ones(2) * 3
print(prediction)

w = tk.ones(2, requires_grad=True)
try:
    (w * prediction).sum()
except RuntimeError as error:
    print(str(error).partition(".")[0])

# %% [markdown]
# `model.eval()` does something else. It changes how some layers work. For example, `nn.Dropout`
# sets random elements to zero during training and does nothing during evaluation. `eval()` does not
# stop the recording. (`nn.Sequential` calls one layer after the other, `nn.Linear` is a dense
# layer; chapter 09 has more layers.)

# %%
tk.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5))
x = tk.ones(1, 4)
model.eval()
print(model(x).requires_grad)
print(tk.equal(model(x), model(x)))

model.train()
print(tk.equal(model(x), model(x)))

# %% [markdown]
# Evaluation needs both: `model.eval()` for the layers, and `no_grad` or `inference_mode` to save
# memory. Call `model.train()` afterwards.

# %% exercise="which-grad"

# %% [markdown]
# The third switch belongs to a single tensor. To *freeze* a layer, call `requires_grad_(False)` on
# its parameters. They get no gradient, so no step changes them. If nothing before the layer needs a
# gradient either, the layer is not even recorded. Here the first of two layers is frozen:

# %% role="show"
tk.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.Sigmoid(), nn.Linear(3, 1))
for parameter in model[0].parameters():
    parameter.requires_grad_(False)
viz.graph(model(tk.ones(5, 4)).sum())

# %% [markdown]
# *Transfer learning* works in this way: it freezes most layers of a trained network and trains the
# others on new data. Gradients still go through a frozen layer to the layers before it.

# %% exercise="train-only"

# %% [markdown]
# **What to notice.** `no_grad` and `inference_mode` apply to a block of code. `detach` and
# `requires_grad_` apply to a single tensor. `eval` applies to layers and does not change autograd.

# %% [markdown]
# ## In place, and the version count
#
# Every write to the memory of a tensor increases its **version** by one. A node that saves a tensor
# also saves its version, and backward compares the two. So backward notices a tensor that was
# changed after it was saved:

# %%
x = tk.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
y.add_(1)
try:
    y.sum().backward()
except RuntimeError as error:
    print(str(error).partition(":")[0])

# %% [markdown]
# Which line wrote? In a block `with autograd.recording():` each operation also notes its line, and
# `explain.inplace` shows the line of the node and the line of the write:

# %% role="show"
with autograd.recording():
    x = tk.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        story = explain.inplace(error)
story

# %% [markdown]
# A write is fine if no node has saved the old values. It is recorded like any other operation:

# %%
a = tk.tensor([2.0], requires_grad=True)
b = a * 3
b.add_(1)
b.sum().backward()
print(a.grad)

# %% [markdown]
# `x.data` is like `detach()`, but it has a version of its own, so a write through it is not
# noticed. Here the gradient of $a^2$ at 2 should be 4:

# %%
a = tk.tensor(2.0, requires_grad=True)
y = a * a
a.data.add_(1)
y.backward()
print(a.grad)

# %% [markdown]
# There is no error, and 6 is wrong. So do not use `.data`.

# %% exercise="saved-and-changed"

# %% [markdown]
# **What to notice.** The error comes late, in backward. It names the tensor and its versions.
# Change the line that wrote into this tensor.

# %% [markdown]
# ## The graph is used once, a batch in pieces
#
# Backward frees the saved tensors. So a second backward through the same graph raises an error,
# unless the first one was called with `retain_graph=True`.

# %%
x = tk.tensor(3.0, requires_grad=True)
y = x**2
y.backward()
try:
    y.backward()
except RuntimeError as error:
    print(str(error).partition("(")[0])

y = x**2
y.backward(retain_graph=True)
y.backward()
print(x.grad)

# %% [markdown]
# The gradient is 18 now, three times 6, because it was never cleared.
#
# A graph lives as long as its result. In this loop the history of `total` contains the graphs of
# all steps, so all of them stay in memory:

# %%
w = tk.tensor(2.0, requires_grad=True)
total = 0
for _ in range(3):
    total = total + (w * 3) ** 2
print(total.requires_grad)

# %% role="show"
viz.graph(total)

# %% [markdown]
# The whole path from `w` is kept three times, only to print a number. With `.item()` each graph is
# freed at the end of its step:

# %%
total = 0.0
for _ in range(3):
    total += ((w * 3) ** 2).item()
print(total)

# %% [markdown]
# Gradients add up, and a graph is freed with its result. So you can compute a batch that does not
# fit into memory: split the batch into pieces, call `backward` for each piece, and update once at
# the end. The gradients of the pieces are added, and each graph is freed before the next one begins.
#
# The sum is the gradient of the large batch only if each piece has its right weight. For a loss
# that is a mean, the weight is the share of the samples that are in this piece.

# %% exercise="micro-batches"

# %% [markdown]
# **What to notice.** With pieces you need the memory of one piece; the time stays the same. Layers
# that use the whole batch, such as batch normalisation, see only one piece. And if an error makes
# you think of `retain_graph=True`, ask first whether you want to go through the same graph twice.
# In a training loop you nearly never want that.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | to clear a gradient | `w.grad = None`, `w.grad.zero_()` | before `backward`, in every step |
# | all of them | `optimizer.zero_grad()`, `model.zero_grad()` | sets None |
# | to compute without recording | `with tk.no_grad():` | evaluation, updates |
# | the same, a little faster | `with tk.inference_mode():` | results cannot be used in training |
# | to update a parameter | `w -= lr * w.grad` inside `no_grad` | never `.data` |
# | a constant | `y.detach()` | same memory |
# | for NumPy | `y.detach().numpy()` | |
# | to freeze | `p.requires_grad_(False)` | gradients still pass through |
# | to use a model | `model.eval()`, and `no_grad` | then `model.train()` |
# | backward twice | `y.backward(retain_graph=True)` | rarely meant |
# | to keep a loss | `loss.item()` | `loss` keeps its graph |
# | a large batch in pieces | `(loss * share).backward()` | share of the samples |
# | who changed what | `explain.inplace(error)` | under `autograd.recording()` |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | `zero_grad()` sets gradients to zero. | Since PyTorch 2.0 it sets them to None, which saves memory. `zero_grad(set_to_none=False)` gives zeros. |
# | `no_grad` switches gradients off entirely. | It stops the recording of operations. A tensor made inside with `requires_grad=True` still requires grad. |
# | `a.add_(1)` destroys the history of a leaf, and backward goes wrong. | The line itself raises an error, and nothing is changed. |
# | The update is `w.data -= lr * w.grad.data`. | Write `w -= lr * w.grad` inside `no_grad`. A write through `.data` is not noticed by backward. |
# | `model = ...` stands above `model.eval()`. | The dots stand for a model of your own. If you run the line as it is printed, it fails: `...` has no `eval`. |
# | `detach` freezes a layer. | It also cuts off everything before the layer. Through a frozen layer gradients still pass. |
# | In-place operations destroy the history and are forbidden. | They are recorded. If the gradient would be wrong, backward raises an error. Only a write through `.data` or through a NumPy array on the same memory is not noticed. |
# | The graph is destroyed after backward. | The saved tensors are freed. `y = a + 1` saves nothing, so backward can go through it again. |
# | Without `no_grad` a loop slowly fills the memory. | Each graph is freed with its result. Keeping results fills the memory: add `loss.item()`, not `loss`. |
# | A batch in pieces is the same as a large batch. | For a loss that is a mean, only if each piece counts as much as its share of the samples. |

# %% [markdown]
# ## In tensorkit
#
# Two of the switches that are often confused: `eval` and freezing. Look for what each of them
# changes. A layer has an attribute `training`, and `nn.Dropout` passes it on to the function at the
# end.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain
from tensorkit.nn import Module, functional

explain.source(Module.train, Module.eval, Module.requires_grad_, functional.dropout)

# %% [markdown]
# **A question.** After `model.eval()`, is `model(x)` still recorded? And after
# `model.requires_grad_(False)`, does dropout still drop?
#
# <details><summary>The answer</summary>
#
# Yes, both. `eval` calls `train(False)`, which changes only `training` of each module. Dropout reads
# that, autograd does not. `requires_grad_` changes only the parameters, and `dropout` reads none: it
# drops as long as `training` is True.
#
# </details>

# %%
progress("06_gradient_control")

# %% [markdown]
# **Next:** [Higher order](../07_higher_order/07_higher_order.ipynb)
