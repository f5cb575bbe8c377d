"""The exercises of chapter 11, Dispatch, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together. Kernels are drawn as their names, devices as texts: the
checks need no GPU, and simulate one where a question is about it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, no_type_check

import numpy as np

import tensorkit as tk
from course.exercises.ch08_devices import some_cuda
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import Rule
from tensorkit import explain


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a mode around it that passes every operation on."""

    class Log(tk.utils.DispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with Log():
            return function(*args)

    return call


@exercise("which-layers", points=2, difficulty=2, minutes=6)
class WhichLayers(Prediction):
    """Predict the layers

    Each answer is a text: the layers that the call passes, in their order, and then the device
    whose kernel runs, without a number: `cpu` or `cuda`. The layers are `autograd`, `modes` and
    `promotion`; leave out those that are skipped. `a`, `b`, `c`, `n`, `two`, `mul`, `no_grad` and
    `logged` are those of the cell above.

    One is done for you:

    ```python
    a * a      # "autograd cpu": recorded; no mode is on; both are float32
    ```
    """

    name = "layers"
    ask = 'Replace each ... by a text such as "autograd modes promotion cpu".'
    questions = {
        "b * b": "No input requires grad, no mode is on, both have one dtype: nothing is to do.",
        "a * b": "One input that requires grad is enough for a node.",
        "b * n": "float32 and int64 differ: promotion gives both one dtype.",
        "no_grad(mul)(a, b)": "Under no_grad nothing is recorded: this layer is skipped.",
        "no_grad(mul)(a, n)": "no_grad skips one layer and no other. The dtypes still differ.",
        "logged(mul)(b, b)": "A mode sees every operation, recorded or not.",
        "logged(mul)(a, n)": "Here every layer has something to do. Autograd is the outermost.",
        "c * c": "The kernel is that of the device on which the operands are.",
        "c * two": (
            "A CPU tensor without dimensions may meet a GPU tensor, and is used there. Its "
            "dtype is int64, that of `c` is float32."
        ),
    }
    hints = (
        "Go through the layers from the outside in: does an input require grad, and is recording "
        "on? Is a mode on? Do the dtypes differ? Where are the operands?",
        "`explain.dispatch(tk.mul, a, b)` answers each of these questions for a call.",
    )
    usual_mistakes = {
        "always recorded": (
            {
                "b * b": "autograd cpu",
                "b * n": "autograd promotion cpu",
                "logged(mul)(b, b)": "autograd modes cpu",
                "c * c": "autograd cuda",
                "c * two": "autograd promotion cuda",
            },
            "Autograd has nothing to do if no input requires grad. Then the layer is skipped.",
        ),
        "no_grad does nothing": (
            {
                "no_grad(mul)(a, b)": "autograd cpu",
                "no_grad(mul)(a, n)": "autograd promotion cpu",
            },
            "Under `no_grad` the layer of autograd is skipped, whatever the inputs say.",
        ),
        "no_grad skips all": (
            {"no_grad(mul)(a, n)": "cpu", "logged(mul)(a, n)": "autograd modes cpu"},
            "Promotion does not depend on recording, nor on modes: float32 and int64 differ.",
        ),
        "always promoted": (
            {
                "b * b": "promotion cpu",
                "a * b": "autograd promotion cpu",
                "no_grad(mul)(a, b)": "promotion cpu",
                "logged(mul)(b, b)": "modes promotion cpu",
                "c * c": "promotion cuda",
            },
            "Operands of one dtype and one shape need no promotion: the layer is skipped.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        with tk.device("cpu"), some_cuda():
            names = {
                "a": tk.ones(2, requires_grad=True),
                "b": tk.ones(2),
                "c": tk.ones(2, device="cuda"),
                "n": tk.tensor([1, 2]),
                "two": tk.tensor(2),
                "mul": tk.mul,
                "no_grad": tk.no_grad(),
                "logged": logged,
            }
            route = explain.dispatch(lambda: eval(expression, names)).routes[-1]
        *layers, device = route.layers
        passed = [layer.name for layer in layers if layer.is_passed]
        return " ".join([*passed, re.split("[:;]", device.reason)[0]])

    def run(self, answer: Any, *args: Any) -> Any:
        """The prediction, however its words are set apart."""
        text = super().run(answer, *args)
        return " ".join(re.findall("[a-z_]+", text.lower())) if isinstance(text, str) else text


def find_kernel(kernels: dict[str, object], operation: str, device: str) -> object:
    """The kernel of an operation for a device: its own, otherwise the default."""
    if device in kernels:
        return kernels[device]
    if "default" in kernels:
        return kernels["default"]
    raise NotImplementedError(f"{operation} has no kernel for {device}")


def _default_first(kernels: dict[str, Any], operation: str, device: str) -> Any:
    if "default" in kernels:
        return kernels["default"]
    return find_kernel(kernels, operation, device)


def _none_where_there_is_none(kernels: dict[str, Any], operation: str, device: str) -> Any:
    return kernels.get(device, kernels.get("default"))


def _both_looked_up(kernels: dict[str, Any], operation: str, device: str) -> Any:
    return kernels.get(device, kernels["default"])


def _no_default(kernels: dict[str, Any], operation: str, device: str) -> Any:
    if device in kernels:
        return kernels[device]
    raise NotImplementedError(f"{operation} has no kernel for {device}")


def _cpu_is_the_default(kernels: dict[str, Any], operation: str, device: str) -> Any:
    return find_kernel(kernels, operation, device if device in kernels else "cpu")


def _without_names(kernels: dict[str, Any], operation: str, device: str) -> Any:
    if device in kernels or "default" in kernels:
        return find_kernel(kernels, operation, device)
    raise NotImplementedError("there is no kernel")


def _returns_the_error(kernels: dict[str, Any], operation: str, device: str) -> Any:
    try:
        return find_kernel(kernels, operation, device)
    except NotImplementedError as error:
        return str(error)


@exercise("find-kernel", answer=find_kernel, points=4, difficulty=2, minutes=7)
class FindKernel(Exercise):
    """The table and its look-up

    Every operation has a table of kernels: a dictionary from kinds of device to functions. It may
    have an entry `"default"`, for all devices without a kernel of their own.

    **Input:** `kernels`, the table of one operation; `operation`, its name; `device`, the kind of
    device of the operands.

    **Output:** the kernel for this device: its own if the table has one, otherwise the default. If
    there is neither, raise a `NotImplementedError` whose text has the name of the operation and
    that of the device.

    ```python
    kernels = {"cpu": np.add, "default": tk.add}
    find_kernel(kernels, "add", "cpu")       # np.add
    find_kernel(kernels, "add", "cuda")      # tk.add
    find_kernel({"cpu": np.add}, "add", "cuda")
    # NotImplementedError: add has no kernel for cuda
    ```

    In the check kernels are texts. Your function only hands them on.
    """

    hints = (
        "Two questions in their order: is the device in the table? Is there a default?",
        '`if device in kernels: return kernels[device]`, the same for `"default"`, and below both '
        'a `raise NotImplementedError(f"{operation} has no kernel for {device}")`.',
    )
    usual_mistakes = {
        "the default first": (
            _default_first,
            "A table with a default never gives you another kernel. The device's own comes first; "
            "the default is for devices that have none.",
        ),
        "None": (
            _none_where_there_is_none,
            "Where the table has neither, you return None, and the call fails later with an error "
            "that names no device. Raise NotImplementedError here.",
        ),
        "both looked up": (
            _both_looked_up,
            'Python works out both arguments of `get` before it calls it: `kernels["default"]` '
            "raises KeyError where there is no default, even if the device has a kernel.",
        ),
        "no default": (
            _no_default,
            "You look for the device only. A device without a kernel gets the default, if there "
            "is one.",
        ),
        "the CPU's kernel": (
            _cpu_is_the_default,
            "The CPU's kernel is no default: it cannot reach the memory of another device. Only "
            'the entry `"default"` is for all.',
        ),
        "without names": (
            _without_names,
            "Your error does not say which operation and which device it is about. Put both into "
            "its text.",
        ),
        "the error comes back": (
            _returns_the_error,
            "You return a text where a kernel is expected. `raise NotImplementedError(...)` stops "
            "the call.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        names = ("add", "mul", "relu", "mm", "exp", "softmax")
        device, other = (("cuda", "mps", "xla", "hpu")[at] for at in draw.distinct(2, 0, 3))
        one, two, three = (f"kernel {number}" for number in draw.distinct(3, 10, 999))
        operation = names[draw.integer(0, 5)]
        yield case({device: one, other: two}, operation, device, label="a device in the table")
        yield case({other: two, device: one}, operation, other, label="another device")
        table = {"default": three, device: one}
        yield case(table, operation, device, label="a kernel of its own, and a default")
        yield case(table, operation, other, label="no kernel of its own, and a default")
        yield case({"default": two}, operation, device, label="nothing but a default")
        yield case({device: one}, operation, device, label="a kernel of its own, no default")
        yield case({"cpu": one}, operation, device, label="neither, though the CPU has one")
        table = {"cpu": one, device: three, "default": two}
        yield case(table, operation, other, label="a default beside the CPU")
        yield case(table, operation, "cpu", label="the CPU's kernel, and a default")
        yield case({}, operation, device, label="a table without kernels (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The kernel, or what the error says."""
        _, operation, device = args
        try:
            return answer(*args)
        except NotImplementedError as error:
            said = str(error)
            return Seen(
                {
                    "raises": "NotImplementedError",
                    "with the operation's name": operation in said,
                    "with the device's name": device in said,
                }
            )


def promoted(x: tk.Tensor, y: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    """Both tensors in the dtype that they have together."""

    def rank(t: tk.Tensor) -> tuple[int, bool, int]:
        kind = 2 if t.dtype.is_floating_point else 0 if t.dtype is tk.bool else 1
        return kind, t.ndim > 0, t.dtype.itemsize

    dtype = max((x, y), key=rank).dtype
    return x.to(dtype), y.to(dtype)


def _in(dtype: tk.dtype, x: tk.Tensor, y: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor]:
    return x.to(dtype), y.to(dtype)


def _kind(t: tk.Tensor) -> int:
    return 2 if t.dtype.is_floating_point else 0 if t.dtype is tk.bool else 1


def _the_larger(x: tk.Tensor, y: tk.Tensor) -> Any:
    return _in(max((x, y), key=lambda t: t.dtype.itemsize).dtype, x, y)


def _the_left(x: tk.Tensor, y: tk.Tensor) -> Any:
    return _in(x.dtype, x, y)


def _always_float32(x: tk.Tensor, y: tk.Tensor) -> Any:
    return _in(tk.float32, x, y)


def _dimensions_ignored(x: tk.Tensor, y: tk.Tensor) -> Any:
    return _in(max((x, y), key=lambda t: (_kind(t), t.dtype.itemsize)).dtype, x, y)


def _dimensions_first(x: tk.Tensor, y: tk.Tensor) -> Any:
    rank = lambda t: (t.ndim > 0, _kind(t), t.dtype.itemsize)  # noqa: E731
    return _in(max((x, y), key=rank).dtype, x, y)


def _only_the_dtype(x: tk.Tensor, y: tk.Tensor) -> Any:
    return promoted(x, y)[0].dtype


def _only_the_first(x: tk.Tensor, y: tk.Tensor) -> Any:
    return promoted(x, y)[0], y


@exercise(
    "promotion-layer",
    answer=promoted,
    points=4,
    difficulty=3,
    minutes=9,
    without=("result_type", "promote_types"),
)
class PromotionLayer(Exercise):
    """The layer of promotion

    A kernel computes in one dtype. Before it runs, the operands get the dtype that they have
    together. There are three kinds: bool, whole numbers, floating point.

    1. The higher kind wins: floating point over whole numbers, whole numbers over bool.
    2. Within a kind a tensor with dimensions wins over one without.
    3. If that does not decide either, the larger dtype wins: the one of more bytes.

    **Input:** `x` and `y`, tensors with or without dimensions.

    **Output:** a tuple of both, in the dtype of the winner. No two dtypes of one kind and one size
    meet here.

    ```python
    x, y = promoted(tk.tensor([1, 2]), tk.tensor(0.5))
    x.dtype, y.dtype
    # (torch.float32, torch.float32)
    ```

    `t.dtype.is_floating_point`, `t.dtype is tk.bool` and `t.dtype.itemsize` tell what you need.
    """

    hints = (
        "Give each tensor a rank, a tuple of three entries: kind, dimensions, size. Tuples are "
        "compared entry by entry, from the left.",
        "`max((x, y), key=rank).dtype` is the dtype of the winner, if `rank(t)` gives the tuple.",
        "The tuple: `(kind, t.ndim > 0, t.dtype.itemsize)`, where the kind is 2 for floating "
        "point, 0 for `tk.bool`, 1 for all others.",
    )
    usual_mistakes = {
        "the larger dtype": (
            _the_larger,
            "You compare sizes first, so int64 wins over float32 and the decimals are lost. The "
            "kind comes first.",
        ),
        "the left operand": (
            _the_left,
            "You take the dtype of `x`. Which operand stands on the left does not matter.",
        ),
        "always float32": (
            _always_float32,
            "Not all results are float32: two tensors of whole numbers stay whole, float64 stays "
            "float64. Find the winner.",
        ),
        "dimensions ignored": (
            _dimensions_ignored,
            "A tensor without dimensions counts less than one with, within its kind: "
            "float32 values and a single float64 number give float32.",
        ),
        "dimensions first": (
            _dimensions_first,
            "You ask for dimensions before the kind. Whole numbers and a single 0.5 must become "
            "floating point, or the half is lost.",
        ),
        "only the dtype": (_only_the_dtype, "You return the dtype. Return both tensors in it."),
        "only the first": (
            _only_the_first,
            "`y` comes back as it was. The kernel needs both in one dtype.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(dtype: tk.dtype, n: int = 3) -> tk.Tensor:
            if dtype.is_floating_point:
                return tk.tensor(draw.floats(n, 1, 9), dtype=dtype)
            return tk.tensor(draw.integers(n, 0, 9)).to(dtype)

        def one(dtype: tk.dtype) -> tk.Tensor:
            return some(dtype, 1)[0]

        yield case(some(tk.float32), some(tk.float64), label="two sizes of floating point")
        yield case(some(tk.int64), some(tk.float32), label="whole numbers and floats")
        yield case(some(tk.float32), some(tk.int64), label="floats and whole numbers")
        yield case(some(tk.bool), some(tk.int32), label="bool and whole numbers")
        yield case(some(tk.int64), some(tk.int32), label="two sizes of whole numbers (int)")
        matrix = some(tk.float32, 4).reshape(2, 2)
        yield case(matrix, some(tk.float64, 2), label="a float32 matrix and a float64 vector")
        yield case(some(tk.float32), one(tk.float64), label="float32 and one float64 number (0-d)")
        yield case(one(tk.int64), some(tk.int32), label="one int64 number and int32 (0-d)")
        yield case(some(tk.bool), one(tk.int64), label="bool and one whole number (0-d)")
        yield case(some(tk.int64), one(tk.float32), label="whole numbers and one float (0-d)")
        yield case(one(tk.float32), one(tk.float64), label="two single numbers (0-d)")
        yield case(some(tk.float16), some(tk.int64), label="half precision and int64 (float16)")
        yield case(some(tk.float64, 0), some(tk.int64, 0), label="no elements (empty)")


def mul_with_autograd(
    x: tk.Tensor, y: tk.Tensor, recording: bool
) -> tuple[tk.Tensor, dict[str, tk.Tensor | None] | None]:
    """The product of two tensors, and its node; None where the layer is skipped."""
    product = x.detach() * y.detach()
    if not (recording and (x.requires_grad or y.requires_grad)):
        return product, None
    node = {
        "x": y if x.requires_grad else None,
        "y": x if y.requires_grad else None,
    }
    return product, node


def _never_recorded(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return x.detach() * y.detach(), None


def _recording_ignored(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return mul_with_autograd(x, y, True)


def _all_must_ask(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return mul_with_autograd(x, y, recording and x.requires_grad and y.requires_grad)


def _always_a_node(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    return product, node or ({"x": None, "y": None} if recording else None)


def _empty_inside_no_grad(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    return product, node or {}


def _saves_everything(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    return product, node and {"x": y, "y": x}


def _saves_its_own(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    own = {"x": x if x.requires_grad else None, "y": y if y.requires_grad else None}
    return product, node and own


def _the_other_one_asked(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    product, node = mul_with_autograd(x, y, recording)
    other = {"x": y if y.requires_grad else None, "y": x if x.requires_grad else None}
    return product, node and other


def _only_the_node(x: tk.Tensor, y: tk.Tensor, recording: bool) -> Any:
    return mul_with_autograd(x, y, recording)[1]


@exercise("autograd-layer", answer=mul_with_autograd, points=4, difficulty=3, minutes=8)
class AutogradLayer(Exercise):
    """The layer of autograd

    Write the outermost layer of a multiplication: it computes the product by the layers below, and
    then records, or not. The product has no history of its own: compute `x.detach() * y.detach()`.

    **Input:** `x` and `y`, tensors, each of which may require grad; `recording`, False inside
    `no_grad`.

    **Output:** a tuple of the product and its node. The node is None if the layer is skipped: if
    recording is off, or no input requires grad. Otherwise it is a dictionary with the entries `"x"`
    and `"y"`: under each the tensor that the gradient **of this input** needs, or None if this
    input does not require grad. The slope of $x y$ with respect to $x$ is $y$.

    ```python
    w = tk.tensor([3.0], requires_grad=True)
    x = tk.tensor([2.0])
    mul_with_autograd(w, x, True)
    # (tensor([6.]), {"x": tensor([2.]), "y": None})
    mul_with_autograd(w, x, False)
    # (tensor([6.]), None)
    ```
    """

    hints = (
        "The product is computed in any case. What is recorded depends on two questions: is "
        "recording on, and does at least one input require grad?",
        "Return early where the layer is skipped: `if not (recording and (... or ...)):`.",
        'The node: `{"x": y if x.requires_grad else None, ...}`, and for `"y"` the same crosswise.',
    )
    usual_mistakes = {
        "never recorded": (
            _never_recorded,
            "The product is right, and it never has a node. If recording is on and an input "
            "requires grad, record it.",
        ),
        "recording ignored": (
            _recording_ignored,
            "You record although `recording` is False. Inside `no_grad` this layer is skipped.",
        ),
        "all must ask": (
            _all_must_ask,
            "One input that requires grad is enough: the product of a weight and the data has a "
            "gradient. Use `or`.",
        ),
        "always a node": (
            _always_a_node,
            "Where no input requires grad there is nothing to record: the node is None.",
        ),
        "an empty node": (
            _empty_inside_no_grad,
            "Where the layer is skipped there is no node at all: None, not an empty dictionary.",
        ),
        "saves everything": (
            _saves_everything,
            "Your node keeps both tensors. Keep only what a gradient needs that is asked for: "
            "the rest costs memory until backward.",
        ),
        "saves its own": (
            _saves_its_own,
            "The gradient of `x` needs the other factor: the slope of $x y$ with respect to $x$ is "
            "$y$. Save them crosswise.",
        ),
        "the other one is asked": (
            _the_other_one_asked,
            'The entry `"x"` is for the gradient of `x`, so it is there if `x` requires grad. What '
            "is saved in it is the other tensor.",
        ),
        "only the node": (
            _only_the_node,
            "You return the node alone. The caller needs the product: return both, as a tuple.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int = 3) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 1, 9))

        yield case(some(), True, some(), False, True, label="a weight and the data")
        yield case(some(), False, some(), True, True, label="the data and a weight")
        yield case(some(), True, some(), True, True, label="two weights")
        yield case(some(), False, some(), False, True, label="no input requires grad")
        yield case(some(), False, some(1), False, True, label="no input, one of size 1 (size 1)")
        yield case(some(), True, some(), False, False, label="a weight, inside no_grad")
        yield case(some(), True, some(), True, False, label="two weights, inside no_grad")
        yield case(some(), False, some(), False, False, label="no input, inside no_grad")
        yield case(some(0), True, some(0), False, True, label="no elements (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """What is returned, and whether the product has a history of its own."""
        x, x_asks, y, y_asks, recording = args
        x, y = x.clone().requires_grad_(x_asks), y.clone().requires_grad_(y_asks)
        found = answer(x, y, recording)
        product = found[0] if isinstance(found, tuple) and found else None
        has_history = isinstance(product, tk.Tensor) and product.requires_grad
        return Seen({"returned": found, "the product has a history": has_history})

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        x, x_asks, y, y_asks, recording = args
        first, second = (
            f"{show(tensor)}{'.requires_grad_()' if asks else ''}"
            for tensor, asks in ((x, x_asks), (y, y_asks))
        )
        return f"{self.name}({first}, {second}, {recording})"


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
    points=4,
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
    `func.__name__`.

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
                each if isinstance(each, tk.Tensor) else list(map(str, each))
                for each in _step(x, y, w, _the_functions)
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
        def some(*shape: int) -> tk.Tensor:
            n = int(np.prod(shape))
            return tk.tensor(draw.floats(n, 1, 9)).reshape(shape)

        yield case(some(1), some(1), some(1), label="one sample")
        yield case(some(4), some(4), some(4), label="a weight for each element")
        yield case(some(4), some(4), some(1), label="one weight, broadcast (size 1)")
        yield case(some(3), some(3), some(), label="a weight without dimensions (0-d)")
        yield case(some(2, 3), some(2, 3), some(3), label="a row of weights")
        yield case(some(3, 2).T, some(2, 3), some(3), label="turned (non-contiguous)")


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
    kept = [name for name, other in zip(names, after, strict=True) if "sum" in (name, other)]
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

    **Output:** the last result, and the number of launches in the ledger.

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
        def some(n: int) -> tk.Tensor:
            return tk.tensor(draw.floats(n, 0.5, 2))

        yield case(["neg", "exp"], some(4), label="two operations")
        yield case(["sqrt", "neg", "exp", "tanh"], some(5), label="a chain of four")
        yield case(["neg", "tanh", "sum"], some(3), label="a chain, then a sum")
        yield case(["exp"], some(3), label="a single operation")
        yield case(["sqrt", "exp", "sqrt", "neg"], some(1), label="one element (size 1)")
        yield case(["abs", "sum"], some(6), label="one operation, then a sum")
        yield case(["sqrt", "sum", "neg", "exp"], some(5), label="two chains with a sum between")

    def run(self, answer: Any, *args: Any) -> Any:
        """What is returned, and the launches that a ledger of the check's own has seen."""
        names, values = args
        with tk.cuda.simulate(), tk.cuda.record() as ledger:
            x = values.to("cuda")  # kept: what is computed from other memory is not right by luck
            found = answer(names, x)
            launches = len(ledger.launches)
            if isinstance(found, tuple):
                found = tuple(
                    tensor.cpu() if isinstance(tensor, tk.Tensor) else tensor for tensor in found
                )
            elif isinstance(found, tk.Tensor):
                found = found.cpu()
            return Seen({"returned": found, "launches": launches})

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        names, values = args
        return f'{self.name}({names}, {show(values)}.to("cuda"))'


def cost(
    name: str,
    shapes: list[tuple[int, ...]],
    shape: tuple[int, ...],
) -> tuple[int, int]:
    """What a call costs: operations on numbers, and elements read and written."""
    read = sum(int(np.prod(shape)) for shape in shapes)
    written = int(np.prod(shape))
    operations = written
    if name == "matmul":
        operations = 2 * written * shapes[0][-1]
    if name in ("sum", "max"):
        operations = int(np.prod(shapes[0]))
    return operations, read + written


Shapes = list[tuple[int, ...]]


def _n(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _matmul_by_elements(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (_n(shape) if name == "matmul" else operations), moved


def _no_additions(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (operations // 2 if name == "matmul" else operations), moved


def _wrong_length(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (2 * _n(shape) * shapes[0][0] if name == "matmul" else operations), moved


def _results_of_a_sum(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return (_n(shape) if name in ("sum", "max") else operations), moved


def _only_read(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return operations, moved - _n(shape)


def _only_written(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    return cost(name, shapes, shape)[0], _n(shape)


def _in_bytes(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    operations, moved = cost(name, shapes, shape)
    return operations, 4 * moved


def _first_argument(name: str, shapes: Shapes, shape: tuple[int, ...]) -> Any:
    return cost(name, shapes, shape)[0], _n(shapes[0]) + _n(shape)


@exercise("count-cost", answer=cost, difficulty=3, minutes=8, further=True)
class CountCost(Exercise):
    """What a call costs

    The device "counting" asks a function of yours about every call of NumPy's. Write it.

    **Input:** `name`, the name of NumPy's function; `shapes`, a list of the shapes of the arrays
    it was given; `shape`, that of its result.

    **Output:** a tuple of two whole numbers.

    - The operations on numbers. `"matmul"` of shapes `(n, k)` and `(k, m)` takes `k`
      multiplications and `k` additions for every element of the result. `"sum"` and `"max"` take
      one for every element of their argument. All others take one for every element of the result.
    - The elements moved: those of all arguments, which are read, and those of the result, which are
      written.

    ```python
    cost("add", [(2, 3), (3,)], (2, 3))              # (6, 15)
    cost("matmul", [(2, 3), (3, 5)], (2, 5))         # (60, 31)
    cost("sum", [(4, 5)], (4,))                      # (20, 24)
    ```

    `int(np.prod(shape))` is the number of elements of a shape; `()` is that of a single number.
    """

    hints = (
        "The elements that are read: a sum over `shapes`. Those that are written: of `shape`.",
        "Begin with what holds of most: one operation for each element of the result. Then come "
        "two exceptions.",
        "In a product the length that is summed over is the last size of the first argument: "
        "`shapes[0][-1]`.",
    )
    usual_mistakes = {
        "a product by elements": (
            _matmul_by_elements,
            "Each element of a matrix product is a sum of `k` products, not one operation.",
        ),
        "no additions": (
            _no_additions,
            "You count the multiplications of the product. The `k` additions come on top: twice as "
            "many.",
        ),
        "the wrong length": (
            _wrong_length,
            "In a product of (n, k) and (k, m) the sums are as long as the last size of the first "
            "matrix: `shapes[0][-1]`.",
        ),
        "results of a sum": (
            _results_of_a_sum,
            "A sum adds every element of its argument, however few results there are.",
        ),
        "only read": (_only_read, "The result is written to memory, too: add its elements."),
        "only written": (_only_written, "The arguments are read from memory: add their elements."),
        "in bytes": (
            _in_bytes,
            "You count bytes. Elements are asked for; how large they are is another question.",
        ),
        "the first argument": (
            _first_argument,
            "You count the elements of the first argument. All of them are read.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        n, k, m = draw.distinct(3, 4, 40)
        yield case("add", [(n, k), (n, k)], (n, k), label="element by element")
        yield case("multiply", [(n, 1), (k,)], (n, k), label="broadcast")
        yield case("exp", [(n, m)], (n, m), label="one argument")
        yield case("where", [(n,), (n,), ()], (n,), label="three arguments, one a number (0-d)")
        yield case("matmul", [(n, k), (k, m)], (n, m), label="a product of matrices")
        yield case("matmul", [(1, n), (n, k)], (1, k), label="a row by a matrix (size 1)")
        yield case("sum", [(n, m)], (n,), label="sums of rows")
        yield case("sum", [(n, k)], (), label="the sum of all (0-d)")
        yield case("max", [(k, m)], (1, m), label="the largest of each column")
        yield case("subtract", [(0, m), (m,)], (0, m), label="no rows (empty)")


def softsign(x: tk.Tensor, upstream: tk.Tensor) -> tuple[tk.Tensor, tk.Tensor, bool]:
    """x / (1 + |x|) by an operation of its own, its gradient, what gradcheck says."""

    @tk.library.custom_op("mine::softsign", mutates_args=())
    def operation(x):
        return x / (1 + x.abs())

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + x.abs()) ** 2

    tk.library.register_autograd(operation, backward, setup_context=setup_context)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    is_right = tk.autograd.gradcheck(operation, x, raise_exception=False)
    return y.detach(), gradient, is_right


@no_type_check
def _softsign_program(x, upstream):
    @tk.library.custom_op("mine::softsign", mutates_args=())
    def operation(x):
        return ...  # x / (1 + |x|)

    def setup_context(ctx, inputs, output): ...  # keep the inputs for backward

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ...  # the gradient of x, from the gradient g of the result

    tk.library.register_autograd(operation, backward, setup_context=setup_context)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    is_right = tk.autograd.gradcheck(operation, x, raise_exception=False)
    return y.detach(), gradient, is_right


@no_type_check
def _by(kernel, slope, x, upstream):
    operation = tk.library.custom_op("mine::softsign", kernel, mutates_args=())

    def setup_context(ctx, inputs, output):
        ctx.x, ctx.y = inputs[0].detach(), output

    def backward(ctx, g):
        return slope(ctx.x, ctx.y, g)

    tk.library.register_autograd(operation, backward, setup_context=setup_context)
    y = operation(x)
    (gradient,) = tk.autograd.grad(y, x, upstream)
    is_right = tk.autograd.gradcheck(operation, x, raise_exception=False)
    return y.detach(), gradient, is_right


@no_type_check
def _mistaken(slope, kernel=lambda x: x / (1 + x.abs())):
    return lambda x, upstream: _by(kernel, slope, x, upstream)


@exercise(
    "custom-op",
    answer=softsign,
    stub=_softsign_program,
    kind="complete",
    points=2,
    difficulty=3,
    minutes=7,
)
class CustomOp(Exercise):
    r"""An operation of your own

    The softsign, $\frac{x}{1 + |x|}$, squeezes every number between -1 and 1, as `tanh` does. Make
    it an operation with its gradient. Its slope is $\frac{1}{(1 + |x|)^2}$. Fill the three gaps.

    **Input:** `x`, a float64 tensor that requires grad; `upstream`, the gradient that comes from
    the loss, of the same shape.

    **Output:** the values, the gradient of `x`, and whether `gradcheck` finds the formula right.

    ```python
    x = tk.tensor([1.0, -3.0], dtype=tk.float64, requires_grad=True)
    softsign(x, tk.ones(2, dtype=tk.float64))
    # (tensor([ 0.5000, -0.7500], dtype=torch.float64),
    #  tensor([0.2500, 0.0625], dtype=torch.float64), True)
    ```
    """

    rules = (
        Rule(
            "an operation with its gradient",
            "Register the formula with the operation, as in the program that you were given: "
            "`tk.library.custom_op`.",
            needs=("custom_op",),
        ),
        Rule(
            "whether `gradcheck` finds the formula right",
            "Ask `tk.autograd.gradcheck`, as in the program that you were given.",
            needs=("gradcheck",),
        ),
    )
    hints = (
        "`ctx.save_for_backward(*inputs)` keeps the inputs; `ctx.saved_tensors` gives them back.",
        "The gradient of `x` is the slope times the gradient `g` that arrives.",
        "The two formulas: `x / (1 + x.abs())`, and `g / (1 + x.abs()) ** 2`.",
    )
    usual_mistakes = {
        "upstream forgotten": (
            _mistaken(lambda x, y, g: 1 / (1 + x.abs()) ** 2),
            "This is the slope. The gradient is the slope times what arrives from the loss: "
            "multiply by `g`.",
        ),
        "not squared": (
            _mistaken(lambda x, y, g: g / (1 + x.abs())),
            "The denominator of the slope is squared, $(1 + |x|)^2$.",
        ),
        "the value for the slope": (
            _mistaken(lambda x, y, g: g * y),
            "You multiply by the result. The slope of softsign is not its value.",
        ),
        "no absolute value": (
            _mistaken(lambda x, y, g: g / (1 + x) ** 2),
            "In the slope stands $|x|$: without `abs` it is wrong for negative numbers.",
        ),
        "the output saved": (
            _mistaken(lambda x, y, g: g / (1 + y.abs()) ** 2),
            "The slope is computed from the result. Its formula needs the input: that is what is "
            "saved.",
        ),
        "only x squared": (
            _mistaken(lambda x, y, g: g / (1 + x.abs() ** 2)),
            "The square belongs to the whole sum: `(1 + x.abs()) ** 2`.",
        ),
        "one bracket short": (
            _mistaken(lambda x, y, g: g / (1 + x.abs()) ** 2, lambda x: x / 1 + x.abs()),
            "`x / 1 + x.abs()` divides by 1 only. Put the sum in brackets.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int, low: float, high: float) -> tk.Tensor:
            return tk.tensor(draw.floats(n, low, high), dtype=tk.float64)

        ones = tk.ones(3, dtype=tk.float64)
        yield case(some(3, 0.5, 4), ones, label="positive numbers")
        yield case(some(3, -4, -1.5), ones, label="negative numbers")
        yield case(some(3, 0.5, 4), some(3, 2, 5), label="positive, another upstream gradient")
        yield case(some(3, -4, -1.5), some(3, 2, 5), label="negative, another upstream gradient")
        yield case(some(1, 0.5, 4)[0], some(1, 2, 5)[0], label="a single number (0-d)")
        matrix = some(6, 0.5, 4).reshape(3, 2).T
        yield case(matrix, some(6, 2, 5).reshape(2, 3), label="turned (non-contiguous)")

    def run(self, answer: Any, *args: Any) -> Any:
        x, upstream = args
        return answer(x.clone().requires_grad_(), upstream)
