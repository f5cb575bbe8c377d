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
# Autograd does what you tell it, and some of what you did not mean to. In this chapter you clear
# gradients, stop the recording where it is not wanted, and learn to read the errors that protect
# you from wrong gradients. At the end you can write a training step without help, and split a batch
# that is too large into pieces.
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
# `backward` *adds* to `.grad`. After the second call it holds the sum of both gradients.

# %%
x = tk.tensor(2.0, requires_grad=True)
(x**2).backward()
print(x.grad)
(x**3).backward()
print(x.grad)

# %% [markdown]
# 4 for $x^2$, and 12 more for $x^3$. Clear the gradient before a new computation, either with
# `x.grad.zero_()`, which fills it with zeros, or with `x.grad = None`, which throws it away.

# %%
x.grad.zero_()
(x**3).backward()
print(x.grad)

# %% [markdown]
# In a loop that forgets it, the gradients 36, 36, 36 become 36, 72, 108:

# %%
w = tk.tensor(2.0, requires_grad=True)
for _ in range(3):
    loss = (w * 3) ** 2
    loss.backward()
    print(w.grad.item())

# %% [markdown]
# Optimizers, such as `optim.SGD`, clear the gradients of all their parameters with `zero_grad()`,
# and so do models.

# %%
optimizer = optim.SGD([w], lr=0.1)
optimizer.zero_grad()
print(w.grad)

# %% [markdown]
# > **You will read elsewhere** that `zero_grad()` sets gradients to zero. Since PyTorch 2.0 it sets
# > them to None, which saves the memory; `zero_grad(set_to_none=False)` gives zeros.

# %% exercise="forgotten-zero"

# %% [markdown]
# The picture shows what the fault does. A number looks for its way from 0 to 2, in steps against
# the gradient of $(w - 2)^2$: once each step has its own gradient, once it has those of all steps
# before it as well.


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
# **What to notice.** Adding up is no accident: a parameter that is used in several places needs the
# sum, and so does a batch that comes in pieces, at the end of this chapter. It is only the loop
# that must not mix its steps.

# %% [markdown]
# ## no_grad: compute without recording
#
# Inside `with tk.no_grad():` no operation is recorded. That is for evaluation, which needs no
# gradients, and for the update of the parameters, which must not be part of the next graph.

# %%
w = tk.tensor(5.0, requires_grad=True)
y = w * 3
print(y.requires_grad)

with tk.no_grad():
    y = w * 3
    print(y.requires_grad, y.grad_fn)

# %% [markdown]
# It works as a decorator too, or on a function: `tk.no_grad()(f)` is `f` without recording.
#
# > **You will read elsewhere** that `no_grad` switches gradients off entirely. It stops the
# > recording of operations. A tensor made inside with `requires_grad=True` still requires grad.
#
# What recording costs is memory: everything that the formulas will need is kept until backward.

# %% role="show"
x = tk.randn(64, 32)
weight = tk.randn(32, 8, requires_grad=True)
viz.saved((x @ weight).tanh().square().mean())

# %% [markdown]
# A parameter is a leaf. A leaf that requires grad cannot be written to while operations are
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
# > **You will read elsewhere** that `a.add_(1)` erases the past of a leaf, so that backward ends in
# > chaos. The line itself is refused, and nothing has changed.
#
# > **You will read elsewhere** an update such as `w.data -= lr * w.grad.data`. Write
# > `w -= lr * w.grad` inside `no_grad`; why `.data` is the worse way comes below.

# %% exercise="sgd-step"

# %% [markdown]
# Now `optim.SGD` asks your function for each step. The points below lie on the line with slope 3
# and height 0.5, and training should find both.

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
# **What to notice.** `loss.backward()`, update, clear: these three are a training step. Everything
# else in a training program is bookkeeping.

# %% [markdown]
# ## detach: the numbers without their history
#
# `detach()` gives a tensor on the same memory that has no history. What is computed from it is a
# constant to the rest of the graph.

# %%
x = tk.tensor(3.0, requires_grad=True)
y = x**2
z = y.detach()
print(y.requires_grad, z.requires_grad, z.is_leaf)

