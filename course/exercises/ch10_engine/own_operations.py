"""The exercise own-operations: five operations with their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from course.engine import Operations
from course.exercises.ch10_engine.part import Part, names_of, program_case
from course.notebook.exercise import Case, Draw, exercise


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
    factors = (self, other)
    return self.result(
        self.data * other.data, factors, lambda g: formula(g, *factors), saved=factors
    )


def _matrix_product(self, other, formula):
    other = self.as_tensor(other)
    factors = (self, other)
    return self.result(
        self.data @ other.data, factors, lambda g: formula(g, *factors), saved=factors
    )


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
        factors = (self, other)
        return self.result(self.data * other.data, factors, lambda g: (g * other, g * self))

    def __matmul__(self, other):
        other = self.as_tensor(other)
        factors = (self, other)
        return self.result(self.data @ other.data, factors, lambda g: (g @ other.T, self.T @ g))


class _ProductSavesNothing(Operations):
    __matmul__ = _NothingSaved.__matmul__


@exercise(
    "own-operations",
    answer=Operations,
    stub=_Program,
    kind="complete",
    points=4,
    difficulty=3,
    minutes=15,
    without=names_of(Operations),
)
class OwnOperations(Part):
    """Five operations

    Give the class its operations: `+`, `*`, `@`, `relu()` and `sum()`. Each computes its numbers
    with NumPy and hands them to `self.result`, with its inputs and its formula. The addition is
    done; fill the gaps of the other four.

    **Input:** `self` and `other`, tensors; in `+`, `*` and `@` the other one may be a number or an
    array, of which `self.as_tensor(other)` makes a tensor.

    **Output:** what `self.result` gives. A **formula** gets `g`, the gradient of the result, a
    tensor, and gives the gradient of each input, in a tuple or a list. It computes with tensors,
    not with their `data`, so that gradients have gradients in turn. A tensor `x` has `x.T`, the
    matrix turned, and a tensor times an array is a tensor. `*` and `@` read the numbers of both
    inputs later, so both are `saved`.

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
        "nothing saved in @": (
            _ProductSavesNothing,
            "The formula of `@` reads the numbers of both inputs: `saved=(self, other)`. Without "
            "it nobody notices when they are changed before backward.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbers(n: int) -> list[float]:
            return draw.floats(n, 1.1, 9)

        def matrix(rows: int, columns: int) -> list[list[float]]:
            return [numbers(columns) for _ in range(rows)]

        def leaf(name: str, values: Any) -> str:
            return f"{name} = Tensor({values}, requires_grad=True)\n"

        gradients = "x.grad.data", "y.grad.data"
        # a factor is not the other one
        p, q = (number / 100 for number in draw.distinct(2, 110, 900))
        vectors = leaf("x", numbers(3)) + leaf("y", numbers(3))
        up = f"up = {numbers(3)}\n"
        stretched = leaf("x", matrix(2, 3)) + leaf("y", numbers(3))
        matrices = leaf("x", matrix(2, 3)) + leaf("y", matrix(3, 4)) + f"up = {matrix(2, 4)}\n"
        squares = leaf("x", matrix(2, 2)) + leaf("y", matrix(2, 2)) + f"up = {matrix(2, 2)}\n"
        a, b, c = (number / 100 for number in draw.distinct(3, 10, 90))
        bent = leaf("x", [a, -b, 0.0, -c]) + f"up = [{b}, {-c}, {a}, {b}]\n"
        down = leaf("x", [[-a, 0.0], [b, c]]) + f"up = [[{c}, {a}], [{-b}, {-a}]]\n"
        yield program_case(
            "a product",
            leaf("x", p) + leaf("y", q) + "z = x * y\nz.backward()",
            "z.data",
            *gradients,
        )
        yield program_case("a sum is a number", leaf("x", matrix(3, 2)) + "z = x.sum()", "z.data")
        yield program_case(
            "all added up",
            leaf("x", matrix(2, 3)) + f"z = x.sum() * {numbers(1)[0]}\nz.backward()",
            "z.data",
            "x.grad.data",
        )
        yield program_case(
            "relu", f"{bent}z = x.relu()\n(z * up).sum().backward()", "z.data", "x.grad.data"
        )
        yield program_case(
            "matrices", f"{matrices}z = x @ y\n(z * up).sum().backward()", "z.data", *gradients
        )
        yield program_case(
            "the slope of a slope",
            leaf("x", p)
            + "(x * x * x).backward(create_graph=True)\nslope = x.grad\nx.zero_grad()\n"
            "slope.backward()",
            "slope.data",
            "x.grad.data",
        )
        yield program_case(
            "a number added",
            leaf("x", p) + f"z = x + {q}\n(z * z).backward()",
            "z.data",
            "x.grad.data",
        )
        yield program_case(
            "by element", f"{vectors}{up}z = x * y\n(z * up).sum().backward()", *gradients
        )
        yield program_case(
            "a sum of products",
            f"{vectors}z = (x * y + x).sum()\nz.backward()",
            "z.data",
            *gradients,
        )
        yield program_case(
            "a cube", leaf("x", numbers(2)) + "(x * x * x).sum().backward()", "x.grad.data"
        )
        yield program_case("a row for each", f"{stretched}(x * y + y).sum().backward()", *gradients)
        yield program_case(
            "square matrices", f"{squares}((x @ y) * up).sum().backward()", *gradients
        )
        yield program_case("relu alone", leaf("x", [-b, c, 0.0, a]) + "z = x.relu()", "z.data")
        yield program_case(
            "relu of a matrix",
            f"{down}z = x.relu()\n(z * up).sum().backward()",
            "z.data",
            "x.grad.data",
        )
        yield program_case(
            "what * saves",
            leaf("x", p) + f"z = x * {q}\nz.backward()",
            "[each is x for each, version in z.saved]",
            "x.grad.data",
        )
        yield program_case(
            "an array as a factor",
            leaf("x", matrix(2, 3)) + f"z = x @ np.array({matrix(3, 2)})\n(z * z).sum().backward()",
            "z.data",
            "x.grad.data",
        )
        yield program_case(
            "a sum of sums",
            f"{vectors}((x.sum() + y.sum()) * x.sum()).backward()",
            *gradients,
        )
        yield program_case(
            "what @ saves", f"{squares}z = x @ y", "[each is y for each, version in z.saved]"
        )
        yield program_case(
            "what @ saves, an array as a factor",
            f"{squares}z = x @ np.array(up)",
            "[each is x for each, version in z.saved]",
        )
        yield program_case(
            "the slope of the slopes of two",
            leaf("x", p) + leaf("y", q) + "((x * y) * (x + y)).backward(create_graph=True)\n"
            "slope = x.grad\nx.zero_grad()\ny.zero_grad()\nslope.backward()",
            "slope.data",
            *gradients,
        )
        yield program_case(
            "a layer",
            leaf("w", matrix(3, 2))
            + leaf("b", numbers(2))
            + f"x = Tensor({matrix(4, 3)})\ny = (x @ w + b).relu()\n(y * y).sum().backward()",
            "w.grad.data",
            "b.grad.data",
        )
        yield program_case(
            "a sum of nothing (empty)",
            f"x = Tensor(np.zeros((0, 2)), requires_grad=True)\nz = x.sum() * {q}\nz.backward()",
            "z.data",
            "x.grad.data",
        )
