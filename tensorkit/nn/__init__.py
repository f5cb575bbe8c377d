"""Neural networks: modules, losses, first values. ``functional`` has them as functions."""

from typing import NoReturn

from tensorkit import absent
from tensorkit.nn import functional as functional
from tensorkit.nn import init as init
from tensorkit.nn import utils as utils
from tensorkit.nn.containers import ModuleDict, ModuleList, Sequential
from tensorkit.nn.layers import (
    GELU,
    Dropout,
    Embedding,
    Flatten,
    Identity,
    LayerNorm,
    LeakyReLU,
    Linear,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from tensorkit.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
)
from tensorkit.nn.module import Module
from tensorkit.nn.parameter import Parameter

# What is imported above is what ``nn`` offers.
__all__ = [name for name, offered in globals().items() if isinstance(offered, type)]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.nn", name))
