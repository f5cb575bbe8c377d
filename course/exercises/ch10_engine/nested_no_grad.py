"""The exercise nested-no-grad: recording is off in a block inside a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course.engine import grad_mode, no_grad
from course.exercises.ch10_engine.part import Part, program_case
from course.notebook.exercise import Case, Draw, Exercise, exercise


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
            "All blocks keep the mode in one place, and the inner block overwrites it. Use an "
            "attribute of `self`.",
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
        "always on afterwards": (
            _TheObject,
            "Recording is on after every block, also after one that is inside of another. Keep the "
            "value that `grad_mode.enabled` has in `__enter__`, and put that back.",
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
        yield program_case(
            "one block", f"{x}with no_grad():\n    y = x * {w}\nz = x * x", "y.data", *looks
        )
        yield program_case("a block in a block", f"{x}{inner}    z = x * {w}", "z.data", *looks)
        yield program_case("after both", f"{x}{inner}z = x * {w}", "z.data", *looks)
        yield program_case(
            "two in a block", f"{x}{inner}    with no_grad():\n        pass\n    z = x * x", *looks
        )
        yield program_case(
            "three deep",
            f"{x}with no_grad():\n    with no_grad():\n        with no_grad():\n"
            f"            y = x * x\n        z = x + {w}\n    u = z * x",
            *looks,
            "u.requires_grad",
            "u.data",
        )
        yield program_case(
            "an error inside",
            f"{x}try:\n    with no_grad():\n        y = x * {w}\n        1 / 0\n"
            "except ZeroDivisionError:\n    pass\nz = x * x",
            *looks,
        )
        yield program_case(
            "an error in the inner block",
            f"{x}with no_grad():\n    try:\n        with no_grad():\n            y = x * {w}\n"
            "            1 / 0\n    except ZeroDivisionError:\n        pass\n"
            "    z = x * x\nu = x * x",
            *looks,
            "u.requires_grad",
        )
        yield program_case(
            "an error goes on",
            f"{x}caught = False\ntry:\n    with no_grad():\n        y = x * {w}\n        1 / 0\n"
            "except ZeroDivisionError:\n    caught = True\nz = x * x",
            "caught",
            *looks,
        )
        yield program_case(
            "another error goes on",
            f"{x}caught = 0\nfor n in range(2):\n    try:\n        with no_grad():\n"
            f"            y = x * {w}\n            [][n]\n"
            "    except IndexError:\n        caught += 1",
            "caught",
            "y.data",
        )
        yield program_case(
            "off before",
            f"{x}grad_mode.enabled = False\nwith no_grad():\n    y = x * x\nz = x * {w}",
            "z.data",
            *looks,
        )
        yield program_case(
            "off before, two blocks",
            f"{x}grad_mode.enabled = False\n{inner}z = x * {w}",
            "z.data",
            *looks,
        )
        yield program_case(
            "made early, entered late",
            f"{x}block = no_grad()\nwith no_grad():\n    with block:\n        y = x * x\n"
            f"    z = x * {w}",
            *looks,
        )
        yield program_case(
            "made inside, entered outside",
            f"{x}with no_grad():\n    block = no_grad()\nwith block:\n    y = x * x\nz = x * {w}",
            *looks,
        )
        yield program_case(
            "training goes on",
            f"{x}for _ in range(2):\n    x.zero_grad()\n    (x * x).sum().backward()\n"
            f"    with no_grad():\n        x.sub_(x.grad * 0.1)",
            "x.data",
        )
        yield program_case(
            "no elements (empty)",
            "x = Tensor([], requires_grad=True)\n"
            "with no_grad():\n    with no_grad():\n        pass\n    y = x * x\nz = x * x",
            *looks,
        )
