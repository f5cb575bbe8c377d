"""The exercises of chapter 10, Build your own engine, in the order of its text.

The reference answers of the core are the parts of `course.engine`. Here stand what learners write
instead, and the definitions. A case is a short program on a class `Tensor` that has the learner's
part, and expressions whose values afterwards are compared.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from course import engine
from course.engine import (
    Basics,
    Operations,
    Writing,
    grad_mode,
    no_grad,
    numbers,
    propagate,
    result,
    sin,
)
from course.engine.assembly import tried
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen


class Part(Exercise):
    """A part of the engine, tried among the course's other parts."""

    imports = "from course.engine import grad_mode, no_grad, numbers"

    def run(self, answer: Any, *args: Any) -> Any:
        program, *looks = args
        return Seen(tried(answer, self.name, program, tuple(looks)))

    def is_answer(self, answer: Any) -> str | None:
        if isinstance(self.reference, type) and inspect.isfunction(answer):
            return (
                f"`{self.name}` should be a class, and it is a function. Begin the answer cell "
                f"with `class {self.name}:` and run it again."
            )
        return super().is_answer(answer)

    def describe_call(self, args: tuple[Any, ...], show: Any) -> str:
        program, *looks = args
        begin = "" if self.name == "no_grad" else f"Tensor = tensor_with({self.name})\n"
        return "\n".join([f"{begin}{program}", *looks])


def _case(label: str, program: str, *looks: str, weight: float = 1.0, raises: bool = False) -> Case:
    return case(inspect.cleandoc(program), *looks, label=label, weight=weight, raises=raises)


def _names_of(part: type) -> tuple[str, ...]:
    """The methods of a part of the course, by the names under which they are refused."""
    members = (name for name, each in vars(part).items() if inspect.isfunction(each))
    return tuple(f"course.engine.{part.__name__}.{name}" for name in members)


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


