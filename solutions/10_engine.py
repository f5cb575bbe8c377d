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
# # Build your own engine
#
# You have used autograd since chapter 05. Now you write it. From an empty cell you make a class
# `Tensor` of your own on NumPy arrays: it computes, remembers what it was made of, and finds
# gradients by `backward()`. It takes six steps. At the end the parts become one file, your own
# library, and it trains the network of chapter 09.
#
# Each part is tried in a class whose other parts are the course's. So you can do the steps in any
# order, and a mistake in one never breaks the next.
#
# The core exercises take about 55 minutes, reading and running the cells about 30 more. Exercises
# marked *further* give no points.

# %%
import numpy as np

import course.engine as engine
import tensorkit as tk
from course import check, hint, progress, solution
from course.engine import grad_mode, no_grad, numbers
from course.engine.assembly import assemble, tensor_with
from tensorkit import explain, viz

# %% [markdown]
# ## Step 1: a tensor
#
# A tensor is an array with a few notes beside it. In Python that is a class. Its methods are
# functions inside of the class, and the first argument of each, `self`, is the object that it is
# called on. `__init__` is called for every new object, and sets its attributes:


# %%
class Account:
    def __init__(self, owner, money=0):
        self.owner = owner
        self.money = money

    def pay_in(self, amount):
        self.money += amount


account = Account("Ada")
account.pay_in(5)
print(account.owner, account.money)

# %% [markdown]
# A class may be made of parts, each a class of its own: `class Tensor(Basics, Operations)` has the
# methods of both. So you write one part in each exercise, and `tensor_with(part)` makes a class
# `Tensor` of your part and the course's other parts. The course's own class is `engine.Tensor`:

# %%
x = engine.Tensor([1.0, 2.0], requires_grad=True)
(x * x + x).sum().backward()
print(x.grad)

# %% [markdown]
# Every tensor needs an array of its own. `np.array` copies what it gets. `np.asarray` does not, if
# it gets an array of the right dtype:

# %%
values = np.array([1.0, 2.0])
copied, same = np.array(values), np.asarray(values)
values[0] = 99.0
print(copied, same)

# %% role="show"
arrays = {"values": values, "same": same, "copied": copied}
viz.memory(**{name: tk.from_numpy(each) for name, each in arrays.items()})

# %% [markdown]
# A tensor also has a `number`. `numbers` counts all tensors, and `next(numbers)` gives the next
# number. So a tensor has a larger number than the tensors that it was made of: it is *younger*.
# Step 4 uses this.

# %% exercise="own-tensor"

# %% [markdown]
# **What to notice.** The gradient of a tensor is None at first, not 0: nobody has computed it yet.

# %% [markdown]
# ## Step 2: a result remembers
#
# To find gradients later, an engine must remember now. A result keeps its inputs and a **formula**:
# a function that makes the gradients of the inputs from the gradient of the result. Here is one,
# made by hand. For $z = 3x$ the gradient of $x$ is 3 times the gradient of $z$:

# %%
x = engine.Tensor(2.0, requires_grad=True)
z = engine.Tensor(6.0)
z.requires_grad = True
z.inputs = (x,)
z.formula = lambda g: (g * 3.0,)

z.backward()
print(x.grad)

# %% [markdown]
# `lambda g: ...` is a function without a name; `g` is its argument. A formula gives a tuple, with
# one gradient for each input.
#
# The inputs have inputs in turn, back to the **leaves**, which no operation has made. That is the
# graph. A result names its inputs, and no tensor names the results that use it. So the graph
# grows, and the tensors that are there do not change. In PyTorch, `grad_fn` is the node of a result
# and `grad_fn.next_functions` its inputs:

# %% role="show"
x = tk.tensor(2.0, requires_grad=True)
y = tk.tensor(3.0, requires_grad=True)
viz.graph(x * y + x)

# %% [markdown]
# Two kinds of results need no history: those whose inputs are all constants (tensors that do not
# require grad), and those made while recording is off. `grad_mode.enabled` says whether recording
# is on.
#
# Many formulas read the numbers of the inputs, and they read them *later*, in backward. These
# tensors are **saved**, each with its `version`, which counts the writes into it. Step 5 compares.

