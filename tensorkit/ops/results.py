"""From an array to a result: run a forward, make a tensor, record it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorkit import base
from tensorkit.autograd import history
from tensorkit.autograd.marks import INFERENCE
from tensorkit.autograd.modes import state
from tensorkit.base import Tensor
from tensorkit.devices import Device, is_array
from tensorkit.ops.planning import Definition
from tensorkit.quiet import quiet, quietly


def finished(result: Tensor) -> Tensor:
    """A result that needs no node; in inference mode it is marked."""
    if state.inference:
        result._node = INFERENCE
    return result


def contiguous_result(array: Any, device: Device) -> Tensor:
    """A tensor with the standard strides, on a fresh array or number."""
    return base.new(base.contiguous(array, device))


def run(forward: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """``forward`` with NumPy's reports off; always an array, never a NumPy scalar."""
    try:
        array = quiet.run(forward, *args, **options)
    except RuntimeError:
        array = None
    if array is None:  # `quiet` refuses, or an error that will come again, alone
        array = quietly(forward, *args, **options)
    return array if is_array(array) else np.asarray(array)


def recorded(definition: Definition, result: Tensor, values: dict[str, Any]) -> Tensor:
    """``result`` with a node if one of the inputs among ``values`` is tracked."""
    return history.record(definition.rules.get(None), result, values)
