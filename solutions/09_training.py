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
# # Training
#
# Everything so far was preparation for this: a network that learns. You fit a line by hand, put the
# steps into a loop, let modules, losses, optimizers and data loaders take over the parts, and train
# a network that reads handwritten digits. At the end you can write such a program yourself, find
# the bugs that make it learn nothing, and run it in PyTorch with one changed import.
#
# The core exercises take about 40 minutes, reading and running the cells about 35 more. Exercises
# marked *further* give no points. A good place for a break is before the
# optimizers.

# %%
import tempfile
from pathlib import Path

import numpy as np

import tensorkit as tk
from course import check, hint, progress, solution, transplant
from tensorkit import nn, optim, viz
from tensorkit.nn import functional as F
from tensorkit.utils.data import DataLoader, Dataset, TensorDataset, random_split

# %% [markdown]
# ## A line: by hand, then in a loop
#
# Three points lie on a line. Which one? A **model** is a formula with numbers that are still to be
# found, its **parameters**: here $y = w x + b$, with `w` and `b` at 0 to begin with. The **loss**
# says how wrong the model is. For numbers, take the mean squared error.

# %%
x = tk.tensor([1.0, 2.0, 3.0])
y = tk.tensor([3.0, 5.0, 7.0])
w = tk.tensor(0.0, requires_grad=True)
b = tk.tensor(0.0, requires_grad=True)

prediction = w * x + b
loss = ((prediction - y) ** 2).mean()
loss.backward()
print(f"loss {loss.item():.4f}, gradients {w.grad.item():.4f} and {b.grad.item():.4f}")

# %% [markdown]
# On paper: the errors are -3, -5 and -7, so the loss is (9 + 25 + 49) / 3 = 27.67. The slope of the
# loss is the mean of $2 \cdot \text{error} \cdot x$ for `w`, 2 · (-3 - 10 - 21) / 3 = -22.67, and
# the mean of $2 \cdot \text{error}$ for `b`, 2 · (-15) / 3 = -10.
#
# A **step** goes a little against the gradient. How little says the **learning rate**, here 0.1.

# %%
with tk.no_grad():
    w -= 0.1 * w.grad
    b -= 0.1 * b.grad
loss = ((w * x + b - y) ** 2).mean()
print(f"w {w.item():.4f}, b {b.item():.4f}, loss {loss.item():.4f}")

# %% [markdown]
# One step, and the loss fell from 27.67 to 0.33. Repeat it, and the parameters end where the loss
# is smallest:

# %%
path = [(0.0, 0.0)]
for _ in range(200):
    path.append((w.item(), b.item()))
    w.grad, b.grad = None, None
    ((w * x + b - y) ** 2).mean().backward()
    with tk.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
print(f"w {w.item():.2f}, b {b.item():.2f}")

# %% [markdown]
# It is the line $y = 2 x + 1$. The picture shows the loss for every pair of parameters, `w` to the
# right and `b` upwards, and the way that the steps took: into the valley at once, then slowly along
# its floor.

# %% role="show"
viz.landscape(
    lambda w, b: ((w + b - 3) ** 2 + (2 * w + b - 5) ** 2 + (3 * w + b - 7) ** 2) / 3,
    path[:60],
    x=(-0.5, 3.5),
    y=(-0.5, 2.0),
)

# %% [markdown]
# Model, loss, gradient, step: this is all of training. A network with a billion parameters is
# trained by the same four lines. What follows in this chapter makes them shorter to write.
#
# `nn.Linear(1, 1)` is the model $w x + b$ with its parameters inside. It wants its inputs as
# `[samples, inputs]`, so the three points become a column. `optim.SGD` takes the parameters and
# does the step. (`nn.init.zeros_` sets them to 0, to compare; usually they begin at random.)

# %%
x, y = x.unsqueeze(1), y.unsqueeze(1)
model = nn.Linear(1, 1)
nn.init.zeros_(model.weight)
nn.init.zeros_(model.bias)
optimizer = optim.SGD(model.parameters(), lr=0.1)

for step in range(3):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")

