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
# # Autograd
#
# To make a network less wrong you must know in which direction each of its numbers should move.
# That direction is the gradient, and autograd computes it for whatever you compute. In this chapter
# you measure a gradient by hand, watch how the library records what you do, and write the four
# pieces that backward is made of: a node's own formula, the order of the nodes, the sum over what
# was stretched, and the call that starts it all.
#
# **Time and difficulty.** Reading takes about 25 minutes. The core exercises take about 45 minutes;
# most are 2 or 3 of 5, two are 4. Exercises marked *further* can wait; they give no points.

# %%
import math

import tensorkit as tk
from course import check, hint, progress, solution, transplant
from tensorkit import autograd, explain, viz

# %% [markdown]
# ## What a gradient is
#
# How much does the result change when an input changes a little? For $y = x^2$ at $x = 3$: go a
# small step $h$ ahead, a step back, and divide.


# %%
def y(x):
    return x**2


h = 0.001
print((y(3 + h) - y(3 - h)) / (2 * h))

# %% [markdown]
# Calculus says $y' = 2x$, so 6. With several inputs there is one such slope for each of them, and
# together they are the **gradient**: a tensor of the shape of the input. For $a^2 + 2b^2$ at
# $a = 3$, $b = 1$:


# %%
def valley(a, b):
    return a**2 + 2 * b**2


slope_a = (valley(3 + h, 1) - valley(3 - h, 1)) / (2 * h)
slope_b = (valley(3, 1 + h) - valley(3, 1 - h)) / (2 * h)
print(round(slope_a, 3), round(slope_b, 3))

# %% [markdown]
# The gradient points uphill. Whoever wants to go down takes a small step the other way, here a
# tenth of the gradient. In the picture `a` goes to the right and `b` upwards; the lines join places
# of the same height.

# %% role="show"
viz.landscape(valley, [(3.0, 1.0), (3.0 - 0.1 * slope_a, 1.0 - 0.1 * slope_b)])

# %% exercise="numeric-gradient"

# %% [markdown]
# **What to notice.** Two evaluations for each element. A network with a million parameters would be
# evaluated two million times for a single step, and GPT-3 has 175 billion of them. Autograd needs
# one walk back, whatever the number. That walk is called *backpropagation*, or reverse mode.

# %% [markdown]
# ## Ask for a gradient
#
# `requires_grad=True` says: I want to know the gradient with respect to this tensor. Compute with
# it, call `backward()` on the result, and find the gradient in `.grad`.

# %%
x = tk.tensor(3.0, requires_grad=True)
y = x**2 + 2 * x + 1
y.backward()
print(x.grad)

# %% [markdown]
# By hand: $y' = 2x + 2$, and $2 \cdot 3 + 2 = 8$. Another one, $y = x^2 + 3x + 1$ at 2:

# %%
x = tk.tensor(2.0, requires_grad=True)
y = x**2 + 3 * x + 1
y.backward()
print(y.item(), x.grad.item())

# %% [markdown]
# With two inputs each gets its own gradient. For $c = ab$ they are $b$ and $a$:

# %%
a = tk.tensor([2.0], requires_grad=True)
b = tk.tensor([3.0], requires_grad=True)
c = a * b
c.backward()
print(a.grad, b.grad)

# %% [markdown]
# > **You will read elsewhere** that `print(a.grad)` shows `3`. It shows `tensor([3.])`: a gradient
# > has the shape of its tensor. And `c` is no single number here but a tensor of one element, which
# > `backward` accepts.
#
# With a vector, the sum makes one number of the squares, and the gradient is $2x_i$ for each
# element:

# %%
x = tk.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x**2).sum()
y.backward()
print(x.grad)

# %% [markdown]
# `requires_grad_()` asks for a gradient of a tensor that is there already. Only floats can have
# one:

# %%
w = tk.tensor([0.5, 1.5])
w.requires_grad_()
print(w.requires_grad)
try:
    tk.tensor([1, 2], requires_grad=True)
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# **From one number.** `backward` starts at one number: its slope with respect to itself is 1. From
# a tensor of several numbers it would not know where to start.

