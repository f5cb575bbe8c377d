"""Answers to the questions that tensors raise. Nothing in the library imports this package.

Each function returns an explanation: sentences with the numbers in question, and repairs as code;
``source`` shows the lines of the library themselves.
"""

from tensorkit.explain._broadcast import broadcast
from tensorkit.explain._dispatch import dispatch
from tensorkit.explain._gradients import inplace, no_grad
from tensorkit.explain._source import Source, source
from tensorkit.viz.picture import Explanation

__all__ = ["Explanation", "Source", "broadcast", "dispatch", "inplace", "no_grad", "source"]
