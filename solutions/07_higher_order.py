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
# # Higher order
#
# A gradient is computed by operations, and operations can be recorded. So a gradient can be
# differentiated again. In this chapter you take second derivatives, see what a formula needs so
# that it can be differentiated, multiply by a Hessian that nobody has written down, and let
# Newton's method decide how far to step.
#
# The core exercises take about 40 minutes, reading and running the cells about 15 more. Exercises
# marked *further* give no points.

# %%
import tensorkit as tk
from course import check, hint, progress, solution, transplant
from tensorkit import viz

# %% [markdown]
# ## The gradient of a gradient
#
# `tk.autograd.grad(y, x)` returns the gradient of `y` with respect to `x` instead of storing it. It
# returns a tuple, one gradient for each input that you name. With `create_graph=True` the work of
# computing it is recorded too, so the gradient has a history.

# %%
x = tk.tensor(3.0, requires_grad=True)
y = x**3
(slope,) = tk.autograd.grad(y, x, create_graph=True)
(curvature,) = tk.autograd.grad(slope, x)
print(y.item(), slope.item(), curvature.item())

# %% [markdown]
# $x^3$ is 27, its slope $3x^2$ is 27 as well, and the slope of the slope is $6x = 18$.
#
# Nothing was stored: `x.grad` is still None. That is the reason to prefer `autograd.grad` for the
# slope. Were it computed by `backward(create_graph=True)`, slope and curvature would land in the
# same `.grad` and add up to 45. For the last step `backward` will do:

# %%
print(x.grad)
y = x**3
(slope,) = tk.autograd.grad(y, x, create_graph=True)
slope.backward()
print(x.grad)

# %% [markdown]
# Without `create_graph` the slope is a number without a history:

# %%
(slope,) = tk.autograd.grad(x**3, x)
print(slope.requires_grad, slope.grad_fn)

# %% role="show"
x = tk.tensor(3.0, requires_grad=True)
(slope,) = tk.autograd.grad(x**3, x, create_graph=True)
viz.graph(slope)

# %% exercise="second-derivative"

# %% exercise="gradient-penalty"

# %% [markdown]
# > **You will read elsewhere** that the second derivative is *the Hessian*. For one number it is.
# > Of a function of $n$ numbers the Hessian is a table of $n$ by $n$, which comes further below.
#
# **What to notice.** If a tensor that you want to differentiate has no `grad_fn`, ask where
# its history was lost. Here it was never recorded, because nobody asked for it.

# %% [markdown]
# ## Formulas that can be differentiated
#
# How does a library differentiate its own backward? Each node's formula is written in the library's
# own operations. While `create_graph` is on, the formulas run on tensors, and each multiplication
# in them becomes a node of the new graph. Nothing else is needed, for any order.
#
# The sigmoid, $\sigma(x) = 1 / (1 + e^{-x})$, is such an operation: `tk.sigmoid`.

# %%
x = tk.tensor(0.0, requires_grad=True)
orders = [tk.sigmoid(x)]
for _ in range(3):
    orders.append(tk.autograd.grad(orders[-1], x, create_graph=True)[0])
print([round(it.item(), 4) for it in orders])

# %% [markdown]
# In the graph of the slope the formula of the sigmoid stands behind the sigmoid itself, as 1 minus
# its result, times its result: `out * (1 - out)`. Whoever differentiates once more walks through
# these nodes.

# %% role="show"
x = tk.tensor(0.5, requires_grad=True)
(slope,) = tk.autograd.grad(tk.sigmoid(x), x, create_graph=True)
viz.graph(slope)

# %% exercise="sigmoid-gradient"

# %% [markdown]
# Now tensorkit asks your function: for a slope, for the slope of the slope, and in each step of a
# training that learns to tell numbers above 0, which should give 1, from those below.

# %% role="show"
with transplant(sigmoid_gradient) as asked:
    x = tk.tensor([0.0, 1.0], requires_grad=True)
    (slope,) = tk.autograd.grad(tk.sigmoid(x).sum(), x, create_graph=True)
    (curvature,) = tk.autograd.grad(slope.sum(), x)
    print(slope)
    print(curvature)

    points = tk.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    above = tk.tensor([[0.0], [0.0], [1.0], [1.0]])
    w = tk.zeros(1, 1, requires_grad=True)
    optimizer = tk.optim.SGD([w], lr=2.0)
    for _ in range(50):
        optimizer.zero_grad()
        loss = ((tk.sigmoid(points @ w) - above) ** 2).mean()
        loss.backward()
        optimizer.step()
    print([round(it, 2) for it in tk.sigmoid(points @ w).flatten().tolist()])
print(asked)

# %% [markdown]
# **What to notice.** A formula that takes a number out of the graph, with `.item()`, `.detach()` or
# NumPy, gives the right gradient and a wrong second one. The first derivative does not show it.

# %% [markdown]
# ## Jacobian, Hessian, and a Hessian times a vector
#
# If the result has several elements there is a gradient for each: together they are the
# **Jacobian**. The slopes of the slopes of one number are the **Hessian**, entry $[i, j]$ of which
# says how slope $i$ changes when element $j$ changes. `jacobian` and `hessian` in
# `tk.autograd.functional` compute them from a function and a point.

# %%
from tensorkit.autograd.functional import hessian, jacobian


def f(x):
    return (x**3).sum() + x.sum() ** 2


