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

__all__ = [
    "GELU",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.nn", name))
