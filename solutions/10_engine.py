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
# You have used autograd since chapter 05. Now you write it: an engine for tensors that records what
# runs, walks back and finds gradients, through broadcasting and of gradients too. It takes five
# steps and six functions, none longer than 25 lines. At the end they are joined, compared with
# tensorkit, and train the network of chapter 09.
#
# Each step runs on the course's own versions of the others. So you can do them in any order, and
# one that you leave out holds nothing up.
#
# The core exercises take about 45 minutes, reading and running the cells about 30 more. Exercises
# marked *further* give no points.

# %%
import numpy as np

import tensorkit as tk
from course import check, hint, progress, solution, transplant
from tensorkit import optim, viz
from tensorkit.utils.data import DataLoader, TensorDataset, random_split

# %% [markdown]
# ## Step 1: the graph
#
# To find gradients later, an engine must remember now. Of every result it keeps a **node**, here a
# dictionary with four entries:
#
# | Entry | What it holds | Who needs it |
# |---|---|---|
# | `"operation"` | what made it, as `"mul"`; or `"leaf"`, `"constant"` | backward: which formula |
# | `"inputs"` | the names of the nodes that it was made of | backward: the way |
# | `"value"` | the result, a tensor | the formulas |
# | `"requires_grad"` | whether a gradient should come here | backward: where not to go |
#
# The **graph** is a dictionary from names to nodes. Here is $w x$ by hand, with $w = 3$ and
# $x = 2$, where nobody asks for the gradient of $x$:

# %%
w = {"operation": "leaf", "inputs": [], "value": tk.tensor(3.0), "requires_grad": True}
x = {
    "operation": "constant",
    "inputs": [],
    "value": tk.tensor(2.0),
    "requires_grad": False,
}
graph = {"w": w, "x": x}

product = w["value"] * x["value"]
graph["mul2"] = {
    "operation": "mul",
    "inputs": ["w", "x"],
    "value": product,
    "requires_grad": True,
}
for name, node in graph.items():
    print(name, node["operation"], node["inputs"], node["value"])

# %% [markdown]
# A node names its inputs; it never says who uses it. So the graph grows without touching what is
# there. In PyTorch `grad_fn` is the node and `grad_fn.next_functions` its inputs.
#
# Nobody wants to write this by hand. The course brings what goes around your functions: with
# `leaves(graph, x=..., y=...)` you get two leaves with operators, and each operator computes its
# value and records a node. `picture(graph)` draws what was recorded.

# %% role="show"
from course.engine import constants, count, join, leaves, picture

graph = {}
x, y = leaves(graph, x=tk.tensor(2.0), y=tk.tensor(3.0))
z = x * y + x
print(z.name, z.value, list(graph))
picture(graph)

# %% [markdown]
# Four nodes, and `x` is an input of two of them. Python knows nothing of graphs: it runs one
# operator after the other, and each leaves a node behind.

# %% exercise="graph-size"

# %% exercise="record-node"

# %% [markdown]
# `join` puts your function into the course's engine and compares the whole with tensorkit.

# %% role="show"
join(record=record)

# %% [markdown]
# **What to notice.** `requires_grad` travels from inputs to results, and where it stops, history
# stops. A constant keeps nothing alive. A loss with a history keeps every tensor it was made of,
# which is why training loops add up `loss.item()` and not `loss`.

# %% [markdown]
# ## Step 2: the order
#
# A node may pass its gradient on when all of it has arrived. So every node must come after all
# nodes that use it: a reverse topological order. For the order only the names matter, so a graph is
# here a dictionary from each node to its inputs. Chapter 05 found the order by recursion:


# %%
def depth_first(graph, node, finished):
    if node not in finished:
        for source in graph[node]:
            depth_first(graph, source, finished)
        finished[node] = True
    return finished


graph = {"loss": ["a", "u"], "a": ["u", "u"], "u": ["x"], "x": []}
print(list(depth_first(graph, "loss", {}))[::-1])

# %% [markdown]
# This is `u * u + u`. It works, until a graph is deep. Python lets functions call each other about
# 1,000 levels deep; a network that reads a text word by word records ten times that.

