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
# A gradient is computed by operations, and operations can be recorded. So you can differentiate a
# gradient again. In this chapter you compute second derivatives, see how a gradient formula must be
# written so that it can be differentiated, multiply by a Hessian without computing the Hessian, and
# use Newton's method to choose the size of a step.
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
# `tk.autograd.grad(y, x)` returns the gradient of `y` with respect to `x` and does not store it. It
# returns a tuple, with one gradient for each input that you name. With `create_graph=True` the
# computation of the gradient is recorded too, so the gradient has a history.

# %%
x = tk.tensor(3.0, requires_grad=True)
y = x**3
(slope,) = tk.autograd.grad(y, x, create_graph=True)
(curvature,) = tk.autograd.grad(slope, x)
print(y.item(), slope.item(), curvature.item())

# %% [markdown]
# $x^3$ is 27, its slope $3x^2$ is 27 as well, and the slope of the slope is $6x = 18$.
#
# Nothing was stored: `x.grad` is still None. This is why `autograd.grad` is better here. With
# `backward(create_graph=True)` the slope and the curvature would both be added to `.grad`, which
# would be 45. For the last derivative you can use `backward`:

# %%
print(x.grad)
y = x**3
(slope,) = tk.autograd.grad(y, x, create_graph=True)
slope.backward()
print(x.grad)

# %% [markdown]
# Without `create_graph` the slope has no history:

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
# **What to notice.** If you want to differentiate a tensor and it has no `grad_fn`, find out where
# its history was lost. Here it was never recorded, because `create_graph` was missing.

# %% [markdown]
# ## Formulas that can be differentiated
#
# How can a library differentiate its own backward? The gradient formula of each node is written
# with the library's own operations. With `create_graph=True` the formulas run on tensors, and each
# operation in them becomes a node of the new graph. This works for any order.
#
# The sigmoid, $\sigma(x) = 1 / (1 + e^{-x})$, is an operation too: `tk.sigmoid`.

# %%
x = tk.tensor(0.0, requires_grad=True)
orders = [tk.sigmoid(x)]
for _ in range(3):
    orders.append(tk.autograd.grad(orders[-1], x, create_graph=True)[0])
print([round(order.item(), 4) for order in orders])

# %% [markdown]
# In the graph of the slope, the nodes of the gradient formula follow the sigmoid itself. The next
# derivative goes back through these nodes.

# %% role="show"
x = tk.tensor(0.5, requires_grad=True)
(slope,) = tk.autograd.grad(tk.sigmoid(x), x, create_graph=True)
viz.graph(slope)

# %% exercise="sigmoid-gradient"

# %% [markdown]
# Now tensorkit calls your function: for a slope, for the slope of the slope, and in each step of a
# training. The training learns to give 1 for numbers above 0, and 0 for numbers below.

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
    print([round(number, 2) for number in tk.sigmoid(points @ w).flatten().tolist()])
print(asked)

# %% [markdown]
# **What to notice.** A formula with `.item()`, `.detach()` or NumPy leaves the graph. Its first
# derivative is right, its second derivative is wrong. You do not see this in the first derivative.

# %% [markdown]
# ## Jacobian, Hessian, and a Hessian times a vector
#
# If a function has several results, each result has a gradient. Together they are the **Jacobian**.
# The **Hessian** holds the second derivatives of a function with one result: entry $[i, j]$ says
# how slope $i$ changes when element $j$ changes. For a function of $n$ numbers the Hessian has $n$
# rows and $n$ columns. `jacobian` and `hessian` in `tk.autograd.functional` compute both from a
# function and a point.

# %%
from tensorkit.autograd.functional import hessian, jacobian


def f(x):
    return (x**3).sum() + x.sum() ** 2


x = tk.tensor([1.0, 2.0])
print(jacobian(lambda x: x**2, x))
print(hessian(f, x))

# %% [markdown]
# A Hessian is symmetric: the order of the two derivatives does not matter. A zero outside the
# diagonal says that the one element does not change the slope of the other.

# %% exercise="which-derivative"

# %% exercise="hessian-rows"

