"""Anomaly mode: which line of the forward is to blame for an error or a nan in backward.

While it is on every node notes the line that recorded it, as in a recording; backward looks at
the result of every node and names that line.
"""

import linecache
import warnings
from collections.abc import Callable
from typing import Any

from tensorkit.autograd import origins
from tensorkit.autograd.graph import Node
from tensorkit.autograd.modes import state
from tensorkit.base import TensorBase
from tensorkit.errors import AutogradError


class set_detect_anomaly:
    """Turn anomaly mode on or off, at once; as a context, until its end.

    With ``check_nan`` a nan that backward computes is an error.

    >>> x = tk.tensor(0., requires_grad=True)
    >>> with tk.autograd.set_detect_anomaly(True):
    ...     y = x / x
    >>> tk.autograd.set_detect_anomaly(False) and None
    """

    __slots__ = ("_before", "check_nan")

    left = None  # a watcher that wants lines only

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = state.anomaly
        self.check_nan = check_nan
        self._switch(self if mode else None)

    @staticmethod
    def _switch(to: "set_detect_anomaly | None") -> None:
        if state.anomaly is not None:
            origins.leave(state.anomaly)
        state.anomaly = to
        if to is not None:
            origins.enter(to)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._switch(self._before)


class detect_anomaly(set_detect_anomaly):
    """Context in which backward names the line of the forward that made it fail.

    It warns that it is slow; otherwise it is ``set_detect_anomaly(True)``.

    >>> x = tk.tensor(0., requires_grad=True)
    >>> with tk.autograd.set_detect_anomaly(True):
    ...     y = tk.sqrt(x) * 0
    """

    __slots__ = ()

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = state.anomaly
        self._switch(self)


def watched(node: Node, run: Callable[[Any], Any], gradient: Any) -> tuple[Any, ...]:
    """The gradients from ``node``; if computing them fails, or gives nan, its line is told."""
    try:
        results: tuple[Any, ...] = tuple(run(gradient))
        if state.anomaly.check_nan:
            _refuse_nan(node, results)
    except Exception:
        warnings.warn(_where(node), UserWarning, stacklevel=2)
        raise
    return results


def _refuse_nan(node: Node, results: tuple[Any, ...]) -> None:
    for place, value in enumerate(results):
        array = value._array if isinstance(value, TensorBase) else value
        if node.edges[place] is not None and array is not None and (array != array).any():
            raise AutogradError(
                f"Function '{node.rule.node}' returned nan values in its {place}th output.",
                "Its gradient is not a number: think of 0 / 0, inf - inf, 0 * inf.",
                node=node,
                output=place,
            )


def _where(node: Node) -> str:
    if node.hooks is None or node.hooks.line is None:
        return (
            f"Error detected in {node.rule.node}. No forward pass information available. Enable "
            "detect anomaly during forward pass for more information."
        )
    file, line = node.hooks.line
    return (
        f"Error detected in {node.rule.node}. Traceback of forward call that caused the error:\n"
        f'  File "{file}", line {line}\n    {linecache.getline(file, line).strip()}\n'
    )


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on.

    >>> tk.is_anomaly_enabled()
    False
    """
    return state.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether nan in backward is an error.

    >>> tk.is_anomaly_check_nan_enabled()
    True
    """
    return state.anomaly is None or state.anomaly.check_nan