# %%
x = tk.tensor([1.0, 2.0], requires_grad=True)
y = x**2
try:
    y.backward()
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# Make one number of it, with a sum or a mean, or say with `gradient=` how much each element counts.
# Both lines below do the same:

# %%
(x**2).sum().backward()
print(x.grad)

x.grad = None
(x**2).backward(gradient=tk.tensor([1.0, 1.0]))
print(x.grad)

# %% [markdown]
# Here is a model with two inputs, and what its three parameters would have to do:

# %%
w1 = tk.tensor(3.0, requires_grad=True)
w2 = tk.tensor(-2.0, requires_grad=True)
b = tk.tensor(1.0, requires_grad=True)
x1, x2 = tk.tensor(4.0), tk.tensor(5.0)

y = w1 * x1 + w2 * x2 + b
loss = (y - 10.0) ** 2
loss.backward()
print(y.item(), loss.item())
print(w1.grad.item(), w2.grad.item(), b.grad.item())

# %% [markdown]
# The prediction is 3 and should be 10. All three gradients are negative: to make the loss smaller,
# all three parameters should grow. The picture compares their sizes: a little change of `w2` would
# change the loss most.

# %% role="show"
viz.gradients({"w1": w1, "w2": w2, "b": b})

# %% [markdown]
# > **You will read elsewhere** a loss `(y_pred - y_target) ** 2` under the name *mean squared
# > error*. That is the squared error of one sample. With a batch of 4 it has 4 elements, and
# > `backward` refuses; the `.mean()` is missing.

# %% exercise="linear-gradients"

# %% [markdown]
# **What to notice.** You wrote down the forward computation only, down to one number. Nobody told
# the library the derivative of your formula; it knows the derivative of each of its operations.

# %% [markdown]
# ## The graph and its leaves
#
# While you compute, every result remembers the operation that made it, its **node**, and the node
# knows the nodes of its inputs. That is the graph. `grad_fn` is the node of a tensor, `name()` what
# it is called, `next_functions` where it leads.

# %%
x = tk.tensor(2.0)
w = tk.tensor(3.0, requires_grad=True)
b = tk.tensor(1.0, requires_grad=True)
target = tk.tensor(10.0)

y = w * x + b
loss = (y - target) ** 2
print(loss.grad_fn.name())
print([node.name() for node, _ in y.grad_fn.next_functions])

# %% role="show"
viz.graph(loss)

# %% [markdown]
# The last name is the node of `b`: it adds what arrives to `b.grad`. The arrows of the picture show
# how the values went; the edges that backward follows lead the other way, from a result to the
# nodes of its inputs. `x` and `target` ask for no gradient, so no edge
# leads to them. No way along the edges comes back to where it began: a *directed acyclic graph*,
# DAG for short.
#
# > **You will read elsewhere** that the nodes of the graph are tensors and the edges operations. In
# > PyTorch, and here, the nodes are operations and the edges lead to the nodes of their inputs. At
# > the ends stand the leaves.
#
# The graph is **dynamic**: it is what happened, not what could happen. With an `if` or a loop, the
# branch that was taken is recorded, and a second run may record another graph.


# %%
def doubled_until(x, limit):
    while x < limit:
        x = x * 2
    return x


x = tk.tensor(3.0, requires_grad=True)
y = doubled_until(x, 20)
y.backward()
print(y, x.grad)

# %% [markdown]
# 3 was doubled three times, so the slope is 8.
#
# > **You will read elsewhere** that every operation on a tensor is tracked. Only those are of which
# > an input requires grad, and only while recording is on, which it is unless you switch it off.

# %% [markdown]
# > **You will read elsewhere** that `print(y.grad_fn)` shows `<MulBackward0>`. So it does in
# > tensorkit. PyTorch adds an address, `<MulBackward0 object at 0x7f...>`, which differs in each
# > run; `name()` is always the same.
#
# Printing a tensor with a history shows `grad_fn=<MulBackward0>` or the like. The name tells the
# operation: a quick way to see where a tensor came from.

