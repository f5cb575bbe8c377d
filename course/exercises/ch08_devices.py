"""The exercises of chapter 08, Devices, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together. Where there is no GPU the checks simulate one, so arguments
are drawn on the CPU and moved by `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, no_type_check

import numpy as np

import tensorkit as tk
from course.notebook.compare import kind
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import Rule


def some_cuda() -> AbstractContextManager[Any]:
    """A CUDA device, simulated where there is none."""
    return nullcontext() if tk.cuda.is_available() else tk.cuda.simulate()


def _on(device: str, value: Any, show: Callable[[Any], str]) -> str:
    """A tensor of the CPU as the learner would type it for this device."""
    return show(value) + ("" if device == "cpu" else f'.to("{device}")')


def as_array(t: tk.Tensor) -> np.ndarray:
    """The values of any tensor as a NumPy array."""
    return t.detach().cpu().numpy()


def _plain_numpy(t: tk.Tensor) -> Any:
    return t.numpy()


def _only_cpu(t: tk.Tensor) -> Any:
    return t.cpu().numpy()


def _only_detach(t: tk.Tensor) -> Any:
    return t.detach().numpy()


def _a_list(t: tk.Tensor) -> Any:
    return t.tolist()


def _still_a_tensor(t: tk.Tensor) -> Any:
    return t.detach().cpu()


def _through_a_list(t: tk.Tensor) -> Any:
    return np.array(t.tolist())


@exercise("as-array", answer=as_array, points=3, difficulty=2, minutes=5)
class AsArray(Exercise):
    """From anywhere to NumPy

    Plots and files want NumPy arrays. Results may lie on a GPU, and they may have a history.

    **Input:** `t`, a tensor of any shape and dtype on any device, which may require grad.

    **Output:** a NumPy array with its values, shape and dtype.

    ```python
    as_array(tk.tensor([1.0, 2.0], device="cuda", requires_grad=True))
    # array([1., 2.], dtype=float32)
    ```

    In the check, "on cuda" means a simulated GPU if you have no other.
    """

    hints = (
        "Two things can be in the way: NumPy cannot reach a GPU's memory, and it cannot keep a "
        "history.",
        "`.detach()` takes the history away, `.cpu()` brings the numbers to the host, and "
        "`.numpy()` wraps them.",
    )
    usual_mistakes = {
        "nothing in between": (
            _plain_numpy,
            "`.numpy()` alone works on the CPU and without a history. Take care of both first, and "
            "go on with what `.detach()` and `.cpu()` return: they leave `t` as it is.",
        ),
        "only the device": (
            _only_cpu,
            "The device is taken care of, the history is not: `.detach()` first.",
        ),
        "only the history": (
            _only_detach,
            "The history is taken care of, the device is not: `.cpu()` before `.numpy()`. There is "
            "no need to ask where `t` is; on the CPU, `.cpu()` does nothing.",
        ),
        "a list": (_a_list, "This is a Python list. `.numpy()` gives an array."),
        "still a tensor": (_still_a_tensor, "The last step is missing: `.numpy()`."),
        "through a list": (
            _through_a_list,
            "A list of Python numbers has forgotten the dtype: floats come back as float64. Use "
            "`.numpy()`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        numbers = tk.tensor(draw.floats(3, 1, 9))
        yield case(numbers, "cpu", False, label="on the CPU")
        yield case(numbers, "cpu", True, label="on the CPU, with a history")
        yield case(numbers, "cuda", False, label="on cuda")
        yield case(numbers, "cuda", True, label="on cuda, with a history")
        whole = tk.tensor([draw.integers(2, 1, 9) for _ in range(2)])
        yield case(whole, "cuda", False, label="whole numbers on cuda (int)")
        one, other = draw.floats(2, 1, 9)
        yield case(tk.tensor(one), "cuda", True, label="a single number on cuda (0-d)")
        yield case(tk.zeros(0, 3), "cuda", False, label="no elements on cuda (empty)")
        turned = tk.tensor([draw.floats(3, 1, 9) for _ in range(2)]).T
        yield case(turned, "cuda", True, label="turned, with a history (non-contiguous)")
        half = tk.tensor([[other]], dtype=tk.float16)
        yield case(half, "cuda", True, label="one element, with a history (float16)")

    def run(self, answer: Any, *args: Any) -> Any:
        values, device, asks = args
        with some_cuda():
            t = values.to(device, copy=True)
            return answer(t.requires_grad_() * 1 if asks else t)

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        values, device, asks = args
        history = ".requires_grad_() * 1" if asks else ""
        return f"{self.name}({_on(device, values, show)}{history})"


@exercise("which-device", points=2, difficulty=2, minutes=5)
class WhichDevice(Prediction):
    """Predict the device

    Write each answer as a text, `"cpu"` or `"cuda:0"`: the first GPU is number 0.

    One is done for you:

    ```python
    tk.zeros(2, device="cuda").device      # "cuda:0": it was made there
    ```
    """

    name = "places"
    ask = 'Replace each ... by "cpu" or "cuda:0".'
    questions = {
        "tk.zeros(2).device": "Without `device=` a tensor is made on the CPU.",
        "tk.zeros(2).to('cuda').cpu().device": "Each step gives a tensor on the named device.",
        "tk.zeros_like(tk.zeros(2, device='cuda')).device": (
            "The functions that end in `_like` take the device as well."
        ),
        "(tk.zeros(2, device='cuda') + 1).device": "A Python number has no device.",
        "(tk.zeros(2, device='cuda') * tk.tensor(3.0)).device": (
            "`tk.tensor(3.0)` is a CPU tensor without dimensions: it counts as a number, and may "
            "meet a GPU tensor."
        ),
        "tk.zeros(2, device='cuda').sum().device": (
            "A result stays where it was computed, also if it is a single number."
        ),
        "tk.tensor(tk.zeros(2, device='cuda').tolist()).device": (
            "A Python list lies in the memory of the host, and so does what is made of it."
        ),
    }
    hints = (
        "A result is where its operands are. Which lines leave the GPU on purpose?",
        "`.cpu()`, `.tolist()` and `.item()` bring numbers to the host; nothing else does.",
    )
    usual_mistakes = {
        "small results come back": (
            {
                "tk.zeros(2, device='cuda').sum().device": "cpu",
                "(tk.zeros(2, device='cuda') * tk.tensor(3.0)).device": "cpu",
            },
            "Nothing comes back by itself, however small. A result stays where it was computed.",
        ),
        "new tensors are on the CPU": (
            {
                "tk.zeros_like(tk.zeros(2, device='cuda')).device": "cpu",
                "(tk.zeros(2, device='cuda') + 1).device": "cpu",
            },
            "`zeros_like` copies the device of its tensor, and arithmetic stays on the device. "
            "Only the functions without a tensor to look at begin on the CPU.",
        ),
        "once on the GPU, always": (
            {
                "tk.zeros(2).to('cuda').cpu().device": "cuda:0",
                "tk.tensor(tk.zeros(2, device='cuda').tolist()).device": "cuda:0",
            },
            "`.cpu()` and `.tolist()` bring the numbers to the host, and what is made of them is "
            "there.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        with tk.device("cpu"), some_cuda():  # whatever the default device is
            return super().evaluate(expression)

    def observe(self, value: tk.device) -> str:
        return str(value)

    def run(self, answer: Any, *args: Any) -> Any:
        """The prediction; `"cuda"` and a `tk.device` say the same."""
        place = super().run(answer, *args)
        if isinstance(place, tk.device):
            place = str(place)
        return "cuda:0" if place == "cuda" else place


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


@exercise("any-device", answer=faded, stub=_constants_on_the_cpu, points=6, difficulty=2, minutes=8)
class AnyDevice(Exercise):
    """A constant on the wrong side

    The function below worked for years, until somebody gave it a tensor on a GPU. Do the same in a
    new cell, as in the second example, and read the error. Then repair the function so that it
    works on every device, without `.cpu()`, `.numpy()` or `.tolist()`: `x` is large, and stays
    where it is.

    **Input:** `x`, a float32 or float64 tensor of shape `[rows, columns]` with at least one row and
    column, on any device.

    **Output:** a tensor on the same device, in which column `j` is divided by `j + 1`.

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
            "`arange` without `device=` is made on the CPU. Make it where `x` is: "
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
        x = tk.tensor([draw.floats(3, 1, 9) for _ in range(2)])
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
        return f"{self.name}({_on(device, values, show)})"