# %%
deep = {"n0": []}
for n in range(1, 10_001):
    deep[f"n{n}"] = [f"n{n - 1}"]
try:
    depth_first(deep, "n10000", {})
except RecursionError as error:
    print(type(error).__name__)

# %% [markdown]
# The other way is to count. Every node is **used** as often as it stands among the inputs of
# others. When it has come as many times as it is used, nothing more can arrive. All nodes of this
# graph lie behind `loss`, so we count them all:

# %%
uses = dict.fromkeys(graph, 0)
for inputs in graph.values():
    for source in inputs:
        uses[source] += 1
print(uses)

# %% [markdown]
# `u` is used three times, twice by `a` and once by `loss`. It has to wait for the third. Follow the
# numbers in the picture, which shows the same graph as tensorkit walks it:

# %% role="show"
x = tk.tensor(3.0, requires_grad=True)
u = x * 2
viz.backward(u * u + u)

# %% exercise="deep-order"

# %% [markdown]
# Your function inside tensorkit, with a graph of 6,000 operations:

# %% role="show"
with transplant(topological_order) as asked:
    x = tk.tensor(3.0, requires_grad=True)
    y = x
    for _ in range(6000):
        y = 1 - y
    (y * y).backward()
    print(y.item(), x.grad.item())
print(asked)

# %% [markdown]
# > **You will read elsewhere** that the order can be left out: let every node send on whatever
# > arrives, at once. The sums come out right. But a node that is used twice is visited twice, and
# > so is everything behind it, which doubles with every such node.
#
# **What to notice.** An order can be found before anything is computed. The engine needs no clever
# walk: it needs a list, and the patience to wait for the last use.

# %% [markdown]
# ## Step 3: five formulas
#
# The engine has five operations. For each it needs a formula: from the gradient of the result, the
# *upstream* gradient $g$, to the gradient of each input.
#
# | Operation | Result | Gradients of the inputs | Because |
# |---|---|---|---|
# | `add` | $a + b$ | $g$ and $g$ | both slopes are 1 |
# | `mul` | $a \cdot b$, by element | $g \cdot b$ and $g \cdot a$ | the slope is the other factor |
# | `matmul` | $A B$ | $g B^T$ and $A^T g$ | see below |
# | `sum` | $\sum a_i$ | $g$ for every element | each slope is 1 |
# | `tanh` | $t = \tanh a$ | $g \cdot (1 - t^2)$ | the slope of tanh |
#
# The product of matrices needs no new calculus. An element of the result is
# $C_{ik} = \sum_j A_{ij} B_{jk}$, so $A_{ij}$ meets $B_{jk}$ in every column $k$ of row $i$, and
# its gradient is $\sum_k g_{ik} B_{jk}$: row $i$ of $g$ times row $j$ of $B$. That is $g B^T$. The
# shapes say it too: there is one way to make `[3, 2]` of `[3, 4]` and `[2, 4]`.

# %%
a = tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
b = tk.tensor([[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, 3.0]], requires_grad=True)
g = tk.arange(12.0).reshape(3, 4)
(a @ b).backward(gradient=g)
print(a.grad)
print(g @ b.detach().T)
print(tk.equal(b.grad, a.detach().T @ g))

# %% [markdown]
# A sum turns a tensor into one number, so its formula goes the other way: one number becomes a
# tensor of the shape of the input. `expand` does it without copying.

# %%
g = tk.tensor(2.5)
print(g.expand(2, 3))
print(tk.tensor([[1.0], [2.0]]).expand(2, 3))

# %% [markdown]
# Six gradients in the space of one: a write to any of them would change them all. So whoever gets
# a gradient reads it and does not write into it, which step 3 comes back to.

# %% role="show"
viz.memory(g=g, stretched=g.expand(2, 3))

# %% exercise="five-formulas"

# %% role="show"
join(gradients_of=gradients_of)

# %% [markdown]
# **What to notice.** No formula asks what stands before or behind it in the graph. It needs its
# upstream gradient and what its node remembers. That is why a library can have hundreds of
# operations, each tested alone.

