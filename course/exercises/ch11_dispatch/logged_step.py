"""The exercise logged-step: the names of all operations of a training step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import no_type_check

import numpy as np

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, case, exercise


def logged_step(
    x: tk.Tensor,
    y: tk.Tensor,
    w: tk.Tensor,
) -> tuple[tk.Tensor | None, list[str]]:
    """The gradient of `w` in a step, and the names of all operations of the step."""
    names = []

    class Log(tk.utils.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    w = w.clone().requires_grad_()
    with Log():
        loss = ((x * w).add(y, alpha=-1) ** 2).sum()
        loss.backward()
    return w.grad, names


@no_type_check
def _log_program(x, y, w):
    names = []

    class Log(tk.utils.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.__name__ not in names:
                names.append(func.__name__)
            return func(*args)

    w = w.clone().requires_grad_()
    with Log():
        loss = ((x * w).add(y, alpha=-1) ** 2).sum()
        loss.backward()
    return w.grad, names


@no_type_check
def _step(x, y, w, dispatch, backward_inside=True):
    names = []

    class Log(tk.utils.DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return dispatch(names, func, args, kwargs or {})

    w = w.clone().requires_grad_()
    with Log():
        loss = ((x * w).add(y, alpha=-1) ** 2).sum()
        if backward_inside:
            loss.backward()
    if not backward_inside:
        loss.backward()
    return w.grad, names


@no_type_check
def _named(names, func, args, kwargs):
    names.append(func.__name__)
    return func(*args, **kwargs)


@no_type_check
def _options_lost(names, func, args, kwargs):
    names.append(func.__name__)
    return func(*args)


@no_type_check
def _nothing_comes_back(names, func, args, kwargs):
    names.append(func.__name__)
    func(*args, **kwargs)


@no_type_check
def _the_functions(names, func, args, kwargs):
    names.append(func)
    return func(*args, **kwargs)


@no_type_check
def _nothing_noted(names, func, args, kwargs):
    return func(*args, **kwargs)


@no_type_check
def _each_name_once(names, func, args, kwargs):
    if func.__name__ not in names:
        names.append(func.__name__)
    return func(*args, **kwargs)


@no_type_check
def _computed_twice(names, func, args, kwargs):
    names.append(func.__name__)
    func(*args, **kwargs)
    names.append(func.__name__)
    return func(*args, **kwargs)


@exercise(
    "logged-step",
    answer=logged_step,
    stub=_log_program,
    points=3,
    difficulty=2,
    minutes=7,
)
class LoggedStep(Exercise):
    """A mode that logs a step

    The program makes one step of training inside a mode. The mode should note every operation and
    change nothing. It has two faults, both in its method: the list is too short, and the gradient
    is wrong. Repair them.

    **Input:** `x` and `y`, tensors; `w`, a tensor whose gradient is asked for.

    **Output:** the gradient of `w`, and the list of the names of all operations inside the block,
    in their order: those of the loss, then those of `backward()`. The name of an operation is
    `func.__name__`. `x`, `y` and `w` themselves stay as they are.

    ```python
    gradient, names = logged_step(tk.tensor([1.0]), tk.tensor([3.0]), tk.tensor([2.0]))
    gradient
    # tensor([-2.])
    names[:4]
    # ["mul", "add", "pow", "sum"]
    ```
    """

    hints = (
        "Every call is noted, also the second one of the same operation: "
        "`names.append(func.__name__)`.",
        "The loss calls `add` with `alpha=-1`. Where does this option get lost? All options of a "
        "call are in `kwargs`: `func(*args, **(kwargs or {}))`.",
    )
    usual_mistakes = {
        "options lost": (
            lambda x, y, w: _step(x, y, w, _options_lost),
            "The options of a call get lost, here `alpha=-1`. They are in `kwargs`: "
            "`func(*args, **(kwargs or {}))`.",
        ),
        "nothing comes back": (
            lambda x, y, w: _step(x, y, w, _nothing_comes_back),
            "You call the operation, and its result gets lost. Put a `return` before it.",
        ),
        "the functions themselves": (
            lambda x, y, w: [
                call if isinstance(call, tk.Tensor) else list(map(str, call))
                for call in _step(x, y, w, _the_functions)
            ],
            "Your list holds the operations. Their names are asked for: `func.__name__`.",
        ),
        "nothing noted": (
            lambda x, y, w: _step(x, y, w, _nothing_noted),
            "The step runs, and nothing is noted: `names.append(func.__name__)`.",
        ),
        "each name once": (
            lambda x, y, w: _step(x, y, w, _each_name_once),
            "An operation that runs twice stands in your list once. Note every call.",
        ),
        "computed twice": (
            lambda x, y, w: _step(x, y, w, _computed_twice),
            "Every operation stands in your list twice. Note it once and call it once.",
        ),
        "without backward": (
            lambda x, y, w: _step(x, y, w, _named, backward_inside=False),
            "The operations of `backward()` are missing. It stands inside the block, as in the "
            "program that you were given.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def drawn(*shape: int) -> tk.Tensor:
            n = int(np.prod(shape))
            return tk.tensor(draw.floats(n, 1, 9)).reshape(shape)

        yield case(drawn(1), drawn(1), drawn(1), label="one sample")
        yield case(drawn(4), drawn(4), drawn(4), label="a weight for each element")
        yield case(drawn(4), drawn(4), drawn(1), label="one weight, broadcast (size 1)")
        yield case(drawn(3), drawn(3), drawn(), label="a weight without dimensions (0-d)")
        yield case(drawn(2, 3), drawn(2, 3), drawn(3), label="a row of weights")
        yield case(drawn(3, 2).T, drawn(2, 3), drawn(3), label="turned (non-contiguous)")
