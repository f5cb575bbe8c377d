"""Learning rates that change from epoch to epoch."""

from typing import Any, NoReturn

from tensorkit import absent
from tensorkit.optim.optimizer import Optimizer


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(absent.sentence("torch.optim.lr_scheduler", name))


class StepLR:
    """Multiplies the learning rates by ``gamma`` every ``step_size`` epochs.

    >>> optimizer = tk.optim.SGD([tk.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = tk.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.optimizer = optimizer
        self.step_size = step_size
        self.gamma = gamma
        self.last_epoch = 0

    def step(self) -> None:
        """Note that an epoch has passed."""
        self.last_epoch += 1
        if self.last_epoch % self.step_size == 0:
            for group in self.optimizer.param_groups:
                group["lr"] *= self.gamma

    def get_last_lr(self) -> list[Any]:
        """The learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """What ``load_state_dict`` takes: everything but the optimizer."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where ``state_dict`` was written."""
        vars(self).update(state_dict)
