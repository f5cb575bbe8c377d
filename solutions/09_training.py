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
# In this chapter you train a network. You fit a line by hand, put the steps into a loop, and then
# use modules, losses, optimizers and data loaders. At the end a network of yours reads handwritten
# digits. Afterwards you can write such a program, find the mistakes that stop a network from
# learning, and run the program in PyTorch: only the imports change.
#
# The core exercises take about 40 minutes, reading and running the cells about 35 more. Exercises
# marked *further* give no points. You can take a break before the section on optimizers.

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
# Three points lie on a line. Which line? A **model** is a formula with numbers that must be found,
# the **parameters**. Here the model is $y = w x + b$, and `w` and `b` begin at 0. The **loss** says
# how wrong the model is. Here it is the mean squared error.

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
# A **step** changes the parameters a little, against the gradient. The **learning rate**, here 0.1,
# says how much.

# %%
with tk.no_grad():
    w -= 0.1 * w.grad
    b -= 0.1 * b.grad
loss = ((w * x + b - y) ** 2).mean()
print(f"w {w.item():.4f}, b {b.item():.4f}, loss {loss.item():.4f}")

# %% [markdown]
# After one step the loss has fallen from 27.67 to 0.33. If you repeat the step, the parameters
# reach the smallest loss:

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
# The line is $y = 2 x + 1$. The picture shows the loss for every pair of parameters; `w` goes to
# the right and `b` upwards. The steps go into the valley at once, and then slowly along its floor.

# %% role="show"
viz.landscape(
    lambda w, b: ((w + b - 3) ** 2 + (2 * w + b - 5) ** 2 + (3 * w + b - 7) ** 2) / 3,
    path[:60],
    x=(-0.5, 3.5),
    y=(-0.5, 2.0),
)

# %% [markdown]
# Model, loss, gradient, step: training is nothing else. A network with a billion parameters is
# trained by the same four lines. The rest of this chapter makes them shorter to write.
#
# `nn.Linear(1, 1)` is the model $w x + b$ with its parameters inside. Its input has the shape
# `[samples, inputs]`, so the three points become a column. `optim.SGD` takes the parameters and
# makes the step. (Usually the parameters begin at random; `nn.init.zeros_` sets them to 0 here, so
# that you can compare.)

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
# The loss is 27.67 and then 0.33, as before. `F.mse_loss` is the mean squared error. Every training
# program has these four lines, in this order:
#
# | Line | What it does | What if it is missing, or elsewhere |
# |---|---|---|
# | `loss = ...` | the forward pass builds the graph | |
# | `optimizer.zero_grad()` | clears old gradients | missing: gradients add up, steps are too large |
# | `loss.backward()` | fills `.grad` of every parameter | after `step()`: each step uses old gradients |
# | `optimizer.step()` | moves every parameter | missing: the loss never changes |
#
# You may call `zero_grad` anywhere except between `backward` and `step`. There it removes the
# gradients that `step` needs, and the parameters do not change.
#
# One mistake raises no error. If the targets have the shape `[3]` and the predictions `[3, 1]`,
# their difference is a table of every prediction with every target:

# %%
targets = tk.tensor([3.0, 5.0, 7.0])
print((model(x) - targets).shape)

# %% [markdown]
# The mean of this table is a number too. But with it the model learns to predict the mean of the
# targets for every input. Print both shapes before you write a loss.

# %% exercise="trained-line"

# %% [markdown]
# **What to notice.** The optimizer does not know the loss, and the loss does not know the
# optimizer. They share only `.grad` of the parameters: `backward` writes it, `step` reads it.

# %% [markdown]
# ## Modules
#
# A **module** (`nn.Module`) is a function with its own parameters. `nn.Linear(n, m)` computes `m`
# outputs from `n` inputs, $x W^T + b$; its weight has a row for each output. `nn.Sequential` calls
# one module after the other.

# %%
tk.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
print(model)
for name, parameter in model.named_parameters():
    print(name, parameter.shape)

# %% [markdown]
# `nn.ReLU` replaces negative numbers by 0. It has no parameters, and it is necessary: two linear
# layers in a row are the same as one, $(x A) B = x (A B)$. With a ReLU between them they can do
# more than one matrix.
#
# `parameters()` gives all parameters, also those of the modules inside. `named_parameters()` gives
# their names too. You give the parameters to an optimizer. Their first values are random numbers.
# For a layer with `n` inputs they lie between $-1/\sqrt{n}$ and $1/\sqrt{n}$:

