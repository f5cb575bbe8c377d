"""Losses as modules: ``nn.functional`` with the settings kept."""

from typing import Any

from tensorkit._tensor import Tensor
from tensorkit.errors import ShapeError, message
from tensorkit.nn import functional as F
from tensorkit.nn.module import Module


class _Loss(Module):
    """A loss of an input and a target; tensors among its settings are buffers.

    ``given`` came without a name, where PyTorch has options that are no longer to be used.
    """

    function: Any  # of nn.functional

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if any(isinstance(each, Tensor) for each in given):
            raise ShapeError(
                "Boolean value of Tensor with more than one value is ambiguous",
                "A loss is made with its settings and then called with input and target.",
                repair=f"tk.nn.{name}()(input, target)",
            )
        if given:
            raise TypeError(message(f"{name} takes its settings by name", repair='reduction="sum"'))
        self.settings = tuple(settings)  # in the order in which the function takes them
        for name, value in settings.items():
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        own, weights = self.__dict__, self._buffers
        settings = [own[name] if name in own else weights[name] for name in self.settings]
        return type(self).function(input, target, *settings)


class MSELoss(_Loss):
    """The mean of the squared differences.

    >>> tk.nn.MSELoss()(tk.tensor([1., 2.]), tk.tensor([1., 4.]))
    tensor(2.)
    """

    function = staticmethod(F.mse_loss)

    def __init__(self, *given: Any, reduction: str = "mean") -> None:
        super().__init__(*given, reduction=reduction)


class L1Loss(_Loss):
    """The mean of the absolute differences."""

    function = staticmethod(F.l1_loss)

    def __init__(self, *given: Any, reduction: str = "mean") -> None:
        super().__init__(*given, reduction=reduction)


class NLLLoss(_Loss):
    """Minus the log-probability of each item's class."""

    function = staticmethod(F.nll_loss)

    def __init__(
        self,
        weight: Tensor | None = None,
        *given: Any,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(*given, weight=weight, ignore_index=ignore_index, reduction=reduction)


class CrossEntropyLoss(_Loss):
    """Minus the log-probability of each item's class, from scores.

    >>> tk.nn.CrossEntropyLoss()(tk.tensor([[0., 0.]]), tk.tensor([1]))
    tensor(0.6931)
    """

    function = staticmethod(F.cross_entropy)

    def __init__(
        self,
        weight: Tensor | None = None,
        *given: Any,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            *given,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )


class BCELoss(_Loss):
    """Binary cross entropy of probabilities."""

    function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight: Tensor | None = None, *given: Any, reduction: str = "mean") -> None:
        super().__init__(*given, weight=weight, reduction=reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of scores, of which it takes the sigmoid."""

    function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(
        self,
        weight: Tensor | None = None,
        *given: Any,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(*given, weight=weight, reduction=reduction, pos_weight=pos_weight)