# %% exercise="record-result"

# %% [markdown]
# **What to notice.** A result keeps alive what it was made of. That is why training loops add up
# `loss.item()` and not `loss`, and why nothing is recorded where nobody asks.

# %% [markdown]
# ## Step 3: five operations
#
# | Operation | Result | Gradients of the inputs | Because |
# |---|---|---|---|
# | `a + b` | sum, by element | $g$ and $g$ | both slopes are 1 |
# | `a * b` | product, by element | $g \cdot b$ and $g \cdot a$ | the slope is the other factor |
# | `a @ b` | product of matrices | $g\,b^T$ and $a^T g$ | see below |
# | `a.relu()` | $a$ where it is above 0, else 0 | $g$ there, else 0 | the slope is 1 or 0 |
# | `a.sum()` | all elements added up | $g$ for every element | each slope is 1 |
#
# The operators are methods with names of their own: `a + b` calls `a.__add__(b)`, `a * b` calls
# `a.__mul__(b)`, and `a @ b` calls `a.__matmul__(b)`. For each element of an array,
# `np.maximum(array, 0.0)` gives the larger of the element and 0.
#
# The product of matrices needs no new calculus. An element of the result is
# $C_{ik} = \sum_j A_{ij} B_{jk}$. So $A_{ij}$ is multiplied by $B_{jk}$ in every column $k$ of
# row $i$, and its gradient is $\sum_k g_{ik} B_{jk}$. That is row $i$ of $g$ times row $j$ of $B$,
# an element of $g B^T$. The shapes agree: below, $g$ has the shape `[3, 4]`, $B$ has `[2, 4]`, and
# $g B^T$ has `[3, 2]`, the shape of $A$.

# %%
a = tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
b = tk.tensor([[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, 3.0]], requires_grad=True)
g = tk.arange(12.0).reshape(3, 4)
(a @ b).backward(gradient=g)
print(a.grad)
print(g @ b.detach().T)
print(tk.equal(b.grad, a.detach().T @ g))

# %% [markdown]
# With broadcasting, an input may be smaller than the result. A formula does not deal with that: its
# gradients have the shape of the result, and `backward` sums them with the `unbroadcast` of chapter
# 05.

# %% role="show"
viz.broadcast(tk.ones(3, 2), tk.tensor([0.1, 0.2]))

# %% exercise="own-operations"

# %% exercise="what-is-remembered"

# %% [markdown]
# **What to notice.** No formula asks what stands before or behind it in the graph. That is why a
# library can have hundreds of operations, each tested alone. And all of them compute with tensors,
# so a gradient can be differentiated like anything else.

# %% [markdown]
# ## Step 4: the backward pass
#
# A tensor may pass its gradient on when all of it has arrived. In chapter 05 you searched for an
# order first. An engine needs no search. A tensor is younger than those that it was made of. So all
# that use a tensor are younger than it is, and if we always take the **youngest** tensor that has a
# gradient, that gradient is complete.
#
# By hand, for $z = u + x$ with $u = x \cdot x$ at $x = 3$:

# %%
arrived = {"z": 1.0}

# the youngest is z, a sum: its gradient goes to both inputs
g = arrived.pop("z")
arrived["u"] = g
arrived["x"] = g
# now u is the youngest: its gradient times 3, for its first input and for its second
g = arrived.pop("u")
arrived["x"] = arrived["x"] + g * 3.0
arrived["x"] = arrived["x"] + g * 3.0
print(arrived)

# %% [markdown]
# $2 \cdot 3 + 1 = 7$. If `x` came before `u`, its gradient would be 1, and what `u` passes on would
# come too late. tensorkit and PyTorch go in this order too. The numbers in the picture are the
# steps:

# %% role="show"
x = tk.tensor(3.0, requires_grad=True)
u = x * x
viz.backward(u + x)

# %% [markdown]
# This needs a dictionary and a loop, and no recursion. Python allows about 1,000 calls inside one
# another, and a network that reads a text word by word records ten times as many operations:

