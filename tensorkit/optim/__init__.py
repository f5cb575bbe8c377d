"""Optimizers: they change parameters by what backward found."""

from typing import NoReturn

from tensorkit import absent
from tensorkit.optim import lr_scheduler as lr_scheduler
from tensorkit.optim.optimizer import SGD, Adam, AdamW, Optimizer

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.optim", name))
