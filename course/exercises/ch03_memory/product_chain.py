"""The exercise product-chain: a product, transposed and flattened, and its largest element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def product_chain(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    """The product, transposed and flattened, and the index of its largest element."""
    flat = (A @ B).T.flatten()
    return flat, int(flat.argmax().item())


def _not_transposed(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A @ B).flatten()
    return flat, int(flat.argmax().item())


def _element_by_element(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A * B).T.flatten()
    return flat, int(flat.argmax().item())


def _factors_transposed(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A.T @ B.T).flatten()
    return flat, int(flat.argmax().item())


def _index_before_the_turn(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    product = A @ B
    return product.T.flatten(), int(product.argmax().item())


def _largest_size(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A @ B).T.flatten()
    return flat, int(flat.abs().argmax().item())


def _the_value(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, Any]:
    flat = (A @ B).T.flatten()
    return flat, flat.max().item()


def _the_smallest(A: tk.Tensor, B: tk.Tensor) -> tuple[tk.Tensor, int]:
    flat = (A @ B).T.flatten()
    return flat, int(flat.argmin().item())


@exercise("product-chain", answer=product_chain, points=3, difficulty=3, minutes=7)
class ProductChain(Exercise):
    """Product, transpose, flatten, argmax

    **Input:** two square matrices `A` and `B` of the same size and dtype, float or int64.

    **Output:** a pair: the product of the two, transposed and then flattened to a vector; and the
    index of the largest element in that vector, as a Python int. `A` and `B` stay as they are.

    ```python
    A = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    B = tk.tensor([[0.0, 1.0], [1.0, 0.0]])
    product_chain(A, B)
    # (tensor([2., 4., 1., 3.]), 1)
    ```

    The product is `[[2, 1], [4, 3]]`, its transpose `[[2, 4], [1, 3]]`.
    """

    hints = (
        "Four steps in the order of the title. Methods can be chained from left to right.",
        "`(A @ B).T.flatten()` is the vector. Ask the vector itself for `argmax`, and take the "
        "Python number out with `.item()`.",
    )
    usual_mistakes = {
        "not transposed": (
            _not_transposed,
            "The transpose is missing: your vector goes through the product row after row.",
        ),
        "element by element": (
            _element_by_element,
            "`*` multiplies element by element. The product of two matrices is `A @ B`.",
        ),
        "the factors transposed": (
            _factors_transposed,
            "This is the transpose of B @ A, another product: turning both factors turns their "
            "order round too. Multiply A @ B first, then turn the result.",
        ),
        "the index before the turn": (
            _index_before_the_turn,
            "The vector is right; the index counts in the product before it was turned. Ask the "
            "vector.",
        ),
        "the largest without its sign": (
            _largest_size,
            "You compare without signs: a negative number is not the largest, however far from 0 "
            "it is. Ask `argmax` of the vector as it is.",
        ),
        "the value": (
            _the_value,
            "You gave the largest element itself. `argmax` says where it stands.",
        ),
        "the smallest": (
            _the_smallest,
            "You found the smallest element. `argmax` finds the largest.",
        ),
        "one factor transposed": (
            lambda A, B: ((v := (A @ B.T).flatten()), int(v.argmax().item())),
            "Only `B` is transposed: `.T` comes before `@`. Put brackets around the product.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[1.0, 2.0], [3.0, 4.0]]),
            tk.tensor([[0.0, 1.0], [1.0, 0.0]]),
            label="two by two",
        )
        yield case(*_with_a_clear_winner(draw, 3), label="three by three")
        yield case(*_with_a_clear_winner(draw, 4), label="four by four")
        far, near = float(draw.integer(5, 9)), float(draw.integer(1, 4))
        yield case(
            tk.tensor([[0.0, -far], [near, 0.0]]),
            tk.eye(2),
            label="the number farthest from 0 is negative",
        )
        low, *middle, high = sorted(draw.distinct(4, 1, 9))
        below = -tk.tensor([[high, low], middle]).float()
        yield case(below, tk.eye(2) * draw.integer(1, 3), label="all numbers below 0")
        a, b = [float(number) for number in draw.integers(2, 2, 9)]
        yield case(tk.tensor([[-a]]), tk.tensor([[b]]), label="one by one (size 1)")
        A, B = _with_a_clear_winner(draw, 3)
        yield case(A.T.contiguous().T, B, label="stored by columns (non-contiguous)")
        # rising numbers: the largest of the product stands at row 1, column 0
        a, b, c, d = sorted(draw.distinct(4, 1, 9))
        halves = tk.tensor([[a, b], [c, d]]).half()
        yield case(halves, halves.flip(1), label="half the memory (float16)")
        whole = tk.tensor([[draw.integer(6, 9), draw.integer(1, 2)], [2, draw.integer(3, 5)]])
        factor = tk.tensor([[1, draw.integer(4, 6)], [0, -draw.integer(1, 2)]])
        yield case(whole, factor, label="whole numbers (int)")


def _with_a_clear_winner(draw: Draw, n: int) -> tuple[tk.Tensor, tk.Tensor]:
    """A product whose largest element stands at row 0, column 1 and is far from all others."""
    A = tk.tensor([[number + 0.25 for number in draw.distinct(n, 1, 9)] for _ in range(n)])
    A[0] += 20
    A[n - 1] -= 60
    B = tk.eye(n) * draw.integer(1, 3)
    B[0, 1] += 5
    return A, B