# %% [markdown]
# A **leaf** is a tensor that no recorded operation made: `is_leaf`. Backward leaves gradients in
# the leaves that asked for one, and nowhere else. A tensor on the way has none, unless you say
# `retain_grad()` before.

# %%
x = tk.tensor(2.0, requires_grad=True)
middle = x * 3
middle.retain_grad()
end = middle**2
end.backward()
print(x.is_leaf, middle.is_leaf)
print(x.grad, middle.grad)

# %% [markdown]
# > **You will read elsewhere** that backward stores the derivative at every step. It passes them on
# > and forgets them; only leaves keep theirs.

# %% exercise="which-leaf"

# %% [markdown]
# If a gradient is missing, the usual reason is that the tensor you look at is not the leaf.
# `explain` tells, if you let it watch with `autograd.recording()`.

# %% role="show"
with autograd.recording():
    weights = tk.tensor([0.5, 1.5], requires_grad=True).double()
    (weights**2).sum().backward()
explain.no_grad(weights)

# %% exercise="lost-gradient"

# %% [markdown]
# **What to notice.** `w = w.double()`, `w = w * 0.1`, `w = w.reshape(2, 1)`: each puts the name `w`
# on a new tensor that is no leaf. Do such things before you ask for a gradient.

# %% [markdown]
# ## The chain rule, node by node
#
# `tk.tanh` squeezes every number in between -1 and 1; its slope at $u$ is $1 - \tanh^2 u$. For
# $y = \tanh(u)$ with $u = w x$ the chain rule multiplies the slopes along the way:
#
# $$\frac{dy}{dw} = \frac{dy}{du} \cdot \frac{du}{dw} = (1 - \tanh^2 u) \cdot x$$
#
# Backward does this one node after the other. A node receives the gradient of its result, the
# **upstream gradient**, multiplies it by its own slope, and passes the product on. It needs no more
# than that and what it has saved from the way there.

# %%
w = tk.tensor(0.5, requires_grad=True)
x = tk.tensor(2.0)
y = tk.tanh(w * x)
y.backward()
print(round(w.grad.item(), 5), round((1 - math.tanh(1.0) ** 2) * 2.0, 5))

# %% role="show"
w = tk.tensor(0.5, requires_grad=True)
viz.backward(tk.tanh(w * x))

# %% exercise="tanh-gradient"

# %% [markdown]
# Inside this block tensorkit asks your function instead of its own (`transplant` belongs to this
# course); the last line says how often it did.

# %% role="show"
with transplant(tanh_gradient) as asked:
    w = tk.tensor([0.5, -1.0, 2.0], requires_grad=True)
    (tk.tanh(w) ** 2).sum().backward()
    print(w.grad)
print(asked)

# %% [markdown]
# `out`, the result itself, is what the formula of tanh needs, so that is what its node saves.
# Others save their inputs, and a sum saves only a shape.
#
# A gradient of your own should be compared before you trust it: with another way to it, or with a
# measured one. The library does that for every operation: `autograd.gradcheck` measures in float64
# and says whether both agree.

# %%
x = tk.tensor([0.5, 1.5], dtype=tk.float64, requires_grad=True)
print(autograd.gradcheck(lambda x: tk.sin(x**2), (x,)))

# %% exercise="sine-slope"

# %% [markdown]
# **What to notice.** A node knows nothing of the whole formula. It gets one upstream gradient,
# multiplies by its own slope, and passes the product on.

# %% [markdown]
# ## The order of the nodes
#
# If a tensor is used twice, two gradients come back to it, and they add up.

# %%
x = tk.tensor(3.0, requires_grad=True)
y = x * x
z = y + x
z.backward()
print(x.grad)

# %% [markdown]
# 2 · 3 along one way, 1 along the other, 7 in all. So a node must wait until *all* of its gradients
# have arrived before it passes the sum on. An order in which every node comes after all the nodes
# that use it is a **reverse topological order**.

# %% role="show"
x = tk.tensor(3.0, requires_grad=True)
u = x * 2
loss = u * u + u
viz.backward(loss, naive=True)

# %% [markdown]
# The naive recursion does not wait: a node runs whenever something arrives and passes on all that
# it has, so what arrived first is passed on twice. It can be mended by passing on only what is new;
# then the sums are right. But a node that is used twice still runs twice, and so does everything
# behind it: with twenty such nodes in a row, a million times.