x = tk.tensor([1.0, 2.0])
print(jacobian(lambda x: x**2, x))
print(hessian(f, x))

# %% [markdown]
# A Hessian is symmetric: it does not matter which of two elements moves first. A zero outside the
# diagonal says that two elements do not influence each other's slope.

# %% exercise="which-derivative"

# %% exercise="hessian-rows"

# %% [markdown]
# Each row of a Hessian costs one walk back. For ten numbers that is nothing, for a million it is a
# million walks and $10^{12}$ entries.
#
# Often only the product $H v$ is needed: how the gradient changes if one moves in direction $v$.
# And that takes a single further walk, because $v$ does not depend on $x$:
#
# $$H v = \nabla \left( \nabla f \cdot v \right)$$
#
# The picture shows this walk for $f$ above and $v = [1, 0]$. It begins at the one number
# $\nabla f \cdot v$, goes back through the formulas that made the gradient, and each of its steps
# carries a vector: no matrix is anywhere.

# %% role="show"
point = tk.tensor([1.0, 2.0], requires_grad=True)
v = tk.tensor([1.0, 0.0])
(gradient,) = tk.autograd.grad(f(point), point, create_graph=True)
viz.backward((gradient * v).sum())

# %% exercise="hessian-vector"

# %% [markdown]
# The library has it as `hvp`; it returns the value of the function as well.

# %%
from tensorkit.autograd.functional import hvp

v = tk.tensor([1.0, 0.0])
print(hvp(f, x, v)[1])
print(hessian(f, x) @ v)

# %% [markdown]
# **What to notice.** The gradient has to be computed with `create_graph=True`, the product after it
# without. Only what is differentiated once more has to be recorded.

# %% [markdown]
# ## Newton's method against gradient descent
#
# Gradient descent goes downhill by a step that somebody has to choose. In a narrow valley it goes
# back and forth between the walls: a rate that is small enough for the steep direction is far too
# small for the flat one.


# %%
def valley(x):
    return x[0] ** 2 + 20 * x[1] ** 2


def descend(start, rate, steps):
    x, path = start, [start.tolist()]
    for _ in range(steps):
        point = x.clone().requires_grad_()
        (slope,) = tk.autograd.grad(valley(point), point)
        x = x - rate * slope
        path.append(x.tolist())
    return path


start = tk.tensor([4.0, 1.0])
path = descend(start, rate=0.045, steps=15)
print([round(it, 2) for it in path[-1]])

# %% role="show"
viz.landscape(lambda x, y: valley((x, y)), path)

# %% [markdown]
# Newton's method divides the slope by the curvature, and so steps far where it is flat and a little
# where it is steep. With several elements, dividing means solving $H s = g$, which is the work of
# `tk.linalg.solve(H, g)`.

# %%
H = tk.tensor([[2.0, 0.0], [0.0, 40.0]])
g = tk.tensor([8.0, 40.0])
s = tk.linalg.solve(H, g)
print(s, H @ s)

# %% exercise="newton-step"

# %% [markdown]
# On a valley that is a quadratic function, one step arrives. On other functions it takes a few:


# %% role="show"
def curved(x):
    return (x[0] ** 2 + x[1] - 3) ** 2 + (x[0] - 1) ** 2


x = tk.tensor([-1.5, 3.0])
newton_path = [x.tolist()]
for _ in range(6):
    point = x.clone().requires_grad_()
    (slope,) = tk.autograd.grad(curved(point), point)
    x = x - tk.linalg.solve(hessian(curved, x), slope)
    newton_path.append(x.tolist())
print([round(it, 4) for it in newton_path[-1]], "after", len(newton_path) - 1, "steps")
viz.landscape(lambda x, y: curved((x, y)), newton_path)

# %% [markdown]
# **What to notice.** Newton's method pays for its few steps with a Hessian and a system of
# equations in each. And it goes to where the slope is 0, which may be a maximum as well as a
# minimum. For networks the price is too high, so one uses the products of the section before.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a gradient, not stored | `(g,) = tk.autograd.grad(y, x)` | a tuple; `.grad` is untouched |
# | one to differentiate again | `tk.autograd.grad(y, x, create_graph=True)` | else no history |
# | the second derivative | `tk.autograd.grad(g, x)` | of one number; else `g.sum()` or `g[i]` |
# | several gradients of one graph | `retain_graph=True` | or it is freed after the first |
# | all first derivatives | `jacobian(f, x)` | in `tk.autograd.functional` |
# | all second derivatives | `hessian(f, x)` | one walk for each row |
# | Hessian times vector | `hvp(f, x, v)[1]` | one walk, no matrix |
# | to solve $H s = g$ | `tk.linalg.solve(H, g)` | never invert to multiply |
# | Newton's step | `x - tk.linalg.solve(H, g)` | to where the slope is 0 |

# %% [markdown]
# ## In tensorkit
#
# `jacobian` goes back once for each element of the result: `start` is a gradient of zeros with a
# single 1 in it. `hessian` is your way too, the Jacobian of the gradient. The other names take
# tuples apart and put them together again.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain

explain.source(tk.autograd.functional.jacobian, tk.autograd.functional.hessian)

# %% [markdown]
# **A question.** How often does `hessian` go back through the graph for a function of 100 numbers?
#
# <details><summary>The answer</summary>
#
# 101 times: once for the gradient, and once for each of its 100 elements. `hvp` goes back twice.
#
# </details>

# %%
progress("07_higher_order")
