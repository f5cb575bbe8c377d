"""The exercise as-array: the values of any tensor as a NumPy array."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tensorkit as tk
from course.exercises.ch08_devices.some_device import shown_on, some_cuda
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def as_array(t: tk.Tensor) -> np.ndarray:
    """The values of any tensor as a NumPy array."""
    return t.detach().cpu().numpy()


def _plain_numpy(t: tk.Tensor) -> Any:
    return t.numpy()


def _only_cpu(t: tk.Tensor) -> Any:
    return t.cpu().numpy()


def _only_detach(t: tk.Tensor) -> Any:
    return t.detach().numpy()


def _a_list(t: tk.Tensor) -> Any:
    return t.tolist()


def _still_a_tensor(t: tk.Tensor) -> Any:
    return t.detach().cpu()


def _through_a_list(t: tk.Tensor) -> Any:
    return np.array(t.tolist())


def _numpy_first(t: tk.Tensor) -> Any:
    return t.numpy().cpu()  # type: ignore[attr-defined]


@exercise("as-array", answer=as_array, points=2, difficulty=2, minutes=5)
class AsArray(Exercise):
    """From anywhere to NumPy

    Plots and files want NumPy arrays. Results may lie on a GPU, and they may have a history.

    **Input:** `t`, a tensor of any shape and dtype on any device, which may require grad.

    **Output:** a NumPy array with its values, shape and dtype. `t` itself stays as it is.

    ```python
    as_array(tk.tensor([1.0, 2.0], device="cuda", requires_grad=True))
    # array([1., 2.], dtype=float32)
    ```

    In the check, "on cuda" means a simulated GPU if you have no other.
    """

    hints = (
        "Two things can be in the way: NumPy cannot reach a GPU's memory, and it cannot keep a "
        "history.",
        "`.detach()` takes the history away, `.cpu()` brings the numbers to the host, and "
        "`.numpy()` wraps them.",
    )
    usual_mistakes = {
        "nothing in between": (
            _plain_numpy,
            "`.numpy()` alone works on the CPU and without a history. Take care of both first, and "
            "go on with what `.detach()` and `.cpu()` return: they leave `t` as it is.",
        ),
        "only the device": (
            _only_cpu,
            "The device is taken care of, the history is not: `.detach()` first.",
        ),
        "only the history": (
            _only_detach,
            "The history is taken care of, the device is not: `.cpu()` before `.numpy()`. There is "
            "no need to ask where `t` is; on the CPU, `.cpu()` does nothing.",
        ),
        "numpy first": (
            _numpy_first,
            "An array has no `.cpu()`. The tensor has one: `.numpy()` comes last.",
            r"numpy\(\)\.cpu",
        ),
        "a list": (_a_list, "This is a Python list. `.numpy()` gives an array."),
        "still a tensor": (_still_a_tensor, "The last step is missing: `.numpy()`."),
        "through a list": (
            _through_a_list,
            "A list of Python numbers has forgotten the dtype: floats come back as float64. Use "
            "`.numpy()`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        numbers = tk.tensor([*draw.floats(2, 1, 9), draw.number(-9, -1)])
        yield case(numbers, "cpu", False, label="on the CPU")
        yield case(numbers, "cpu", True, label="on the CPU, with a history")
        yield case(numbers, "cuda", False, label="on cuda")
        yield case(numbers, "cuda", True, label="on cuda, with a history")
        whole = tk.tensor([draw.integers(2, 1, 9) for _ in range(2)])
        yield case(whole, "cuda", False, label="whole numbers on cuda (int)")
        first, second = draw.floats(2, 1, 9)
        yield case(tk.tensor(first), "cuda", True, label="a single number on cuda (0-d)")
        yield case(tk.zeros(0, 3), "cuda", False, label="no elements on cuda (empty)")
        turned = tk.tensor([draw.floats(3, 1, 9) for _ in range(2)]).T
        yield case(turned, "cuda", True, label="turned, with a history (non-contiguous)")
        single = tk.tensor([[second]], dtype=tk.float16)
        yield case(single, "cuda", True, label="one element, with a history (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        values, device, asks = args
        with some_cuda():
            t = values.to(device, copy=True)
            return answer(t.requires_grad_() * 1 if asks else t)

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        values, device, asks = args
        history = ".requires_grad_() * 1" if asks else ""
        return f"{self.name}({shown_on(device, values, show)}{history})"