@exercise(
    "own-tensor",
    answer=Basics,
    points=2,
    difficulty=2,
    minutes=5,
    without=_names_of(Basics),
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

    "Of its own" means: whoever writes into `data` later does not change the tensor. A single number
    makes a 0-d array; no numbers at all, `Tensor([])`, make an empty one.

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
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        a, b, c = (draw.floats(3, 1, 9) for _ in range(3))
        n, m = draw.integers(3, 2, 99), draw.integers(2, 2, 99)
        noted = ("x.inputs", "x.formula", "x.saved", "x.version")
        yield _case("three numbers", f"x = Tensor({a})", "x.data", "x.requires_grad", "x.grad")
        yield _case(
            "one that requires grad",
            f"x = Tensor({b}, requires_grad=True)",
            "x.data",
            "x.requires_grad",
            "x.grad",
        )
        yield _case("what is noted", f"x = Tensor({c})", *noted)
        yield _case("whole numbers", f"x = Tensor({n})", "x.data")
        yield _case("rows of whole numbers", f"x = Tensor([{m}, {n[:2]}])", "x.data")
        yield _case(
            "an array that is written into",
            f"numbers = np.array({a})\nx = Tensor(numbers)\nnumbers[0] = 0.0",
            "x.data",
        )
        yield _case(
            "a tensor that is written into",
            f"numbers = np.array({b})\nx = Tensor(numbers)\nx.data[1] = 0.0",
            "numbers",
        )
        yield _case(
            "the younger of two",
            f"x = Tensor({a})\ny = Tensor({b})",
            "y.number > x.number",
        )
        yield _case(
            "youngest of four", f"x = Tensor({c})\ny = x * 2.0 + 1.0", "y.number - x.number > 2"
        )
        yield _case(
            "a gradient set back",
            f"x = Tensor({a}, requires_grad=True)\nx.grad = Tensor({b})\nx.zero_grad()",
            "x.grad",
        )
        yield _case(
            "set back after backward",
            f"x = Tensor({c}, requires_grad=True)\n(x * x).sum().backward()\nx.zero_grad()",
            "x.grad",
            "x.data",
        )
        yield _case("a single number (0-d)", f"x = Tensor({a[0]})", "x.data", "x.requires_grad")
        yield _case("no numbers (empty)", "x = Tensor([])", "x.data", "x.grad")


def _recorded(self: Any, data: Any, inputs: Any, formula: Any, saved: Any) -> Any:
    new = type(self)(data)
    new.requires_grad, new.inputs, new.formula = True, tuple(inputs), formula
    new.saved = [(each, each.version) for each in saved]
    return new


def _all_must_ask(self, data, inputs, formula, saved=()):
    asked = grad_mode.enabled and all(each.requires_grad for each in inputs)
    return _recorded(self, data, inputs, formula, saved) if asked else type(self)(data)


def _only_self(self, data, inputs, formula, saved=()):
    asked = grad_mode.enabled and inputs[0].requires_grad
    return _recorded(self, data, inputs, formula, saved) if asked else type(self)(data)


def _always_recorded(self, data, inputs, formula, saved=()):
    return _recorded(self, data, inputs, formula, saved)


def _without_the_mode(self, data, inputs, formula, saved=()):
    asked = any(each.requires_grad for each in inputs)
    return _recorded(self, data, inputs, formula, saved) if asked else type(self)(data)


def _constants_with_history(self, data, inputs, formula, saved=()):
    new = _recorded(self, data, inputs, formula, saved)
    new.requires_grad = grad_mode.enabled and any(each.requires_grad for each in inputs)
    return new


def _without_versions(self, data, inputs, formula, saved=()):
    new = result(self, data, inputs, formula, saved)
    new.saved = [each for each, _ in new.saved]
    return new


def _all_saved(self, data, inputs, formula, saved=()):
    return result(self, data, inputs, formula, inputs)


def _none_saved(self, data, inputs, formula, saved=()):
    return result(self, data, inputs, formula)


def _no_requires_grad(self, data, inputs, formula, saved=()):
    new = result(self, data, inputs, formula, saved)
    new.requires_grad = False
    return new


@exercise(
    "record-result",
    answer=result,
    points=3,
    difficulty=3,
    minutes=7,
    without=("course.engine.result",),
)
class RecordResult(Part):
    """Remember how it was made

    Every operation computes its numbers and hands them to `result`. Write this method: it makes the
    new tensor, and notes its history if that will be needed.

    **Input:** `self`, the tensor that was computed with; `data`, the numbers of the result, perhaps
    0-d; `inputs`, the tensors that it was made of, a tuple; `formula`, a function; `saved`, those
    tensors whose numbers the formula will read.

    **Output:** a new tensor, `type(self)(data)`. If recording is on, `grad_mode.enabled`, *and* at
    least one of the inputs requires grad, four of its attributes are set:

    | Attribute | Value |
    |---|---|
    | `requires_grad` | True |
    | `inputs` | the inputs, a tuple |
    | `formula` | the formula |
    | `saved` | a list of pairs, each a tensor of `saved` and its `version` now |

    Otherwise the new tensor stays as it is: a constant, which remembers nothing.

    ```python
    Tensor = tensor_with(result)
    x = Tensor(3.0, requires_grad=True)
    y = x * 2.0
    y.data, y.requires_grad, y.inputs[0] is x
    # (array(6.), True, True)
    ```
    """

    hints = (
        "Make the tensor first, `new = type(self)(data)`, and return it at the end. Between the "
        "two stands one `if` with four lines.",
        "`any(each.requires_grad for each in inputs)` is True if at least one of them requires "
        "grad. Both conditions must hold: `grad_mode.enabled and any(...)`.",
        "The pairs: `[(each, each.version) for each in saved]`.",
    )
    usual_mistakes = {
        "all must ask": (
            _all_must_ask,
            "You ask whether all of the inputs require grad. One is enough: a product of a weight "
            "and a constant has a gradient. Use `any`.",
        ),
        "only the first input": (
            _only_self,
            "You look at the first input alone. In `c * x` it is the second that requires grad.",
        ),
        "always recorded": (
            _always_recorded,
            "What is made of constants alone is recorded too, and so is what `no_grad` should keep "
            "out. Both conditions must hold: recording is on, and an input requires grad.",
        ),
        "the mode is not looked at": (
            _without_the_mode,
            "Inside `with no_grad():` your results still remember. Look at `grad_mode.enabled`, "
            "too.",
        ),
        "constants with a history": (
            _constants_with_history,
            "`requires_grad` is right, but a constant of yours keeps its inputs, and with them all "
            "their memory. Set the four attributes in the `if`, all together.",
        ),
        "no version": (
            _without_versions,
            "`saved` holds tensors alone. Keep pairs of the tensor and its version: later the two "
            "are compared.",
        ),
        "all inputs saved": (
            _all_saved,
            "You save all inputs. Save those in `saved`: the formula of `+` reads no numbers, so "
            "nothing needs to be kept for it.",
        ),
        "nothing saved": (
            _none_saved,
            "`saved` stays empty. Keep a pair for each tensor of the argument `saved`.",
        ),
        "requires_grad not set": (
            _no_requires_grad,
            "The history is there, but `requires_grad` is False, so nobody will follow it.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        a, b = (draw.floats(2, 2, 9) for _ in range(2))
        leaf, other = f"x = Tensor({a}, requires_grad=True)", f"Tensor({b}, requires_grad=True)"
        looks = "z.requires_grad", "len(z.inputs)", "z.formula is None", "len(z.saved)"
        yield _case("two that require grad", f"{leaf}\ny = {other}\nz = x * y", "z.data", *looks)
        yield _case("its inputs", f"{leaf}\nz = x * x", "[each is x for each in z.inputs]")
        yield _case("a leaf and a constant", f"{leaf}\nz = x * Tensor({b})", *looks)
        yield _case("a constant and a leaf", f"{leaf}\nz = Tensor({b}) * x", *looks)
        yield _case("a constant plus a leaf", f"{leaf}\nz = Tensor({b}) + x", *looks)
        yield _case("two constants", f"z = Tensor({a}) * Tensor({b})", "z.data", *looks)
        yield _case("a constant alone", f"z = Tensor({a}).relu()", "z.data", *looks)
        yield _case("without recording", f"{leaf}\nwith no_grad():\n    z = x * 2.0", *looks)
        yield _case("a sum without recording", f"{leaf}\nwith no_grad():\n    z = x.sum()", *looks)
        yield _case("nothing is saved", f"{leaf}\nz = x + {other}", "z.saved", *looks[:3])
        yield _case("nothing is saved for relu", f"{leaf}\nz = x.relu()", "z.saved", "z.data")
        write = f"with no_grad():\n    x.sub_(Tensor({b}))"
        pairs = "[(each is x, version) for each, version in z.saved]"
        yield _case("versions", f"{leaf}\nz = x * x", pairs)
        yield _case("versions after a write", f"{leaf}\n{write}\nz = x * x", pairs)
        yield _case(
            "versions of two",
            f"{leaf}\ny = {other}\nwith no_grad():\n    y.sub_(x)\nz = x * y",
            "[(each is x, each is y, version) for each, version in z.saved]",
        )
        yield _case("gradients", f"{leaf}\n(x * x * {b[0]}).sum().backward()", "x.grad.data")
        yield _case(
            "a single number (0-d)",
            f"x = Tensor({a[0]}, requires_grad=True)\nz = x * x\nz.backward()",
            "z.data",
            "x.grad.data",
        )


class _Program(Operations):
    def __add__(self, other):
        other = self.as_tensor(other)
        return self.result(
            self.data + other.data,
            (self, other),
            lambda g: (g, g),
        )

    def __mul__(self, other):
        other = self.as_tensor(other)
        return self.result(
            self.data * other.data,
            (self, other),
            lambda g: ...,  # a tuple: the gradient of self, the gradient of other
            saved=(self, other),
        )

    def __matmul__(self, other):
        other = self.as_tensor(other)
        return ...  # as in __mul__, with the numbers self.data @ other.data

    def relu(self):
        positive = self.data > 0
        return ...  # the numbers, (self,), a formula that gives a tuple of one gradient

    def sum(self):
        ones = np.ones(self.data.shape)
        return ...  # the numbers self.data.sum(), (self,), a formula with ones in it


def _product(self, other, formula):
    other = self.as_tensor(other)
    both = (self, other)
    return self.result(self.data * other.data, both, lambda g: formula(g, *both), saved=both)


def _matrix_product(self, other, formula):
    other = self.as_tensor(other)
    both = (self, other)
    return self.result(self.data @ other.data, both, lambda g: formula(g, *both), saved=both)


class _OwnFactor(Operations):
    def __mul__(self, other):
        return _product(self, other, lambda g, a, b: (g * a, g * b))


class _WithoutUpstream(Operations):
    def __mul__(self, other):
        return _product(self, other, lambda g, a, b: (b, a))


class _NumbersInFormulas(Operations):
    def __mul__(self, other):
        return _product(self, other, lambda g, a, b: (g * b.data, g * a.data))


class _ArraysInFormulas(Operations):
    def __mul__(self, other):
        return _product(self, other, lambda g, a, b: (g.data * b.data, g.data * a.data))


class _NotTransposed(Operations):
    def __matmul__(self, other):
        return _matrix_product(self, other, lambda g, a, b: (g @ b, a @ g))


class _FactorsSwapped(Operations):
    def __matmul__(self, other):
        return _matrix_product(self, other, lambda g, a, b: (b.T @ g, g @ a.T))


class _ElementByElement(Operations):
    def __matmul__(self, other):
        return _matrix_product(self, other, lambda g, a, b: (g * b, g * a))


class _ReluPassesAll(Operations):
    def relu(self):
        return self.result(np.maximum(self.data, 0.0), (self,), lambda g: (g,))


class _ReluOfGradient(Operations):
    def relu(self):
        return self.result(np.maximum(self.data, 0.0), (self,), lambda g: (g.relu(),))


class _SlopeAtZero(Operations):
    def relu(self):
        positive = self.data >= 0
        return self.result(np.maximum(self.data, 0.0), (self,), lambda g: (g * positive,))


class _ReluWithoutTuple(Operations):
    def relu(self):
        positive = self.data > 0
        return self.result(np.maximum(self.data, 0.0), (self,), lambda g: g * positive)


class _ReluInputsNoTuple(Operations):
    def relu(self):
        positive = self.data > 0
        return self.result(np.maximum(self.data, 0.0), self, lambda g: (g * positive,))


class _SumWithoutTuple(Operations):
    def sum(self):
        ones = np.ones(self.data.shape)
        return self.result(self.data.sum(), (self,), lambda g: g * ones)


class _SumInputsNoTuple(Operations):
    def sum(self):
        ones = np.ones(self.data.shape)
        return self.result(self.data.sum(), self, lambda g: (g * ones,))


class _SumOfArray(Operations):
    def sum(self):
        return self.data.sum()


class _ReluOfArray(Operations):
    def relu(self):
        return np.maximum(self.data, 0.0)


class _TransposeCalled(Operations):
    def __matmul__(self, other):
        return _matrix_product(self, other, lambda g, a, b: (g @ b.T(), a.T() @ g))


class _ReluIsAMask(Operations):
    def relu(self):
        positive = self.data > 0
        return self.result(positive, (self,), lambda g: (g * positive,))


class _SumNotStretched(Operations):
    def sum(self):
        return self.result(self.data.sum(), (self,), lambda g: (g,))


class _SumOnlyOnes(Operations):
    def sum(self):
        ones = self.as_tensor(np.ones(self.data.shape))
        return self.result(self.data.sum(), (self,), lambda g: (ones,))


class _SumIsAMean(Operations):
    def sum(self):
        ones = np.ones(self.data.shape) / max(self.data.size, 1)
        numbers = self.data.sum() / max(self.data.size, 1)
        return self.result(numbers, (self,), lambda g: (g * ones,))


class _NothingSaved(Operations):
    def __mul__(self, other):
        other = self.as_tensor(other)
        both = (self, other)
        return self.result(self.data * other.data, both, lambda g: (g * other, g * self))

    def __matmul__(self, other):
        other = self.as_tensor(other)
        both = (self, other)
        return self.result(self.data @ other.data, both, lambda g: (g @ other.T, self.T @ g))


@exercise(
    "own-operations",
    answer=Operations,
    stub=_Program,
    kind="complete",
    points=4,
    difficulty=3,
    minutes=9,
    without=_names_of(Operations),
)
class OwnOperations(Part):
    """Five operations

    Give the class its operations: `+`, `*`, `@`, `relu()` and `sum()`. Each computes its numbers
    with NumPy and hands them to `self.result`, with its inputs and its formula. The addition is
    done; fill the gaps of the other four.

    **Input:** `self` and `other`, tensors; in `+`, `*` and `@` the other one may be a number or an
    array, of which `self.as_tensor(other)` makes a tensor.

    **Output:** what `self.result` gives. A **formula** gets `g`, the gradient of the result, a
    tensor, and gives a tuple with the gradient of each input. It computes with tensors, not with
    their `data`, so that gradients have gradients in turn. A tensor `x` has `x.T`, the matrix
    turned, and a tensor times an array is a tensor. `*` and `@` read the numbers of both inputs
    later, so both are `saved`.

    `@` is the product of two matrices. `relu` keeps what is above 0 and makes the rest 0; its slope
    at 0 is 0. `sum` adds up everything and gives a single number, 0 for an empty tensor. You need
    not think of broadcasting: what a formula gives may have the shape of the result.

    ```python
    Tensor = tensor_with(Operations)
    x = Tensor([2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    x.grad
    # Tensor([4., 6.])
    ```
    """

    hints = (
        "Every formula has `g` in it once for each input. For `*` the first gradient is "
        "`g * other`, because the slope of a product is the other factor.",
        "For `@` the shapes leave one way: `g @ other.T` has the shape of `self`, and `self.T @ g` "
        "that of `other`.",
        "`relu`: the numbers are `np.maximum(self.data, 0.0)`, and the formula is "
        "`lambda g: (g * positive,)`. The comma makes a tuple of one.",
        "`sum`: every element was read once, so each gets `g`: `lambda g: (g * ones,)`.",
    )
    usual_mistakes = {
        "its own factor": (
            _OwnFactor,
            "In `*` each input gets its own value. The slope of `a * b` with respect to `a` is "
            "`b`: the other factor.",
        ),
        "without upstream": (
            _WithoutUpstream,
            "In `*` these are the slopes alone. Multiply `g` into each of them, or the chain ends "
            "here.",
        ),
        "arrays in formulas": (
            _ArraysInFormulas,
            "Leave `.data` out in the formula of `*`. It computes with tensors, so that the "
            "gradient can be differentiated in turn.",
        ),
        "numbers in formulas": (
            _NumbersInFormulas,
            "Leave `.data` out in the formula of `*`. It computes with tensors, so that the "
            "gradient can be differentiated in turn.",
        ),
        "the transpose called": (
            _TransposeCalled,
            "`T` is no method: write `other.T` without parentheses.",
        ),
        "not transposed": (
            _NotTransposed,
            "In `@` the other factor must be transposed: `.T`. Compare the shapes.",
        ),
        "the order of the product": (
            _FactorsSwapped,
            "In `@` the order of the factors matters, and yours is swapped. `g` has the rows of "
            "`self` and the columns of `other`: which order gives the shape of `self`?",
        ),
        "by element": (
            _ElementByElement,
            "In `@` the formula multiplies element by element. The gradients of a matrix product "
            "are matrix products: use `@` and `.T`.",
        ),
        "relu passes all": (
            _ReluPassesAll,
            "`relu` passes every gradient on. Where the input is not above 0 the slope is 0: "
            "multiply by `positive`.",
        ),
        "relu of the gradient": (
            _ReluOfGradient,
            "You apply relu to the gradient. What decides is the sign of the *input*, which is "
            "in `positive`.",
        ),
        "the slope at zero": (
            _SlopeAtZero,
            "At 0 the slope of relu counts as 0 here, as in PyTorch: `positive` is `> 0`.",
        ),
        "no tuple": (
            _ReluWithoutTuple,
            "The formula of `relu` gives a tensor. Give a tuple, also for one input: "
            "`(g * positive,)` with its comma.",
        ),
        "relu's inputs": (
            _ReluInputsNoTuple,
            "In `relu` the inputs are no tuple. With one input it has a comma: `(self,)`.",
        ),
        "sum's formula": (
            _SumWithoutTuple,
            "The formula of `sum` gives a tensor. Give a tuple, also for one input: `(g * ones,)` "
            "with its comma.",
        ),
        "sum's inputs": (
            _SumInputsNoTuple,
            "In `sum` the inputs are no tuple. With one input it has a comma: `(self,)`.",
        ),
        "sum is no tensor": (
            _SumOfArray,
            "`sum` gives a number of NumPy's, which has no history. Hand it to `self.result`, "
            "with the inputs and the formula.",
        ),
        "relu is no tensor": (
            _ReluOfArray,
            "`relu` gives an array, which has no history. Hand it to `self.result`, with the "
            "inputs and the formula.",
        ),
        "a mask": (
            _ReluIsAMask,
            "`relu` gives 1 where the input is above 0. The result is the input itself there: "
            "`np.maximum(self.data, 0.0)`.",
        ),
        "the sum is not stretched": (
            _SumNotStretched,
            "In `sum` the gradient must have the shape of the input: each element gets `g`. "
            "`g * ones` stretches it.",
        ),
        "only ones": (
            _SumOnlyOnes,
            "In `sum` every element has the slope 1, and you give just that. Multiply `g` into it.",
        ),
        "the mean": (
            _SumIsAMean,
            "That is the mean. `sum` adds up, and each element has the slope 1.",
        ),
        "nothing saved": (
            _NothingSaved,
            "The formulas of `*` and `@` read the numbers of both inputs: `saved=(self, other)`. "
            "Without it nobody notices when they are changed before backward.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbers(n: int) -> list[float]:
            return draw.floats(n, 1.1, 9)

        def matrix(rows: int, columns: int) -> list[list[float]]:
            return [numbers(columns) for _ in range(rows)]

        def leaf(name: str, values: Any) -> str:
            return f"{name} = Tensor({values}, requires_grad=True)\n"

        both = "x.grad.data", "y.grad.data"
        p, q = (it / 100 for it in draw.distinct(2, 110, 900))  # a factor is not the other one
        vectors = leaf("x", numbers(3)) + leaf("y", numbers(3))
        up = f"up = {numbers(3)}\n"
        stretched = leaf("x", matrix(2, 3)) + leaf("y", numbers(3))
        matrices = leaf("x", matrix(2, 3)) + leaf("y", matrix(3, 4)) + f"up = {matrix(2, 4)}\n"
        squares = leaf("x", matrix(2, 2)) + leaf("y", matrix(2, 2)) + f"up = {matrix(2, 2)}\n"
        a, b, c = (it / 100 for it in draw.distinct(3, 10, 90))
        bent = leaf("x", [a, -b, 0.0, -c]) + f"up = [{b}, {-c}, {a}, {b}]\n"
        down = leaf("x", [[-a, 0.0], [b, c]]) + f"up = [[{c}, {a}], [{-b}, {-a}]]\n"
        yield _case(
            "a product",
            leaf("x", p) + leaf("y", q) + "z = x * y\nz.backward()",
            "z.data",
            *both,
        )
        yield _case("a sum is a number", leaf("x", matrix(3, 2)) + "z = x.sum()", "z.data")
        yield _case(
            "all added up",
            leaf("x", matrix(2, 3)) + f"z = x.sum() * {numbers(1)[0]}\nz.backward()",
            "z.data",
            "x.grad.data",
        )
        yield _case(
            "relu", f"{bent}z = x.relu()\n(z * up).sum().backward()", "z.data", "x.grad.data"
        )
        yield _case("matrices", f"{matrices}z = x @ y\n(z * up).sum().backward()", "z.data", *both)
        yield _case(
            "the slope of a slope",
            leaf("x", p)
            + "(x * x * x).backward(create_graph=True)\nslope = x.grad\nx.zero_grad()\n"
            "slope.backward()",
            "slope.data",
            "x.grad.data",
        )
        yield _case(
            "a number added",
            leaf("x", p) + f"z = x + {q}\n(z * z).backward()",
            "z.data",
            "x.grad.data",
        )
        yield _case("by element", f"{vectors}{up}z = x * y\n(z * up).sum().backward()", *both)
        yield _case(
            "a sum of products",
            f"{vectors}z = (x * y + x).sum()\nz.backward()",
            "z.data",
            *both,
        )
        yield _case("a cube", leaf("x", numbers(2)) + "(x * x * x).sum().backward()", "x.grad.data")
        yield _case("a row for each", f"{stretched}(x * y + y).sum().backward()", *both)
        yield _case("square matrices", f"{squares}((x @ y) * up).sum().backward()", *both)
        yield _case("relu alone", leaf("x", [-b, c, 0.0, a]) + "z = x.relu()", "z.data")
        yield _case(
            "relu of a matrix",
            f"{down}z = x.relu()\n(z * up).sum().backward()",
            "z.data",
            "x.grad.data",
        )
        yield _case(
            "what * saves",
            leaf("x", p) + f"z = x * {q}\nz.backward()",
            "[each is x for each, version in z.saved]",
            "x.grad.data",
        )
        yield _case(
            "an array as a factor",
            leaf("x", matrix(2, 3)) + f"z = x @ np.array({matrix(3, 2)})\n(z * z).sum().backward()",
            "z.data",
            "x.grad.data",
        )
        yield _case(
            "a sum of sums",
            f"{vectors}((x.sum() + y.sum()) * x.sum()).backward()",
            *both,
        )
        yield _case(
            "what @ saves", f"{squares}z = x @ y", "[each is y for each, version in z.saved]"
        )
        yield _case(
            "the slope of the slopes of two",
            leaf("x", p) + leaf("y", q) + "((x * y) * (x + y)).backward(create_graph=True)\n"
            "slope = x.grad\nx.zero_grad()\ny.zero_grad()\nslope.backward()",
            "slope.data",
            *both,
        )
        yield _case(
            "a layer",
            leaf("w", matrix(3, 2))
            + leaf("b", numbers(2))
            + f"x = Tensor({matrix(4, 3)})\ny = (x @ w + b).relu()\n(y * y).sum().backward()",
            "w.grad.data",
            "b.grad.data",
        )
        yield _case(
            "a sum of nothing (empty)",
            f"x = Tensor(np.zeros((0, 2)), requires_grad=True)\nz = x.sum() * {q}\nz.backward()",
            "z.data",
            "x.grad.data",
        )


@exercise("what-is-remembered", points=2, difficulty=2, minutes=4)
class WhatIsRemembered(Prediction):
    """Predict: what a result remembers

    `x` and `y` are leaves that require grad, `c` is a constant. What do these results remember?
    Every answer is a whole number, True or False.

    One is done for you:

    ```python
    len((x * y).inputs)      # 2: x and y
    ```
    """

    name = "remembered"
    ask = "Replace each ... by a whole number, by True or by False."
    questions = {
        "len((x * x).inputs)": (
            "An input that is used twice is there twice: two gradients go back to it."
        ),
        "(x * c).requires_grad": "One input that requires grad is enough.",
        "len((c * c).inputs)": "What is made of constants alone is a constant: it has no history.",
        "len((x + c).saved)": "The formula of `+` passes `g` on. It reads no numbers.",
        "len((x * c).saved)": "The formula of `*` reads the numbers of both factors.",
        "len(x.relu().saved)": (
            "`relu` keeps a mask that it made itself. Nobody else can write into that."
        ),
        "(x * y + c).inputs[0].inputs[0] is x": (
            "The first input of the sum is the product, and the first input of the product is `x`."
        ),
    }
    hints = (
        "Look at your `Operations`: what does each hand to `self.result` as its inputs, and what "
        "as `saved`?",
        "`result` notes all that only if one of the inputs requires grad.",
    )
    usual_mistakes = {
        "each input once": (
            {"len((x * x).inputs)": 1, "len((x * c).saved)": 1},
            "You count different tensors that require grad. The inputs of `*` are two, whatever "
            "they are, and both are saved.",
        ),
        "all inputs are saved": (
            {"len((x + c).saved)": 2, "len(x.relu().saved)": 1},
            "You take the inputs for what is saved. Saved is only what the formula will read.",
        ),
        "constants have inputs": (
            {"len((c * c).inputs)": 2, "(x * c).requires_grad": False},
            "A result requires grad if one of its inputs does, and it remembers its inputs only "
            "then.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        leaf = engine.Tensor(2.0, requires_grad=True)
        other = engine.Tensor(3.0, requires_grad=True)
        return eval(expression, {"x": leaf, "y": other, "c": engine.Tensor(5.0)})


def _walk(self, gradient, join=None, into=None, wanted=None, fits=None, check=True, pick=max):
    """The walk with one step exchanged."""
    arrived = {self: gradient}
    while arrived:
        tensor = pick(arrived, key=lambda each: each.number)
        upstream = arrived.pop(tensor)
        if tensor.formula is None:
            if into is not None:
                into(tensor, upstream)
            else:
                tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
            continue
        if check:
            tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(upstream), strict=True):
            if wanted is None and not source.requires_grad:
                continue
            part = part.unbroadcast(source.data.shape) if fits is None else part
            if source in arrived:
                part = arrived[source] + part if join is None else join(arrived[source], part)
            arrived[source] = part


def _last_one(self, gradient):
    _walk(self, gradient, join=lambda before, part: part)


def _multiplied(self, gradient):
    _walk(self, gradient, join=lambda before, part: before * part)


def _replaced_in_leaf(self, gradient):
    _walk(self, gradient, into=lambda leaf, upstream: setattr(leaf, "grad", upstream))


def _constants_too(self, gradient):
    _walk(self, gradient, wanted=all)


def _not_summed(self, gradient):
    _walk(self, gradient, fits=True)


def _never_checked(self, gradient):
    _walk(self, gradient, check=False)


def _only_itself_checked(self, gradient):
    self.check_saved()
    _walk(self, gradient, check=False)


def _first_gradient_again(self, gradient):
    arrived = {self: gradient}
    while arrived:
        tensor = max(arrived, key=lambda each: each.number)
        upstream = arrived.pop(tensor)
        if tensor.formula is None:
            tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
            continue
        tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(gradient), strict=True):
            if source.requires_grad:
                part = part.unbroadcast(source.data.shape)
                arrived[source] = arrived[source] + part if source in arrived else part


def _twice_in_leaf(self, gradient):
    def into(leaf, upstream):
        leaf.grad = upstream + upstream if leaf.grad is None else leaf.grad + upstream

    _walk(self, gradient, into=into)


def _added_to_none(self, gradient):
    _walk(self, gradient, into=lambda leaf, upstream: setattr(leaf, "grad", leaf.grad + upstream))


def _oldest_first(self, gradient):
    _walk(self, gradient, pick=min)


def _grad_everywhere(self, gradient):
    arrived = {self: gradient}
    while arrived:
        tensor = max(arrived, key=lambda each: each.number)
        upstream = arrived.pop(tensor)
        tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
        if tensor.formula is None:
            continue
        tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(upstream), strict=True):
            if source.requires_grad:
                part = part.unbroadcast(source.data.shape)
                arrived[source] = arrived[source] + part if source in arrived else part


def _recursion(self, gradient):
    if self.formula is None:
        self.grad = gradient if self.grad is None else self.grad + gradient
        return
    self.check_saved()
    for source, part in zip(self.inputs, self.formula(gradient), strict=True):
        if source.requires_grad:
            source.propagate(part.unbroadcast(source.data.shape))


@exercise(
    "walk-back",
    answer=propagate,
    points=5,
    difficulty=4,
    minutes=10,
    without=("course.engine.propagate",),
)
class WalkBack(Part):
    """The walk back

    This is the heart of the engine: the way from a result to the leaves. `backward()` calls it on
    the result, with the gradient 1.

    **Input:** `self`, the tensor to begin at; `gradient`, its gradient, a tensor.

    **Output:** nothing. Afterwards every leaf that requires grad and that `self` was made of has
    this gradient *added* to its `grad`; where `grad` is None, it becomes the gradient. Other
    tensors keep their `grad` as it is.

    Keep a dictionary from tensors to the gradient that has arrived for them, and repeat until it is
    empty:

    1. Take out the **youngest** tensor, the one with the largest `number`, with its gradient.
    2. If it is a leaf (its `formula` is None), add the gradient to its `grad`.
    3. Otherwise call `tensor.check_saved()`, which raises if a number that the formula needs was
       changed. Then call its formula with the gradient: it gives a gradient for each of
       `tensor.inputs`.
    4. For each input that requires grad, `gradient.unbroadcast(input.data.shape)` sums over the
       dimensions that were stretched. Add what results to what has arrived for this input.

    A formula is called once for each tensor, and a graph may be thousands of operations deep. An
    empty tensor needs no special care.

    ```python
    Tensor = tensor_with(propagate)
    x = Tensor(3.0, requires_grad=True)
    (x * x + x).backward()
    x.grad
    # Tensor(7.)
    ```
    """

    hints = (
        "Begin with `arrived = {self: gradient}` and `while arrived:`. The youngest is "
        "`max(arrived, key=lambda each: each.number)`, and `arrived.pop(tensor)` takes it out and "
        "gives its gradient.",
        "A loop over `zip(tensor.inputs, tensor.formula(upstream))` gives each input together with "
        "its gradient.",
        "Two places add up. In a leaf: `tensor.grad + upstream`, unless `tensor.grad` is None. In "
        "the dictionary: `arrived[source] + part`, if `source` is in `arrived` already.",
    )
    usual_mistakes = {
        "the last one": (
            _last_one,
            "A gradient that arrives replaces the one before it. All of them count: add them up.",
        ),
        "multiplied": (
            _multiplied,
            "You multiply gradients that come along different ways. Along one way slopes are "
            "multiplied, different ways are added up.",
        ),
        "grad replaced": (
            _replaced_in_leaf,
            "A second backward replaces the `grad` of a leaf. Add to the one that is there.",
        ),
        "constants too": (
            _constants_too,
            "Constants get a gradient too. Pass one on only to inputs with `requires_grad`.",
        ),
        "not summed": (
            _not_summed,
            "Where an input was stretched, its gradient has the shape of the result. Sum it: "
            "`part.unbroadcast(source.data.shape)`.",
        ),
        "never checked": (
            _never_checked,
            "A changed value is not noticed. Call `tensor.check_saved()` before the formula of the "
            "tensor.",
        ),
        "only itself checked": (
            _only_itself_checked,
            "Only the tensor where backward begins is checked. Each one has saved tensors of its "
            "own: call `tensor.check_saved()` in the loop.",
        ),
        "the first gradient again": (
            _first_gradient_again,
            "Every formula gets the gradient of the result. Give each the one that has arrived for "
            "its own tensor, which you took out of the dictionary.",
        ),
        "twice in a leaf": (
            _twice_in_leaf,
            "The first gradient of a leaf counts twice: you set `grad` to it and add it as well. "
            "Do one or the other.",
        ),
        "added to None": (
            _added_to_none,
            "The `grad` of a leaf is None at first, and nothing can be added to that. Set it the "
            "first time, and add later.",
        ),
        "oldest first": (
            _oldest_first,
            "You do not take the youngest tensor first, so its gradient may not be complete yet. "
            "The youngest is the one with the largest `number`.",
        ),
        "grad everywhere": (
            _grad_everywhere,
            "Results on the way get a `grad` too. Only leaves keep theirs.",
        ),
        "recursion": (
            _recursion,
            "The gradients are right, but you follow every way on its own: a tensor that is used "
            "twice is walked twice, and a deep graph goes deeper than Python's calls may. Use a "
            "loop with a dictionary, and take the youngest each time.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        a, b, c = draw.floats(3, 1.1, 4)
        v, w = draw.floats(3, 1.1, 9), draw.floats(3, 1.1, 9)
        x, y = f"x = Tensor({a}, requires_grad=True)\n", f"y = Tensor({b}, requires_grad=True)\n"
        vectors = f"x = Tensor({v}, requires_grad=True)\ny = Tensor({w}, requires_grad=True)\n"
        write = f"with no_grad():\n    x.sub_(Tensor({c}))\n"
        count = "calls = []\n"
        noted = "u = x.result(x.data, (x,), lambda g: (calls.append(g) or g,))\n"
        chain = f"for _ in range({draw.integer(1010, 1050)}):\n    y = y + c\n"
        yield _case("a chain", f"{x}z = x * {b} * {c}\nz.backward()", "x.grad.data", "z.grad")
        yield _case("two ways", f"{x}z = x * x + x\nz.backward()", "x.grad.data", "z.grad")
        yield _case(
            "a value that was changed",
            f"{x}{y}z = x * y + y\n{write}z.backward()",
            "y.grad.data",
            raises=True,
        )
        yield _case(
            "a bias for each row",
            f"x = Tensor([{v}, {w}], requires_grad=True)\nb = Tensor({w}, requires_grad=True)\n"
            "(x * x + b).sum().backward()",
            "x.grad.data",
            "b.grad.data",
        )
        yield _case("twice", f"{x}(x * x).backward()\n(x * {b}).backward()", "x.grad.data")
        yield _case(
            "a constant", f"{x}c = Tensor({b})\n(x * c + c).backward()", "x.grad.data", "c.grad"
        )
        yield _case(
            "a short way and a long way",
            f"{count}{x}{noted}((u * {b} + {c}) * {b} + u).backward()",
            "len(calls)",
            "x.grad.data",
        )
        yield _case(
            "ways that meet again",
            f"{x}{y}u = x * y\n((u + x) * u + y).backward()",
            "x.grad.data",
            "y.grad.data",
            "u.grad",
        )
        yield _case("a leaf itself", f"{x}x.backward()", "x.grad.data")
        yield _case(
            "vectors", f"{vectors}((x + y) * x + x).sum().backward()", "x.grad.data", "y.grad.data"
        )
        yield _case(
            "constant data",
            f"w = Tensor({v}, requires_grad=True)\nx = Tensor({w})\n((x * w) * x).sum().backward()",
            "w.grad.data",
            "x.grad",
        )
        yield _case(
            "a column, a number",
            f"x = Tensor([[{a}], [{b}]], requires_grad=True)\ny = Tensor({c}, requires_grad=True)\n"
            f"(x * {v} * y).sum().backward()",
            "x.grad.data",
            "y.grad.data",
        )
        yield _case(
            "twice, set back between",
            f"{x}(x * x).backward()\nx.zero_grad()\n(x * {c}).backward()\n(x * x).backward()",
            "x.grad.data",
        )
        yield _case(
            "the last one changed",
            f"{x}{y}z = x * y\n{write}z.backward()",
            "y.grad.data",
            raises=True,
        )
        yield _case(
            "changed on the way",
            f"{x}u = x * {b}\nv = u * u * {c}\n"
            f"with no_grad():\n    u.sub_(Tensor({c}))\nv.backward()",
            "x.grad.data",
            raises=True,
        )
        yield _case(
            "changed, but not needed", f"{x}{y}z = x + y\n{write}z.backward()", "x.grad.data"
        )
        yield _case(
            "a long way and a short way",
            f"{count}{x}{noted}(u + u * {c} * {b}).backward()",
            "len(calls)",
            "x.grad.data",
        )
        yield _case(
            "a deep graph",
            f"{x}c = Tensor({b})\ny = x * {c}\n{chain}y.backward()",
            "y.data",
            "x.grad.data",
            weight=3,
        )
        yield _case(
            "the slope of a slope",
            f"{x}(x * x * x).backward(create_graph=True)\nslope = x.grad\nx.zero_grad()\n"
            "slope.backward()",
            "slope.data",
            "x.grad.data",
        )
        yield _case(
            "no elements (empty)",
            f"x = Tensor(np.zeros((0, 3)), requires_grad=True)\n"
            f"b = Tensor({v}, requires_grad=True)\n(x * b).sum().backward()",
            "x.grad.data",
            "b.grad.data",
        )


class _NewArray(Writing):
    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError("not recorded")
        self.data = self.data - other.data
        self.version += 1
        return self


class _Dropped(Writing):
    def sub_(self, other):
        before = self.data.copy()
        super().sub_(other)
        self.data[...] = before
        return self


class _TensorIntoArray(Writing):
    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError("not recorded")
        self.data -= other
        self.version += 1
        return self


class _OneVersion(Writing):
    def sub_(self, other):
        super().sub_(other)
        self.version = 1
        return self


class _BothVersions(Writing):
    def sub_(self, other):
        super().sub_(other)
        other.version += 1
        return self


class _NumbersReturned(Writing):
    def sub_(self, other):
        return super().sub_(other).data


class _SameVersion(Writing):
    def check_saved(self):
        for tensor, version in self.saved:
            if tensor.version == version:
                raise RuntimeError("changed")


class _QuietRefusal(Writing):
    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            return self
        return super().sub_(other)


class _AnotherError(Writing):
    def check_saved(self):
        for tensor, version in self.saved:
            if tensor.version != version:
                raise ValueError("changed")


class _VersionForgotten(Writing):
    def sub_(self, other):
        before = self.version
        super().sub_(other)
        self.version = before
        return self


class _NoReturn(Writing):
    def sub_(self, other):
        super().sub_(other)


class _NeverRaises(Writing):
    def sub_(self, other):
        self.data -= other.data
        self.version += 1
        return self


class _AlwaysRaises(Writing):
    def sub_(self, other):
        if self.requires_grad or other.requires_grad:
            raise RuntimeError("not recorded")
        return super().sub_(other)


class _ConstantsRaise(Writing):
    def sub_(self, other):
        if grad_mode.enabled:
            raise RuntimeError("not recorded")
        return super().sub_(other)


class _OtherForgotten(Writing):
    def sub_(self, other):
        if grad_mode.enabled and self.requires_grad:
            raise RuntimeError("not recorded")
        self.data -= other.data
        self.version += 1
        return self


class _Added(Writing):
    def sub_(self, other):
        return super().sub_(-other)


class _AnyWrite(Writing):
    def check_saved(self):
        if any(tensor.version > 0 for tensor, _ in self.saved):
            raise RuntimeError("changed")


class _OwnVersion(Writing):
    def check_saved(self):
        if self.version > 0:
            raise RuntimeError("changed")


class _FirstOnly(Writing):
    def check_saved(self):
        for tensor, version in self.saved[:1]:
            if tensor.version != version:
                raise RuntimeError("changed")


class _InputsChecked(Writing):
    def check_saved(self):
        if any(tensor.version > 0 for tensor in self.inputs):
            raise RuntimeError("changed")


class _Returned(Writing):
    def check_saved(self):
        return all(tensor.version == version for tensor, version in self.saved)


@exercise(
    "stale-value",
    answer=Writing,
    points=2,
    difficulty=3,
    minutes=6,
    without=_names_of(Writing),
)
class StaleValue(Part):
    """Write, and notice it

    Write two methods from an empty class.

    `sub_(self, other)` subtracts the tensor `other` from `self` in place: the array `self.data`
    stays the same object, its numbers change. `self.version` grows by 1, and `self` is returned.
    Such a write is not recorded. So while `grad_mode.enabled` is True, it raises RuntimeError if
    `self` or `other` requires grad, before it changes anything.

    `check_saved(self)` raises RuntimeError if a tensor of `self.saved` has another version now than
    it had then. `self.saved` is the list of pairs that `result` made: each a tensor and its
    version. Otherwise it does nothing.

    ```python
    Tensor = tensor_with(Writing)
    x = Tensor(3.0, requires_grad=True)
    y = x * x
    with no_grad():
        x.sub_(Tensor(1.0))
    y.backward()
    # RuntimeError: x was 3 when y was made, now it is 2
    ```

    An empty list in `saved` raises nothing, and a single number (0-d) is written like any other.
    """

    hints = (
        "`self.data -= other.data` writes into the array; `self.data = self.data - other.data` "
        'makes a new one. The error: `raise RuntimeError("...")` with a sentence of yours.',
        "The condition in `sub_`: `grad_mode.enabled and (self.requires_grad or "
        "other.requires_grad)`.",
        "In `check_saved`: `for tensor, version in self.saved:`, and compare `tensor.version` with "
        "`version`.",
    )
    usual_mistakes = {
        "a new array": (
            _NewArray,
            "Your `sub_` makes a new array: others who hold the old one do not see the change. "
            "Write `self.data -= other.data`.",
        ),
        "nothing is written": (
            _Dropped,
            "The numbers stay as they are. `self.data - other.data` alone computes and forgets; "
            "`self.data -= other.data` writes.",
        ),
        "a tensor into an array": (
            _TensorIntoArray,
            "`other` is a tensor, and NumPy does not know those. Its numbers are in `other.data`.",
        ),
        "version 1": (
            _OneVersion,
            "The version is 1 after every write. Count the writes: `self.version += 1`.",
        ),
        "both versions": (
            _BothVersions,
            "The version of `other` grows too. It was read and not written into: only that of "
            "`self` grows.",
        ),
        "numbers returned": (
            _NumbersReturned,
            "`sub_` gives the array. End it with `return self`, as methods with `_` do.",
        ),
        "raises where equal": (
            _SameVersion,
            "You raise where the versions are the same. Raise where they differ.",
        ),
        "nothing is raised": (
            _QuietRefusal,
            "Where `sub_` is not allowed yours does nothing, and nobody notices. Raise "
            "RuntimeError.",
        ),
        "another error": (
            _AnotherError,
            "`check_saved` raises another error. Code that waits for it waits for RuntimeError, as "
            "in PyTorch.",
        ),
        "the version is forgotten": (
            _VersionForgotten,
            "The numbers change and the version stays, so that nobody notices. Add 1 to "
            "`self.version`.",
        ),
        "no return": (
            _NoReturn,
            "`sub_` gives None. End it with `return self`, as methods with `_` do.",
        ),
        "never raises": (
            _NeverRaises,
            "A tensor that requires grad is changed while operations are recorded, and the history "
            "does not know of it. Raise RuntimeError before you write.",
        ),
        "raises without recording": (
            _AlwaysRaises,
            "Inside `with no_grad():` writing is allowed, or nobody could train. Look at "
            "`grad_mode.enabled` too.",
        ),
        "constants raise": (
            _ConstantsRaise,
            "Constants may be written at any time. Raise only if one of the two requires grad.",
        ),
        "other is forgotten": (
            _OtherForgotten,
            "You look at `self` alone. If `other` requires grad, the new numbers depend on it, and "
            "that would be lost too.",
        ),
        "added": (_Added, "`sub_` subtracts. Yours adds the other tensor."),
        "any write": (
            _AnyWrite,
            "You raise if a tensor was ever written into. What matters is whether that happened "
            "after it was saved: compare the two versions.",
        ),
        "its own version": (
            _OwnVersion,
            "You look at the version of the result. Its formula reads the tensors in `self.saved`: "
            "theirs count.",
        ),
        "the first one only": (
            _FirstOnly,
            "Only the first saved tensor is checked. Go through all of `self.saved`.",
        ),
        "inputs instead of saved": (
            _InputsChecked,
            "You check the inputs. A formula that reads no numbers, as that of `+`, does not mind "
            "a change: go through `self.saved`.",
        ),
        "returned": (
            _Returned,
            "A changed value is not noticed. `check_saved` raises RuntimeError where the version "
            "of a saved tensor is not the one saved with it; nobody reads what it returns.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        v, w = draw.floats(3, 1.1, 9), draw.floats(3, 1.1, 9)
        a, b = draw.floats(2, 1.1, 4)
        c = f"c = Tensor({v})\n"
        x, y = f"x = Tensor({v}, requires_grad=True)\n", f"y = Tensor({w}, requires_grad=True)\n"
        off = "with no_grad():\n    "
        kept = "try:\n    x.sub_(y)\nexcept RuntimeError:\n    pass"
        both = "x.grad.data", "y.grad.data"
        late = f"{off}x.sub_(Tensor({a}))\n"
        yield _case(
            "a constant",
            f"{c}z = c.sub_(Tensor({w}))",
            "c.data",
            "c.version",
            "z is c",
            "type(z).__name__",
        )
        yield _case(
            "three times",
            f"{c}d = Tensor({w})\nfor _ in range(3):\n    z = c.sub_(d)",
            "c.data",
            "c.version",
            "d.version",
            "z is c",
            "type(z).__name__",
        )
        yield _case(
            "the same array",
            f"{c}d = Tensor({a})\nnumbers = c.data\nc.sub_(d)",
            "numbers",
            "c.data is numbers",
            "c.version",
            "d.version",
        )
        yield _case("without recording", f"{x}{off}x.sub_(Tensor({w}))", "x.data", "x.version")
        yield _case("recording", f"{x}x.sub_(Tensor({w}))", "x.data", raises=True)
        yield _case(
            "changed after it was saved",
            f"{x}{y}z = (x * y).sum()\n{late}z.backward()",
            *both,
            raises=True,
        )
        yield _case("changed before", f"{x}{y}{late}z = (x * y).sum()\nz.backward()", *both)
        yield _case("changed, not saved", f"{x}{y}z = (x + y).sum()\n{late}z.backward()", *both)
        yield _case(
            "other requires grad, without recording", f"{c}{y}{off}c.sub_(y)", "c.data", "c.version"
        )
        yield _case(
            "a result, recording", f"{x}z = x * x\nz.sub_(Tensor({a}))", "z.data", raises=True
        )
        yield _case("other requires grad", f"{c}{y}c.sub_(y)", "c.data", raises=True)
        yield _case("both require grad", f"{x}{y}x.sub_(y)", "x.data", raises=True)
        yield _case("other is a result", f"{c}{y}c.sub_(y * y)", "c.data", raises=True)
        yield _case("nothing changed before", f"{x}{y}{kept}", "x.data", "x.version")
        yield _case(
            "the second one changed",
            f"{x}{y}z = (y * x).sum()\n{late}z.backward()",
            *both,
            raises=True,
        )
        yield _case(
            "changed twice, once before",
            f"{x}{y}{late}z = (y * x).sum()\n{late}z.backward()",
            *both,
            raises=True,
        )
        yield _case(
            "the result changed",
            f"{x}{y}z = x * y\n{off}z.sub_(Tensor({a}))\nz.sum().backward()",
            *both,
        )
        yield _case(
            "two steps of training",
            f"{x}for _ in range(2):\n    x.zero_grad()\n    (x * x).sum().backward()\n"
            "    with no_grad():\n        x.sub_(x.grad * 0.1)",
            "x.data",
            "x.version",
        )
        yield _case("a single number (0-d)", f"c = Tensor({a})\nc.sub_(Tensor({b}))", "c.data")


class _NotNested:
    def __enter__(self):
        grad_mode.enabled = False

    def __exit__(self, *error):
        grad_mode.enabled = True


class _AtCreation:
    def __init__(self):
        self.before = grad_mode.enabled

    def __enter__(self):
        grad_mode.enabled = False

    def __exit__(self, *error):
        grad_mode.enabled = self.before


class _OneForAll:
    before = True

    def __enter__(self):
        _OneForAll.before = grad_mode.enabled
        grad_mode.enabled = False

    def __exit__(self, *error):
        grad_mode.enabled = _OneForAll.before


class _Toggled:
    def __enter__(self):
        grad_mode.enabled = not grad_mode.enabled

    def __exit__(self, *error):
        grad_mode.enabled = not grad_mode.enabled


class _Counted:
    depth = 0

    def __enter__(self):
        _Counted.depth += 1
        grad_mode.enabled = False

    def __exit__(self, *error):
        _Counted.depth -= 1
        grad_mode.enabled = _Counted.depth == 0


class _TheObject:
    def __enter__(self):
        self.before = grad_mode
        grad_mode.enabled = False

    def __exit__(self, *error):
        grad_mode.enabled = self.before


class _StaysOff:
    def __enter__(self):
        self.before = grad_mode.enabled
        grad_mode.enabled = False

    def __exit__(self, *error):
        grad_mode.enabled = False


class _Swallowed(no_grad):
    def __exit__(self, *error):
        grad_mode.enabled = self.before
        return True


class _NotOnError(no_grad):
    def __exit__(self, *error):
        if error[0] is None:
            grad_mode.enabled = self.before


@exercise(
    "nested-no-grad",
    answer=no_grad,
    stub=_NotNested,
    points=2,
    difficulty=3,
    minutes=4,
    without=("course.engine.no_grad.__enter__", "course.engine.no_grad.__exit__"),
)
class NestedNoGrad(Part):
    """A block in a block

    `with no_grad():` calls `__enter__` when the block begins and `__exit__` when it ends, also when
    it ends with an error. The class below turns recording off and on again. Inside of another
    such block that is wrong: recording is on again too early. Repair it.

    **Input:** `grad_mode.enabled`, True or False. **Output:** in the block it is False, afterwards
    it is what it was when the block was entered. An error inside the block goes on to whoever comes
    next. Every `with no_grad():` makes an object of its own.

    ```python
    Tensor = tensor_with(Operations)
    x = Tensor(2.0, requires_grad=True)
    with no_grad():
        with no_grad():
            y = x * x
        z = x * x
    z.requires_grad
    # False: the outer block is still open
    ```

    The check works with any operation, also with one on an empty tensor.
    """

    hints = (
        "The block must remember what `grad_mode.enabled` was. An attribute of `self` can hold it: "
        "each block is an object of its own.",
        "In `__enter__`: `self.before = grad_mode.enabled`, before you turn it off. In `__exit__`: "
        "`grad_mode.enabled = self.before`.",
    )
    usual_mistakes = {
        "remembered at creation": (
            _AtCreation,
            "You remember the mode when the object is made. It may be entered later, when the mode "
            "is another one: remember it in `__enter__`.",
        ),
        "one memory for all": (
            _OneForAll,
            "All blocks share one memory, which belongs to the class, and the inner block "
            "overwrites it. Use an attribute of `self`.",
        ),
        "toggled": (
            _Toggled,
            "You switch to the opposite. In a block inside of a block that turns recording on.",
        ),
        "blocks counted": (
            _Counted,
            "You count blocks. Recording may be off for another reason, as during backward: put "
            "back what `grad_mode.enabled` was when the block was entered.",
        ),
        "the object": (
            _TheObject,
            "You remember the object `grad_mode`, and not the value of `grad_mode.enabled`.",
        ),
        "stays off": (
            _StaysOff,
            "Recording stays off after the block. Remember what it was before you turn it off, and "
            "put that back.",
        ),
        "errors vanish": (
            _Swallowed,
            "Your `__exit__` returns True, which tells Python to forget the error of the block. "
            "Return nothing.",
        ),
        "not after an error": (
            _NotOnError,
            "After an error inside the block recording stays off. Put the mode back in any case.",
        ),
    }

    def is_answer(self, answer: Any) -> str | None:
        # `contextlib.contextmanager` makes of a function what does the same
        return Exercise.is_answer(self, answer)

    def cases(self, draw: Draw) -> Iterator[Case]:
        v, w = draw.floats(2, 1.1, 9), draw.floats(2, 1.1, 9)
        x = f"x = Tensor({v}, requires_grad=True)\n"
        inner = "with no_grad():\n    with no_grad():\n        y = x * x\n"
        looks = "y.requires_grad", "z.requires_grad"
        yield _case(
            "one block", f"{x}with no_grad():\n    y = x * {w}\nz = x * x", "y.data", *looks
        )
        yield _case("a block in a block", f"{x}{inner}    z = x * {w}", "z.data", *looks)
        yield _case("after both", f"{x}{inner}z = x * {w}", "z.data", *looks)
        yield _case(
            "two in a block", f"{x}{inner}    with no_grad():\n        pass\n    z = x * x", *looks
        )
        yield _case(
            "three deep",
            f"{x}with no_grad():\n    with no_grad():\n        with no_grad():\n"
            f"            y = x * x\n        z = x + {w}\n    u = z * x",
            *looks,
            "u.requires_grad",
            "u.data",
        )
        yield _case(
            "an error inside",
            f"{x}try:\n    with no_grad():\n        y = x * {w}\n        1 / 0\n"
            "except ZeroDivisionError:\n    pass\nz = x * x",
            *looks,
        )
        yield _case(
            "an error in the inner block",
            f"{x}with no_grad():\n    try:\n        with no_grad():\n            y = x * {w}\n"
            "            1 / 0\n    except ZeroDivisionError:\n        pass\n"
            "    z = x * x\nu = x * x",
            *looks,
            "u.requires_grad",
        )
        yield _case(
            "an error goes on",
            f"{x}caught = False\ntry:\n    with no_grad():\n        y = x * {w}\n        1 / 0\n"
            "except ZeroDivisionError:\n    caught = True\nz = x * x",
            "caught",
            *looks,
        )
        yield _case(
            "another error goes on",
            f"{x}caught = 0\nfor n in range(2):\n    try:\n        with no_grad():\n"
            f"            y = x * {w}\n            [][n]\n"
            "    except IndexError:\n        caught += 1",
            "caught",
            "y.data",
        )
        yield _case(
            "off before",
            f"{x}grad_mode.enabled = False\nwith no_grad():\n    y = x * x\nz = x * {w}",
            "z.data",
            *looks,
        )
        yield _case(
            "off before, two blocks",
            f"{x}grad_mode.enabled = False\n{inner}z = x * {w}",
            "z.data",
            *looks,
        )
        yield _case(
            "made early, entered late",
            f"{x}block = no_grad()\nwith no_grad():\n    with block:\n        y = x * x\n"
            f"    z = x * {w}",
            *looks,
        )
        yield _case(
            "made inside, entered outside",
            f"{x}with no_grad():\n    block = no_grad()\nwith block:\n    y = x * x\nz = x * {w}",
            *looks,
        )
        yield _case(
            "training goes on",
            f"{x}for _ in range(2):\n    x.zero_grad()\n    (x * x).sum().backward()\n"
            f"    with no_grad():\n        x.sub_(x.grad * 0.1)",
            "x.data",
        )
        yield _case(
            "no elements (empty)",
            "x = Tensor([], requires_grad=True)\n"
            "with no_grad():\n    with no_grad():\n        pass\n    y = x * x\nz = x * x",
            *looks,
        )


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
        yield _case("three numbers", f"{x}z = x.sin()\nz.sum().backward()", "z.data", "x.grad.data")
        yield _case("a chain", f"{x}((x * x).sin() * {v}).sum().backward()", "x.grad.data")
        yield _case("scaled", f"{y}(x.sin() * {draw.number(2, 9)}).backward()", "x.grad.data")
        yield _case("the slope of a slope", f"{y}x.sin().{twice}slope.backward()", "x.grad.data")
        yield _case(
            "of a product", f"{y}(x * x.sin()).{twice}slope.backward()", "slope.data", "x.grad.data"
        )
        yield _case("what is saved", f"{x}z = x.sin()", "[each is x for each, version in z.saved]")
        stale = f"with no_grad():\n    x.sub_(Tensor({a}))\n"
        yield _case(
            "changed", f"{x}z = x.sin().sum()\n{stale}z.backward()", "x.grad.data", raises=True
        )
        yield _case("a constant", f"z = Tensor({v}).sin()", "z.data", "z.requires_grad")
        yield _case("no elements (empty)", "x = Tensor([])\nz = x.sin()", "z.data")


def forward_slopes(
    slopes: dict[str, dict[str, float]], order: list[str], leaf: str
) -> dict[str, float]:
    """The slope of every node with respect to `leaf`, found on the way there."""
    found: dict[str, float] = {}
    for node in order:
        found[node] = 1.0 if node == leaf else 0.0
        for source, slope in slopes[node].items():
            found[node] += slope * found[source]
    return found


def _one_way_only(slopes: Any, order: list[str], leaf: str) -> Any:
    found: dict[str, float] = {}
    for node in order:
        found[node] = 1.0 if node == leaf else 0.0
        for source, slope in slopes[node].items():
            found[node] = slope * found[source]
    return found


def _slopes_added(slopes: Any, order: list[str], leaf: str) -> Any:
    found: dict[str, float] = {}
    for node in order:
        found[node] = 1.0 if node == leaf else 0.0
        for source, slope in slopes[node].items():
            found[node] += slope + found[source]
    return found


def _every_leaf(slopes: Any, order: list[str], leaf: str) -> Any:
    found: dict[str, float] = {}
    for node in order:
        found[node] = 0.0 if slopes[node] else 1.0
        for source, slope in slopes[node].items():
            found[node] += slope * found[source]
    return found


def _only_what_depends(slopes: Any, order: list[str], leaf: str) -> Any:
    return {name: it for name, it in forward_slopes(slopes, order, leaf).items() if it}


@exercise("forward-slopes", answer=forward_slopes, points=0, difficulty=3, minutes=8, further=True)
class ForwardSlopes(Exercise):
    """The other direction

    The chain rule can be followed forwards too. Choose one leaf. Its slope with respect to itself
    is 1, that of the other leaves 0; every later node gets the sum of its inputs' slopes, each
    times its own. One walk finds the slope of *every* node with respect to *one* leaf, while
    backward finds the slope of one node with respect to every leaf.

    **Input:** `slopes`, a dictionary from each node to a dictionary from its inputs to the slope of
    the node with respect to that input; `order`, all nodes, inputs first; `leaf`, the name of the
    chosen leaf.

    **Output:** a dictionary from each node to its slope with respect to `leaf`, a float.

    ```python
    # y = x * w with x = 2 and w = 3, z = y + x
    y, z = {"x": 3.0, "w": 2.0}, {"y": 1.0, "x": 1.0}
    slopes = {"x": {}, "w": {}, "y": y, "z": z}
    forward_slopes(slopes, ["x", "w", "y", "z"], "x")
    # {"x": 1.0, "w": 0.0, "y": 3.0, "z": 4.0}
    ```
    """

    hints = (
        "Go through `order`. Each node begins with 1.0 if it is the leaf and 0.0 if not.",
        "For each input add the slope along this edge times what was found for the input.",
    )
    usual_mistakes = {
        "one way only": (
            _one_way_only,
            "Each input replaces the one before it. What comes along different ways is added up.",
        ),
        "slopes added": (
            _slopes_added,
            "Along one way slopes are multiplied: the slope of the edge times the slope of the "
            "input.",
        ),
        "every leaf": (
            _every_leaf,
            "Every leaf begins with 1 in yours. Only the chosen one changes; the others have 0.",
        ),
        "without the zeros": (
            _only_what_depends,
            "Nodes that do not depend on the leaf are missing. They have a slope too: 0.0.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        x, w = (float(it) for it in draw.integers(2, 2, 9))
        slopes: dict[str, dict[str, float]] = {
            "x": {},
            "w": {},
            "y": {"x": w, "w": x},
            "z": {"y": 1.0, "x": 1.0},
        }
        yield case(slopes, ["x", "w", "y", "z"], "x", label="two ways")
        yield case(slopes, ["w", "x", "y", "z"], "w", label="the other leaf")
        more = {"u": {"z": 0.5, "y": -2.0}, "c": {"v": 3.0}, "v": {}}
        more |= {node: slopes[node] for node in "zywx"}  # `order` alone has the inputs first
        yield case(more, ["x", "w", "v", "c", "y", "z", "u"], "x", label="three ways")
        yield case({"x": {}}, ["x"], "x", label="a leaf alone (size 1)")
        chain: dict[str, dict[str, float]] = {"n0": {}}
        for i, slope in enumerate(draw.floats(7, 1.1, 1.9)):
            chain[f"n{i + 1}"] = {f"n{i}": -slope}
        yield case(chain, [f"n{i}" for i in range(8)], "n0", label="a chain")