# %% [markdown]
# The same 27.67, then 0.33. `F.mse_loss` is the mean squared error, and every training program has
# these four lines, in this order:
#
# | Line | What it does | What if it is missing, or elsewhere |
# |---|---|---|
# | `loss = ...` | the forward pass builds the graph | |
# | `optimizer.zero_grad()` | clears old gradients | missing: gradients add up, steps overshoot |
# | `loss.backward()` | fills `.grad` of every parameter | after `step()`: always one step late |
# | `optimizer.step()` | moves every parameter | missing: the loss never changes |
#
# `zero_grad` may stand anywhere except between `backward` and `step`. There it throws away what
# `step` needs, and nothing moves.
#
# One trap makes no error at all. If the targets have the shape `[3]` and the predictions `[3, 1]`,
# their difference is a table of every prediction with every target:

# %%
targets = tk.tensor([3.0, 5.0, 7.0])
print((model(x) - targets).shape)

# %% [markdown]
# Its mean is a number like any other, and the model learns from it to predict the mean of the
# targets, whatever the input. Print both shapes before you write a loss.

# %% exercise="trained-line"

# %% [markdown]
# **What to notice.** The optimizer never sees the loss, and the loss never sees the optimizer. They
# meet in `.grad` of the parameters: `backward` writes there, `step` reads there.

# %% [markdown]
# ## Modules
#
# A **module** (`nn.Module`) is a function with parameters of its own. `nn.Linear(n, m)` turns `n`
# inputs into `m` outputs, $x W^T + b$; its weight has a row for each output. `nn.Sequential` puts
# modules in a chain.

# %%
tk.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
print(model)
for name, parameter in model.named_parameters():
    print(name, parameter.shape)

# %% [markdown]
# `nn.ReLU` replaces what is negative by 0. It has nothing to learn, and it is not optional: two
# linear layers in a row are only one, $(x A) B = x (A B)$. The bend between them is what makes a
# network more than a matrix.
#
# `parameters()` gives all parameters, also those of modules inside; `named_parameters()` adds their
# names. That is what an optimizer is given. The first values are drawn at random, for `n` inputs
# between $-1/\sqrt{n}$ and $1/\sqrt{n}$:

# %%
print(model(tk.ones(1, 4)))
print(sum(parameter.numel() for parameter in model.parameters()), "parameters")
print(model[0].weight.abs().max().item() <= 0.5)

# %% [markdown]
# A module of your own is a class with two methods. `__init__` makes the parts, and first of all
# calls `super().__init__()`; `forward` uses them. What you assign to `self` is registered, if it is
# a module or an `nn.Parameter`, which is a tensor that wants to be trained.