def to_device(batch: object, device: str) -> object:
    """The same structure with every tensor in it on this device."""
    if isinstance(batch, tk.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(value, device) for value in batch)
    return batch


@no_type_check
def _device_program(batch: object, device: str) -> object:
    if isinstance(batch, tk.Tensor):
        return ...  # the tensor, on the device
    if isinstance(batch, dict):
        return ...  # a new dictionary: the same keys, each value moved
    if isinstance(batch, (list, tuple)):
        return ...  # a new list of a list, a new tuple of a tuple, each entry moved
    return batch


def _only_the_outermost(batch: Any, device: str) -> Any:
    if isinstance(batch, tk.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {k: v.to(device) if isinstance(v, tk.Tensor) else v for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(v.to(device) if isinstance(v, tk.Tensor) else v for v in batch)
    return batch


def _tuples_become_lists(batch: Any, device: str) -> Any:
    if isinstance(batch, tk.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: _tuples_become_lists(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [_tuples_become_lists(value, device) for value in batch]
    return batch


def _everything_must_move(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        return {key: _everything_must_move(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(_everything_must_move(value, device) for value in batch)
    return batch.to(device)


def _result_thrown_away(batch: Any, device: str) -> Any:
    if isinstance(batch, tk.Tensor):
        batch.to(device)
    elif isinstance(batch, dict):
        for value in batch.values():
            _result_thrown_away(value, device)
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            _result_thrown_away(value, device)
    return batch


def _always_cuda_inside(batch: Any, device: str) -> Any:
    return to_device(batch, "cuda")


def _written_into(batch: Any, device: str) -> Any:
    if isinstance(batch, tk.Tensor):
        return batch.to(device)
    if isinstance(batch, tuple):
        return tuple(_written_into(value, device) for value in batch)
    if isinstance(batch, dict):
        for key, value in batch.items():
            batch[key] = _written_into(value, device)
    if isinstance(batch, list):
        for position, value in enumerate(batch):
            batch[position] = _written_into(value, device)
    return batch


def _as_if_a_tensor(batch: Any, device: str) -> Any:
    return batch.to(device)


def _others_left_out(batch: Any, device: str) -> Any:
    if isinstance(batch, tk.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        kept = {k: v for k, v in batch.items() if isinstance(v, (tk.Tensor, dict, list, tuple))}
        return {key: _others_left_out(value, device) for key, value in kept.items()}
    if isinstance(batch, (list, tuple)):
        moving = [v for v in batch if isinstance(v, (tk.Tensor, dict, list, tuple))]
        return type(batch)(_others_left_out(value, device) for value in moving)
    return batch


def _no_structure_inside(batch: Any, device: str) -> Any:
    if isinstance(batch, tk.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: value.to(device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)([value.to(device) for value in batch])
    return batch


@exercise(
    "to-device",
    answer=to_device,
    stub=_device_program,
    kind="complete",
    points=7,
    difficulty=4,
    minutes=10,
)
class ToDevice(Exercise):
    """Everything to the device

    A batch is rarely a single tensor: it is a dictionary of inputs, a pair of inputs and labels, a
    list of such pairs, with names and numbers in between. Move all of its tensors: fill the gaps.

    **Input:** `batch`, a tensor, or a dictionary, list or tuple of such batches, to any depth, or
    anything else; `device`, a text.

    **Output:** the same structure with every tensor on that device. Dictionaries stay dictionaries
    with the same keys, lists stay lists, tuples stay tuples, everything else stays as it is. The
    batch that was given is not changed.

    ```python
    to_device({"x": tk.zeros(2), "name": "first"}, "cuda")
    # {"x": tensor([0., 0.], device='cuda:0'), "name": "first"}
    ```
    """

    hints = (
        "What stands in a dictionary may be a tensor, or a dictionary again. Which function moves "
        "either of them? You are writing it.",
        "For a dictionary: a new dictionary with the function called on every value. It calls "
        "itself, to any depth.",
        "`type(batch)(...)` makes a list of a list and a tuple of a tuple.",
    )
    usual_mistakes = {
        "only the outermost": (
            _only_the_outermost,
            "Tensors further inside stay where they were. Let the function call itself on every "
            "value.",
        ),
        "tuples become lists": (
            _tuples_become_lists,
            "A tuple comes back as a list. `type(batch)(...)` keeps the kind.",
        ),
        "everything has to move": (
            _everything_must_move,
            "Numbers and texts have no `.to`. Return what is no tensor and no container as it is.",
        ),
        "nothing is kept": (
            _result_thrown_away,
            "`.to` returns the tensor on the device and leaves the old one where it is. Put what "
            "it returns into a new structure.",
        ),
        "written into": (
            _written_into,
            "You write into the dictionary or list that was given, so the caller's batch has moved "
            "as well. Make a new one: `{key: ... for key, value in batch.items()}`.",
        ),
        "as if a tensor": (
            _as_if_a_tensor,
            "Only a tensor has `.to`. Ask `isinstance(batch, tk.Tensor)`, then `dict`, then "
            "`(list, tuple)`, and return anything else as it is.",
        ),
        "always the GPU": (
            _always_cuda_inside,
            "You move to the GPU whatever `device` says. Use the argument: `.to(device)`.",
        ),
        "others left out": (
            _others_left_out,
            "Names and numbers are missing in your result. They stay as they are: return what "
            "is no tensor and no container unchanged.",
        ),
        "no structure inside": (
            _no_structure_inside,
            "What stands inside a dictionary or list may be no tensor, and then has no `.to`. "
            "Call `to_device` for each entry.",
            r"\.to\(",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        x = tk.tensor(draw.integers(2, 1, 9))
        yield case(x, "cuda", label="a tensor")
        yield case({"x": x, "name": "first"}, "cuda", label="a dictionary with a name")
        yield case([x, x * 2], "cuda", label="a list")
        yield case((x, tk.tensor([1])), "cuda", label="a pair")
        yield case(
            {"pairs": [(x, 1), (x + 1, 2)], "n": 2}, "cuda", label="pairs in a list in a dictionary"
        )
        yield case([({"deep": [x]}, "text")], "cuda", label="four levels")
        yield case({"x": x, "pair": (x, 7)}, "cpu", label="back on the CPU")
        yield case([x, {"y": x + 1}], "cpu", label="a list back on the CPU")
        yield case([1, "two", None], "cuda", label="no tensor at all")
        yield case(
            {"x": [], "y": (), "z": {}},
            "cuda",
            label="lists and dictionaries without entries (empty)",
        )
        few = (tk.tensor(draw.number(1, 9)), [tk.zeros(0, 2)])
        yield case(few, "cuda", label="no elements, and a single number (0-d)")

    def run(self, answer: Any, *args: Any) -> Any:
        batch, device = args
        with some_cuda():
            elsewhere = "cpu" if device == "cuda" else "cuda"
            given = to_device(batch, elsewhere)
            returned = _written(answer(given, device))
            return {"returned": returned, "the batch that was given": _written(given)}

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        batch, device = args
        given = _typed(batch, "cpu" if device == "cuda" else "cuda", show)
        return f'{self.name}({given}, "{device}")'


def _typed(batch: Any, device: str, show: Callable[[Any], str]) -> str:
    """A structure as the learner would type it, its tensors on this device."""
    if isinstance(batch, tk.Tensor):
        return _on(device, batch, show)
    if isinstance(batch, dict):
        pairs = (f'"{key}": {_typed(value, device, show)}' for key, value in batch.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(batch, (list, tuple)):
        inner = ", ".join(_typed(value, device, show) for value in batch)
        if isinstance(batch, list):
            return f"[{inner}]"
        return f"({inner},)" if len(batch) == 1 else f"({inner})"
    return show(batch)


def _written(value: Any) -> str:
    """The structure as text, with the numbers and the device of each tensor.

    Another object is named by its kind in angle brackets: its own text may say anything.
    """
    if isinstance(value, tk.Tensor):
        return f"tensor({value.tolist()}, device='{value.device}')"
    if isinstance(value, dict):
        pairs = (f"{_written(key)}: {_written(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_written, value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    is_known = value is None or isinstance(value, (bool, int, float, str))
    return repr(value) if is_known else f"<{kind(value)}>"


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
            "The host still waits in every step: `.item()` needs the number at once, and so does "
            "`.cpu()`. Let the sum lie where the batches are, and add up there.",
        ),
        "a tensor": (
            _a_tensor,
            "This is a tensor. A Python number is asked for: `.item()`, once.",
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
        def some(n: int, low: int = 1, high: int = 9) -> list[float]:
            return [float(number) for number in draw.integers(n, low, high)]

        def few(n: int, high: int = 5) -> list[float]:
            """Different ones, so that the square of their mean is not the mean of the squares."""
            return [float(number) for number in draw.distinct(n, 1, high)]

        def many(n: int) -> list[float]:
            """Larger ones, so that it matters how the means are taken."""
            return some(n, 6, 9)

        yield case([[1.0, 1.0], [3.0]], "cuda", label="two batches on cuda")
        yield case([some(4) for _ in range(5)], "cuda", label="five batches on cuda")
        yield case([few(2), few(2), many(1)], "cpu", label="three batches on the CPU")
        yield case([some(2) for _ in range(8)], "cuda", label="eight batches on cuda")
        yield case([few(2, 20)], "cuda", label="a single batch on cuda (size 1)")
        yield case([[few(2), few(2)], [many(1)]], "cuda", label="matrices on cuda")
        halves = [tk.tensor(batch, dtype=tk.float16) for batch in (few(2), many(1))]
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
        shown = ", ".join(_on(device, _tensor(batch), show) for batch in batches)
        return f"{self.name}([{shown}])"


def _tensor(batch: Any) -> tk.Tensor:
    return batch if isinstance(batch, tk.Tensor) else tk.tensor(batch)


def largest_batch(free: int, fixed: int, per_sample: int) -> int:
    """How many samples fit into the memory of a device."""
    left = (free - fixed) // 512 * 512
    return max(0, left // per_sample)


def _without_blocks(free: int, fixed: int, per_sample: int) -> int:
    return max(0, (free - fixed) // per_sample)


def _without_fixed(free: int, fixed: int, per_sample: int) -> int:
    return free // 512 * 512 // per_sample


def _rounded_up(free: int, fixed: int, per_sample: int) -> int:
    left = (free - fixed) // 512 * 512
    return max(0, -(-left // per_sample))


def _each_sample_in_blocks(free: int, fixed: int, per_sample: int) -> int:
    block = -(-per_sample // 512) * 512
    return max(0, (free - fixed) // block)


def _below_zero(free: int, fixed: int, per_sample: int) -> int:
    return (free - fixed) // 512 * 512 // per_sample


@exercise("largest-batch", answer=largest_batch, points=0, difficulty=3, minutes=6, further=True)
class LargestBatch(Exercise):
    """What fits

    Memory on the device is given out in blocks of 512 bytes. A model takes a fixed part; the rest
    is for one tensor that holds the whole batch.

    **Input:** three whole numbers of bytes: `free`, what the device has left; `fixed`, what the
    model takes (a multiple of 512); `per_sample`, what one sample takes (at least 1).

    **Output:** the largest number of samples whose tensor, rounded up to whole blocks, still fits;
    0 if none does.

    ```python
    largest_batch(2048, 512, 400)
    # 3: three blocks are left, 1536 bytes; three samples take 1200, four take 1600
    ```
    """

    hints = (
        "How many whole blocks are left once the model is there? How many bytes are these?",
        "`(free - fixed) // 512 * 512` bytes can be given out. Whole numbers: divide with `//`.",
    )
    usual_mistakes = {
        "without blocks": (
            _without_blocks,
            "The rest of less than a block cannot be used: round what is left down to whole blocks "
            "first.",
        ),
        "without the model": (
            _without_fixed,
            "The model takes its part first: subtract `fixed`.",
        ),
        "rounded up": (
            _rounded_up,
            "It is one sample too many; the last does not fit any more. Divide with `//`, which "
            "rounds down, or stop counting one earlier.",
        ),
        "a block for each sample": (
            _each_sample_in_blocks,
            "You give each sample blocks of its own. The batch is one tensor and is rounded once.",
        ),
        "below zero": (
            _below_zero,
            "If the model alone does not fit, the answer is 0, not a negative number.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def rest(blocks: int, per_sample: int) -> tuple[int, int, int]:
            """Whole blocks and a rest in which one sample more would have room."""
            fixed = 512 * draw.integer(2, 8)
            missing = -(512 * blocks) % per_sample
            return fixed + 512 * blocks + draw.integer(missing, 511), fixed, per_sample

        def odd(low: int, high: int) -> int:
            """A size of which no few blocks are a multiple."""
            return 2 * draw.integer(low // 2, high // 2) + 1

        yield case(2048, 512, 400, label="three small samples")
        yield case(*rest(draw.integer(2, 9), odd(100, 250)), label="a rest of less than a block")
        yield case(*rest(draw.integer(15, 30), odd(50, 100)), label="many small samples")
        yield case(*rest(draw.integer(10, 30), odd(30, 50)), label="any rest")
        blocks, fixed = draw.integer(3, 30), 512 * draw.integer(1, 9)
        yield case(fixed + 512 * blocks + 511, fixed, odd(30, 250), label="one byte is missing")
        samples, large = draw.integer(4, 9), odd(600, 700)
        blocks = (samples + 1) * large // 512
        yield case(*rest(blocks, large), label="samples larger than a block")
        large = draw.integer(600, 800)
        yield case(512 + draw.integer(large, 1023), 512, large, label="none fits")
        free, more = 512 * draw.integer(2, 9), 512 * draw.integer(1, 9)
        yield case(free, free + more, odd(50, 250), label="the model does not fit")
        free = draw.integer(1024, 4096)
        yield case(free, 8192, draw.integer(600, 1000), label="the model is much too large")


def break_even(cpu: float, gpu: float, transfer: float) -> int:
    """From how many runs on the GPU is faster, with the transfer there counted once."""
    if gpu >= cpu:
        return 0
    runs = 1
    while runs * cpu <= transfer + runs * gpu:
        runs += 1
    return runs


def _without_transfer(cpu: float, gpu: float, transfer: float) -> Any:
    return 1 if gpu < cpu else 0


def _transfer_every_time(cpu: float, gpu: float, transfer: float) -> Any:
    return 1 if gpu + transfer < cpu else 0


def _a_tie_counts(cpu: float, gpu: float, transfer: float) -> Any:
    if gpu >= cpu:
        return 0
    runs = 1
    while runs * cpu < transfer + runs * gpu:
        runs += 1
    return runs


def _rounded_down(cpu: float, gpu: float, transfer: float) -> Any:
    return int(transfer / (cpu - gpu)) if gpu < cpu else 0


def _one_too_many(cpu: float, gpu: float, transfer: float) -> Any:
    runs = break_even(cpu, gpu, transfer)
    return runs + 1 if runs else 0


def _speed_up(cpu: float, gpu: float, transfer: float) -> Any:
    return cpu / gpu


@exercise("break-even", answer=break_even, points=0, difficulty=2, minutes=6, further=True)
class BreakEven(Exercise):
    """When the GPU pays

    Data are sent to the GPU once, and then used again and again.

    **Input:** three times in milliseconds: `cpu` and `gpu`, what one run takes there, and
    `transfer`, what sending the data takes, once.

    **Output:** the smallest number of runs for which the GPU, transfer included, takes less time
    than the CPU; 0 if it never does.

    ```python
    break_even(4.0, 1.0, 10.0)
    # 4: 16 ms against 10 + 4 = 14 ms; with 3 runs it is 12 against 13
    ```
    """

    hints = (
        "After `n` runs the CPU has taken `n * cpu`. And the GPU?",
        "Count up from 1 until `n * cpu` is larger than `transfer + n * gpu`. First make sure that "
        "this happens at all.",
    )
    usual_mistakes = {
        "without the transfer": (
            _without_transfer,
            "The transfer has its price: the first runs only earn it back. Add `transfer` to the "
            "time of the GPU.",
        ),
        "a transfer for every run": (
            _transfer_every_time,
            "The data are sent once, not for every run: add `transfer` once, whatever the number "
            "of runs.",
        ),
        "a tie counts": (
            _a_tie_counts,
            "At a tie the GPU is not faster yet: it must take less time.",
        ),
        "rounded down": (
            _rounded_down,
            "Your number is one too small: after so many runs the GPU has not yet taken less time. "
            "Try it with the numbers of the first failing case.",
        ),
        "one too many": (
            _one_too_many,
            "One run fewer is enough: try your number minus one.",
        ),
        "the speed-up": (
            _speed_up,
            "This is how much faster one run is. Asked for is the number of runs.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def times(most: int) -> tuple[float, float]:
            """What a run on the GPU takes, and how much longer it is on the CPU."""
            return float(draw.integer(2, 9)), float(draw.integer(1, most))

        yield case(4.0, 1.0, 10.0, label="a large matrix")
        gpu, more = times(9)
        yield case(gpu + more, gpu, 10 * more, label="a tie after ten runs")
        gpu, more = times(7)
        yield case(gpu + more, gpu, 4 * more, label="a tie after four runs")
        gpu, more = times(9)
        transfer = (draw.integer(10, 40) + 0.5) * more
        yield case(gpu + more, gpu, transfer, label="any large matrix")
        gpu, more = times(9)
        yield case(gpu + more, gpu, (draw.integer(300, 900) + 0.5) * more, label="hundreds of runs")
        gpu, more = times(9)
        yield case(gpu, gpu + more, float(draw.integer(5, 50)), label="slower in every run")
        yield case(gpu, gpu, 0.0, label="as fast as the CPU")
        gpu, more = times(50)
        yield case(gpu + 50 + more, gpu, more, label="it pays at once")


def unscaled(gradients: list[tk.Tensor], scale: float) -> list[tk.Tensor]:
    """The gradients, from those of `scale` times the loss; [] to skip the step."""
    divided = [gradient.float() / scale for gradient in gradients]
    if all(tk.isfinite(gradient).all() for gradient in divided):
        return divided
    return []


def _divided_in_half(gradients: Any, scale: float) -> Any:
    divided = [(gradient / scale).float() for gradient in gradients]
    return divided if all(tk.isfinite(gradient).all() for gradient in divided) else []


def _still_half(gradients: Any, scale: float) -> Any:
    divided = unscaled(gradients, scale)
    return divided and [gradient.half() for gradient in divided]


def _never_skipped(gradients: Any, scale: float) -> Any:
    return [gradient.float() / scale for gradient in gradients]


def _only_inf(gradients: Any, scale: float) -> Any:
    divided = [gradient.float() / scale for gradient in gradients]
    return [] if any(tk.isinf(gradient).any() for gradient in divided) else divided


def _only_the_first(gradients: Any, scale: float) -> Any:
    divided = [gradient.float() / scale for gradient in gradients]
    return divided if tk.isfinite(divided[0]).all() else []


def _broken_ones_left_out(gradients: Any, scale: float) -> Any:
    divided = [gradient.float() / scale for gradient in gradients]
    return [gradient for gradient in divided if tk.isfinite(gradient).all()]


def _multiplied(gradients: Any, scale: float) -> Any:
    found = unscaled(gradients, scale)
    return found and [gradient * scale * scale for gradient in found]


@exercise("unscaled", answer=unscaled, points=0, difficulty=3, minutes=7, further=True)
class Unscaled(Exercise):
    """Before the step: divide, or skip

    With mixed precision the loss was multiplied by `scale` before backward, and so is every
    gradient. What a gradient scaler does before the optimizer's step is this.

    **Input:** `gradients`, a list of float16 tensors, at least one; `scale`, a number.

    **Output:** a list of float32 tensors, each gradient divided by `scale`. If any element of any
    of them is `inf` or `nan`, the scale was too large and the whole step is skipped: then the
    list is empty.

    ```python
    unscaled([tk.tensor([512.0, 256.0]).half()], 1024.0)
    # [tensor([0.5000, 0.2500])]
    unscaled([tk.tensor([512.0]).half(), tk.tensor([1e6]).half()], 1024.0)
    # []: in float16 1e6 is inf
    ```

    `tk.isfinite(t)` is True where an element is neither `inf` nor `nan`.
    """

    hints = (
        "Which comes first, the division or the cast to float32? Remember what becomes of 2e-8 in "
        "float16.",
        "`it.float() / scale` for each tensor. Then ask all of them: `tk.isfinite(it).all()`.",
    )
    usual_mistakes = {
        "divided in float16": (
            _divided_in_half,
            "You divide in float16 and cast afterwards, so what is small has become 0 already: the "
            "scale was for nothing. First `.float()`, then divide.",
        ),
        "still float16": (
            _still_half,
            "Your result is float16 again, where small gradients are 0. Leave it in float32.",
        ),
        "never skipped": (
            _never_skipped,
            "A step with `inf` or `nan` in it destroys the parameters. Return an empty list if any "
            "element is not finite.",
        ),
        "only inf": (
            _only_inf,
            "You look for `inf` only. `nan` is not finite either: `tk.isfinite` finds both.",
        ),
        "only the first": (
            _only_the_first,
            "You look at the first tensor alone. One element in any of them spoils the step.",
        ),
        "left out": (
            _broken_ones_left_out,
            "You leave the broken gradients out and keep the others, so half of the model would "
            "move. Skip the whole step: `[]`.",
        ),
        "multiplied": (
            _multiplied,
            "You multiply by the scale once more. The gradients were multiplied already: divide.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def half(*values: float) -> tk.Tensor:
            return tk.tensor(values).half()

        def some(n: int) -> list[float]:
            return [float(number) for number in draw.integers(n, 1, 99)]

        inf, nan = float("inf"), float("nan")
        yield case([half(512, 256)], 1024.0, label="one tensor")
        yield case([half(*some(3)), -half(*some(2))], 16.0, label="two tensors")
        one, other = (number * 1e-6 for number in draw.distinct(2, 10, 50))
        yield case([half(one, *some(1)), half(other)], 65536.0, label="small ones")
        yield case([half(6e-8)], 8.0, label="the smallest number (float16)")
        yield case([half(*some(1)), half(*some(1), inf)], 2.0, label="inf in the second")
        large = [40000.0 + number for number in some(2)]
        yield case([half(*some(1)), half(*large)], 2.0, label="a sum that is too large")
        yield case([half(-inf, *some(1)), half(*some(1))], 4.0, label="minus inf in the first")
        yield case([half(nan, *some(1))], 2.0, label="nan")
        yield case([half(*some(1)), half(*some(1), nan)], 4.0, label="nan in the second")
        yield case(
            [half(*some(1))[0], tk.zeros(0).half()],
            2.0,
            label="no elements, and a single number (0-d)",
        )
        wide = half(*some(6)).reshape(2, 3)
        yield case([wide.T], 4.0, label="turned (non-contiguous)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The gradients, and how many of them are 0."""
        found = answer(*args)
        if not isinstance(found, list) or not all(
            isinstance(gradient, tk.Tensor) for gradient in found
        ):
            return found
        zeros = [int((gradient == 0).sum()) for gradient in found]
        return Seen({"gradients": found, "elements that are 0": zeros})
