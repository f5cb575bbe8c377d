"""The exercise sixth-operation: a sine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course.engine import sin
from course.exercises.ch10_engine.part import Part, program_case
from course.notebook.exercise import Case, Draw, exercise


def _sin_without_slope(self):
    return self.result(np.sin(self.data), (self,), lambda g: (g,), saved=(self,))


def _sin_of_slope(self):
    return self.result(np.sin(self.data), (self,), lambda g: (g * self.sin(),), saved=(self,))


def _minus_the_slope(self):
    return self.result(
        np.sin(self.data),
        (self,),
        lambda g: (g * (self - np.pi / 2).sin(),),
        saved=(self,),
    )


def _constant_cosine(self):
    cosine = np.cos(self.data)
    return self.result(np.sin(self.data), (self,), lambda g: (g * cosine,), saved=(self,))


def _slope_without_upstream(self):
    return self.result(
        np.sin(self.data),
        (self,),
        lambda g: ((self + np.pi / 2).sin(),),
        saved=(self,),
    )


def _sine_of_tensor(self):
    return self.result(np.sin(self), (self,), lambda g: (g * np.cos(self),))


def _sine_is_an_array(self):
    return np.sin(self.data)


def _sine_without_tuple(self):
    return self.result(
        np.sin(self.data),
        (self,),
        lambda g: g * (self + np.pi / 2).sin(),
        saved=(self,),
    )


def _degrees(self):
    return self.result(
        np.sin(self.data),
        (self,),
        lambda g: (g * (self + 90.0).sin(),),
        saved=(self,),
    )


def _nothing_saved_for_sin(self):
    return self.result(np.sin(self.data), (self,), lambda g: (g * (self + np.pi / 2).sin(),))


def _cosine_of_a_tensor(self):
    return self.result(np.sin(self.data), (self,), lambda g: (g * self.cos(),), saved=(self,))


@exercise(
    "sixth-operation",
    answer=sin,
    points=0,
    difficulty=3,
    minutes=8,
    further=True,
    without=("course.engine.sin",),
)
class SixthOperation(Part):
    """A sixth operation

    Give your tensors a sine. Its slope is the cosine, and your engine has none. It needs none:
    $\\cos x = \\sin(x + \\pi/2)$, so the formula can use the operation itself.

    **Input:** `self`, a tensor, which may be empty. **Output:** the sine of every element, made by
    `self.result`. The formula reads the numbers of `self`, so it is saved. It computes with
    tensors, so that the slope has a slope in turn.

    ```python
    Tensor = tensor_with(sin)
    x = Tensor(0.0, requires_grad=True)
    x.sin().backward()
    x.grad
    # Tensor(1.)
    ```
    """

    hints = (
        "The numbers are `np.sin(self.data)`, the inputs `(self,)`, saved is `(self,)`. The "
        "operation `relu` has the same form.",
        "The cosine as a tensor: `(self + np.pi / 2).sin()`. The formula gives a tuple of one: `g` "
        "times that, and a comma.",
    )
    usual_mistakes = {
        "the gradient goes through": (
            _sin_without_slope,
            "You pass the gradient on as it is. Multiply it by the slope, which is the cosine.",
        ),
        "the sine as its slope": (
            _sin_of_slope,
            "You took the sine itself for its slope. The slope is the cosine: "
            "`(self + np.pi / 2).sin()`.",
        ),
        "the sign": (
            _minus_the_slope,
            "The sign is wrong: `sin(x - pi/2)` is minus the cosine. Add `np.pi / 2`.",
        ),
        "a cosine without a history": (
            _constant_cosine,
            "The slope is right, but it is an array of numbers without a history, so the slope of "
            "the slope is missing. Compute it with tensors: `(self + np.pi / 2).sin()`.",
        ),
        "without upstream": (
            _slope_without_upstream,
            "This is the slope alone. Multiply `g` into it.",
        ),
        "NumPy's sine of a tensor": (
            _sine_of_tensor,
            "NumPy knows arrays, no tensors of yours. The numbers are in `self.data`.",
        ),
        "an array": (
            _sine_is_an_array,
            "This is an array without a history. Hand it to `self.result`, with the inputs and the "
            "formula.",
        ),
        "no tuple": (
            _sine_without_tuple,
            "The formula gives a tensor. Give a tuple, also for one input: put a comma behind it.",
        ),
        "a cosine as a method": (
            _cosine_of_a_tensor,
            "Your tensor has no `cos`. `(self + np.pi / 2).sin()` is its cosine.",
            r"\.cos\(\)",
        ),
        "degrees": (
            _degrees,
            "90 are degrees. The sine takes radians: add `np.pi / 2`.",
        ),
        "nothing saved": (
            _nothing_saved_for_sin,
            "The formula reads the numbers of `self`. Give `saved=(self,)`, so that a change is "
            "noticed.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        v, a = draw.floats(3, 0.1, 1.4), draw.number(0.2, 1.3)
        x, y = f"x = Tensor({v}, requires_grad=True)\n", f"x = Tensor({a}, requires_grad=True)\n"
        twice = "backward(create_graph=True)\nslope = x.grad\nx.zero_grad()\n"
        yield program_case(
            "three numbers", f"{x}z = x.sin()\nz.sum().backward()", "z.data", "x.grad.data"
        )
        yield program_case("a chain", f"{x}((x * x).sin() * {v}).sum().backward()", "x.grad.data")
        yield program_case(
            "scaled", f"{y}(x.sin() * {draw.number(2, 9)}).backward()", "x.grad.data"
        )
        yield program_case(
            "the slope of a slope", f"{y}x.sin().{twice}slope.backward()", "x.grad.data"
        )
        yield program_case(
            "of a product", f"{y}(x * x.sin()).{twice}slope.backward()", "slope.data", "x.grad.data"
        )
        yield program_case(
            "what is saved", f"{x}z = x.sin()", "[each is x for each, version in z.saved]"
        )
        stale = f"with no_grad():\n    x.sub_(Tensor({a}))\n"
        yield program_case(
            "changed", f"{x}z = x.sin().sum()\n{stale}z.backward()", "x.grad.data", raises=True
        )
        yield program_case("a constant", f"z = Tensor({v}).sin()", "z.data", "z.requires_grad")
        yield program_case("no elements (empty)", "x = Tensor([])\nz = x.sin()", "z.data")