# %%
x = engine.Tensor(1.0, requires_grad=True)
y = x
for _ in range(5000):
    y = y * 1.0 + 1.0
y.backward()
print(y, x.grad)

# %% [markdown]
# `max(..., key=...)` finds the largest by a rule: `max(["fig", "plum"], key=len)` is `"plum"`. A
# dictionary may have tensors as its keys.

# %% exercise="walk-back"

# %% [markdown]
# **What to notice.** The backward pass knows no operation. All that it needs stands in the tensors:
# inputs, a formula, a number. A gradient is a tensor too, and with `create_graph=True` it has a
# history. So write into weights, and never into a gradient.

# %% [markdown]
# ## Step 5: a stale value
#
# A formula reads its saved tensors during backward. If their numbers have changed by then, the
# gradient is wrong, without an error. Here a program writes into the array of a tensor, and
# the engine does not notice:

# %%
x = engine.Tensor(3.0, requires_grad=True)
z = x * x
x.data -= 1.0
z.backward()
print("the slope of x * x at 3:", x.grad)

# %% [markdown]
# The right slope at 3 is 6. So a write must leave a trace: `sub_` raises the `version`, and before
# a formula is used, `check_saved` compares versions. tensorkit does the same, and can say which
# operation wrote:

# %% role="show"
x = tk.tensor(3.0, requires_grad=True)
z = x * x
with tk.no_grad():
    x.sub_(1.0)
try:
    z.backward()
except RuntimeError as error:
    explained = explain.inplace(error)
explained

# %% exercise="stale-value"

# %% [markdown]
# **What to notice.** Every tensor has one number more, and every saved tensor is compared with one
# number. That is the whole cost of never being silently wrong.

# %% [markdown]
# ## Step 6: no_grad
#
# A training step writes into the weights and must not be recorded. `with no_grad():` turns
# recording off for a block. Python calls `__enter__` of such an object when the block begins, and
# `__exit__` when it ends:


# %%
class Loud:
    def __enter__(self):
        print("in")

    def __exit__(self, *error):
        print("out")


with Loud():
    print("the block")

# %% [markdown]
# `*error` takes three values, by which Python describes an error in the block. Without an error all
# three are None.
#
# A block may stand inside of another one: a training step that turns recording off may call a
# function that turns it off as well. This is what should come out:

# %% role="show"
with tk.no_grad():
    with tk.no_grad():
        pass
    weight = tk.ones(2, requires_grad=True)
    double = weight * 2
print(double.requires_grad)
explain.no_grad(double)

# %% exercise="nested-no-grad"

# %% [markdown]
# **What to notice.** A block that changes a setting of the whole program puts back the value that
# was there before. It does not assume that recording was on.

# %% [markdown]
# ## Your engine
#
# Now the parts become one file. `assemble` takes those of yours that pass their checks, and the
# course's for the others. The file needs nothing but NumPy:

# %% role="show"
engine = assemble(Basics, result, Operations, propagate, Writing, no_grad)
engine

# %% role="show"
print(len(engine.source.splitlines()), "lines, and they end with")
print(*engine.source.splitlines()[-7:], sep="\n")

# %% [markdown]
# `engine.source` is the text of the file. `open("my_tensor.py", "w").write(engine.source)` keeps
# it. `engine.Tensor` is the class in it. First the examples of the texts that this course grew
# from:

# %% role="show"
Tensor = engine.Tensor

# a linear model: 3.6, a loss of 1.96, gradients -2.8, -5.6 and -2.8
w = Tensor([[0.5], [1.5]], requires_grad=True)
b = Tensor([0.1], requires_grad=True)
y = Tensor([[1.0, 2.0]]) @ w + b
loss = ((y - 5.0) * (y - 5.0)).sum()
loss.backward()
print(y.item(), round(loss.item(), 2), w.grad.data.ravel(), b.grad)

# two weights and a bias: -56, -70 and -14
v = Tensor(3.0, requires_grad=True)
w = Tensor(-2.0, requires_grad=True)
b = Tensor(1.0, requires_grad=True)
error = v * 4.0 + w * 5.0 + b - 10.0
(error * error).backward()
print(v.grad, w.grad, b.grad)

