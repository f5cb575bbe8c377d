"""The exercise record-result: what an operation's result remembers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course.engine import grad_mode, result
from course.exercises.ch10_engine.part import Part, program_case
from course.notebook.exercise import Case, Draw, exercise


def _recorded(self: Any, data: Any, inputs: Any, formula: Any, saved: Any) -> Any:
    new = type(self)(data)
    new.requires_grad, new.inputs, new.formula = True, tuple(inputs), formula
    new.saved = [(tensor, tensor.version) for tensor in saved]
    return new


def _all_must_ask(self, data, inputs, formula, saved=()):
    asked = grad_mode.enabled and all(tensor.requires_grad for tensor in inputs)
    return _recorded(self, data, inputs, formula, saved) if asked else type(self)(data)


def _only_self(self, data, inputs, formula, saved=()):
    asked = grad_mode.enabled and inputs[0].requires_grad
    return _recorded(self, data, inputs, formula, saved) if asked else type(self)(data)


def _always_recorded(self, data, inputs, formula, saved=()):
    return _recorded(self, data, inputs, formula, saved)


def _any_input(self, data, inputs, formula, saved=()):
    asked = grad_mode.enabled and len(inputs) > 0
    return _recorded(self, data, inputs, formula, saved) if asked else type(self)(data)


def _nothing_returned(self, data, inputs, formula, saved=()):
    result(self, data, inputs, formula, saved)


def _history_of_self(self, data, inputs, formula, saved=()):
    if grad_mode.enabled and any(tensor.requires_grad for tensor in inputs):
        self.requires_grad, self.inputs, self.formula = True, tuple(inputs), formula
        self.saved = [(tensor, tensor.version) for tensor in saved]
    return type(self)(data)


def _numbers_saved(self, data, inputs, formula, saved=()):
    new = result(self, data, inputs, formula, saved)
    new.saved = [(tensor.data, version) for tensor, version in new.saved]
    return new


def _without_the_mode(self, data, inputs, formula, saved=()):
    asked = any(tensor.requires_grad for tensor in inputs)
    return _recorded(self, data, inputs, formula, saved) if asked else type(self)(data)


def _constants_with_history(self, data, inputs, formula, saved=()):
    new = _recorded(self, data, inputs, formula, saved)
    new.requires_grad = grad_mode.enabled and any(tensor.requires_grad for tensor in inputs)
    return new


def _without_versions(self, data, inputs, formula, saved=()):
    new = result(self, data, inputs, formula, saved)
    new.saved = [tensor for tensor, _ in new.saved]
    return new


def _version_of_the_new_one(self, data, inputs, formula, saved=()):
    new = result(self, data, inputs, formula, saved)
    new.saved = [(tensor, new.version) for tensor, _ in new.saved]
    return new


def _all_saved(self, data, inputs, formula, saved=()):
    return result(self, data, inputs, formula, inputs)


def _none_saved(self, data, inputs, formula, saved=()):
    return result(self, data, inputs, formula)


def _no_requires_grad(self, data, inputs, formula, saved=()):
    new = result(self, data, inputs, formula, saved)
    new.requires_grad = False
    return new


@exercise(
    "record-result",
    answer=result,
    points=3,
    difficulty=3,
    minutes=7,
    without=("course.engine.result",),
)
class RecordResult(Part):
    """Remember how it was made

    Every operation computes its numbers and hands them to `result`. Write this method: it makes the
    new tensor, and notes its history if that will be needed.

    **Input:** `self`, the tensor that was computed with; `data`, the numbers of the result, perhaps
    0-d; `inputs`, the tensors that it was made of, a tuple; `formula`, a function; `saved`, those
    tensors whose numbers the formula will read.

    **Output:** a new tensor, `type(self)(data)`. If recording is on, `grad_mode.enabled`, *and* at
    least one of the inputs requires grad, four of its attributes are set:

    | Attribute | Value |
    |---|---|
    | `requires_grad` | True |
    | `inputs` | the inputs |
    | `formula` | the formula |
    | `saved` | pairs, each a tensor of `saved` and its `version` now |

    Otherwise the new tensor stays as it is: a constant, which remembers nothing.

    ```python
    Tensor = tensor_with(result)
    x = Tensor(3.0, requires_grad=True)
    y = x * 2.0
    y.data, y.requires_grad, y.inputs[0] is x
    # (array(6.), True, True)
    ```
    """

    hints = (
        "Make the tensor first, `new = type(self)(data)`, and return it at the end. Between the "
        "two stands one `if` with four lines.",
        "`any(each.requires_grad for each in inputs)` is True if at least one of them requires "
        "grad. Both conditions must hold: `grad_mode.enabled and any(...)`.",
        "The pairs: `[(each, each.version) for each in saved]`.",
    )
    usual_mistakes = {
        "nothing returned": (
            _nothing_returned,
            "Your method makes a tensor and gives None back: `return` it at the end.",
            r"^(?!(?s:.*)return \w)",
        ),
        "the version of the new tensor": (
            _version_of_the_new_one,
            "You note the version of the new tensor, which is 0. A write shows in the version of "
            "the tensor that is saved: `(each, each.version)`.",
        ),
        "all must ask": (
            _all_must_ask,
            "You ask whether all of the inputs require grad. One is enough: a product of a weight "
            "and a constant has a gradient. Use `any`.",
        ),
        "only the first input": (
            _only_self,
            "You look at the first input alone. In `c * x` it is the second that requires grad.",
        ),
        "always recorded": (
            _always_recorded,
            "What is made of constants alone is recorded too, and so is what `no_grad` should keep "
            "out. Both conditions must hold: recording is on, and an input requires grad.",
        ),
        "any input": (
            _any_input,
            "What is made of constants alone is recorded. `any(inputs)` asks whether there are "
            "inputs. Ask `any(each.requires_grad for each in inputs)`.",
            r"any\(inputs\)",
        ),
        "the history of self": (
            _history_of_self,
            "You note the history in `self`, one of the inputs. It belongs to the new tensor: "
            "`new.inputs = inputs`.",
            r"self\.(inputs|formula|saved) = ",
        ),
        "numbers saved": (
            _numbers_saved,
            "The pairs hold arrays. Keep the tensors themselves, whose versions are compared "
            "later.",
        ),
        "the mode is not looked at": (
            _without_the_mode,
            "Inside `with no_grad():` your results still remember. Look at `grad_mode.enabled`, "
            "too.",
        ),
        "constants with a history": (
            _constants_with_history,
            "`requires_grad` is right, but a constant of yours keeps its inputs, and with them all "
            "their memory. Set the four attributes in the `if`, all together.",
        ),
        "no version": (
            _without_versions,
            "`saved` holds tensors alone. Keep pairs of the tensor and its version: later the two "
            "are compared.",
        ),
        "all inputs saved": (
            _all_saved,
            "You save all inputs. Save those in `saved`: the formula of `+` reads no numbers, so "
            "nothing needs to be kept for it.",
        ),
        "nothing saved": (
            _none_saved,
            "`saved` stays empty. Keep a pair for each tensor of the argument `saved`.",
        ),
        "requires_grad not set": (
            _no_requires_grad,
            "The history is there, but `requires_grad` is False, so nobody will follow it.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        a, b = (draw.floats(2, 2, 9) for _ in range(2))
        leaf, second = f"x = Tensor({a}, requires_grad=True)", f"Tensor({b}, requires_grad=True)"
        looks = "z.requires_grad", "len(z.inputs)", "z.formula is None", "len(z.saved)"
        yield program_case(
            "two that require grad", f"{leaf}\ny = {second}\nz = x * y", "z.data", *looks
        )
        yield program_case("its inputs", f"{leaf}\nz = x * x", "[each is x for each in z.inputs]")
        yield program_case("a leaf and a constant", f"{leaf}\nz = x * Tensor({b})", *looks)
        yield program_case("a constant and a leaf", f"{leaf}\nz = Tensor({b}) * x", *looks)
        yield program_case("a constant plus a leaf", f"{leaf}\nz = Tensor({b}) + x", *looks)
        middle = f"{leaf}\nc = Tensor({b})\nz = c.result(np.array({a}), (c, x, c), len)"
        yield program_case("the second of three inputs", middle, *looks)
        yield program_case("two constants", f"z = Tensor({a}) * Tensor({b})", "z.data", *looks)
        yield program_case("a constant alone", f"z = Tensor({a}).relu()", "z.data", *looks)
        yield program_case("without recording", f"{leaf}\nwith no_grad():\n    z = x * 2.0", *looks)
        yield program_case(
            "a sum without recording", f"{leaf}\nwith no_grad():\n    z = x.sum()", *looks
        )
        yield program_case("nothing is saved", f"{leaf}\nz = x + {second}", "z.saved", *looks[:3])
        yield program_case(
            "nothing is saved for relu", f"{leaf}\nz = x.relu()", "z.saved", "z.data"
        )
        write = f"with no_grad():\n    x.sub_(Tensor({b}))"
        pairs = "[(each is x, version) for each, version in z.saved]"
        yield program_case("versions", f"{leaf}\nz = x * x", pairs)
        yield program_case("versions after a write", f"{leaf}\n{write}\nz = x * x", pairs)
        yield program_case(
            "versions of two",
            f"{leaf}\ny = {second}\nwith no_grad():\n    y.sub_(x)\nz = x * y",
            "[(each is x, each is y, version) for each, version in z.saved]",
        )
        yield program_case("gradients", f"{leaf}\n(x * x * {b[0]}).sum().backward()", "x.grad.data")
        yield program_case(
            "a single number (0-d)",
            f"x = Tensor({a[0]}, requires_grad=True)\nz = x * x\nz.backward()",
            "z.data",
            "x.grad.data",
        )