# %% [markdown]
# ## Step 3: the walk
#
# Now order and formulas meet. Begin at the result, whose gradient is 1. Take the nodes in order;
# each applies its formula to its own gradient and passes on what it finds. What arrives at the same
# node adds up. By hand, for $z = y + x$ with $y = x \cdot x$ at $x = 3$:

# %%
x = tk.tensor(3.0)
gradients = {"z": tk.tensor(1.0)}

# the addition passes on what it got, to both of its inputs
gradients["y"] = gradients["z"]
gradients["x"] = gradients["z"]
# the product passes on its gradient times 3, for its first input and its second
gradients["x"] = gradients["x"] + gradients["y"] * x
gradients["x"] = gradients["x"] + gradients["y"] * x
print(gradients["x"])

# %% [markdown]
# $2 \cdot 3 + 1 = 7$. One thing is easily overlooked. The formula of an addition makes no new
# tensor:

# %%
print(gradients["y"] is gradients["z"])

# %% role="show"
viz.memory(z=gradients["z"], y=gradients["y"], x=gradients["x"])

# %% exercise="gradients-added"

# %% [markdown]
# Your walk, in an engine whose other parts are the course's:

# %% role="show"
engine = join(backward=backward)
print(engine)
with engine:
    graph = {}
    x, y = leaves(graph, x=tk.tensor(2.0), y=tk.tensor(3.0))
    z = (x + y) + y
    print({name: it.item() for name, it in z.gradients().items()})

# %% [markdown]
# **What to notice.** tensorkit and PyTorch have the same rule inside: a gradient that has arrived
# is never written into, unless the engine knows that nobody else holds it. Your own backward
# formulas may rely on it, and must keep to it.

# %% [markdown]
# ## Step 4: broadcasting
#
# The formulas of `add` and `mul` pass on gradients of the shape of the *result*. If an input was
# stretched, that is not its own shape. Each of its elements was read several times, so its
# gradient is a sum. A bias of shape `[2]` meets three rows; below, each element of it is read three
# times:

# %% role="show"
viz.broadcast(tk.ones(3, 2), tk.tensor([0.1, 0.2]))

# %% [markdown]
# So three gradients come back to each, one from every row, and they add up:

# %%
x = tk.ones(3, 2)
bias = tk.tensor([0.1, 0.2], requires_grad=True)
out = x * 2 + bias
g = tk.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
out.backward(gradient=g)
print(out.shape, bias.grad, g.sum(dim=0))

# %% [markdown]
# In general two kinds of dimensions are summed over: those that the input lacks, at the left, and
# those in which it has size 1. `sum` takes them all at once, as a list. With `keepdim=True` they
# stay as 1, so that no number shifts, and `reshape` brings the shape that is wanted. An input of
# shape `[3, 1]` in a result of shape `[2, 3, 4]` lacks dimension 0 and has size 1 in the last one:

# %%
g = tk.ones(2, 3, 4)
total = g.sum(dim=[0, 2], keepdim=True)
print(total.shape, total.reshape(3, 1).shape)
print(total.flatten())

# %% exercise="sum-to"

# %% role="show"
with transplant(sum_to) as asked:
    bias = tk.tensor([0.1, 0.2], requires_grad=True)
    scale = tk.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    x = tk.ones(4, 3, 2)
    (x * scale + bias).sum().backward()
    print(bias.grad)
    print(scale.grad.flatten())
print(asked)

# %% [markdown]
# **What to notice.** One function serves every operation, those of step 3 and all that will ever be
# added. The formulas stay as simple as if there were no broadcasting.

# %% [markdown]
# ## Step 5: second order
#
# So far a gradient is a tensor, and a tensor in our engine has no history. `tk.autograd.grad` with
# `create_graph=True` gives gradients that have one. For $x^3$ at 3 the slope is 27, and the slope
# of the slope 18:

# %%
x = tk.tensor(3.0, requires_grad=True)
(slope,) = tk.autograd.grad(x * x * x, x, create_graph=True)
(curvature,) = tk.autograd.grad(slope, x)
print(slope.item(), curvature.item())