# %%
class Scaled(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = nn.Parameter(tk.ones(1))

    def forward(self, x):
        return self.scale * self.linear(x)


model = Scaled(4, 2)
print([name for name, _ in model.named_parameters()])
print(model(tk.ones(5, 4)).shape)

# %% [markdown]
# The graph of its result shows which parameters it was made of, with their names. The weight is
# turned, multiplied and scaled on its way:

# %% role="show"
viz.graph(model(tk.ones(5, 4)))

# %% [markdown]
# Call the model itself, `model(x)`, not `model.forward(x)`. And beware of plain lists: what stands
# in one is not found, so the optimizer never hears of it. `nn.ModuleList` is a list that is found.


# %%
class Forgetful(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers


print(len(list(Forgetful([nn.Linear(2, 2)]).parameters())))
print(len(list(Forgetful(nn.ModuleList([nn.Linear(2, 2)])).parameters())))

# %% exercise="how-many-parameters"

# %% [markdown]
# **What to notice.** A module holds parameters, nothing else of the training: no data, no loss, no
# learning rate. So the same model can be trained, saved and used by different programs.

# %% [markdown]
# ## Handwritten digits, in batches
#
# The file `digits.npz` holds 1797 photos of handwritten digits, 8 × 8 pixels with values from 0 to
# 16, and what each one shows. They come from the *Optical Recognition of Handwritten Digits* data
# set by E. Alpaydin and C. Kaynak (1998), [UCI Machine Learning
# Repository](https://doi.org/10.24432/C50P49), under the licence
# [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/).

# %%
with np.load("digits.npz") as data:
    images, labels = tk.from_numpy(data["images"]), tk.from_numpy(data["labels"])
print(images.shape, images.dtype)
print(labels[:12], labels.dtype)

# %% [markdown]
# The first five of them, with a denser block where there is more ink: a 0, a 1, a 2, a 3 and a 4.


# %%
def draw(photos):
    for row in range(8):
        rows = [photo[row].tolist() for photo in photos]
        blocks = ["".join(" ░▒▓█"[min(it // 4, 4)] * 2 for it in line) for line in rows]
        print("   ".join(blocks))


draw(images[:5])

# %% [markdown]
# A network wants floats of moderate size, and a linear layer wants a row for each photo. So: cast,
# divide by 16, flatten. The labels become int64, because that is what the loss expects.
#
# `from_numpy` shares the memory of the array. Here the casts make copies; where no cast is needed,
# say `.clone()`, or a later write to the array changes your data.

# %%
inputs = images.float().flatten(1) / 16
targets = labels.long()
print(inputs.shape, inputs.dtype, inputs.min().item(), inputs.max().item())
counts = [(targets == digit).sum().item() for digit in range(10)]
print(targets.dtype, counts)

# %% [markdown]
# All ten digits are about equally frequent here, so guessing is right in one of ten cases. That is
# the number to beat.
#
# A step on all samples is slow, a step on one is erratic. Batches of 32 or so are the usual way
# between. Going through all samples once is an **epoch**.
#
# `TensorDataset` ties tensors together: its item `i` is the pair of input `i` and target `i`.
# `random_split` deals the items out at random, here into a part to train on and a part to test
# with. `DataLoader` makes batches.

# %%
tk.manual_seed(0)
digits = TensorDataset(inputs, targets)
train, test = random_split(digits, [1437, 360])
print(len(digits), len(train), len(test))

loader = DataLoader(train, batch_size=32, shuffle=True)
print(len(loader), "batches")
for batch, its_targets in loader:
    print(batch.shape, its_targets.shape)
    break

# %% [markdown]
# How does a DataLoader pick samples? A data set of our own that reports every question shows it. A
# **data set** is anything with a length and items.


# %%
class Squares(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        print("item", index)
        return index, tk.tensor([float(index**2)])


tk.manual_seed(3)
squares = DataLoader(Squares(), batch_size=2, shuffle=True)
for numbers, values in squares:
    print("batch", numbers, values.flatten(), values.shape)

# %% [markdown]
# Three helpers share the work. The **sampler** yields whole numbers, in order or shuffled. The
# batch sampler takes two at a time. The loader asks the data set for `dataset[i]`, one `i` after
# the other, and **collates** the items: it stacks the tensors, so that `[1]` becomes `[2, 1]`, and
# makes a tensor of plain numbers.

# %%
tk.manual_seed(3)
print(list(squares.sampler))
print(list(squares.batch_sampler))

# %% [markdown]
# What a batch of the two samples 4 and 0 takes from a tensor of inputs is whole rows, copied:

# %% role="show"
viz.indexing(tk.arange(5.0).square().unsqueeze(1), tk.tensor([4, 0]))

# %% [markdown]
# > **You will read elsewhere** that fancy indexing, as in `scores[[0, 2, 4]]`, is how DataLoaders
# > select random samples. It gives the same batch for a tensor that is in memory. A DataLoader asks
# > for one item at a time, because a data set may just as well read each photo from a file. (For a
# > `TensorDataset` tensorkit does take the short cut; you cannot tell the batches apart.)
#
# The last batch may be smaller; `drop_last=True` leaves it out. Each epoch draws a new order. No
# error reminds you to shuffle: sorted data gives batches of one class, and the network learns them
# one after the other, forgetting as it goes.
#
# In the next exercise the random order comes from a generator of its own, `tk.Generator()` with
# `manual_seed`, so that other random numbers do not disturb it.

# %% exercise="shuffled-apart"

# %% [markdown]
# **What to notice.** An input without its target is worthless, so let one index pick both. That is
# why a data set gives pairs. And look at data before you train on it: shapes, dtypes, smallest and
# largest value, how many of each class.

# %% [markdown]
# ## From scores to a loss
#
# A network for ten digits gives ten numbers, the **scores** or *logits*: the largest one is its
# guess. `F.softmax` turns scores into shares that add up to 1.

# %%
scores = tk.tensor([[2.0, 1.0, 0.0]])
print(F.softmax(scores, dim=1))
print(scores.argmax(dim=1))

# %% [markdown]
# $\text{softmax}(s)_i = e^{s_i} / \sum_k e^{s_k}$: every score counts by its exponential, and only
# differences between scores matter. The loss is minus the log of the share of the right class: 0 if
# it gets everything, large if it gets little. This is the **cross entropy**.

# %%
for right in range(3):
    print(right, f"{F.cross_entropy(scores, tk.tensor([right])).item():.4f}")

# %% [markdown]
# The log of 0.6652 is -0.4076. `F.cross_entropy` takes *scores* and labels, and gives the mean over
# the batch. Inside it works with the log of the softmax at once, `F.log_softmax`, and picks the
# entry of the right class, `F.nll_loss`. For large scores the detour over shares fails:

# %%
large = tk.tensor([[1000.0, 0.0]])
print(large.exp())
print(F.softmax(large, dim=1).log())
print(F.log_softmax(large, dim=1))
print(F.nll_loss(F.log_softmax(scores, dim=1), tk.tensor([0])))

# %% [markdown]
# The trick is to subtract the largest score of each row (`amax(dim=1, keepdim=True)`) before `exp`.
# The shares stay the same, and nothing can become larger than $e^0 = 1$.
#
# A classic mistake is a softmax at the end of the network *and* `F.cross_entropy`, which then takes
# shares for scores. No error, only a network that learns badly: even if it is right and quite sure,
# the loss stays at 1.46.

# %%
sure = 20.0 * tk.eye(10)[:1]
print(f"{F.cross_entropy(sure, tk.tensor([0])).item():.4f}")
print(f"{F.cross_entropy(F.softmax(sure, dim=1), tk.tensor([0])).item():.4f}")
print(f"{F.cross_entropy(tk.zeros(1, 10), tk.tensor([0])).item():.4f}")

# %% [markdown]
# The last line is worth knowing: a network that has learned nothing about ten classes has a loss of
# about $\log 10 = 2.30$.
#
# In the graph of a loss stand the two halves, `LogSoftmax` and `NllLoss`; no node makes shares.

# %% role="show"
tk.manual_seed(0)
small = nn.Linear(4, 3)
viz.graph(F.cross_entropy(small(tk.rand(2, 4)), tk.tensor([0, 2])))

# %% exercise="cross-entropy-by-hand"

# %% [markdown]
# **What to notice.** Scores go into the loss as the last layer made them. A softmax is for people
# who want to read shares, after training.

# %% [markdown]
# ## Optimizers, and what they remember
#
# Plain gradient descent, `optim.SGD(parameters, lr=0.1)`, remembers nothing: each step looks at the
# gradient of now. In a narrow valley it swings from wall to wall. With `momentum=0.9` each
# parameter has a velocity that gathers the gradients, $v \leftarrow 0.9\, v + g$, and moves by it:
# what swings cancels out, what goes on adds up. `optim.Adam` keeps two running means, of the
# gradients and of their squares, and divides one by the root of the other, so that every parameter
# moves at about the same pace, `lr`, whatever the size of its gradient.


# %%
def losses_with(make, steps=30):
    p = tk.tensor([4.0, 1.0], requires_grad=True)
    optimizer = make([p])
    losses = []
    for _ in range(steps):
        loss = (p[0] ** 2 + 20 * p[1] ** 2) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 3))
    return losses


history = {
    "loss, SGD": losses_with(lambda p: optim.SGD(p, lr=0.03)),
    "loss, SGD with momentum": losses_with(
        lambda p: optim.SGD(p, lr=0.03, momentum=0.7),
    ),
    "loss, Adam": losses_with(lambda p: optim.Adam(p, lr=0.3)),
}
for name, losses in history.items():
    print(f"{name}: {losses[0]:.2f}, after 30 steps {losses[-1]:.2f}")

# %% role="show"
viz.training(history, per="step")

# %% [markdown]
# Adam moves at its own pace, so it is quick and then runs past the goal and back. In practice `lr`
# is made smaller towards the end.
#
# What an optimizer remembers stands in its `state`, beside each parameter:

# %%
p = tk.tensor([1.0, 2.0], requires_grad=True)
for make in (optim.SGD, lambda it, lr: optim.SGD(it, lr=lr, momentum=0.9), optim.Adam):
    optimizer = make([p], lr=0.01)
    optimizer.zero_grad()
    (p * tk.tensor([1.0, 10.0])).sum().backward()
    optimizer.step()
    state = optimizer.state[p].items()
    print([name for name, value in state if value is not None and value.numel() > 1])

# %% [markdown]
# So momentum costs the memory of the parameters once more, Adam twice more. And a training that is
# to go on tomorrow has to save this state too: `optimizer.state_dict()`.

# %% exercise="momentum-step"

# %% role="show"
with transplant(momentum_step) as asked:
    tk.manual_seed(0)
    line = nn.Linear(1, 1)
    optimizer = optim.SGD(line.parameters(), lr=0.02, momentum=0.9)
    points = tk.tensor([[1.0], [2.0], [3.0]])
    for _ in range(300):
        optimizer.zero_grad()
        F.mse_loss(line(points), 2 * points + 1).backward()
        optimizer.step()
    print(f"slope {line.weight.item():.2f}, height {line.bias.item():.2f}")
print(asked)

# %% [markdown]
# **What to notice.** The learning rate is the first number to look for. Too large, and the loss
# jumps or becomes `nan`; too small, and nothing seems to happen. A good rate for SGD is not a good
# one for Adam: try 0.1 for the one, 0.001 for the other, and factors of 3 from there.

# %% [markdown]
# ## A network that reads digits
#
# Now all parts together: 64 pixels, 32 hidden units, 10 scores. Where the parameters live decides
# where the work is done, so the program asks the model for its device and moves each batch there
# with `to(device)`. It runs on a GPU without a changed line.


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


def evaluate(model, loader):
    device = next(model.parameters()).device
    model.eval()
    total, right = 0.0, 0
    with tk.no_grad():
        for batch, its_targets in loader:
            batch, its_targets = batch.to(device), its_targets.to(device)
            scores = model(batch)
            total += F.cross_entropy(scores, its_targets).item() * len(batch)
            right += (scores.argmax(dim=1) == its_targets).sum().item()
    return total / len(loader.dataset), right / len(loader.dataset)


# %% [markdown]
# `total` adds up numbers, not tensors: `loss.item()`, or every graph of the epoch would stay in
# memory. It is weighted with the size of the batch, since the last one is smaller.

# %% exercise="mean-of-means"

# %% [markdown]
# Before it has learned anything, the network guesses: a loss near 2.30, and at best one in ten
# right.

# %%
tk.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
train_loader = DataLoader(train, batch_size=32, shuffle=True)
test_loader = DataLoader(test, batch_size=90)

loss, accuracy = evaluate(model, test_loader)
print(f"loss {loss:.2f}, accuracy {accuracy:.2f}")

# %% [markdown]
# One batch backwards, to look at the gradients: each parameter has one, and no layer is left out.

# %% role="show"
first = F.cross_entropy(model(inputs[:32]), targets[:32])
first.backward()
viz.gradients(model)

# %%
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
history = {"training loss": [], "test loss": [], "test accuracy": []}
for epoch in range(10):
    loss = train_for_an_epoch(model, train_loader, optimizer)
    test_loss, accuracy = evaluate(model, test_loader)
    history["training loss"].append(round(loss, 2))
    history["test loss"].append(round(test_loss, 2))
    history["test accuracy"].append(round(accuracy, 2))
    print(f"epoch {epoch}: loss {loss:.2f}, {test_loss:.2f} on the test part")

# %% role="show"
viz.training(history)

# %% [markdown]
# **What to notice.** After a second of training the network reads nearly all digits that it has
# never seen. Nobody told it what a 7 looks like; the program would learn ten other shapes just as
# well.

# %% [markdown]
# ## Evaluation and overfitting
#
# The **accuracy** is the share of samples whose largest score is that of the right class. It is
# measured on the test part, which no step has seen, and it needs two switches: `model.eval()` for
# layers such as `nn.Dropout`, `tk.no_grad()` for the memory. Neither does the other's work.

# %%
model.eval()
test_inputs, test_targets = inputs[test.indices], targets[test.indices]
with tk.no_grad():
    scores = model(test_inputs)
guesses = scores.argmax(dim=1)
print(scores.shape, scores.requires_grad)
print(f"{(guesses == test_targets).float().mean().item():.2f}")

# %% [markdown]
# `mean()` needs floats: truth values have to be cast first. One number hides much, so look at what
# went wrong. `nonzero()` gives the positions of what is True. Two of the misread digits:

# %%
wrong = (guesses != test_targets).nonzero().flatten()[:2]
draw(images[test.indices][wrong])
for each in wrong.tolist():
    print(f"a {test_targets[each].item()}, taken for a {guesses[each].item()}")

# %% exercise="confusion"

# %% [markdown]
# In a good table nearly everything stands on the diagonal. What stands beside it tells you what to
# do next: more photos of a certain digit, or a label that is wrong itself.
#
# All this has to be measured on samples that no step has seen, because a network can also learn its
# samples by heart. With only 40 photos and 64 hidden units it does:

# %%
tk.manual_seed(0)
few_inputs, few_targets = inputs[train.indices[:40]], targets[train.indices[:40]]
large = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = optim.Adam(large.parameters(), lr=0.01)
history = {"training loss": [], "test loss": []}
for step in range(61):
    loss = F.cross_entropy(large(few_inputs), few_targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with tk.no_grad():
        test_loss = F.cross_entropy(large(test_inputs), test_targets)
    history["training loss"].append(round(loss.item(), 2))
    history["test loss"].append(round(test_loss.item(), 2))
    if step % 15 == 0:
        print(f"step {step:2}: training {loss.item():.2f}, test {test_loss.item():.2f}")

# %% role="show"
viz.training(history, per="step")

# %% [markdown]
# The training loss goes to 0. The test loss falls, stops falling, and turns round: from there on
# the network learns the 40 photos, and not digits. This is **overfitting**.
#
# What helps: more data, first of all. A smaller network. To stop where the test loss is lowest.
# `nn.Dropout`, which switches units off at random while it trains. `weight_decay=` of the
# optimizers, which pulls parameters towards 0.
#
# **What to notice.** The training loss alone cannot show it. And if you try many settings and keep
# the one with the best test loss, you have fitted the test data as well: choose with a third part,
# the validation set, and look at the test part once, at the end.

# %% [markdown]
# ## Saving and loading
#
# What is worth keeping are the parameters. `state_dict()` is a dictionary from their names to
# tensors; `tk.save` writes it to a file, `tk.load` reads it, and `load_state_dict` copies it into a
# model of the same shape.

# %%
file = Path(tempfile.mkdtemp()) / "digits.pt"
tk.save(model.state_dict(), file)

tk.manual_seed(1)
copy = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
print(f"{evaluate(copy, test_loader)[1]:.1f}")
print(copy.load_state_dict(tk.load(file)))
print(f"{evaluate(copy, test_loader)[1]:.2f}")
print(list(model.state_dict()))

# %% [markdown]
# The code of the model is not in the file; the program that loads it has to make the same layers.
# If a name or a shape does not fit, `load_state_dict` says which:

# %%
other = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
try:
    other.load_state_dict(model.state_dict())
except RuntimeError as error:
    print(str(error).splitlines()[1].strip())

# %% [markdown]
# To train on later, save the optimizer too: one dictionary with both `state_dict`s and the number
# of the epoch. A loaded model is new, and so it is in training mode: `model.eval()` before use.

# %% exercise="another-answer-each-time"

# %% [markdown]
# One thing surprises nearly everybody who keeps the state of the best epoch in a variable:

# %% role="show"
bias, saved = model[2].bias, model.state_dict()["2.bias"]
viz.memory(bias=bias, saved=saved, cloned=saved.clone())

# %% [markdown]
# **What to notice.** `state_dict` gives the parameters themselves, not copies: train on, and the
# dictionary changes. To remember the best epoch, keep clones or write a file.

# %% [markdown]
# ## The same in PyTorch
#
# Everything here used PyTorch's names. With PyTorch installed, change the imports and run the same
# cells; each of them prints the same text, random numbers included:
#
# ```python
# import torch as tk
# from torch import nn, optim
# from torch.nn import functional as F
# from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
# ```
#
# A file that `tk.save` wrote is for `tk.load` of the same library.
#
# You have now seen the three pillars of PyTorch: **tensors**, which hold data and parameters,
# **autograd**, which finds the gradients, and **devices**, on which the work is done. The rest of
# the way is habit. Five of them are worth having:
#
# | Habit | Why |
# |---|---|
# | write device-agnostic code: `x.to(device)` | the same program runs with and without a GPU |
# | clear gradients in each step: `optimizer.zero_grad()` | they add up |
# | `.clone()` what comes from NumPy, if you go on writing to it | the memory is shared |
# | write `a @ b` for products of matrices | one sign for `mm`, `mv`, `bmm`; `*` is by element |
# | use a network inside `tk.no_grad()`, after `model.eval()` | less memory, the same answer twice |
#
# From here the ways part: convolutions for images, attention for text, and whatever you want to
# know. The loop stays the same.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a layer | `nn.Linear(inputs, outputs)` | weight `[outputs, inputs]`, a bias for each output |
# | a chain | `nn.Sequential(a, nn.ReLU(), b)` | a bend between linear layers |
# | a module | `class Net(nn.Module)` | `super().__init__()` first; no plain lists of layers |
# | a loss for numbers | `F.mse_loss(model(x), y)` | equal shapes, or every pair is compared |
# | a loss for classes | `F.cross_entropy(scores, labels)` | scores, not shares; labels int64 |
# | a step | `zero_grad()`, `backward()`, `step()` | in this order |
# | an optimizer | `optim.SGD(..., momentum=0.9)`, `optim.Adam` | they remember; save that too |
# | samples | `TensorDataset(x, y)`, `random_split` | pairs, asked for one by one |
# | batches | `DataLoader(data, batch_size=32, shuffle=True)` | the last one may be smaller |
# | the accuracy | `(scores.argmax(dim=1) == y).float().mean()` | on data that no step has seen |
# | to use a model | `model.eval()` and `tk.no_grad()` | then `model.train()` |
# | to add up losses | `loss.item() * len(batch)` | numbers, not tensors |
# | to keep a model | `tk.save(model.state_dict(), file)` | the optimizer has a state too |
# | to read it | `model.load_state_dict(tk.load(file))` | the same layers, then `eval()` |
# | to see how it went | `viz.training(history)` | training and test loss side by side |

# %% [markdown]
# ## In tensorkit
#
# A loss, and a step of SGD with your momentum. `cross_entropy` is made of the two functions that
# you used by hand. `change` gets the array of one parameter, `x`, and that of its gradient, `g`,
# and gives what is subtracted, with the new velocity.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain

explain.source(F.cross_entropy, optim.SGD.change)

# %% [markdown]
# **A question.** Your `momentum_step` found a velocity of zeros before the first step. Where are
# they here?
#
# <details><summary>The answer</summary>
#
# `state` is empty before the first step, so `state.get` gives 0.0 instead of an array. A number is
# broadcast like a tensor of zeros, and `v` is the gradient alone.
#
# </details>

# %%
progress("09_training")
