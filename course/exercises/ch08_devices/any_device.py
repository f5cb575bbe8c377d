"""The exercise any-device: constants on the device of the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch08_devices.some_device import shown_on, some_cuda
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import Rule


def faded(x: tk.Tensor) -> tk.Tensor:
    """The columns of `x`, each weighted less than the one before."""
    positions = tk.arange(x.shape[1], device=x.device)
    weights = 1 / (positions + 1.0)
    return x * weights


def _constants_on_the_cpu(x: tk.Tensor) -> tk.Tensor:
    positions = tk.arange(x.shape[1])
    weights = 1 / (positions + 1.0)
    return x * weights


def _always_cuda(x: tk.Tensor) -> tk.Tensor:
    positions = tk.arange(x.shape[1], device="cuda")
    return x * (1 / (positions + 1.0))


def _computed_on_the_cpu(x: tk.Tensor) -> tk.Tensor:
    positions = tk.arange(x.shape[1])
    return x.cpu() * (1 / (positions + 1.0))


def _from_zero(x: tk.Tensor) -> tk.Tensor:
    positions = tk.arange(x.shape[1], device=x.device)
    return x / (positions + 2.0)


@exercise("any-device", answer=faded, stub=_constants_on_the_cpu, points=6, difficulty=3, minutes=8)
class AnyDevice(Exercise):
    """A constant on the wrong side

    The function below worked for years, until somebody gave it a tensor on a GPU. Do the same in a
    new cell, as in the second example, and read the error. Then repair the function so that it
    works on every device, without `.cpu()`, `.numpy()` or `.tolist()`: `x` is large, and stays
    where it is.

    **Input:** `x`, a float32 or float64 tensor of shape `[rows, columns]` with at least one row and
    column, on any device.

    **Output:** a tensor on the same device, in which column `j` is divided by `j + 1`. `x` itself
    stays as it is.

    ```python
    faded(tk.tensor([[6.0, 6.0, 6.0]]))
    # tensor([[6., 3., 2.]])
    faded(tk.tensor([[6.0, 6.0, 6.0]], device="cuda"))      # an error now
    # tensor([[6., 3., 2.]], device='cuda:0')
    ```
    """

    rules = (
        Rule(
            "without `.cpu()`, `.numpy()` or `.tolist()`",
            "These bring numbers to the CPU. Make the small constant where `x` is: "
            "`device=x.device`.",
            refuses=("cpu", "numpy", "tolist", '.to("cpu")'),
        ),
    )
    hints = (
        "Read the error: which tensor is on the CPU, and which line made it?",
        "`device=x.device` makes the constant where `x` is, whatever device that is.",
    )
    usual_mistakes = {
        "still on the CPU": (
            _constants_on_the_cpu,
            "A constant that is made without `device=` is on the CPU. Make it where `x` is: "
            "`device=x.device`.",
        ),
        "always on the GPU": (
            _always_cuda,
            "Now it fails with a tensor on the CPU. Ask `x` for its device instead of naming one.",
        ),
        "computed on the CPU": (
            _computed_on_the_cpu,
            "You bring `x` to the CPU, and the result stays there. Bring the small constant to "
            "`x`, not the large `x` to the constant.",
        ),
        "begins at 2": (
            _from_zero,
            "Column 0 is divided by 1, not by 2: leave the formula as it was.",
        ),
        "rows": (
            lambda x: x / (tk.arange(x.shape[0], device=x.device) + 1.0).unsqueeze(1),
            "You weigh the rows. Column `j` is divided by `j + 1`: count the columns, "
            "`x.shape[1]`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        x = tk.tensor([draw.floats(3, 1, 9), draw.floats(3, -9, -1)])
        yield case(tk.tensor([[6.0, 6.0, 6.0]]), "cpu", label="on the CPU")
        yield case(tk.tensor([[6.0, 6.0, 6.0]]), "cuda", label="on cuda")
        yield case(x, "cuda", label="any numbers on cuda")
        yield case(x, "cpu", label="any numbers on the CPU")
        yield case(x.double(), "cuda", label="float64 on cuda")
        column = tk.tensor(draw.floats(4, 1, 9)).unsqueeze(1)
        yield case(column, "cuda", label="one column on cuda (size 1)")
        yield case(tk.zeros(0, 3), "cuda", label="no rows on cuda (empty)", weight=0.25)
        yield case(x.repeat(3, 1).T, "cuda", label="turned, on cuda (non-contiguous)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The result's numbers, where it is, and whether numbers came to the CPU for it."""
        values, device = args
        with some_cuda():
            x = values.to(device)
            with tk.cuda.record() as ledger:
                result = answer(x)
            if not isinstance(result, tk.Tensor):
                return result
            seen = Seen({"values": result.detach().cpu(), "device": str(result.device)})
            directions = {transfer.direction for transfer in ledger.transfers}
            seen["numbers came to the CPU"] = "device to host" in directions
            return seen

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        values, device = args
        return f"{self.name}({shown_on(device, values, show)})"
