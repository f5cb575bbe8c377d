"""The exercise fewer-waits: one wait for the GPU instead of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorkit as tk
from course.exercises.ch08_devices.some_device import shown_on, some_cuda
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def mean_loss(batches: list[tk.Tensor]) -> float:
    """The mean over all batches of the mean of the squares."""
    total = tk.zeros((), device=batches[0].device)
    for x in batches:
        total += (x * x).mean()
    return total.item() / len(batches)


def _item_in_the_loop(batches: list[tk.Tensor]) -> float:
    total = 0.0
    for x in batches:
        total += (x * x).mean().item()
    return total / len(batches)


def _a_tensor(batches: list[tk.Tensor]) -> Any:
    total = tk.zeros((), device=batches[0].device)
    for x in batches:
        total += (x * x).mean()
    return (total / len(batches)).cpu()


def _a_tensor_on_the_device(batches: list[tk.Tensor]) -> Any:
    return sum((x * x).mean() for x in batches) / len(batches)


def _sum_on_the_cpu(batches: list[tk.Tensor]) -> float:
    total = tk.tensor(0.0)
    for x in batches:
        total += (x * x).mean()
    return total.item() / len(batches)


def _all_in_one(batches: list[tk.Tensor]) -> float:
    return float((tk.cat(batches) ** 2).mean().item())


def _printed_on_the_way(batches: list[tk.Tensor]) -> float:
    total = tk.zeros((), device=batches[0].device)
    for x in batches:
        total += (x * x).mean()
        if total > 1e9:
            break
    return total.item() / len(batches)


def _not_divided(batches: list[tk.Tensor]) -> float:
    return mean_loss(batches) * len(batches)


def _square_of_the_mean(batches: list[tk.Tensor]) -> float:
    total = tk.zeros((), device=batches[0].device)
    for x in batches:
        total += x.mean() ** 2
    return total.item() / len(batches)


_A_TENSOR = "This is a tensor. A Python number is asked for: `.item()`, once."


@exercise(
    "fewer-waits",
    answer=mean_loss,
    stub=_item_in_the_loop,
    points=2,
    difficulty=3,
    minutes=8,
    witness="inside",
)
class FewerWaits(Exercise):
    """One wait instead of many

    The result of the code below is right. But `.item()` in the loop makes the host wait for the GPU
    in every step, and the GPU wait for the host afterwards. Repair it so that the host waits once.

    **Input:** `batches`, a list of at least one float tensor, all on the same device.

    **Output:** the mean over the batches of the mean of the squares, as a Python float.

    ```python
    mean_loss([tk.tensor([1.0, 1.0]), tk.tensor([3.0])])
    # 5.0
    ```

    The check counts how often the host waits: once is needed, to get the number at the end.
    """

    hints = (
        "The sum may stay on the device too: a tensor without dimensions, to which each step adds.",
        "`total = tk.zeros((), device=batches[0].device)`, `total += ...` in the loop without "
        "`.item()`, and one `.item()` at the end.",
    )
    usual_mistakes = {
        "still in the loop": (
            _item_in_the_loop,
            "The host still waits in every step, because it needs the number at once: for "
            "`.item()`, and as well for `float(...)` and `.cpu()`. Add up where the batches are.",
        ),
        "a tensor": (
            _a_tensor,
            _A_TENSOR,
        ),
        "a tensor on the device": (
            _a_tensor_on_the_device,
            _A_TENSOR,
        ),
        "a question in the loop": (
            _printed_on_the_way,
            "`if total > ...` and `print(total)` have to know the number, so they wait. Ask "
            "nothing in the loop.",
        ),
        "the sum on the CPU": (
            _sum_on_the_cpu,
            "The sum is on the CPU, and what is written with `+=` has to lie there too. Make it "
            "where the batches are: `tk.zeros((), device=batches[0].device)`.",
        ),
        "all in one": (
            _all_in_one,
            "You take the mean over all numbers at once. Batches may differ in size, and here each "
            "counts the same: first the mean of each, then the mean of these.",
        ),
        "not divided": (
            _not_divided,
            "This is the sum over the batches: divide by how many there are.",
        ),
        "everything together": (
            lambda batches: float(tk.cat([x.flatten() for x in batches]).square().mean().item()),
            "You take the mean over all numbers at once. Each batch counts the same: first the "
            "mean of each, then the mean of these.",
        ),
        "the square of the mean": (
            _square_of_the_mean,
            "You square the mean. Square each number first.",
        ),
        "stacked": (
            lambda batches: float(tk.stack(batches).square().mean().item()),
            "`stack` needs batches of one size. Go through them in a loop.",
            r"stack",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def numbers(n: int, low: int = 1, high: int = 9) -> list[float]:
            return [float(number) for number in draw.integers(n, low, high)]

        def low_numbers(n: int, high: int = 5) -> list[float]:
            """Different ones, so that the square of their mean is not the mean of the squares."""
            return [float(number) for number in draw.distinct(n, 1, high)]

        def long_list(n: int) -> list[float]:
            """Larger ones, so that it matters how the means are taken."""
            return numbers(n, 6, 9)

        yield case([[1.0, 1.0], [3.0]], "cuda", label="two batches on cuda")
        yield case([numbers(4) for _ in range(5)], "cuda", label="five batches on cuda")
        yield case(
            [low_numbers(2), low_numbers(2), long_list(1)], "cpu", label="three batches on the CPU"
        )
        yield case([numbers(2) for _ in range(8)], "cuda", label="eight batches on cuda")
        yield case([low_numbers(2, 20)], "cuda", label="a single batch on cuda (size 1)")
        yield case(
            [[low_numbers(2), low_numbers(2)], [long_list(1)]], "cuda", label="matrices on cuda"
        )
        halves = [tk.tensor(batch, dtype=tk.float16) for batch in (low_numbers(2), long_list(1))]
        yield case(halves, "cuda", label="half the memory, on cuda (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The number, and how often the host waited for it."""
        batches, device = args
        with some_cuda():
            tensors = [_tensor(batch).to(device) for batch in batches]
            with tk.cuda.record() as ledger:
                result = answer(tensors)
            waits = sum(transfer.direction != "host to device" for transfer in ledger.transfers)
            waits = max(waits, len(ledger.synchronisations))
        if isinstance(result, float):
            result = round(result, 4)
        return {"mean": result, "waits": waits if device == "cuda" else 0}

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        batches, device = args
        shown = ", ".join(shown_on(device, _tensor(batch), show) for batch in batches)
        return f"{self.name}([{shown}])"


def _tensor(batch: Any) -> tk.Tensor:
    return batch if isinstance(batch, tk.Tensor) else tk.tensor(batch)
