"""Neural networks: modules, losses, first values. ``functional`` has them as functions."""

from typing import NoReturn

from tensorkit import absent
from tensorkit.nn import functional as functional
from tensorkit.nn import init as init
from tensorkit.nn import utils as utils
from tensorkit.nn.containers import ModuleDict, ModuleList, Sequential
from tensorkit.nn.layers import (
    GELU,
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Flatten,
    Identity,
    L1Loss,
    LayerNorm,
    LeakyReLU,
    Linear,
    LogSoftmax,
    MSELoss,
    NLLLoss,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from tensorkit.nn.module import Module, Parameter

# What is imported above is what ``nn`` offers.
__all__ = [name for name, offered in globals().items() if isinstance(offered, type)]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.nn", name))
