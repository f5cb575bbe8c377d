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
# # Start
#
# This is a course on tensors and on the machine that computes gradients through them: how they lie
# in memory, how shapes meet, how `backward` walks a graph, what changes on a GPU. You build the
# pieces yourself, in notebooks like this one, and every exercise answers at once.
#
# You need Python and a laptop. You need no GPU, no account and no network once it is installed.
#
# Reading takes about fifteen minutes, the one exercise two; it is easy, 1 of 5. Run the cells from
# top to bottom with Shift+Enter.

# %%
import tensorkit as tk
from course import check, hint, progress, solution
from tensorkit import nn, optim, viz

# %% [markdown]
# ## Two libraries, one meaning
#
# `tensorkit` is the library of this course, in short `tk`. It is small enough to be read in an
# afternoon, and it uses the names, the rules and the printed texts of PyTorch, the library that
# most of today's networks are written in. What you type here after `import tensorkit as tk` works
# after `import torch as tk` as well.

# %%
x = tk.tensor([1.0, 2.0, 3.0])
print(x * 10)

# %% [markdown]
# `tk.tensor` makes a tensor, which is a block of numbers; its type is `tk.Tensor`. `x * 10`
# multiplies each of them. The printed line is the one that PyTorch prints, to the letter.
#
# Pictures in this course are drawn from the tensors themselves. This one shows where the three
# numbers lie in memory. Change a number in the cell above, run both cells, and it changes too.

# %% role="show"
viz.memory(x=x)

# %% [markdown]
# **What to notice.** tensorkit computes with NumPy on the processor and with CuPy on a graphics
# card. So its source shows you what happens; open the folder `tk.__path__` whenever you wonder.

# %% [markdown]
# ## How the exercises work
#
# Under each exercise stands a cell such as `check("celsius")`. It runs your code on several cases
# and tells you which one failed first, what came back, what was expected and what to try. Ask as
# often as you like: it costs no points.
#
# | you write | you get |
# |---|---|
# | `check("celsius")` | every case of the exercise, the first failure in full |
# | `hint("celsius")` | one hint more each time |
# | `solution("celsius")` | a worked solution, once you passed or after three different attempts |
# | `progress()` | chapters and points as they stand |
#
# The check cells cannot be edited. For a hint add a cell with the + in the toolbar.
#
# Try it now. Write the wrong thing first and look at the answer.

# %% exercise="celsius"

# %% [markdown]
# **What to notice.** The points are for cases, not for the whole: an answer that is right in six
# cases of eight has points already. When you submit a chapter, your instructor's computer runs the
# same cases with other numbers, in a closed room, and the points come out of that.
#
# Exercises come in four kinds: **write** a function, **predict** a result before you run it,
# **repair** code that has a real mistake, **complete** a program with gaps. The core of a chapter
# takes 45 minutes at most. Exercises marked *further* give no points and can wait.

# %% [markdown]
# ## Where this leads
#
# As a promise, here is a network that learns. 200 points lie in the plane; those inside a ring are
# one class, those outside the other. Every line of this cell is a chapter of the course: the
# tensors, the products, the gradients, the optimizer. You need not understand it yet.

# %% role="show"
tk.manual_seed(0)
points = tk.randn(200, 2)
inside = (points.square().sum(dim=1) < 1.4).long()

model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = optim.Adam(model.parameters(), lr=0.05)
losses = []
for step in range(120):
    loss = nn.functional.cross_entropy(model(points), inside)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

right = (model(points).argmax(dim=1) == inside).sum().item()
print(f"loss {losses[0]:.2f} at first, {losses[-1]:.2f} at the end")
print(f"{right} of 200 points right")

# %% role="show"
viz.training({"loss": losses})

# %% [markdown]
# **What to notice.** Nobody wrote down how to tell the two classes apart. The program only says
# how wrong it is, and the gradient says in which direction to be less wrong. In chapter 05 you see
# how that gradient comes about, in chapter 09 you train on real data, and in chapter 10 you write
# the machine that does it.

# %% [markdown]
# ## The chapters
#
# | chapter | what you can do afterwards |
# |---|---|
# | 01 Tensors | make tensors, predict shapes and dtypes, read parts |
# | 02 Operations | compute with whole tensors: products, sums, joins |
# | 03 Memory | tell a view from a copy, read strides |
# | 04 Broadcasting and indexing | let shapes meet, pick elements by mask or list |
# | 05 Autograd | read a graph, follow the chain rule through it |
# | 06 Gradient control | keep, clear, stop and repair gradients |
# | 07 Higher order | differentiate a derivative, use curvature |
# | 08 Devices | write code that runs on any device, see what a transfer costs |
# | 09 Training | train a network on handwritten digits |
# | 10 Build your own engine | write autograd yourself |
#
# Each takes an hour or a little more, half of it for the core exercises, and stands on the ones
# before it.

