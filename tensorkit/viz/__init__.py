"""Pictures of tensors. Nothing in the library imports this package.

Every picture is an object that a notebook shows as an image and a terminal as text; both are made
from the same data, hold no addresses or times, and are the same on every run. ``picture.alt`` is
the text, ``picture.save("x.svg")`` writes a file (also .png, .html, .txt).

Of tensors on a CUDA device what is shown is copied to the host; a ledger notes it with the line
that asked for the picture.
"""

from tensorkit.viz._backward import backward
from tensorkit.viz._bars import gradients, saved
from tensorkit.viz._curves import benchmark, landscape, training
from tensorkit.viz._dispatch import dispatch
from tensorkit.viz._graph import graph
from tensorkit.viz._grids import broadcast, indexing
from tensorkit.viz._kernel import kernel
from tensorkit.viz._memory import memory
from tensorkit.viz._timeline import timeline
from tensorkit.viz.picture import Picture

# What is imported above is what ``viz`` offers.
__all__ = [name for name, offered in globals().items() if callable(offered)]