# %% [markdown]
# The idea is small. Write the formulas once more, not with tensors but with the engine's own
# operations. Then every gradient is a node, and the walk of step 3 can begin there again. Two more
# operations are needed and given, `expand` and `transpose`: they undo a sum and turn a matrix.

# %% role="show"
graph = {}
(x,) = leaves(graph, x=tk.tensor(3.0))
y = x * x * x
print(len(graph), "nodes after the forward pass")
slope = y.recorded_gradients()["x"]
print(len(graph), "nodes after the first backward")
print("slope:", slope.name, slope.value.item())
print("slope of the slope:", slope.gradients()["x"].item())
picture(graph)

# %% exercise="recorded-gradients"

# %% role="show"
engine = join(recorded_gradients=recorded_gradients)
print(engine)
with engine:
    (x,) = leaves({}, x=tk.tensor([0.0, 0.5, 1.0]))
    slope = x.tanh().sum().recorded_gradients()["x"]
    print(slope.value)
    print(slope.sum().gradients()["x"])

# %% [markdown]
# Compare it with $1 - t^2$ and $-2t(1 - t^2)$ for $t = \tanh x$:

# %%
t = tk.tensor([0.0, 0.5, 1.0]).tanh()
print(1 - t * t)
print(-2 * t * (1 - t * t))

# %% [markdown]
# **What to notice.** Nothing was added to the walk. Second order costs a second graph, larger than
# the first, and it stays in memory until nobody needs it. That is why `create_graph` is off unless
# you ask.

# %% [markdown]
# ## Your engine
#
# Five steps, joined. Each part is tried alone among the course's, then all that are right together,
# in first and second order, on programs that also run in tensorkit. Where a step fails, the line
# names it, and the program that shows it.

# %% role="show"
engine = join(
    record=record,
    topological_order=topological_order,
    gradients_of=gradients_of,
    backward=backward,
    sum_to=sum_to,
    recorded_gradients=recorded_gradients,
)
engine

# %% [markdown]
# Now let it work. The data are 800 of the handwritten digits of chapter 09, by E. Alpaydin and
# C. Kaynak (1998), [UCI Machine Learning Repository](https://doi.org/10.24432/C50P49), under the
# licence [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/). Of each label we make a row of
# ten numbers, 1 at the place of the digit and 0 elsewhere: that is the row with this number in
# `tk.eye(10)`.

# %%
with np.load("digits.npz") as data:
    images = tk.from_numpy(data["images"]).float().flatten(1) / 16
    labels = tk.from_numpy(data["labels"]).long()
wanted = tk.eye(10)[labels]
tk.manual_seed(0)
train, test = random_split(TensorDataset(images, wanted), [640, 160])
loader = DataLoader(train, batch_size=32, shuffle=True)
print(images.shape, wanted.shape, len(train), len(test))
print(labels[0], wanted[0])

# %% [markdown]
# The network has the sizes of chapter 09: 64 pixels, 32 hidden units, 10 scores. With our five
# operations it bends by tanh instead of `ReLU`, and its loss is the squared error. The optimizer is
# tensorkit's. It only reads `.grad`, and does not ask who wrote there.

# %% role="show"
tk.manual_seed(0)
parameters = {
    "w": tk.randn(64, 32) / 8,
    "b": tk.zeros(32),
    "v": tk.randn(32, 10) / 6,
    "c": tk.zeros(10),
}
optimizer = optim.SGD(list(parameters.values()), lr=0.03, momentum=0.9)


def scores_of(graph, photos):
    w, b, v, c = leaves(graph, **parameters)
    (x,) = constants(graph, x=photos)
    return (x @ w + b).tanh() @ v + c


history = {"training loss": [], "test accuracy": []}
with engine:
    for epoch in range(10):
        total = 0.0
        for photos, targets in loader:
            graph = {}
            (target,) = constants(graph, target=targets)
            error = scores_of(graph, photos) - target
            loss = (error * error).sum() * (1 / len(photos))
            gradients = loss.gradients()
            for name, parameter in parameters.items():
                parameter.grad = gradients[name]
            optimizer.step()
            total += loss.value.item() * len(photos)
        guesses = scores_of({}, images[test.indices]).value.argmax(dim=1)
        right = (guesses == labels[test.indices]).float().mean().item()
        history["training loss"].append(round(total / len(train), 2))
        history["test accuracy"].append(round(right, 2))
