"""The exercise own-tensor: a class with numbers and a place for their gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from course.engine import Basics, numbers
from course.exercises.ch10_engine.part import Part, names_of, program_case
from course.notebook.exercise import Case, Draw, exercise


class _SharedArray(Basics):
    def __init__(self, data, requires_grad=False):
        super().__init__(data, requires_grad)
        self.data = np.asarray(data, dtype=np.float64)


class _AnyDtype(Basics):
    def __init__(self, data, requires_grad=False):
        super().__init__(data, requires_grad)
        self.data = np.array(data)


class _NoArray(Basics):
    def __init__(self, data, requires_grad=False):
        super().__init__(data, requires_grad)
        self.data = data


class _GradientOfZeros(Basics):
    def __init__(self, data, requires_grad=False):
        super().__init__(data, requires_grad)
        self.grad = np.zeros(self.data.shape)


class _NeverAsked(Basics):
    def __init__(self, data, requires_grad=False):
        super().__init__(data)


class _AlwaysAsked(Basics):
    def __init__(self, data, requires_grad=True):
        super().__init__(data, True)


class _ZeroNumbers(Basics):
    def zero_grad(self):
        self.grad = np.zeros(self.data.shape)


class _NoInit:
    def zero_grad(self):
        self.grad = None


class _SelfForgotten:
    def __init__(data, requires_grad=False):
        self.data = np.array(data, dtype=np.float64)  # noqa: F821

    def zero_grad(self):
        self.grad = None


_SelfForgotten.__init__.__qualname__ = "Basics.__init__"  # as Python's error names it


class _NotKept(Basics):
    def __init__(self, data, requires_grad=False):
        super().__init__(data)
        del self.requires_grad


class _TheCounter(Basics):
    def __init__(self, data, requires_grad=False):
        super().__init__(data, requires_grad)
        self.number = numbers


class _NumberOfZero(Basics):
    def __init__(self, data, requires_grad=False):
        super().__init__(data, requires_grad)
        self.number = 0


class _OneListForAll(Basics):
    noted: ClassVar[list[object]] = []

    def __init__(self, data, requires_grad=False):
        super().__init__(data, requires_grad)
        self.saved = self.noted


@exercise(
    "own-tensor",
    answer=Basics,
    points=2,
    difficulty=2,
    minutes=5,
    without=names_of(Basics),
)
class OwnTensor(Part):
    """A tensor of your own

    Write the class from the beginning: `__init__`, which makes a tensor from numbers, and
    `zero_grad`, which sets its gradient back to None.

    **Input of `__init__`:** `self`, the new tensor; `data`, a number, a list or an array;
    `requires_grad`, False unless somebody says otherwise.

    **What `__init__` sets:** these eight attributes of `self`.

    | Attribute | At the beginning |
    |---|---|
    | `data` | the numbers in an array of its own, with the dtype `np.float64` |
    | `requires_grad` | as given |
    | `grad` | None |
    | `inputs` | `()` |
    | `formula` | None |
    | `saved` | `[]` |
    | `version` | 0 |
    | `number` | `next(numbers)` |

    "Of its own" means: whoever writes into `data` later does not change the tensor. The list
    `saved` is its own, too: no other tensor has the same list. A single number makes a 0-d array;
    no numbers at all, `Tensor([])`, make an empty one.

    ```python
    Tensor = tensor_with(Basics)
    x = Tensor([1, 2], requires_grad=True)
    x.data, x.requires_grad, x.grad
    # (array([1., 2.]), True, None)
    ```
    """

    hints = (
        "A method is a function inside of the class: `def __init__(self, data, "
        "requires_grad=False):`. In its body each attribute is a line, as `self.grad = None`.",
        "`np.array(data, dtype=np.float64)` always makes a new array. `np.asarray` hands back the "
        "one that it got, if the dtype is right already.",
        "The second method has one line: `def zero_grad(self):` and `self.grad = None`.",
    )
    usual_mistakes = {
        "the caller's array": (
            _SharedArray,
            "Your tensor and the caller share an array: a write into one shows in the other. "
            "`np.array` copies, `np.asarray` does not.",
        ),
        "whole numbers": (
            _AnyDtype,
            "The dtype is the one of the numbers that came: whole numbers stay whole. Ask for "
            "`dtype=np.float64`.",
        ),
        "no array": (
            _NoArray,
            "`data` is kept as it came. Make an array of it: `np.array(data, dtype=np.float64)`.",
        ),
        "a gradient of zeros": (
            _GradientOfZeros,
            "Your tensor begins with a gradient of zeros. None says that no backward came by yet.",
        ),
        "never asked": (
            _NeverAsked,
            "`requires_grad` is False even where True was given. Keep the argument in "
            "`self.requires_grad`.",
        ),
        "always asked": (
            _AlwaysAsked,
            "`requires_grad` is True even where nobody asked for it. Its default is False.",
        ),
        "zeros instead of None": (
            _ZeroNumbers,
            "`zero_grad` leaves zeros. Set `self.grad` to None, as PyTorch does since version 2.0.",
        ),
        "no __init__": (
            _NoInit,
            "Python finds no `__init__`. It has two underscores on either side, and stands inside "
            "of the class.",
        ),
        "self forgotten": (
            _SelfForgotten,
            "`self` is missing. It is the first parameter of every method: "
            "`def __init__(self, data, requires_grad=False):`.",
        ),
        "not kept": (
            _NotKept,
            "The tensor has no attribute `requires_grad`. Write `self.requires_grad = "
            "requires_grad`; without `self.` the name is gone when `__init__` ends.",
        ),
        "the counter": (
            _TheCounter,
            "You keep the counter itself. `next(numbers)` takes the next number out of it.",
        ),
        "one number for all": (
            _NumberOfZero,
            "All of your tensors have the same `number`. `next(numbers)` gives each the next one.",
        ),
        "one list for all": (
            _OneListForAll,
            "All of your tensors have the same list `saved`. Make a new one in `__init__`: "
            "`self.saved = []`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        a, b, c = (draw.floats(3, 1, 9) for _ in range(3))
        n, m = draw.integers(3, 2, 99), draw.integers(2, 2, 99)
        noted = ("x.inputs", "x.formula", "x.saved", "x.version")
        yield program_case(
            "three numbers", f"x = Tensor({a})", "x.data", "x.requires_grad", "x.grad"
        )
        yield program_case(
            "one that requires grad",
            f"x = Tensor({b}, requires_grad=True)",
            "x.data",
            "x.requires_grad",
            "x.grad",
        )
        yield program_case("what is noted", f"x = Tensor({c})", *noted)
        yield program_case("whole numbers", f"x = Tensor({n})", "x.data")
        yield program_case("rows of whole numbers", f"x = Tensor([{m}, {n[:2]}])", "x.data")
        yield program_case(
            "an array that is written into",
            f"numbers = np.array({a})\nx = Tensor(numbers)\nnumbers[0] = 0.0",
            "x.data",
        )
        yield program_case(
            "a tensor that is written into",
            f"numbers = np.array({b})\nx = Tensor(numbers)\nx.data[1] = 0.0",
            "numbers",
        )
        yield program_case(
            "the younger of two",
            f"x = Tensor({a})\ny = Tensor({b})",
            "y.number > x.number",
        )
        yield program_case(
            "youngest of four", f"x = Tensor({c})\ny = x * 2.0 + 1.0", "y.number - x.number > 2"
        )
        lists = "x.saved is y.saved", "x.saved"
        yield program_case("two lists", f"x = Tensor({a})\ny = Tensor({b})", *lists)
        yield program_case("the list of a leaf", f"y = Tensor({c})\nx = y * 2.0", *lists)
        yield program_case(
            "a gradient set back",
            f"x = Tensor({a}, requires_grad=True)\nx.grad = Tensor({b})\nx.zero_grad()",
            "x.grad",
            "x.requires_grad",
        )
        yield program_case(
            "set back after backward",
            f"x = Tensor({c}, requires_grad=True)\ny = x * x\ny.sum().backward()\n"
            "x.zero_grad()\ny.zero_grad()",
            "x.grad",
            "x.data",
            "len(y.inputs)",
        )
        yield program_case(
            "a single number (0-d)", f"x = Tensor({a[0]})", "x.data", "x.requires_grad"
        )
        yield program_case("no numbers (empty)", "x = Tensor([])", "x.data", "x.grad")
