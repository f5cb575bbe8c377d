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
# To train a network you need to know how to change each of its numbers so that the network becomes
# less wrong. The gradient says so, and autograd computes the gradient of whatever you compute. In
# this chapter you measure a gradient by hand and see how the library records your computation. Then
# you write the parts of backward: the gradient formula of an operation, the order of the nodes, and
# the sum over dimensions that were stretched.
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
# How much does the result change when an input changes a little? Take $y = x^2$ at $x = 3$. Go a
# small step $h$ forward and a small step back, and divide the difference by $2h$:


# %%
def y(x):
    return x**2


h = 0.001
print((y(3 + h) - y(3 - h)) / (2 * h))

# %% [markdown]
# Calculus gives $y' = 2x$, which is 6. With several inputs there is one such slope for each input.
# Together they are the **gradient**, a tensor of the shape of the input. For $a^2 + 2b^2$ at $a =
# 3$, $b = 1$:


# %%
def valley(a, b):
    return a**2 + 2 * b**2


slope_a = (valley(3 + h, 1) - valley(3 - h, 1)) / (2 * h)
slope_b = (valley(3, 1 + h) - valley(3, 1 - h)) / (2 * h)
print(round(slope_a, 3), round(slope_b, 3))

# %% [markdown]
# The gradient points uphill. To go down, take a small step in the opposite direction; here the step
# is a tenth of the gradient. In the picture, `a` goes to the right and `b` goes upwards. Each line
# joins points where the function has the same value.

# %% role="show"
viz.landscape(valley, [(3.0, 1.0), (3.0 - 0.1 * slope_a, 1.0 - 0.1 * slope_b)])

# %% exercise="numeric-gradient"

# %% [markdown]
# **What to notice.** This method evaluates the function twice for each element. For a network with
# a million parameters that is two million evaluations for a single step, and GPT-3 has 175 billion
# parameters. Autograd computes all of them in one pass backwards. This pass is called
# *backpropagation*, or reverse mode.

# %% [markdown]
# ## Ask for a gradient
#
# `requires_grad=True` says that you want the gradient with respect to this tensor. Compute with the
# tensor and call `backward()` on the result. Then the gradient is in `.grad`.

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
# With two inputs, each gets its own gradient. For $c = ab$ the gradients are $b$ and $a$:

# %%
a = tk.tensor([2.0], requires_grad=True)
b = tk.tensor([3.0], requires_grad=True)
c = a * b
c.backward()
print(a.grad, b.grad)

# %% [markdown]
# A gradient has the shape of its tensor, so it prints as `tensor([3.])`. `c` has one element, in
# one dimension; `backward` accepts that.
#
# For a vector, `sum` gives one number. The gradient of the sum of squares is $2x_i$ for each
# element:

# %%
x = tk.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x**2).sum()
y.backward()
print(x.grad)

# %% [markdown]
# `requires_grad_()` asks for the gradient of an existing tensor. Only floats can have a gradient:

# %%
w = tk.tensor([0.5, 1.5])
w.requires_grad_()
print(w.requires_grad)
try:
    tk.tensor([1, 2], requires_grad=True)
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# **From one number.** `backward` starts at one number, whose slope with respect to itself is 1.
# From several numbers it cannot start:

# %%
x = tk.tensor([1.0, 2.0], requires_grad=True)
y = x**2
try:
    y.backward()
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# Reduce the result to one number with a sum or a mean. Or use `gradient=` to say how much each
# element counts. Both lines below give the same gradient:

# %%
(x**2).sum().backward()
print(x.grad)

x.grad = None
(x**2).backward(gradient=tk.tensor([1.0, 1.0]))
print(x.grad)

# %% [markdown]
# Here is a model with two inputs and three parameters:

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
# The prediction is 3 and should be 10. All three gradients are negative, so the loss becomes
# smaller if the three parameters grow. The picture compares the gradients: a small change of `w2`
# changes the loss most.

# %% role="show"
viz.gradients({"w1": w1, "w2": w2, "b": b})

# %% exercise="linear-gradients"

# %% [markdown]
# **What to notice.** You wrote the forward computation only, down to one number. You did not write
# the derivative of your formula. The library knows the derivative of each of its operations.