# the squares of a vector: 2, 4 and 6
x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
(x * x).sum().backward()
print(x.grad)

# gradients add up: 4, then 16, and 12 after zero_grad
x = Tensor(2.0, requires_grad=True)
(x * x).backward()
print(x.grad, end=" ")
(x * x * x).backward()
print(x.grad, end=" ")
x.zero_grad()
(x * x * x).backward()
print(x.grad)

# the slope of x³ at 3, and the slope of the slope: 27 and 18
x = Tensor(3.0, requires_grad=True)
(x * x * x).backward(create_graph=True)
slope = x.grad
x.zero_grad()
slope.backward()
print(slope, x.grad)

# %% [markdown]
# Now the digits: 800 of them, by E. Alpaydin and C. Kaynak (1998),
# [UCI Machine Learning Repository](https://doi.org/10.24432/C50P49), under the licence
# [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/). Each label becomes a row of ten
# numbers, with 1 at the place of the digit and 0 elsewhere.

# %%
with np.load("digits.npz") as data:
    images = data["images"].reshape(-1, 64) / 16
    labels = data["labels"].astype(int)
targets = np.eye(10)[labels]
print(images.shape, targets.shape)
print(labels[0], targets[0])

# %% [markdown]
# The network has the sizes of chapter 09: 64 pixels, 32 hidden units, 10 scores. The loss is the
# squared error. A step of gradient descent is `sub_` inside of `no_grad`.

# %% role="show"
random = np.random.default_rng(0)
order = random.permutation(800)
train, test = order[:640], order[640:]
w = Tensor(random.normal(size=(64, 32)) / 8, requires_grad=True)
b = Tensor(np.zeros(32), requires_grad=True)
v = Tensor(random.normal(size=(32, 10)) / 6, requires_grad=True)
c = Tensor(np.zeros(10), requires_grad=True)


def scores_of(photos):
    return (Tensor(photos) @ w + b).relu() @ v + c


history = {"training loss": [], "test accuracy": []}
for epoch in range(12):
    total = 0.0
    for rows in np.split(random.permutation(train), 20):
        error = scores_of(images[rows]) - targets[rows]
        loss = (error * error).sum() * (1 / len(rows))
        loss.backward()
        with engine.no_grad():
            for parameter in (w, b, v, c):
                parameter.sub_(parameter.grad * 0.08)
                parameter.zero_grad()
        total += loss.item() / 20
    with engine.no_grad():
        guesses = scores_of(images[test]).data.argmax(axis=1)
    history["training loss"].append(round(total, 2))
    history["test accuracy"].append(round((guesses == labels[test]).mean().item(), 2))
viz.training(history)

# %% [markdown]
# Nine of ten digits that the network has never seen are read correctly. Every number and every
# gradient on the way was computed by the text in `engine.source`.
#
# **What to notice.** Your six parts are a complete engine. A library adds hundreds of operations,
# dtypes, views of memory, devices, and it frees memory during the backward pass.

# %% [markdown]
# ## A sixth operation
#
# A new operation needs its numbers and one formula; nothing else in the engine changes. Take the
# sine. Its slope is the cosine:

# %%
x = tk.tensor([0.0, 1.0], requires_grad=True)
x.sin().sum().backward()
print(x.grad)
print(tk.cos(x.detach()))

# %% [markdown]
# With a sine your engine also finds the last example of those texts: the slope of $\sin(x^2)$ at
# $\pi$, which is $2\pi\cos(\pi^2)$.

# %% role="show"
x = tk.tensor(np.pi, requires_grad=True)
viz.graph(tk.sin(x * x))

# %% exercise="sixth-operation"

# %% role="show"
engine = assemble(Basics, result, Operations, propagate, Writing, no_grad, sin)
x = engine.Tensor(np.pi, requires_grad=True)
(x * x).sin().backward()
print(round(x.grad.item(), 5), round(2 * np.pi * np.cos(np.pi**2), 5))

# %% [markdown]
# **What to notice.** A formula may use every operation of the engine, its own included.

