"""Pictures of tensors. Nothing in the library imports this package.

Every picture is an object that a notebook shows as an image and a terminal as text; both are made
from the same data, hold no addresses or times, and are the same on every run. ``picture.alt`` is
the text, ``picture.save("x.svg")`` writes a file (also .png, .html, .txt).

Of tensors on a CUDA device what is shown is copied to the host; a ledger notes it with the line
that asked for the picture.
"""

from tensorkit.viz._backward import backward
from tensorkit.viz._benchmark import benchmark
from tensorkit.viz._broadcast import broadcast
from tensorkit.viz._gradients import gradients
from tensorkit.viz._graph import graph
from tensorkit.viz._indexing import indexing
from tensorkit.viz._landscape import landscape
from tensorkit.viz._memory import memory
from tensorkit.viz._saved import saved
from tensorkit.viz._timeline import timeline
from tensorkit.viz._training import training
from tensorkit.viz.picture import Picture

__all__ = [
    "Picture",
    "backward",
    "benchmark",
    "broadcast",
    "gradients",
    "graph",
    "indexing",
    "landscape",
    "memory",
    "saved",
    "timeline",
    "training",
]