(y * z).backward()
print(x.grad)

# %% [markdown]
# $y \cdot z$ is $x^4$, and its slope would be 108. With `z` as the constant 9 it is 9 · 6 = 54. In
# the graph only one way leads from the product back to `x`; of `z` nothing is left but the number.

# %% role="show"
x = tk.tensor(3.0, requires_grad=True)
y = x**2
z = y.detach()
viz.graph(y * z)

# %% [markdown]
# Detached or not, the memory is the same. Writing to `z` changes `y`, and if a node has saved `y`
# for its formula, backward will refuse; more on that below.

# %%
y = tk.tensor([1.0, 2.0], requires_grad=True) * 1
z = y.detach()
z[0] = 99.0
print(y[0].item())

# %% [markdown]
# NumPy cannot keep a history, so a tensor that requires grad does not give its memory away by
# accident: `y.detach().numpy()`.

# %%
try:
    y.numpy()
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% exercise="straight-through"

# %% [markdown]
# **What to notice.** Use `no_grad` for a block of code in which nothing should be recorded. Use
# `detach` for one tensor that should count as a constant while everything around it is recorded: a
# target, a number for the log, what you hand to another library.

# %% [markdown]
# ## Which switch when: inference_mode, eval, freezing
#
# Three more switches are often taken for these two.
#
# `tk.inference_mode()` records nothing either and does a little less work. The price: its tensors
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
# `model.eval()` is something else. It tells layers such as `nn.Dropout`, which zeroes elements at
# random while it trains, to behave as in use. It records as before. (`nn.Sequential` calls one
# layer after the other, `nn.Linear` is a dense layer; chapter 09 has more of them.)

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
# Evaluation needs both: `model.eval()` for the layers, `no_grad` or `inference_mode` for the
# memory. And `model.train()` afterwards.
#
# > **You will read elsewhere** `model = ...` above `model.eval()`. The dots stand for a model of
# > your own. Run as it is printed, the line fails: `...` has no `eval`.

# %% exercise="which-grad"

# %% [markdown]
# The third switch belongs to one tensor. To *freeze* a layer, say `requires_grad_(False)` to its
# parameters: they get no gradient, so no step moves them, and a frozen layer with nothing to train
# in front of it is not even recorded. Here the first of two layers is frozen:

# %% role="show"
tk.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.Sigmoid(), nn.Linear(3, 1))
for parameter in model[0].parameters():
    parameter.requires_grad_(False)
viz.graph(model(tk.ones(5, 4)).sum())

# %% [markdown]
# That is how *transfer learning* keeps what a network has learnt elsewhere and trains a few layers
# of it on new data.
#
# > **You will read elsewhere** that `detach` freezes layers. It cuts off everything in front of it
# > as well. Through a frozen layer gradients still pass to what comes before it.

# %% exercise="train-only"

# %% [markdown]
# **What to notice.** `no_grad` and `inference_mode` are about a block of code, `detach` and
# `requires_grad_` about one tensor, and `eval` about layers; it says nothing to autograd.

# %% [markdown]
# ## In place, and the version count
#
# Every write to a tensor's memory raises its **version**. A node that saves a tensor remembers the
# version, and backward compares. So a result that was changed behind the node's back is found out:

# %%
x = tk.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
y.add_(1)
try:
    y.sum().backward()
except RuntimeError as error:
    print(str(error).partition(":")[0])

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
# A write that disturbs nobody is fine. It is recorded like any other operation:

# %%
a = tk.tensor([2.0], requires_grad=True)
b = a * 3
b.add_(1)
b.sum().backward()
print(a.grad)

# %% [markdown]
# > **You will read elsewhere** that in-place operations destroy the history, that PyTorch complains
# > often but not always, and that they are forbidden. They are recorded, and whatever would give a
# > wrong gradient is refused. What gets past the version count is `.data`, and a NumPy array on the
# > same memory.
#
# `x.data` is like `detach()`, but with a version of its own. Here the gradient of $a^2$ at 2 should
# be 4:

# %%
a = tk.tensor(2.0, requires_grad=True)
y = a * a
a.data.add_(1)
y.backward()
print(a.grad)

# %% [markdown]
# Nobody complains, and 6 is wrong. That is why not `.data`.

# %% exercise="saved-and-changed"

# %% [markdown]
# **What to notice.** The error is your friend. It comes late, in backward, and it names the tensor
# and its versions; the line to change is the one that wrote.

# %% [markdown]
# ## The graph is used once, a batch in pieces
#
# After backward the saved tensors are freed, so a second walk fails, unless the first one was told
# to keep them with `retain_graph=True`.

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
# The gradient is 18 now: three times 6, because nobody cleared it.
#
# > **You will read elsewhere** that the graph is destroyed after backward. What goes are the saved
# > tensors. `y = a + 1` saves nothing, and can be walked as often as you like.
#
# A graph lives as long as its result. So this loop keeps every graph alive, one for each step,
# because `total` has all of them in its history:

# %%
w = tk.tensor(2.0, requires_grad=True)
total = 0
for _ in range(3):
    total = total + (w * 3) ** 2
print(total.requires_grad)

# %% role="show"
viz.graph(total)

# %% [markdown]
# Three times the whole way from `w`, for a number that was only to be printed. With `.item()` each
# graph goes as soon as its step is done:

# %%
total = 0.0
for _ in range(3):
    total += ((w * 3) ** 2).item()
print(total)

# %% [markdown]
# > **You will read elsewhere** that without `no_grad` a loop slowly fills the memory. Each graph
# > goes with its result. It is keeping results that fills the memory: add `loss.item()`, not
# > `loss`.

# %% [markdown]
# A graph that goes early makes room. Gradients add up, so a batch that does not fit into memory can
# be computed in pieces, with one `backward` for each and one update at the end. Each piece frees
# its graph before the next begins.
#
# > **You will read elsewhere** that this is the same as a large batch. For a loss that is a mean it
# > is so only if each piece counts as much as its share of the samples.

# %% exercise="micro-batches"

# %% [markdown]
# **What to notice.** With pieces the memory that is needed is that of one piece; the time is the
# same. Layers that look at the whole batch, such as batch normalisation, see only the piece. And if
# you need `retain_graph=True` to silence an error, ask first whether you meant to go back through
# the same graph twice. In training loops you nearly never do.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | to clear a gradient | `w.grad = None`, `w.grad.zero_()` | before `backward`, in every step |
# | all of them | `optimizer.zero_grad()`, `model.zero_grad()` | sets None |
# | to compute without recording | `with tk.no_grad():` | evaluation, updates |
# | the same, for good | `with tk.inference_mode():` | results cannot be used in training |
# | to update a parameter | `w -= lr * w.grad` inside `no_grad` | never `.data` |
# | a constant | `y.detach()` | same memory |
# | for NumPy | `y.detach().numpy()` | |
# | to freeze | `p.requires_grad_(False)` | gradients still pass through |
# | to use a model | `model.eval()`, and `no_grad` | then `model.train()` |
# | to walk twice | `y.backward(retain_graph=True)` | rarely meant |
# | to keep a loss | `loss.item()` | `loss` keeps its graph |
# | a large batch in pieces | `(loss * share).backward()` | share of the samples |
# | who changed what | `explain.inplace(error)` | under `autograd.recording()` |

# %% [markdown]
# ## In tensorkit
#
# At the beginning of a block `with tk.no_grad():` Python calls `__enter__`, at its end `__exit__`.
# All that they change is a switch that every operation looks at before it records.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain

explain.source(tk.no_grad.__enter__, tk.no_grad.__exit__, tk.no_grad)

# %% [markdown]
# **A question.** `__exit__` could simply switch recording on again. Why does `__enter__` keep what
# was before, and why in a list?
#
# <details><summary>The answer</summary>
#
# Blocks stand in one another. At the end of an inner `no_grad` the outer one still holds, so the
# switch has to go back to what it was, not to on. One object may be entered twice, and then has two
# states to go back to.
#
# </details>

# %%
progress("06_gradient_control")