viz.training(history)

# %% [markdown]
# Nine of ten digits that the network has never seen are read correctly, and every gradient on the
# way was found by the engine above.
#
# **What to notice.** This is the whole of it. What a library adds is breadth and care: hundreds of
# operations instead of five, memory that is given back during the walk, version numbers that notice
# a saved tensor that was changed, hooks, devices. Its heart is your six functions.

# %% [markdown]
# ## A sixth operation
#
# A new operation needs its value and one formula. Often a composition of old operations would do,
# and a formula of its own is shorter, faster and safer in floating point. The best known case is
# the loss of a classifier. Through softmax, logarithm and mean the way back has several formulas:

# %% role="show"
scores = tk.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
shares = scores.exp() / scores.exp().sum(dim=1, keepdim=True)
viz.graph(-shares[0, 0].log())

# %% [markdown]
# Together they shrink to a subtraction:

# %%
scores = tk.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
loss = -tk.log_softmax(scores, dim=1)[0, 0]
loss.backward()
print(tk.softmax(scores.detach(), dim=1))
print(scores.grad)

# %% exercise="sixth-operation"

# %% [markdown]
# **What to notice.** The gradient of a score is a probability minus what it should be. It lies
# between -1 and 1 whatever the scores are, so no step of training is thrown far off by one sample.

# %% [markdown]
# ## The other direction
#
# The chain rule is a product of slopes, and a product can be worked out from either end. **Reverse
# mode**, what you have built, begins at the result: one walk gives the slopes of one result with
# respect to all inputs. **Forward mode** begins at an input: one walk gives the slopes of all
# results with respect to one input. It needs no graph, for it goes along with the computation.
#
# A network has a million parameters and one loss. Reverse mode finds the gradient in one walk,
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
# In the graph forward mode goes down, from the leaves to the result, and reverse mode goes up:

# %% role="show"
graph = {}
x, w = leaves(graph, x=tk.tensor(2.0), w=tk.tensor(3.0))
z = x * w + x
picture(graph)

# %% exercise="forward-slopes"

# %% [markdown]
# **What to notice.** Order matters here too, only turned: forward mode visits inputs first.

# %% [markdown]
# ## On one page
#
# | Step | The function | What it must not forget |
# |---|---|---|
# | 1, the graph | `record` | one input that asks is enough; constants have no history |
# | 2, the order | `topological_order` | count uses, not users; no recursion |
# | 3, five formulas | `gradients_of` | upstream in every formula; the other factor |
# | 3, the walk | `backward` | add what arrives; never write into a gradient |
# | 4, broadcasting | `sum_to` | dimensions that are missing, and those of size 1 |
# | 5, second order | `recorded_gradients` | nodes, not values; the result with its history |
#
# | In your engine | In tensorkit and PyTorch |
# |---|---|
# | a node, a dictionary | `y.grad_fn` |
# | `"inputs"` | `grad_fn.next_functions` |
# | `"value"` of a node | what an operation saves for backward |
# | `"leaf"` | `is_leaf`, with `requires_grad=True` |
# | `z.gradients()` | `tk.autograd.grad(z, inputs)` |
# | `z.recorded_gradients()` | the same with `create_graph=True` |
# | an entry of `gradients_of` | a formula; your own by `tk.autograd.Function` |

# %% [markdown]
# ## In tensorkit
#
# An operation with its two formulas, and how the engine adds up what arrives at a node. The
# formulas are those of your `gradients_of`. In `deliver`, `pending` holds the sums, as your
# dictionary does.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain
from tensorkit.autograd import engine

explain.source(tk.mul, engine._Run.deliver)

# %% [markdown]
# **A question.** The second gradient is not added into the first, `have + value` makes a new array.
# The third is: `have += value`. Why the difference?
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