# %% [markdown]
# Each row of a Hessian costs one backward pass. For ten numbers that is little. For a million
# numbers it is a million passes and $10^{12}$ entries.
#
# Often you need only the product $H v$: how the gradient changes in direction $v$. It takes a
# single further backward pass, because $v$ does not depend on $x$:
#
# $$H v = \nabla \left( \nabla f \cdot v \right)$$
#
# The picture shows this pass for $f$ above and $v = [1, 0]$. It begins at the number $\nabla f
# \cdot v$ and goes back through the gradient formulas. Each step carries a vector; there is no
# matrix.

# %% role="show"
point = tk.tensor([1.0, 2.0], requires_grad=True)
v = tk.tensor([1.0, 0.0])
(gradient,) = tk.autograd.grad(f(point), point, create_graph=True)
viz.backward((gradient * v).sum())

# %% exercise="hessian-vector"

# %% [markdown]
# In the library this is `hvp`. It returns the value of the function as well.

# %%
from tensorkit.autograd.functional import hvp

v = tk.tensor([1.0, 0.0])
print(hvp(f, x, v)[1])
print(hessian(f, x) @ v)

# %% [markdown]
# **What to notice.** Compute the gradient with `create_graph=True`, and the derivative of the
# product without. Record only what you differentiate again.

# %% [markdown]
# ## Newton's method against gradient descent
#
# Gradient descent goes downhill, and you choose the size of the step. In a narrow valley this is
# difficult. A learning rate that is small enough for the steep direction is much too small for the
# flat direction.


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
print([round(number, 2) for number in path[-1]])

# %% role="show"
viz.landscape(lambda x, y: valley((x, y)), path)

# %% [markdown]
# Newton's method divides the slope by the curvature. So its step is large where the function is
# flat and small where it is steep. With several elements, "divide" means to solve $H s = g$;
# `tk.linalg.solve(H, g)` does this.

# %%
H = tk.tensor([[2.0, 0.0], [0.0, 40.0]])
g = tk.tensor([8.0, 40.0])
s = tk.linalg.solve(H, g)
print(s, H @ s)

# %% exercise="newton-step"

# %% [markdown]
# For a quadratic function one step is enough. For other functions it takes a few steps:


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
print([round(x, 4) for x in newton_path[-1]], "after", len(newton_path) - 1, "steps")
viz.landscape(lambda x, y: curved((x, y)), newton_path)

# %% [markdown]
# **What to notice.** Newton's method needs few steps, but each step needs a Hessian and the
# solution of a system of equations. It goes to a point with slope 0, which may be a maximum as well
# as a minimum. For a network this is too expensive; there one uses Hessian-vector products.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a gradient, not stored | `(g,) = tk.autograd.grad(y, x)` | a tuple; `.grad` is unchanged |
# | a gradient to differentiate again | `tk.autograd.grad(y, x, create_graph=True)` | else no history |
# | the second derivative | `tk.autograd.grad(g, x)` | of one number; else `g.sum()` or `g[i]` |
# | several gradients of one graph | `retain_graph=True` | or it is freed after the first |
# | all first derivatives | `jacobian(f, x)` | in `tk.autograd.functional` |
# | all second derivatives | `hessian(f, x)` | one backward pass for each row |
# | Hessian times vector | `hvp(f, x, v)[1]` | no matrix |
# | to solve $H s = g$ | `tk.linalg.solve(H, g)` | do not compute the inverse |
# | Newton's step | `x - tk.linalg.solve(H, g)` | to where the slope is 0 |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | The second derivative is the Hessian. | For a function of one number it is. For $n$ numbers the Hessian is a matrix of $n$ by $n$. |

# %% [markdown]
# ## In tensorkit
#
# `jacobian` makes one backward pass for each element of the result: `start` is a gradient of zeros
# with a single 1 in it. `hessian` does what the exercise `hessian-rows` asks for: it is the Jacobian
# of the gradient. The other names convert tuples.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain

explain.source(tk.autograd.functional.jacobian, tk.autograd.functional.hessian)

# %% [markdown]
# **A question.** How many backward passes does `hessian` make for a function of 100 numbers?
#
# <details><summary>The answer</summary>
#
# 101: one for the gradient, and one for each of its 100 elements. `hvp` makes two.
#
# </details>

# %%
progress("07_higher_order")

# %% [markdown]
# **Next:** [Devices](../08_devices/08_devices.ipynb)