# %% [markdown]
# ## The graph and its leaves
#
# While you compute, each result remembers the operation that made it. This record is a **node**,
# and a node knows the nodes of its inputs. Together the nodes are the **graph**. `grad_fn` is the
# node of a tensor, `name()` is the name of the node, and `next_functions` are the nodes of its
# inputs.

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
# The last name is the node of `b`: it adds its gradient to `b.grad`. The arrows in the picture show
# how the values are computed. Backward goes the other way, from a result to the nodes of its
# inputs. `x` and `target` do not require a gradient, so no edge leads to them. No path along the
# edges returns to its start. Such a graph is called a *directed acyclic graph*, DAG for short.
#
# The graph is **dynamic**: it records what your code really did. Of an `if` only the branch that
# ran is recorded, and a second run may record a different graph.


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

# %% [markdown]
# A printed tensor shows its node too, for example `grad_fn=<MulBackward0>`. The name of the node
# tells you which operation made the tensor.

# %% [markdown]
# A **leaf** is a tensor that no recorded operation made; `is_leaf` says whether a tensor is one.
# Backward stores gradients only in leaves that require grad. For another tensor, call
# `retain_grad()` before backward, and its gradient is stored too.

# %%
x = tk.tensor(2.0, requires_grad=True)
middle = x * 3
middle.retain_grad()
end = middle**2
end.backward()
print(x.is_leaf, middle.is_leaf)
print(x.grad, middle.grad)

# %% exercise="which-leaf"

# %% [markdown]
# If a gradient is missing, the tensor is usually not the leaf. `explain.no_grad` tells you why, if
# you compute in a block `with autograd.recording()`.

# %% role="show"
with autograd.recording():
    weights = tk.tensor([0.5, 1.5], requires_grad=True).double()
    (weights**2).sum().backward()
explain.no_grad(weights)

# %% exercise="lost-gradient"

# %% [markdown]
# **What to notice.** `w = w.double()`, `w = w * 0.1`, `w = w.reshape(2, 1)`: in each line the name
# `w` now means a new tensor, which is not a leaf. Do this before you ask for a gradient.

# %% [markdown]
# ## The chain rule, node by node
#
# `tk.tanh` maps every number to a number between -1 and 1. Its slope at $u$ is $1 - \tanh^2 u$. For
# $y = \tanh(u)$ with $u = w x$, the chain rule multiplies the slopes along the path:
#
# $$\frac{dy}{dw} = \frac{dy}{du} \cdot \frac{du}{dw} = (1 - \tanh^2 u) \cdot x$$
#
# Backward does this node by node. A node receives the gradient of its result, the **upstream
# gradient**. It multiplies this by its own slope and passes the product on. For this it needs only
# the values that it saved in the forward computation.

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
# In this block tensorkit calls your function instead of its own. The last line says how often.
# (`transplant` belongs to this course.)

# %% role="show"
with transplant(tanh_gradient) as asked:
    w = tk.tensor([0.5, -1.0, 2.0], requires_grad=True)
    (tk.tanh(w) ** 2).sum().backward()
    print(w.grad)
print(asked)

# %% [markdown]
# The formula of tanh needs `out`, the result itself, so that is what its node saves. Other nodes
# save their inputs. A sum saves only a shape.
#
# Test a gradient formula of your own before you trust it. `autograd.gradcheck` measures the
# gradient in float64 and says whether your formula agrees. The library tests each of its operations
# in this way.

# %%
x = tk.tensor([0.5, 1.5], dtype=tk.float64, requires_grad=True)
print(autograd.gradcheck(lambda x: tk.sin(x**2), (x,)))

# %% exercise="sine-slope"

# %% [markdown]
# **What to notice.** A node does not know the whole formula. It receives one upstream gradient,
# multiplies it by its own slope, and passes the product on.

# %% [markdown]
# ## The order of the nodes
#
# If a tensor is used twice, it receives two gradients, and they are added.

# %%
x = tk.tensor(3.0, requires_grad=True)
y = x * x
z = y + x
z.backward()
print(x.grad)

# %% [markdown]
# One path gives 2 · 3, the other gives 1, so the sum is 7. A node must wait until *all* of its
# gradients have arrived before it passes the sum on. An order in which each node comes after all
# nodes that use it is called a **reverse topological order**.

