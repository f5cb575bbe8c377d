"""Pictures of tensors. Nothing in the library imports this package.

Every picture is an object that a notebook shows as SVG and a terminal as text; both are made from
the same data, hold no addresses or times, and are the same on every run.
"""

from tensorkit.viz._memory import MemoryPicture, memory

__all__ = ["MemoryPicture", "memory"]
