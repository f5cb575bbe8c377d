"""The exercise batch-product: many products at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorkit as tk
from course.engine.measuring import measured
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def batch_product(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    """The products of the matrices in `a` with those in `b`, one by one."""
    products = [a[i] @ b[i] for i in range(a.shape[0])]
    return tk.stack(products)


def _joined_products(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    return tk.cat([a[i] @ b[i] for i in range(a.shape[0])])


def _always_the_first(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    return tk.stack([a[i] @ b[0] for i in range(a.shape[0])])


def _stops_early(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    return tk.stack([a[i] @ b[i] for i in range(max(1, a.shape[0] - 1))])


def _list_of_products(a: tk.Tensor, b: tk.Tensor) -> Any:
    return [a[i] @ b[i] for i in range(a.shape[0])]


def _hadamard(a: tk.Tensor, b: tk.Tensor) -> tk.Tensor:
    return a * b


@exercise(
    "batch-product",
    answer=batch_product,
    points=0,
    difficulty=3,
    minutes=6,
    further=True,
    without=("bmm", "Tensor.numpy", "Tensor.tolist", "Tensor.__array__"),
)
class BatchProduct(Exercise):
    """Many products at once

    What `bmm` does, written out: multiply matrix by matrix, then make one tensor of the results.

    **Input:** `a` of shape `[n, rows, inner]` and `b` of shape `[n, inner, columns]`, `n` at least
    1, both of the same dtype, float or int64.

    **Output:** a tensor of shape `[n, rows, columns]`; its entry `i` is `a[i] @ b[i]`. `a` and `b`
    stay as they are.

    ```python
    a = tk.tensor([[[1.0, 0.0]], [[2.0, 1.0]]])
    b = tk.tensor([[[3.0], [4.0]], [[5.0], [6.0]]])
    batch_product(a, b)
    # tensor([[[ 3.]],
    #
    #         [[16.]]])
    ```

    `a @ b` does it in one go; here multiply one pair at a time. `tk.stack(matrices)` makes one
    tensor of a list of matrices. `tk.bmm`, `.numpy()` and `.tolist()` switch themselves off while
    your function runs.
    """

    hints = (
        "Collect `a[i] @ b[i]` for every `i` in a list. What turns a list of matrices into one "
        "tensor with a new dimension?",
        "`tk.stack(products)`: entry `i` of the new dimension 0 is product `i`.",
    )
    usual_mistakes = {
        "joined": (
            _joined_products,
            "The products stand below one another, in two dimensions, as `cat` puts them. `stack` "
            "adds a third.",
        ),
        "always the first": (
            _always_the_first,
            "Every matrix is multiplied by `b[0]`. The index of `b` must move along: `b[i]`.",
        ),
        "one too few": (
            _stops_early,
            "The last product is missing. `range(n)` ends before `n` by itself: subtract nothing.",
        ),
        "a list": (
            _list_of_products,
            "The products are right, in a Python list. `tk.stack` makes one tensor of them.",
        ),
        "element by element": (
            _hadamard,
            "`*` multiplies element by element. A matrix product is `@`.",
        ),
        "in one go": (
            lambda a, b: a @ b,
            "The products are right, and you multiply all matrices at once. Go through them in a "
            "loop, one pair at a time.",
        ),
        "all pairs": (
            lambda a, b: tk.stack([left @ right for left in a for right in b]),
            "Every matrix of `a` meets every matrix of `b`. Entry `i` is `a[i] @ b[i]`: go "
            "through both together.",
        ),
        "stacked aside": (
            lambda a, b: tk.stack([a[i] @ b[i] for i in range(len(a))], dim=1),
            "The products are right, and the new dimension is not the first one. `tk.stack` puts "
            "it in front unless `dim` is given.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(
            tk.tensor([[[1.0, 0.0]], [[2.0, 1.0]]]),
            tk.tensor([[[3.0], [4.0]], [[5.0], [6.0]]]),
            label="two small products",
        )
        yield case(*_batch(draw, 3, 2, 4, 3), label="three of any numbers")
        yield case(*_batch(draw, 4, 2, 2, 2), label="square matrices")
        yield case(*_batch(draw, 1, 3, 2, 2), label="a single pair (size 1)")
        yield case(*(matrices.double() for matrices in _batch(draw, 2, 1, 3, 1)), label="float64")
        turned = [matrices.mT for matrices in _batch(draw, 2, 3, 2, 3)]
        yield case(*reversed(turned), label="transposes (non-contiguous)")
        halves = tk.tensor([[draw.integers(2, 1, 8)], [draw.integers(2, 9, 20)]]).half() / 2
        yield case(halves, halves.mT, label="half the memory (float16)")
        whole = tk.tensor([*draw.integers(6, 1, 4), *draw.integers(6, 5, 9)])
        yield case(whole.reshape(2, 2, 3), whole.reshape(2, 3, 2), label="whole numbers (int)")
        yield case(tk.zeros(2, 0, 3), tk.ones(2, 3, 4), label="no rows (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The products, and whether one operation multiplied more than one pair."""
        a, b = args
        right = a @ b
        products, work = measured(answer, a, b)
        if not isinstance(products, tk.Tensor):
            return products
        is_alike = products.shape == right.shape and products.dtype is right.dtype
        seen = Seen({"products": products})
        if is_alike and tk.allclose(products, right, rtol=0.01) and len(a) > 1:
            one_a, one_b = a[0].numel(), b[0].numel()
            seen["several pairs multiplied in one operation"] = any(
                x > one_a and y > one_b for x, y in work["factors"]
            )
        return seen


def _batch(draw: Draw, n: int, rows: int, inner: int, columns: int) -> tuple[tk.Tensor, tk.Tensor]:
    def matrices(height: int, width: int) -> tk.Tensor:
        return tk.tensor([[draw.floats(width, 1, 9) for _ in range(height)] for _ in range(n)])

    return matrices(rows, inner), -matrices(inner, columns)