# %% [markdown]
# ## PyTorch today
#
# PyTorch is an open-source library for tensors and networks. It came out of Facebook's research
# group; since 2022 the PyTorch Foundation, a part of the Linux Foundation, looks after it. Two
# things make it what it is: tensor computation on CPUs and GPUs, and **autograd**, which computes
# gradients of whatever you compute. Its graph is *dynamic* (define-by-run): it is recorded while
# your code runs, so `if`, `for`, `print` and the debugger work as in any Python program.
#
# > **You will read elsewhere** that PyTorch was released in 2016. Its first public release is of
# > early 2017.
#
# The other large framework is TensorFlow.
#
# | | PyTorch | TensorFlow |
# |---|---|---|
# | graph | dynamic; `torch.compile` compiles | eager since 2.0; `tf.function` compiles |
# | debugging | Python's own tools | the same in eager mode |
# | to take a model elsewhere | `torch.export`, ONNX | SavedModel, LiteRT, TensorFlow.js |
# | style | Python classes and functions | Keras layers |
#
# > **You will read elsewhere** that TensorFlow's graph is static by default. That was so before
# > 2019. And you will read shares, such as 75 % of the papers of a conference. They change every
# > year: look at the date, and at who counted.
#
# Around PyTorch there is a family of packages:
#
# | package | for |
# |---|---|
# | torchvision | images: models, data sets, transformations |
# | torchaudio | sound |
# | `torch.distributed` | training on several GPUs and machines |
# | PyTorch Lightning | training loops that you do not write yourself |
# | Hugging Face | language models and thousands of trained networks |
# | ONNX | a file format in which other programs run your model |
#
# > **You will read elsewhere** of torchtext, TorchServe and TorchScript as part of it. torchtext
# > has had no release since 2024, TorchServe was archived in 2025, and TorchScript gave way to
# > `torch.export`.

# %% [markdown]
# ## Installing PyTorch
#
# You do not need PyTorch for this course. If you want it beside tensorkit, its page *Get started*
# at pytorch.org gives the command for your system. What the command chooses is the build:
#
# | your machine | build |
# |---|---|
# | no NVIDIA GPU | CPU: the small one; on Linux it has an index of its own |
# | NVIDIA GPU | CUDA: some gigabytes, CUDA's runtime included |
# | Mac with Apple silicon | the default one; its GPU is called `mps` |
#
# > **You will read elsewhere** that `pip install torch` gives the CPU build on any machine. On
# > Linux it gives the CUDA build; the CPU build has an index of its own (`--index-url`).
#
# > **You will read elsewhere** of indices named cu118 and cu121, and that `nvcc --version` must
# > match. Those two belong to old releases. The build brings its own CUDA runtime; only the driver
# > must be new enough, and `nvidia-smi` shows the highest version that it can serve.
#
# This is how an installation is verified. The cell runs here with tensorkit; put `torch` in place
# of `tk` to ask PyTorch.

# %% tags=["nbval-ignore-output"]
print("version:       ", tk.__version__)
print("CUDA available:", tk.cuda.is_available())
if tk.cuda.is_available():
    print("GPU:           ", tk.cuda.get_device_name(0))
    print("CUDA version:  ", tk.version.cuda)
    print("how many GPUs: ", tk.cuda.device_count())

x = tk.tensor([1.0, 2.0, 3.0])
print("test tensor:   ", x)
print("its device:    ", x.device)

# %% [markdown]
# `tk.__version__` is the release. `tk.cuda.is_available()` says whether there is an NVIDIA GPU that
# can be used; if so, `get_device_name` tells its name, `tk.version.cuda` the version of CUDA, and
# `device_count()` how many there are. `x.device` is where a tensor lies: `cpu` unless you say
# otherwise.
#
# **What to notice.** `False` is a fine answer. Everything in this course runs on the CPU, and
# chapter 08 brings a simulated GPU for those who have none. If you want a real one to play with,
# Google Colab lends one for some hours, in the browser.

# %% [markdown]
# ## On one page
#
# | You want | Do |
# |---|---|
# | to run a cell | Shift+Enter |
# | an answer to your answer | `check("...")` under the exercise |
# | help | `hint("...")`, then `solution("...")` |
# | to see where you stand | `progress()` |
# | to begin an exercise again | `course reset 00 celsius` in JupyterLab's terminal |
# | after reopening a notebook | run its first cell first, the one with the imports |

# %%
progress("00_start")
