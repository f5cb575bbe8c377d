"""The exercise celsius: from Fahrenheit to Celsius."""

from __future__ import annotations

from collections.abc import Iterator

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def celsius(fahrenheit: tk.Tensor) -> tk.Tensor:
    """The temperatures in degrees Celsius."""
    return (fahrenheit - 32) / 1.8


def _forgets_the_offset(fahrenheit: tk.Tensor) -> tk.Tensor:
    return fahrenheit / 1.8


def _divides_first(fahrenheit: tk.Tensor) -> tk.Tensor:
    return fahrenheit / 1.8 - 32


def _without_brackets(fahrenheit: tk.Tensor) -> tk.Tensor:
    return fahrenheit - 32 / 1.8


def _the_other_way(fahrenheit: tk.Tensor) -> tk.Tensor:
    return fahrenheit * 1.8 + 32


def _multiplies(fahrenheit: tk.Tensor) -> tk.Tensor:
    return (fahrenheit - 32) * 1.8


def _prints(fahrenheit: tk.Tensor) -> None:
    print((fahrenheit - 32) / 1.8)


def _in_place(fahrenheit: tk.Tensor) -> tk.Tensor:
    return fahrenheit.sub_(32).div_(1.8)


@exercise("celsius", answer=celsius, points=1, difficulty=1, minutes=2)
class Celsius(Exercise):
    """From Fahrenheit to Celsius

    **Input:** `fahrenheit`, a tensor of temperatures, of any shape.

    **Output:** a tensor with the same temperatures in degrees Celsius: subtract 32, then divide by
    1.8. `fahrenheit` itself stays as it is.

    ```python
    celsius(tk.tensor([32.0, 50.0, 212.0]))
    # tensor([  0.,  10., 100.])
    ```

    Write your line in place of `pass`, with `return` in front, and delete the comment. Arithmetic
    works on all elements at once: `fahrenheit - 32` is a tensor too.
    """

    hints = (
        "Two steps and one `return`. Which one comes first?",
        "Without brackets Python divides before it subtracts: put `fahrenheit - 32` in brackets.",
    )
    usual_mistakes = {
        "forgets the 32": (
            _forgets_the_offset,
            "Nothing is subtracted. 32 °F is 0 °C: take 32 away first.",
            r"^(?!(?s:.*)-\s*32)",
        ),
        "divides first": (
            _divides_first,
            "You divided before you subtracted: take 32 away first. In one line put brackets "
            "around `fahrenheit - 32`, because Python does `/` before `-`.",
        ),
        "brackets missing": (
            _without_brackets,
            "32 / 1.8 was subtracted: Python does `/` before `-`. Put brackets around "
            "`fahrenheit - 32`.",
        ),
        "the other way round": (
            _the_other_way,
            "This turns Celsius into Fahrenheit. Go backwards: first subtract, then divide.",
        ),
        "multiplies": (
            _multiplies,
            "You multiply by 1.8. A degree Celsius is the larger one, so there are fewer of them: "
            "divide.",
        ),
        "prints": (
            _prints,
            "Your function prints and gives nothing back. Write `return` instead of "
            "`print`: the check, and every caller, gets what is returned.",
        ),
        "changes its argument": (
            _in_place,
            "`fahrenheit` has changed, and the tensor belongs to the caller. `-=`, `/=` and names "
            "that end in `_` write into a tensor; `-` and `/` make a new one.",
        ),
        "adds": (
            lambda fahrenheit: (fahrenheit + 32) / 1.8,
            "You add 32. At 32 °F it should be 0 °C: subtract.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        yield case(tk.tensor([32.0, 50.0, 212.0]), label="freezing, cool, boiling")
        yield case(tk.tensor(draw.floats(4, -40, 110)), label="any four temperatures")
        yield case(tk.tensor([draw.floats(3, 0, 99) for _ in range(2)]), label="two days of three")
        yield case(tk.tensor(draw.number(95, 106)), label="a single temperature (0-d)")
        yield case(tk.tensor(draw.integers(3, 40, 90)), label="whole numbers (int)")
        warm = draw.integers(2, 50, 100)
        yield case(tk.tensor(warm, dtype=tk.float16), label="half the memory (float16)")
        pairs = tk.tensor([draw.floats(2, 0, 99) for _ in range(2)])
        yield case(pairs[:, :1], label="a column (non-contiguous)")
        yield case(tk.tensor([]), label="no temperatures (empty)")
