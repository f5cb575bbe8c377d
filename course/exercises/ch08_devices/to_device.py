"""The exercise to-device: a structure with all its tensors on one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, no_type_check

import tensorkit as tk
from course.exercises.ch08_devices.some_device import shown_on, some_cuda
from course.notebook.compare import kind
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


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


def _dictionary_written_into(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        for key, value in batch.items():
            batch[key] = _dictionary_written_into(value, device)
        return batch
    if isinstance(batch, (list, tuple)):
        return type(batch)(_dictionary_written_into(value, device) for value in batch)
    return to_device(batch, device)


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


def _lists_of_structures(batch: Any, device: str) -> Any:
    if isinstance(batch, (list, tuple)):
        return [value.to(device) for value in batch]
    return _no_structure_inside(batch, device)


def _nothing_else_kept(batch: Any, device: str) -> Any:
    if isinstance(batch, tk.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: _nothing_else_kept(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(_nothing_else_kept(value, device) for value in batch)
    return None


@exercise(
    "to-device",
    answer=to_device,
    stub=_device_program,
    kind="complete",
    points=8,
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
        "nothing else is kept": (
            _nothing_else_kept,
            "Names and numbers come back as None. Return what is no tensor and no container as it "
            "is: `return batch` at the end.",
        ),
        "written into": (
            _written_into,
            "You write into the dictionary or list that was given, so the caller's batch has moved "
            "as well. Make a new one: `{key: ... for key, value in batch.items()}`.",
        ),
        "a dictionary written into": (
            _dictionary_written_into,
            "You write into the dictionary that was given, so the caller's batch has moved as "
            "well. Make a new one: `{key: ... for key, value in batch.items()}`.",
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
        "lists of structures": (
            _lists_of_structures,
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
        pair = (tk.tensor(draw.number(1, 9)), [tk.zeros(0, 2)])
        yield case(pair, "cuda", label="no elements, and a single number (0-d)")

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
        return shown_on(device, batch, show)
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
        pairs = (f"{_written(key)}: {_written(entry)}" for key, entry in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_written, value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    is_known = value is None or isinstance(value, (bool, int, float, str))
    return repr(value) if is_known else f"<{kind(value)}>"
