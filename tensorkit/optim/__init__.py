"""Optimizers: they change parameters by what backward found."""

from tensorkit.optim import lr_scheduler as lr_scheduler
from tensorkit.optim.adam import Adam, AdamW
from tensorkit.optim.optimizer import Optimizer
from tensorkit.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