# %% [markdown]
# ## The other direction
#
# The chain rule is a product of slopes, and a product can be worked out from either end. **Reverse
# mode**, what you have built, begins at the result: one pass gives the slopes of one result with
# respect to all inputs. **Forward mode** begins at an input: one pass gives the slopes of all
# results with respect to one input. It needs no graph: the slopes are computed together with the
# values.
#
# A network has a million parameters and one loss. Reverse mode finds the gradient in one pass,
# forward mode in a million. With one input and a million results it would be the other way round.
#
# Here is $z = x w + x$ at $x = 2$, $w = 3$, with the slopes with respect to $x$ found on the way:

# %%
x, slope_x = tk.tensor(2.0), tk.tensor(1.0)
w, slope_w = tk.tensor(3.0), tk.tensor(0.0)

y, slope_y = x * w, slope_x * w + x * slope_w
z, slope_z = y + x, slope_y + slope_x
print(z, slope_z)

# %% [markdown]
# Forward mode goes through this graph from the leaves to the result, reverse mode the other way:

# %% role="show"
x = tk.tensor(2.0, requires_grad=True)
w = tk.tensor(3.0, requires_grad=True)
viz.graph(x * w + x)

# %% exercise="forward-slopes"

# %% [markdown]
# **What to notice.** Order matters in forward mode too: there the inputs come first.

# %% [markdown]
# ## On one page
#
# | Step | Your part | What it must not forget |
# |---|---|---|
# | 1, a tensor | `Basics` | an array of its own; the gradient is None |
# | 2, a result remembers | `result` | one input that requires grad is enough; constants |
# | 3, five operations | `Operations` | `g` in every formula; the other factor |
# | 4, the backward pass | `propagate` | the youngest first; add what arrives |
# | 5, a stale value | `Writing` | every write counts; versions are compared |
# | 6, no_grad | `no_grad` | put back what was there |
#
# | In your engine | In tensorkit and PyTorch |
# |---|---|
# | `z.inputs` | `z.grad_fn.next_functions` |
# | `z.formula` | the formula of `z.grad_fn`; your own by `autograd.Function` |
# | `z.saved` | what the node saves for backward, with its versions |
# | `x.is_leaf`, `x.grad`, `x.zero_grad()` | the same |
# | `grad_mode.enabled` | `tk.is_grad_enabled()` |
# | `backward(create_graph=True)` | the same |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | Nodes are tensors, edges are operations. | In PyTorch a node is the backward of an operation, and an edge leads to the node of an input. In your engine each tensor is its own node. |
# | Backward visits the graph by recursion. | Engines use a loop, because a graph may be deeper than a recursion can go. |
# | An order can be left out: let every node pass on what arrives, at once. | The sums come out right, but a node that is used twice is visited twice, and all behind it too. That doubles with every such node. |

# %% [markdown]
# ## In tensorkit
#
# The same lines in the library. What you called `arrived` is `pending`; your `number` is `order`.
#
# | In your engine | In tensorkit |
# |---|---|
# | `lambda g: (g * other, g * self)` | `mul.grad(input=..., other=...)`, one for each input |
# | `max(arrived, key=...)` | `heappop(waiting)`: a heap gives the youngest node without a search |
# | `arrived[source] + part` | `so_far + value` in `_sum` |
# | `part.unbroadcast(shape)` | `sum_to_shape` in `_unbroadcast_and_cast` |

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain
from tensorkit.autograd.engine import _Run, backward_order

explain.source(tk.mul, backward_order, _Run._sum, _Run._unbroadcast_and_cast)

# %% [markdown]
# **A question.** The second gradient is not added into the first: in `_sum`, `so_far + value` makes
# a new array. Later gradients are added into that array, by `so_far += value` in the engine's loop,
# which is not shown. Why the difference?
#
# <details><summary>The answer</summary>
#
# Others may hold the first array: `a + b` passes one gradient on to both inputs, and to write into
# it would change it for the other. The sum of two is an array of this run alone, so it may be
# written to.
#
# </details>

# %%
progress("10_engine")

# %% [markdown]
# **Next:** [Dispatch](../11_dispatch/11_dispatch.ipynb)