# %%
print(model(tk.ones(1, 4)))
print(sum(parameter.numel() for parameter in model.parameters()), "parameters")
print(model[0].weight.abs().max().item() <= 0.5)

# %% [markdown]
# You write a module of your own as a class with two methods. `__init__` calls `super().__init__()`
# first and then makes the parts. `forward` uses the parts. A module or an `nn.Parameter` that you
# assign to `self` is registered. An `nn.Parameter` is a tensor that should be trained.


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
# The graph of the result shows the parameters with their names. The weight is transposed and
# multiplied, and the result is scaled:

# %% role="show"
viz.graph(model(tk.ones(5, 4)))

# %% [markdown]
# Call the model itself, `model(x)`, not `model.forward(x)`. And do not keep layers in a plain list:
# a module does not find them there, so the optimizer does not train them. Use `nn.ModuleList`,
# which is a list that is registered.


# %%
class Forgetful(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers


print(len(list(Forgetful([nn.Linear(2, 2)]).parameters())))
print(len(list(Forgetful(nn.ModuleList([nn.Linear(2, 2)])).parameters())))

# %% exercise="how-many-parameters"

# %% [markdown]
# **What to notice.** A module holds parameters. It does not hold data, a loss or a learning rate.
# So different programs can train, save and use the same model.

# %% [markdown]
# ## Handwritten digits, in batches
#
# The file `digits.npz` holds 1797 photos of handwritten digits and their labels. A photo has 8 × 8
# pixels with values from 0 to 16. They come from the *Optical Recognition of Handwritten Digits*
# data set by E. Alpaydin and C. Kaynak (1998), [UCI Machine Learning
# Repository](https://doi.org/10.24432/C50P49), under the licence [CC BY
# 4.0](https://creativecommons.org/licenses/by/4.0/).

# %%
with np.load("digits.npz") as data:
    images, labels = tk.from_numpy(data["images"]), tk.from_numpy(data["labels"])
print(images.shape, images.dtype)
print(labels[:12], labels.dtype)

# %% [markdown]
# These are the first five photos: a 0, a 1, a 2, a 3 and a 4. More ink gives a denser block.


# %%
def draw(photos):
    for row in range(8):
        rows = [photo[row].tolist() for photo in photos]
        blocks = ["".join(" ░▒▓█"[min(ink // 4, 4)] * 2 for ink in row) for row in rows]
        print("   ".join(blocks))


draw(images[:5])

# %% [markdown]
# A network needs floats that are not too large, and a linear layer needs one row for each photo. So
# cast, divide by 16, and flatten. The labels become int64, because the loss expects int64.
#
# `from_numpy` shares the memory of the array. The casts here make copies. If you need no cast, use
# `.clone()`; otherwise a later write to the array changes your data.

# %%
inputs = images.float().flatten(1) / 16
targets = labels.long()
print(inputs.shape, inputs.dtype, inputs.min().item(), inputs.max().item())
counts = [(targets == digit).sum().item() for digit in range(10)]
print(targets.dtype, counts)

# %% [markdown]
# All ten digits are about equally frequent. So a guess is right in one of ten cases, and the
# network should do better than that.
#
# A step with all samples is slow. A step with one sample has a gradient that changes a lot from
# step to step. So you usually take a batch of about 32 samples for each step. Going through all
# samples once is an **epoch**.
#
# `TensorDataset` combines tensors: its item `i` is the pair of input `i` and target `i`.
# `random_split` splits the items at random, here into a training set and a test set. The steps use
# the training set only, so the test set can show what the network does with new photos.
# `DataLoader` makes batches.

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
# How does a DataLoader pick samples? To see it, we write a data set that prints each index. A
# **data set** is any object with a length and items.


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
# A DataLoader has three parts. The **sampler** gives whole numbers, in order or shuffled. The batch
# sampler groups them, here in twos. The loader calls `dataset[i]` for one `i` after the other and
# **collates** the items: it stacks the tensors, so that `[1]` becomes `[2, 1]`, and makes one
# tensor from plain numbers.

# %%
tk.manual_seed(3)
print(list(squares.sampler))
print(list(squares.batch_sampler))

# %% [markdown]
# The batch of the samples 4 and 0 is a copy of these two rows of the inputs:

# %% role="show"
viz.indexing(tk.arange(5.0).square().unsqueeze(1), tk.tensor([4, 0]))

# %% [markdown]
# The last batch may be smaller; `drop_last=True` leaves it out. With `shuffle=True` each epoch has
# a new order. If you forget it, there is no error. But if the data is sorted, each batch has one
# class, and the network learns one class and forgets the others.
#
# In the next exercise the random order comes from its own generator, `tk.Generator()` with
# `manual_seed`. So other random numbers do not change the order.

# %% exercise="shuffled-apart"

# %% [markdown]
# **What to notice.** An input must stay with its target, so use one index for both. That is why a
# data set gives pairs. And look at data before you train on it: shapes, dtypes, the smallest and
# the largest value, the number of samples in each class.

# %% [markdown]
# ## From scores to a loss
#
# A network for ten digits gives ten numbers, the **scores** or *logits*. The largest score is its
# guess. `F.softmax` turns scores into probabilities: positive numbers with the sum 1.

# %%
scores = tk.tensor([[2.0, 1.0, 0.0]])
print(F.softmax(scores, dim=1))
print(scores.argmax(dim=1))

# %% [markdown]
# The formula is $\text{softmax}(s)_i = e^{s_i} / \sum_k e^{s_k}$. Only the differences between
# scores matter. The loss is minus the logarithm of the probability of the right class. It is 0 if
# this probability is 1, and large if the probability is small. This loss is the **cross entropy**.

# %%
for right in range(3):
    print(right, f"{F.cross_entropy(scores, tk.tensor([right])).item():.4f}")

# %% [markdown]
# The logarithm of 0.6652 is -0.4076. `F.cross_entropy` takes *scores* and labels and returns the
# mean over the batch. It calls two functions: `F.log_softmax` computes the logarithm of the softmax
# in one step, and `F.nll_loss` takes the entry of the right class with a minus sign. For large
# scores, softmax and logarithm one after the other fail:

# %%
large = tk.tensor([[1000.0, 0.0]])
print(large.exp())
print(F.softmax(large, dim=1).log())
print(F.log_softmax(large, dim=1))
print(F.nll_loss(F.log_softmax(scores, dim=1), tk.tensor([0])))

# %% [markdown]
# `log_softmax` subtracts the largest score of each row (`amax(dim=1, keepdim=True)`) before `exp`.
# This does not change the probabilities, and no number becomes larger than $e^0 = 1$.
#
# A common mistake is a softmax at the end of the network *and* `F.cross_entropy`. Then the loss
# uses probabilities as if they were scores. There is no error, but the network learns badly. Even
# if the right class has the probability 1, the loss is still 1.46.

# %%
sure = 20.0 * tk.eye(10)[:1]
print(f"{F.cross_entropy(sure, tk.tensor([0])).item():.4f}")
print(f"{F.cross_entropy(F.softmax(sure, dim=1), tk.tensor([0])).item():.4f}")
print(f"{F.cross_entropy(tk.zeros(1, 10), tk.tensor([0])).item():.4f}")

# %% [markdown]
# Remember the last line: a network that has learned nothing about ten classes has a loss of about
# $\log 10 = 2.30$.
#
# In the graph of the loss you find the two parts, `LogSoftmax` and `NllLoss`. No node computes
# probabilities.

# %% role="show"
tk.manual_seed(0)
small = nn.Linear(4, 3)
viz.graph(F.cross_entropy(small(tk.rand(2, 4)), tk.tensor([0, 2])))

# %% exercise="cross-entropy-by-hand"

# %% [markdown]
# **What to notice.** The loss takes the scores of the last layer directly. Use a softmax only if
# you want to read probabilities, after training.

# %% [markdown]
# ## Optimizers, and what they remember
#
# Plain gradient descent, `optim.SGD(parameters, lr=0.1)`, remembers nothing: each step uses the
# present gradient. In a narrow valley it goes back and forth. With `momentum=0.9` each parameter
# has a velocity $v \leftarrow 0.9\, v + g$, and a step subtracts `lr` times $v$. Gradients in
# changing directions cancel out, gradients in the same direction add up.
#
# `optim.Adam` keeps two running means: of the gradients, and of their squares. It divides the first
# mean by the square root of the second. So every parameter moves by about `lr` in a step, whatever
# the size of its gradient.


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
# Adam is quick here. Then it moves past the minimum and comes back, because its steps do not become
# smaller. In practice you make `lr` smaller towards the end.
#
# What an optimizer remembers is in its `state`, for each parameter:

# %%
p = tk.tensor([1.0, 2.0], requires_grad=True)
for make in (
    optim.SGD,
    lambda params, lr: optim.SGD(params, lr=lr, momentum=0.9),
    optim.Adam,
):
    optimizer = make([p], lr=0.01)
    optimizer.zero_grad()
    (p * tk.tensor([1.0, 10.0])).sum().backward()
    optimizer.step()
    state = optimizer.state[p].items()
    print([name for name, value in state if value is not None and value.numel() > 1])

# %% [markdown]
# So momentum needs as much memory again as the parameters, and Adam needs twice as much. If you
# want to continue a training later, you must save this state too: `optimizer.state_dict()`.

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
# **What to notice.** If a training goes wrong, check the learning rate first. If it is too large,
# the loss jumps or becomes `nan`. If it is too small, nearly nothing happens. A good rate for SGD
# is not good for Adam. Begin with 0.1 for SGD and with 0.001 for Adam, and try other rates in
# factors of 3.

# %% [markdown]
# ## A network that reads digits
#
# Now all parts together: 64 pixels, 32 hidden units, 10 scores. The outputs of the first layer are
# called **hidden units**. The program takes the device of the model and moves each batch there with
# `to(device)`. So it runs on a GPU without any change.


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
# `total` adds up numbers, `loss.item()`. If it added tensors, every graph of the epoch would stay
# in memory. Each loss is multiplied by the size of its batch, because the last batch is smaller.

# %% exercise="mean-of-means"

# %% [markdown]
# Before the training the network guesses: the loss is near 2.30, and about one in ten guesses is
# right.

# %%
tk.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
train_loader = DataLoader(train, batch_size=32, shuffle=True)
test_loader = DataLoader(test, batch_size=90)

loss, accuracy = evaluate(model, test_loader)
print(f"loss {loss:.2f}, accuracy {accuracy:.2f}")

# %% [markdown]
# Here is one backward pass, to look at the gradients. Each parameter has one.

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
# never seen. The program does not say what a 7 looks like. It would learn ten other shapes in the
# same way.

# %% [markdown]
# ## Evaluation and overfitting
#
# The **accuracy** is the share of samples whose largest score is that of the right class. Measure
# it on the test set, because no step has used it. You need two switches: `model.eval()` for layers
# such as `nn.Dropout`, and `tk.no_grad()` to save memory. Neither replaces the other.

# %%
model.eval()
test_inputs, test_targets = inputs[test.indices], targets[test.indices]
with tk.no_grad():
    scores = model(test_inputs)
guesses = scores.argmax(dim=1)
print(scores.shape, scores.requires_grad)
print(f"{(guesses == test_targets).float().mean().item():.2f}")

# %% [markdown]
# `mean()` needs floats, so cast True and False first. The accuracy is only one number, so look at
# the mistakes as well. `nonzero()` gives the positions where a mask is True. Here are two digits
# that the network read wrongly:

# %%
wrong = (guesses != test_targets).nonzero().flatten()[:2]
draw(images[test.indices][wrong])
for each in wrong.tolist():
    print(f"a {test_targets[each].item()}, taken for a {guesses[each].item()}")

# %% exercise="confusion"

# %% [markdown]
# In a good table nearly all samples are on the diagonal. The others tell you what to do next: you
# may need more photos of a digit, or a label may be wrong.
#
# Always measure on samples that no step has used, because a network can also memorise its samples.
# With only 40 photos and 64 hidden units it does:

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
# The training loss goes to 0. The test loss falls, stops falling, and rises again. From there on
# the network memorises the 40 photos and learns nothing more about digits. This is **overfitting**.
#
# More data helps most. There are other remedies: use a smaller network; stop where the loss on
# other samples is lowest; use `nn.Dropout`, which sets random units to zero during training; or use
# `weight_decay=` of the optimizers, which makes the parameters smaller in each step.
#
# **What to notice.** The training loss alone does not show overfitting. And if you try many
# settings and keep the one with the best test loss, you have fitted the test set as well. So choose
# the settings with a third set, the *validation set*, and use the test set once, at the end.

# %% [markdown]
# ## Saving and loading
#
# To keep a model, save its parameters. `state_dict()` is a dictionary from their names to tensors.
# `tk.save` writes it to a file, `tk.load` reads it, and `load_state_dict` copies it into a model
# with the same layers.

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
# The file does not hold the code of the model. The program that loads the file must make the same
# layers. If a name or a shape does not fit, `load_state_dict` says which:

# %%
other = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
try:
    other.load_state_dict(model.state_dict())
except RuntimeError as error:
    print(str(error).splitlines()[1].strip())

# %% [markdown]
# To continue the training later, save the optimizer too: put both `state_dict`s and the number of
# the epoch into one dictionary. A model that you make in order to load it is in training mode. Call
# `model.eval()` before you use it.

# %% exercise="another-answer-each-time"

# %% [markdown]
# One surprise, if you keep the state of the best epoch in a variable: `saved` uses the memory of
# the parameter.

# %% role="show"
bias, saved = model[2].bias, model.state_dict()["2.bias"]
viz.memory(bias=bias, saved=saved, cloned=saved.clone())

# %% [markdown]
# **What to notice.** `state_dict` gives the parameters themselves, not copies. If you continue the
# training, the dictionary changes. To keep the best epoch, clone the tensors or write a file.

# %% [markdown]
# ## The same in PyTorch
#
# Everything here has PyTorch's names. If PyTorch is installed, change the imports and run the same
# cells. They print the same text, also for random numbers:
#
# ```python
# import torch as tk
# from torch import nn, optim
# from torch.nn import functional as F
# from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
# ```
#
# Read a file of `tk.save` with `tk.load` of the same library.
#
# You have now seen the three main parts of PyTorch: **tensors** hold data and parameters,
# **autograd** computes the gradients, and **devices** do the work. Five habits are useful:
#
# | Habit | Why |
# |---|---|
# | write device-agnostic code: `x.to(device)` | the same program runs with and without a GPU |
# | clear gradients in each step: `optimizer.zero_grad()` | they add up |
# | `.clone()` what comes from NumPy, if you go on writing to it | the memory is shared |
# | write `a @ b` for products of matrices | one sign for `mm`, `mv`, `bmm`; `*` is by element |
# | use a network inside `tk.no_grad()`, after `model.eval()` | less memory, the same answer twice |
#
# What you learn next depends on your data: convolutions for images, attention for text. The
# training loop stays the same.

# %% [markdown]
# ## On one page
#
# | You want | Write | Remember |
# |---|---|---|
# | a layer | `nn.Linear(inputs, outputs)` | weight `[outputs, inputs]`, a bias for each output |
# | several layers | `nn.Sequential(a, nn.ReLU(), b)` | a ReLU between linear layers |
# | a module | `class Net(nn.Module)` | `super().__init__()` first; no plain lists of layers |
# | a loss for numbers | `F.mse_loss(model(x), y)` | equal shapes, or every pair is compared |
# | a loss for classes | `F.cross_entropy(scores, labels)` | scores, not probabilities; labels int64 |
# | a step | `zero_grad()`, `backward()`, `step()` | in this order |
# | an optimizer | `optim.SGD(..., momentum=0.9)`, `optim.Adam` | they have a state; save it too |
# | samples | `TensorDataset(x, y)`, `random_split` | pairs, read one by one |
# | batches | `DataLoader(data, batch_size=32, shuffle=True)` | the last one may be smaller |
# | the accuracy | `(scores.argmax(dim=1) == y).float().mean()` | on data that no step has seen |
# | to use a model | `model.eval()` and `tk.no_grad()` | then `model.train()` |
# | to add up losses | `loss.item() * len(batch)` | numbers, not tensors |
# | to keep a model | `tk.save(model.state_dict(), file)` | the optimizer has a state too |
# | to read it | `model.load_state_dict(tk.load(file))` | the same layers, then `eval()` |
# | to see the losses | `viz.training(history)` | training and test loss side by side |

# %% [markdown]
# ## Elsewhere
#
# | You may read | What is right |
# |---|---|
# | A DataLoader selects random samples with a list as index, as in `scores[[0, 2, 4]]`. | It reads one item after the other, because a data set may read each photo from a file. For a tensor in memory the batch is the same. (For a `TensorDataset` tensorkit uses the faster way; the batches are equal.) |

# %% [markdown]
# ## In tensorkit
#
# Here are a loss and a step of SGD with momentum. `cross_entropy` calls the two functions that
# you used above. `change` gets two arrays: `x` of a parameter and `g` of its gradient. It returns
# what is subtracted and the new velocity.

# %% role="show" tags=["nbval-ignore-output"]
from tensorkit import explain

explain.source(F.cross_entropy, optim.SGD.change)

# %% [markdown]
# **A question.** `momentum_step`, the further exercise, begins with a velocity of zeros. Where are
# these zeros here?
#
# <details><summary>The answer</summary>
#
# `state` is empty before the first step, so `state.get` returns 0.0. A number is broadcast like a
# tensor of zeros, so `v` is the gradient alone.
#
# </details>

# %%
progress("09_training")

# %% [markdown]
# **Next:** [Build your own engine](../10_engine/10_engine.ipynb)
