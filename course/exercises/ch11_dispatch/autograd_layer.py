"""The exercise autograd-layer: a multiplication that is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def mul_with_autograd(
    x: tk.Tensor, y: tk.Tensor, recording: bool
) -> tuple[tk.Tensor, dict[str, tk.Tensor | None] | None]:
    """The product of two tensors, and its node; None where the layer is skipped."""
    product = x.detach() * y.detach()
    if not (recording and (x.requires_grad or y.requires_grad)):
        return product, None
    node = {
        "x": y if x.requires_grad else None,
        "y": x if y.requires_grad else None,
    }
    return product, node


def _never_recorded(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return x.detach() * y.detach(), None


def _recording_ignored(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return mul_with_autograd(x, y, True)


def _all_must_ask(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return mul_with_autograd(x, y, recording and x.requires_grad and y.requires_grad)


def _always_a_node(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    return product, node or ({"x": None, "y": None} if recording else None)


def _empty_inside_no_grad(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    return product, node or {}


def _saves_everything(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    return product, node and {"x": y, "y": x}


def _saves_its_own(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    saved = {"x": x if x.requires_grad else None, "y": y if y.requires_grad else None}
    return product, node and saved


def _the_other_one_asked(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    saved = {"x": y if y.requires_grad else None, "y": x if x.requires_grad else None}
    return product, node and saved


def _y_is_forgotten(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    return product, node and {"x": node["x"], "y": None}


def _x_alone_is_asked(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return mul_with_autograd(x, y, recording and x.requires_grad)


def _switched_off(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    asks = x.requires_grad, y.requires_grad
    product = x.requires_grad_(False) * y.requires_grad_(False)
    if not (recording and any(asks)):
        return product, None
    return product, {"x": y if asks[0] else None, "y": x if asks[1] else None}


def _only_the_node(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return mul_with_autograd(x, y, recording)[1]


@exercise("autograd-layer", answer=mul_with_autograd, points=3, difficulty=3, minutes=8)
class AutogradLayer(Exercise):
    """The layer of autograd

    Write the outermost layer of a multiplication: it computes the product by the layers below, and
    then records, or not. The product has no history of its own: compute `x.detach() * y.detach()`.

    **Input:** `x` and `y`, tensors, each of which may require grad; `recording`, False inside
    `no_grad`.

    **Output:** the product and its node. The node is None if the layer is skipped: if recording is
    off, or no input requires grad. Otherwise it is a dictionary with the entries `"x"` and `"y"`:
    under each the tensor that the gradient **of this input** needs, or None if this input does not
    require grad. The slope of $x y$ with respect to $x$ is $y$. `x` and `y` stay as they are.

    ```python
    w = tk.tensor([3.0], requires_grad=True)
    x = tk.tensor([2.0])
    mul_with_autograd(w, x, True)
    # (tensor([6.]), {"x": tensor([2.]), "y": None})
    mul_with_autograd(w, x, False)
    # (tensor([6.]), None)
    ```
    """

    hints = (
        "The product is computed in any case. What is recorded depends on two questions: is "
        "recording on, and does at least one input require grad?",
        "Return early where the layer is skipped: `if not (recording and (... or ...)):`.",
        'The node: `{"x": y if x.requires_grad else None, ...}`, and for `"y"` the same crosswise.',
    )
    usual_mistakes = {
        "never recorded": (
            _never_recorded,
            "The product is right, and it never has a node. If recording is on and an input "
            "requires grad, record it.",
        ),
        "recording ignored": (
            _recording_ignored,
            "You record although `recording` is False. Inside `no_grad` this layer is skipped.",
        ),
        "all must ask": (
            _all_must_ask,
            "One input that requires grad is enough: the product of a weight and the data has a "
            "gradient. Use `or`.",
        ),
        "always a node": (
            _always_a_node,
            "Where no input requires grad there is nothing to record: the node is None.",
        ),
        "an empty node": (
            _empty_inside_no_grad,
            "Where the layer is skipped there is no node at all: None, not an empty dictionary.",
        ),
        "saves everything": (
            _saves_everything,
            "Your node keeps both tensors. Keep only what a gradient needs that is asked for: "
            "the rest costs memory until backward.",
        ),
        "saves its own": (
            _saves_its_own,
            "The gradient of `x` needs the other factor: the slope of $x y$ with respect to $x$ is "
            "$y$. Save them crosswise.",
        ),
        "the other one is asked": (
            _the_other_one_asked,
            'The entry `"x"` is for the gradient of `x`, so it is there if `x` requires grad. What '
            "is saved in it is the other tensor.",
        ),
        "y is forgotten": (
            _y_is_forgotten,
            "Your node never keeps anything for `y`. Where `y` requires grad, its gradient needs "
            '`x`: `"y": x if y.requires_grad else None`.',
        ),
        "x alone is asked": (
            _x_alone_is_asked,
            "You record only if `x` requires grad. `y` may ask for a gradient alone: use `or`.",
        ),
        "requires_grad is changed": (
            _switched_off,
            "`x` and `y` are not as they were: their numbers or their `requires_grad` have "
            "changed. `x.detach()` gives a tensor that does not require grad, and leaves `x` as it "
            "is.",
            r"requires_grad_\(|requires_grad = |detach_\(",
        ),
        "only the node": (
            _only_the_node,
            "You return the node alone. The caller needs the product: return both, "
            "`return product, node`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def vector(n: int = 3) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 1, 9))

        yield case(vector(), True, vector(), False, True, label="a weight and the data")
        yield case(vector(), False, vector(), True, True, label="the data and a weight")
        yield case(vector(), False, vector(1), True, True, label="data and one weight (size 1)")
        yield case(vector(), True, vector(), True, True, label="two weights")
        yield case(vector(), False, vector(), False, True, label="no input requires grad")
        yield case(
            vector(), False, vector(1), False, True, label="no input, one of size 1 (size 1)"
        )
        yield case(vector(), True, vector(), False, False, label="a weight, inside no_grad")
        yield case(vector(), True, vector(), True, False, label="two weights, inside no_grad")
        yield case(vector(), False, vector(), False, False, label="no input, inside no_grad")
        yield case(vector(0), True, vector(0), False, True, label="no elements (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """What is returned, whether the product has a history of its own, and the inputs."""
        x, x_asks, y, y_asks, recording = args
        inputs = x.clone().requires_grad_(x_asks), y.clone().requires_grad_(y_asks)
        result = answer(*inputs, recording)
        product = result[0] if isinstance(result, list | tuple) and result else None
        has_history = isinstance(product, tk.Tensor) and product.requires_grad
        now = {
            name: [tensor.detach().clone(), tensor.requires_grad]
            for name, tensor in zip(("x afterwards", "y afterwards"), inputs, strict=True)
        }
        return Seen({"returned": result, "the product has a history": has_history, **now})

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        x, x_asks, y, y_asks, recording = args
        first, second = (
            f"{show(tensor)}{'.requires_grad_()' if asks else ''}"
            for tensor, asks in ((x, x_asks), (y, y_asks))
        )
        return f"{self.name}({first}, {second}, {recording})"
