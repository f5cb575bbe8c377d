"""Neural networks: modules, losses, first values. ``functional`` has them as functions."""

from tensorkit import absent
from tensorkit.nn import functional as functional
from tensorkit.nn import init as init
from tensorkit.nn.layers import (
    GELU,
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Flatten,
    L1Loss,
    LayerNorm,
    LeakyReLU,
    Linear,
    MSELoss,
    NLLLoss,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)
from tensorkit.nn.module import Module, ModuleList, Parameter, Sequential

# What is imported above is what ``nn`` offers.
__all__ = [name for name, offered in globals().items() if isinstance(offered, type)]

__getattr__ = absent.missing("torch.nn")
