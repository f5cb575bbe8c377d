"""The exercise which-layers: which layers a call passes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import tensorkit as tk
from course.exercises.ch08_devices.some_device import some_cuda
from course.notebook.exercise import Prediction, exercise
from tensorkit import explain


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a mode around it that passes every operation on."""

    class Log(tk.utils.DispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with Log():
            return function(*args)

    return call


@exercise("which-layers", points=2, difficulty=2, minutes=6)
class WhichLayers(Prediction):
    """Predict the layers

    Each answer is a text: the layers that the call passes, in their order, and then the device
    whose kernel runs, without a number: `cpu` or `cuda`. The layers are `autograd`, `modes` and
    `promotion`; leave out those that are skipped. `a`, `b`, `c`, `n`, `two`, `mul`, `no_grad` and
    `logged` are those of the cell above.

    One is done for you:

    ```python
    a * a      # "autograd cpu": recorded; no mode is on; both are float32
    ```
    """

    name = "layers"
    ask = 'Replace each ... by a text such as "autograd modes promotion cpu".'
    questions = {
        "b * b": "No input requires grad, no mode is on, both have one dtype: nothing is to do.",
        "a * b": "One input that requires grad is enough for a node.",
        "b * n": "float32 and int64 differ: promotion gives both one dtype.",
        "no_grad(mul)(a, b)": "Under no_grad nothing is recorded: this layer is skipped.",
        "no_grad(mul)(a, n)": "no_grad skips one layer and no other. The dtypes still differ.",
        "logged(mul)(b, b)": "A mode sees every operation, recorded or not.",
        "logged(mul)(a, n)": "Here every layer has something to do. Autograd is the outermost.",
        "c * c": "The kernel is that of the device on which the operands are.",
        "c * two": (
            "A CPU tensor without dimensions may meet a GPU tensor, and is used there. Its "
            "dtype is int64, that of `c` is float32."
        ),
    }
    hints = (
        "Go through the layers from the outside in: does an input require grad, and is recording "
        "on? Is a mode on? Do the dtypes differ? Where are the operands?",
        "`explain.dispatch(tk.mul, a, b)` answers each of these questions for a call.",
    )
    usual_mistakes = {
        "always recorded": (
            {
                "b * b": "autograd cpu",
                "b * n": "autograd promotion cpu",
                "logged(mul)(b, b)": "autograd modes cpu",
                "c * c": "autograd cuda",
                "c * two": "autograd promotion cuda",
            },
            "Autograd has nothing to do if no input requires grad. Then the layer is skipped.",
        ),
        "no_grad does nothing": (
            {
                "no_grad(mul)(a, b)": "autograd cpu",
                "no_grad(mul)(a, n)": "autograd promotion cpu",
            },
            "Under `no_grad` the layer of autograd is skipped, whatever the inputs say.",
        ),
        "no_grad skips all": (
            {"no_grad(mul)(a, n)": "cpu", "logged(mul)(a, n)": "autograd modes cpu"},
            "Promotion does not depend on recording, nor on modes: float32 and int64 differ.",
        ),
        "always promoted": (
            {
                "b * b": "promotion cpu",
                "a * b": "autograd promotion cpu",
                "no_grad(mul)(a, b)": "promotion cpu",
                "logged(mul)(b, b)": "modes promotion cpu",
                "c * c": "promotion cuda",
            },
            "Operands of one dtype and one shape need no promotion: the layer is skipped.",
        ),
    }

    def how_to_look(self, expression: str) -> str:
        return f"`explain.dispatch(lambda: {expression})` shows the layers of this call."

    def evaluate(self, expression: str) -> Any:
        with tk.device("cpu"), some_cuda():
            names = {
                "a": tk.ones(2, requires_grad=True),
                "b": tk.ones(2),
                "c": tk.ones(2, device="cuda"),
                "n": tk.tensor([1, 2]),
                "two": tk.tensor(2),
                "mul": tk.mul,
                "no_grad": tk.no_grad(),
                "logged": logged,
            }
            route = explain.dispatch(lambda: eval(expression, names)).routes[-1]
        *layers, device = route.layers
        passed = [layer.name for layer in layers if layer.is_passed]
        return " ".join([*passed, re.split("[:;]", device.reason)[0]])

    def run(self, answer: Any, *args: Any) -> Any:
        """The prediction, however its words are set apart."""
        text = super().run(answer, *args)
        return " ".join(re.findall("[a-z_]+", text.lower())) if isinstance(text, str) else text
