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
# This is a course on tensors and gradients. You learn how a tensor lies in memory, how two shapes
# are combined, how `backward` computes gradients, and what changes on a GPU. You write the
# important parts yourself, and a check answers each exercise at once.
#
# You need Python and a laptop. You need no GPU and no account. After the installation you need no
# network.
#
# **Time and difficulty.** This chapter takes five minutes, with its one easy exercise. The last two
# sections are about PyTorch itself; read them when you need them. Run the cells from top to bottom
# with Shift+Enter.

# %%
import tensorkit as tk
from course import check, hint, progress, solution
from tensorkit import nn, optim, viz

# %% [markdown]
# ## Two libraries, the same names
#
# `tensorkit` is the library of this course; we write `tk` for short. PyTorch is the library in
# which most of today's networks are written. tensorkit is small, and it has PyTorch's names and
# follows PyTorch's rules. Code that you write here after `import tensorkit as tk` also runs after
# `import torch as tk`.

# %%
x = tk.tensor([1.0, 2.0, 3.0])
print(x * 10)

# %% [markdown]
# `tk.tensor` makes a tensor: a block of numbers. Its type is `tk.Tensor`. `x * 10` multiplies each
# number by 10. PyTorch prints exactly the same line.
#
# The pictures in this course are drawn from the tensors themselves. This picture shows where the
# three numbers lie in memory. Change a number in the cell above and run both cells: the picture
# changes too.

# %% role="show"
viz.memory(x=x)

# %% [markdown]
# **What to notice.** tensorkit computes with NumPy on the processor and with CuPy on a graphics
# card. Its source is short enough to read. You find it in the folder that `tk.__path__` names.

# %% [markdown]
# ## How the exercises work
#
# Under each exercise there is a cell such as `check("celsius")`. The check runs your code on
# several cases. It shows the first case that failed, what your code returned, what was expected,
# and what to try next. You can run it as often as you like. It costs no points.
#
# | you write | you get |
# |---|---|
# | `check("celsius")` | every case of the exercise, the first failure in full |
# | `hint("celsius")` | one more hint each time |
# | `solution("celsius")` | a worked solution, after you passed or after three different attempts |
# | `progress()` | the chapters and your points |
#
# You cannot edit a check cell. To ask for a hint, add a cell with the + in the toolbar.
#
# Try it now. Write a wrong answer first, and read what the check says.

# %% exercise="celsius"

# %% [markdown]
# **What to notice.** An answer that is right in some cases has their share of the points, rounded
# down to quarters: of one point, six of eight cases give 0.75, and one of eight gives 0. Cases with
# the same numbers for everybody give nothing alone. Where the text demands a way, such as a loop,
# an answer that goes another way gets few points or none. When you submit a chapter, the
# instructor's computer runs the same cases with other numbers. Those runs give the points that
# count.
#
# There are four kinds of exercises: **write** a function, **predict** a result before you run it,
# **repair** code that has a mistake, **complete** a program with gaps. The core exercises of a
# chapter take 45 minutes at most. Exercises marked *further* give no points and can wait.

# %% [markdown]
# ## Where this leads
#
# Here is a network that learns. There are 200 points in the plane. The points inside a circle are
# one class, the points outside are the other. You need not understand the code yet; each line of it
# is explained in a later chapter.

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
viz.training({"loss": losses}, per="step")

# %% [markdown]
# **What to notice.** Nobody wrote down how to tell the two classes apart. The program only says how
# wrong the network is, and the gradient says how to change the network so that it is less wrong.
# Chapter 05 shows how a gradient is computed, in chapter 09 you train on real data, and in chapter
# 10 you write the code that computes gradients. The file list on the left shows all chapters.

# %% [markdown]
# ## On one page
#
# | You want | Do |
# |---|---|
# | to run a cell | Shift+Enter |
# | to check your answer | `check("...")` under the exercise |
# | help | `hint("...")`, then `solution("...")` |
# | to see your points | `progress()` |
# | to begin an exercise again | `course reset 00 celsius` in JupyterLab's terminal |
# | to go on after you reopen a notebook | run its first cell first, the one with the imports |

# %% [markdown]
# ## PyTorch today
#
# PyTorch is an open-source library for tensors and networks. It was begun at Facebook; since 2022
# the PyTorch Foundation, a part of the Linux Foundation, maintains it. It has two main parts:
# tensor computation on CPUs and GPUs, and **autograd**, which computes gradients of your
# computation. Its graph is *dynamic* (define-by-run): it is recorded while your code runs. So `if`,
# `for`, `print` and the debugger work as in any Python program.
#
# The other large framework is TensorFlow.
#
# | | PyTorch | TensorFlow |
# |---|---|---|
# | graph | dynamic; `torch.compile` compiles | eager since 2.0; `tf.function` compiles |
# | debugging | Python's own tools | the same in eager mode |
# | to use a model elsewhere | `torch.export`, ONNX | SavedModel, LiteRT, TensorFlow.js |
# | style | Python classes and functions | Keras layers |
#
# Many packages build on PyTorch:
#
# | package | for |
# |---|---|
# | torchvision | images: models, data sets, transformations |
# | torchaudio | sound |
# | `torch.distributed` | training on several GPUs and machines |
# | PyTorch Lightning | training loops that you do not write yourself |
# | Hugging Face | language models and thousands of trained networks |
# | ONNX | a file format with which other programs run your model |

# %% [markdown]
# ## Installing PyTorch
#
# You do not need PyTorch for this course. If you want it too, the page *Get started* at pytorch.org
# gives the command for your system. The command selects a build:
#
# | your machine | build |
# |---|---|
# | no NVIDIA GPU | CPU: the small one; on Linux it has an index of its own |
# | NVIDIA GPU | CUDA: some gigabytes, CUDA's runtime included |
# | Mac with Apple silicon | the default one; its GPU is called `mps` |
#
# This cell verifies an installation. It runs with tensorkit here; for PyTorch write `torch` instead
# of `tk`.

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
# can be used. If there is one, `get_device_name` gives its name, `tk.version.cuda` the version of
# CUDA, and `device_count()` the number of GPUs. `x.device` says where a tensor lies: on the `cpu`,
# unless you choose another device.
#
# `False` is fine. Everything in this course runs on the CPU, and chapter 08 has a simulated GPU. If
# you want to try a real one, Google Colab lends one for some hours, in the browser.

# %% [markdown]
# ## Elsewhere
#
# Some texts about PyTorch are old or not exact. This table says what is right today. Every chapter
# ends with such a table.
#
# | You may read | What is right |
# |---|---|
# | PyTorch was released in 2016. | The first public release is of early 2017. |
# | TensorFlow's graph is static by default. | It was before 2019. Since 2.0 TensorFlow is eager. |
# | PyTorch has 75 % of the papers of a conference. | Such shares change every year. Look at the date and at who counted. |
# | torchtext, TorchServe and TorchScript are part of PyTorch's family. | torchtext has had no release since 2024, TorchServe was archived in 2025, and `torch.export` replaces TorchScript. |
# | `pip install torch` gives the CPU build on any machine. | On Linux it gives the CUDA build. The CPU build has an index of its own (`--index-url`). |
# | The index is cu118 or cu121, and `nvcc --version` must match. | Those indices belong to old releases. The build brings its own CUDA runtime; only the driver must be new enough. `nvidia-smi` shows the highest version that the driver supports. |

# %%
progress("00_start")

# %% [markdown]
# **Next:** [Tensors](../01_tensors/01_tensors.ipynb)