# %% exercise="backward-order"

# %% exercise="visits"

# %% role="show"
with transplant(backward_order) as asked:
    x = tk.tensor(3.0, requires_grad=True)
    u = x * 2
    (u * u + u).backward()
    print(x.grad)
print(asked)

# %% [markdown]
# **What to notice.** tensorkit itself counts, for each node, how many gradients will arrive, and
# runs a node when the last one is there. It needs no recursion: a graph may be a million nodes
# deep.

# %% [markdown]
# ## Gradients through broadcasting
#
# A bias is added to every row, so it is used once in every row, and its gradients add up over the
# rows.

# %%
x = tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
bias = tk.tensor([0.1, 0.2], requires_grad=True)
scale = tk.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
(x * scale + bias).sum().backward()
print(bias.grad)
print(scale.grad)

# %% [markdown]
# Each element of `bias` was read three times, each element of `scale` twice. The gradient has the
# shape of the tensor, never the shape that it was stretched to.

# %% role="show"
viz.backward((x * scale + bias).sum())

# %% exercise="unbroadcast"

# %% [markdown]
# Your function inside tensorkit: first the gradients from above, then a whole training. Two weights
# and a bias should be found, 2, -1 and 0.5; without your sums over the rows the bias would have a
# gradient of the wrong shape. Chapter 06 explains the loop.

# %% role="show"
with transplant(unbroadcast) as asked:
    bias = tk.tensor([0.1, 0.2], requires_grad=True)
    scale = tk.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    (x * scale + bias).sum().backward()
    print(bias.grad)
    print(scale.grad)

    tk.manual_seed(0)
    inputs = tk.randn(20, 2)
    w, b = tk.zeros(2, 1, requires_grad=True), tk.zeros(1, requires_grad=True)
    optimizer = tk.optim.SGD([w, b], lr=0.1)
    for _ in range(80):
        optimizer.zero_grad()
        wanted = inputs @ tk.tensor([[2.0], [-1.0]]) + 0.5
        ((inputs @ w + b - wanted) ** 2).mean().backward()
        optimizer.step()
    print([round(it, 2) for it in w.flatten().tolist()], round(b.item(), 2))
print(asked)

# %% [markdown]
# **What to notice.** The formula of an addition knows nothing of broadcasting; it passes its
# upstream gradient on as it is. The engine does the sum, in one place for all operations.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a gradient of a tensor | `tk.tensor(2.0, requires_grad=True)` | floats only |
# | to ask later | `w.requires_grad_()` | before it is used |
# | all gradients | `loss.backward()` | from one number |
# | from several numbers | `y.backward(gradient=g)`, `y.sum().backward()` | |
# | the gradient | `w.grad` | shape of `w`; only leaves keep it |
# | of a tensor on the way | `u.retain_grad()` before | |
# | the node of a tensor | `y.grad_fn`, `y.grad_fn.name()` | `None`: no history |
# | to see the graph | `viz.graph(loss)` | |
# | to see the steps | `viz.backward(loss)` | upstream times own slope, sums where ways meet |
# | why there is no gradient | `explain.no_grad(w)` | |
# | to check a gradient | `autograd.gradcheck(f, (x,))` | float64 |

# %% [markdown]
# ## In tensorkit
#
# Your `unbroadcast`. `lead` is the number of dimensions that broadcasting put in front, `grown` are
# those of size 1 that it stretched; `total` adds up along both. Half of the lines refuse what no
# broadcasting can have made.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain
from tensorkit.ops import reductions

explain.source(reductions.sum_to_shape)

# %% [markdown]
# **A question.** A gradient of shape `(20, 2)` goes back to a bias of shape `(2,)`. What are `lead`
# and `grown`?
#
# <details><summary>The answer</summary>
#
# `lead` is 1, and `grown` is empty: the bias has no dimension of size 1. So the sum goes over
# dimension 0, the 20 rows, and `(2,)` is left.
#
# </details>

# %%
progress("05_autograd")
