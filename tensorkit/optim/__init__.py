"""Optimizers: they change parameters by what backward found."""

from typing import NoReturn

from tensorkit import absent
from tensorkit.optim import lr_scheduler as lr_scheduler
from tensorkit.optim.adam import Adam, AdamW
from tensorkit.optim.optimizer import Optimizer
from tensorkit.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.optim", name))