# %% role="show"
x = tk.tensor(3.0, requires_grad=True)
u = x * 2
loss = u * u + u
viz.backward(loss, naive=True)

# %% [markdown]
# The naive recursion does not wait. A node runs each time that a gradient arrives, and passes on
# its whole sum, so the first gradient is passed on twice. You could pass on only the new gradient;
# then the sums are right. But a node that is used twice still runs twice, and so do all nodes after
# it. With twenty such nodes in a row, the last one runs a million times.
#
# Here is a way to find a reverse topological order. First find all nodes that can be reached from
# the root, and count for each node how often the others use it as an input. Then begin with the
# root. Each time that a node runs, subtract 1 from the count of each of its inputs. A node whose
# count has become 0 has all its gradients, so it can run next.

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
# **What to notice.** tensorkit needs no counts. It numbers the nodes as they are made, so a node is
# older than every node that uses it. Of the nodes that a gradient has reached, it always runs the
# youngest: all gradients of that one have arrived. It needs no recursion either, so a graph may be
# a million nodes deep.

# %% [markdown]
# ## Gradients through broadcasting
#
# A bias is added to every row. So it is used once for each row, and its gradients are added over
# the rows.

# %%
x = tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
bias = tk.tensor([0.1, 0.2], requires_grad=True)
scale = tk.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
(x * scale + bias).sum().backward()
print(bias.grad)
print(scale.grad)

# %% [markdown]
# Each element of `bias` was used three times, each element of `scale` twice. A gradient has the
# shape of its tensor, not the shape to which the tensor was stretched.

# %% role="show"
viz.backward((x * scale + bias).sum())

# %% exercise="unbroadcast"

# %% [markdown]
# Here tensorkit uses your function, first for the gradients from above, then for a whole training.
# The training should find two weights and a bias: 2, -1 and 0.5. Without your sums over the rows,
# the gradient of the bias would have a wrong shape. Chapter 06 explains the loop.

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
    print([round(number, 2) for number in w.flatten().tolist()], round(b.item(), 2))
print(asked)

# %% [markdown]
# **What to notice.** The gradient formula of an addition does not know about broadcasting; it
# passes the upstream gradient on unchanged. The engine computes the sum, in one place for all
# operations.

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
# | of a tensor that is not a leaf | `u.retain_grad()` before | |
# | the node of a tensor | `y.grad_fn`, `y.grad_fn.name()` | `None`: no history |
# | to see the graph | `viz.graph(loss)` | |
# | to see the steps | `viz.backward(loss)` | upstream times own slope, sums where paths meet |
# | why there is no gradient | `explain.no_grad(w)` | |
# | to check a gradient | `autograd.gradcheck(f, (x,))` | float64 |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | `print(a.grad)` shows `3`. | It shows `tensor([3.])`: a gradient has the shape of its tensor. |
# | The loss `(y_pred - y_target) ** 2` is the *mean squared error*. | It is the squared error of one sample. For a batch of 4 it has 4 elements, and `backward` raises an error: `.mean()` is missing. |
# | The nodes of the graph are tensors and the edges are operations. | In PyTorch, and here, the nodes are operations, and the edges lead to the nodes of their inputs. |
# | Every operation on a tensor is recorded. | An operation is recorded if one of its inputs requires grad and recording is on. It is on unless you switch it off. |
# | `print(y.grad_fn)` shows `<MulBackward0>`. | It does in tensorkit. PyTorch adds an address that differs in each run. `name()` is always the same. |
# | Backward stores the derivative at every step. | It passes the derivatives on. Only leaves store theirs. |

# %% [markdown]
# ## In tensorkit
#
# This is tensorkit's version of your `unbroadcast`. `lead` is the number of dimensions that
# broadcasting put in front. `grown` are the dimensions of size 1 that it stretched. `total` is the
# sum over both. Half of the lines raise errors for shapes that broadcasting cannot produce.

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
# `lead` is 1, and `grown` is empty, because the bias has no dimension of size 1. So the sum goes
# over dimension 0, the 20 rows, and the result has shape `(2,)`.
#
# </details>

# %%
progress("05_autograd")

# %% [markdown]
# **Next:** [Gradient control](../06_gradient_control/06_gradient_control.ipynb)
