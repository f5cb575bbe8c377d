"""The exercise fused-chain: a chain of operations in one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def fused(names: list[str], x: tk.Tensor) -> tuple[tk.Tensor, int]:
    """The operations `names`, one after the other on x, and the launches they took."""
    from course.engine.fusing import FUSABLE, one_launch

    class Fuse(tk.utils.DispatchMode):
        def __init__(self):
            self.waiting = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.__name__ in FUSABLE:
                if not self.waiting:
                    self.x = args[0]
                self.waiting.append(func.__name__)
                self.out = tk.empty_like(args[0])
                return self.out
            self.run()
            return func(*args, **(kwargs or {}))

        def run(self):
            if self.waiting:
                one_launch(self.waiting, self.x, self.out)
                self.waiting = []

    with tk.cuda.record() as ledger:
        with Fuse() as mode:
            for name in names:
                x = getattr(tk, name)(x)
        mode.run()
    return x, len(ledger.launches)


@no_type_check
def _fuse_program(names, x):
    from course.engine.fusing import FUSABLE, one_launch

    class Fuse(tk.utils.DispatchMode):
        def __init__(self):
            self.waiting = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.__name__ in FUSABLE:
                ...  # of the first of a chain, keep its argument as self.x
                ...  # let the name wait
                self.out = tk.empty_like(args[0])
                return ...  # the tensor whose values come later
            ...  # another operation needs the values now
            return func(*args, **(kwargs or {}))

        def run(self):
            if self.waiting:
                one_launch(self.waiting, self.x, self.out)
                self.waiting = []

    with tk.cuda.record() as ledger:
        with Fuse() as mode:
            for name in names:
                x = getattr(tk, name)(x)
        mode.run()
    return x, len(ledger.launches)


@no_type_check
def _not_fused(names, x):
    with tk.cuda.record() as ledger:
        for name in names:
            x = getattr(tk, name)(x)
    return x, len(ledger.launches)


@no_type_check
def _last_of_each_chain(names, x):
    after = [*names[1:], "sum"]
    kept = [
        name for name, following in zip(names, after, strict=True) if "sum" in (name, following)
    ]
    return fused(kept, x)


@no_type_check
def _in_reverse(names, x):
    chains = [[]]
    for name in names:
        chains += [["sum"], []] if name == "sum" else []
        if name != "sum":
            chains[-1].append(name)
    return fused([name for chain in chains for name in reversed(chain)], x)


@no_type_check
def _only_the_result(names, x):
    return fused(names, x)[0]


@exercise(
    "fused-chain",
    answer=fused,
    stub=_fuse_program,
    kind="complete",
    difficulty=5,
    minutes=15,
    further=True,
)
class FusedChain(Exercise):
    """A mode that fuses

    The mode lets operations element by element wait, and runs a whole chain of them in one launch
    as soon as somebody needs the values. Fill the gaps.

    What waits needs a result all the same: `tk.empty_like` gives a tensor whose values are not set.
    `one_launch(names, x, out)` writes into `out` what the operations `names` make of `x`, one after
    the other. `FUSABLE` has the names that it knows; every other operation, such as `sum`, needs
    the values of its argument.

    **Input:** `names`, a list of names of operations; `x`, a vector on a CUDA device. Each
    operation is applied to the result of the one before.

    **Output:** the last result, and the number of launches in the ledger. `names` stays as it is.

    ```python
    with tk.cuda.simulate():
        x = tk.tensor([1.0, -4.0], device="cuda")
        fused(["abs", "sqrt", "neg"], x)
    # (tensor([-1., -2.], device='cuda:0'), 1)
    ```
    """

    hints = (
        "A chain begins when nothing waits: `if not self.waiting: self.x = args[0]`. The name goes "
        "into `self.waiting`.",
        "The caller gets `self.out`, the tensor that `one_launch` will fill.",
        "Before another operation runs, the chain must have run: `self.run()`.",
    )
    usual_mistakes = {
        "nothing fused": (
            _not_fused,
            "The values are right, and every operation was a launch of its own. Let those of "
            "`FUSABLE` wait, and run the chain at once.",
        ),
        "the last of each chain": (
            _last_of_each_chain,
            "Of each chain only the last operation runs. All names wait: append, do not replace.",
        ),
        "in reverse": (
            _in_reverse,
            "Your chain runs backwards. The first that was called is the first to run.",
        ),
        "only the result": (
            _only_the_result,
            "The result is right. The launches are asked for, too: the last line of the program "
            "returns both.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def vector(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 0.5, 2))

        yield case(["neg", "exp"], vector(4), label="two operations")
        yield case(["sqrt", "neg", "exp", "tanh"], vector(5), label="a chain of four")
        yield case(["neg", "tanh", "sum"], vector(3), label="a chain, then a sum")
        yield case(["exp"], vector(3), label="a single operation")
        yield case(["sqrt", "exp", "sqrt", "neg"], vector(1), label="one element (size 1)")
        yield case(["abs", "sum"], vector(6), label="one operation, then a sum")
        yield case(["sqrt", "sum", "neg", "exp"], vector(5), label="two chains with a sum between")

    def run(self, answer: Any, *args: Any) -> Any:
        """What is returned, and the launches that a ledger of the check's own has seen."""
        names, values = args
        with tk.cuda.simulate(), tk.cuda.record() as ledger:
            x = values.to("cuda")
            result = answer(names, x)
            launches = len(ledger.launches)
            if isinstance(result, list | tuple):
                result = tuple(
                    tensor.cpu() if isinstance(tensor, tk.Tensor) else tensor for tensor in result
                )
            elif isinstance(result, tk.Tensor):
                result = result.cpu()
            return Seen({"returned": result, "launches": launches})

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        names, values = args
        return f'{self.name}({names}, {show(values)}.to("cuda"))'
