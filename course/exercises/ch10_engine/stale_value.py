"""The exercise stale-value: writing in place, and noticing it in `backward()`."""

from __future__ import annotations

from collections.abc import Iterator

from course.engine import Writing, grad_mode, no_grad
from course.exercises.ch10_engine.part import Part, names_of, program_case
from course.notebook.exercise import Case, Draw, exercise


class _NewArray(Writing):
    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError("not recorded")
        self.data = self.data - other.data
        self.version += 1
        return self


class _Dropped(Writing):
    def sub_(self, other):
        before = self.data.copy()
        super().sub_(other)
        self.data[...] = before
        return self


class _TensorIntoArray(Writing):
    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError("not recorded")
        self.data -= other
        self.version += 1
        return self


class _OneVersion(Writing):
    def sub_(self, other):
        super().sub_(other)
        self.version = 1
        return self


class _RaisesAfterwards(Writing):
    def sub_(self, other):
        with no_grad():
            super().sub_(other)
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError
        return self


class _BothVersions(Writing):
    def sub_(self, other):
        super().sub_(other)
        other.version += 1
        return self


class _NumbersReturned(Writing):
    def sub_(self, other):
        return super().sub_(other).data


class _SameVersion(Writing):
    def check_saved(self):
        for tensor, version in self.saved:
            if tensor.version == version:
                raise RuntimeError("changed")


class _QuietRefusal(Writing):
    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            return self
        return super().sub_(other)


class _AnotherError(Writing):
    def check_saved(self):
        for tensor, version in self.saved:
            if tensor.version != version:
                raise ValueError("changed")


class _VersionForgotten(Writing):
    def sub_(self, other):
        before = self.version
        super().sub_(other)
        self.version = before
        return self


class _NoReturn(Writing):
    def sub_(self, other):
        super().sub_(other)


class _NeverRaises(Writing):
    def sub_(self, other):
        self.data -= other.data
        self.version += 1
        return self


class _AlwaysRaises(Writing):
    def sub_(self, other):
        if self.requires_grad or other.requires_grad:
            raise RuntimeError("not recorded")
        return super().sub_(other)


class _ConstantsRaise(Writing):
    def sub_(self, other):
        if grad_mode.enabled:
            raise RuntimeError("not recorded")
        return super().sub_(other)


class _OtherForgotten(Writing):
    def sub_(self, other):
        if grad_mode.enabled and self.requires_grad:
            raise RuntimeError("not recorded")
        self.data -= other.data
        self.version += 1
        return self


class _BothMustAsk(Writing):
    def sub_(self, other):
        if grad_mode.enabled and self.requires_grad and other.requires_grad:
            raise RuntimeError("not recorded")
        self.data -= other.data
        self.version += 1
        return self


class _Added(Writing):
    def sub_(self, other):
        return super().sub_(-other)


class _AnyWrite(Writing):
    def check_saved(self):
        if any(tensor.version > 0 for tensor, _ in self.saved):
            raise RuntimeError("changed")


class _OwnVersion(Writing):
    def check_saved(self):
        if self.version > 0:
            raise RuntimeError("changed")


class _FirstOnly(Writing):
    def check_saved(self):
        for tensor, version in self.saved[:1]:
            if tensor.version != version:
                raise RuntimeError("changed")


class _InputsChecked(Writing):
    def check_saved(self):
        if any(tensor.version > 0 for tensor in self.inputs):
            raise RuntimeError("changed")


class _Returned(Writing):
    def check_saved(self):
        return all(tensor.version == version for tensor, version in self.saved)


@exercise(
    "stale-value",
    answer=Writing,
    points=2,
    difficulty=3,
    minutes=6,
    without=names_of(Writing),
)
class StaleValue(Part):
    """Write, and notice it

    Write two methods from an empty class.

    `sub_(self, other)` subtracts the tensor `other` from `self` in place: the array `self.data`
    stays the same object, its numbers change. `self.version` grows by 1, and `self` is returned.
    Such a write is not recorded. So while `grad_mode.enabled` is True, it raises RuntimeError if
    `self` or `other` requires grad, before it changes anything.

    `check_saved(self)` raises RuntimeError if a tensor of `self.saved` has another version now than
    it had then. `self.saved` is the list of pairs that `result` made: each a tensor and its
    version. Otherwise it does nothing.

    ```python
    Tensor = tensor_with(Writing)
    x = Tensor(3.0, requires_grad=True)
    y = x * x
    with no_grad():
        x.sub_(Tensor(1.0))
    y.backward()
    # RuntimeError: x was 3 when y was made, now it is 2
    ```

    An empty list in `saved` raises nothing, and a single number (0-d) is written like any other.
    """

    hints = (
        "`self.data -= other.data` writes into the array; `self.data = self.data - other.data` "
        'makes a new one. The error: `raise RuntimeError("...")` with a sentence of yours.',
        "The condition in `sub_`: `grad_mode.enabled and (self.requires_grad or "
        "other.requires_grad)`.",
        "In `check_saved`: `for tensor, version in self.saved:`, and compare `tensor.version` with "
        "`version`.",
    )
    usual_mistakes = {
        "a new array": (
            _NewArray,
            "Your `sub_` makes a new array: others who hold the old one do not see the change. "
            "Write `self.data -= other.data`.",
        ),
        "nothing is written": (
            _Dropped,
            "The numbers stay as they are. `self.data - other.data` alone computes and forgets; "
            "`self.data -= other.data` writes.",
        ),
        "a tensor into an array": (
            _TensorIntoArray,
            "`other` is a tensor, and NumPy does not know those. Its numbers are in `other.data`.",
        ),
        "version 1": (
            _OneVersion,
            "The version is 1 after every write. Count the writes: `self.version += 1`.",
        ),
        "both versions": (
            _BothVersions,
            "The version of `other` grows too. It was read and not written into: only that of "
            "`self` grows.",
        ),
        "numbers returned": (
            _NumbersReturned,
            "`sub_` gives the array. End it with `return self`, as methods with `_` do.",
        ),
        "raises where equal": (
            _SameVersion,
            "You raise where the versions are the same. Raise where they differ.",
        ),
        "nothing is raised": (
            _QuietRefusal,
            "Where `sub_` is not allowed yours does nothing, and nobody notices. Raise "
            "RuntimeError.",
        ),
        "another error": (
            _AnotherError,
            "`check_saved` raises another error. Code that waits for it waits for RuntimeError, as "
            "in PyTorch.",
        ),
        "the version is forgotten": (
            _VersionForgotten,
            "The numbers change and the version stays, so that nobody notices. Add 1 to "
            "`self.version`.",
        ),
        "no return": (
            _NoReturn,
            "`sub_` gives None. End it with `return self`, as methods with `_` do.",
        ),
        "raises afterwards": (
            _RaisesAfterwards,
            "Your `sub_` writes first and raises then, so the numbers have changed. Ask first, "
            "and write last.",
        ),
        "never raises": (
            _NeverRaises,
            "A tensor that requires grad is changed while operations are recorded, and the history "
            "does not know of it. Raise RuntimeError before you write.",
        ),
        "raises without recording": (
            _AlwaysRaises,
            "Inside `with no_grad():` writing is allowed, or nobody could train. Look at "
            "`grad_mode.enabled` too.",
        ),
        "constants raise": (
            _ConstantsRaise,
            "Constants may be written at any time. Raise only if one of the two requires grad.",
        ),
        "other is forgotten": (
            _OtherForgotten,
            "You look at `self` alone. If `other` requires grad, the new numbers depend on it, and "
            "that would be lost too.",
        ),
        "both must ask": (
            _BothMustAsk,
            "You raise only where both require grad. One of the two is enough: `or`.",
        ),
        "added": (_Added, "`sub_` subtracts. Yours adds the other tensor."),
        "any write": (
            _AnyWrite,
            "You raise if a tensor was ever written into. What matters is whether that happened "
            "after it was saved: compare the two versions.",
        ),
        "its own version": (
            _OwnVersion,
            "You look at the version of the result. Its formula reads the tensors in `self.saved`: "
            "theirs count.",
        ),
        "the first one only": (
            _FirstOnly,
            "Only the first saved tensor is checked. Go through all of `self.saved`.",
        ),
        "inputs instead of saved": (
            _InputsChecked,
            "You check the inputs. A formula that reads no numbers, as that of `+`, does not mind "
            "a change: go through `self.saved`.",
        ),
        "returned": (
            _Returned,
            "A changed value is not noticed. `check_saved` raises RuntimeError where the version "
            "of a saved tensor is not the one saved with it; nobody reads what it returns.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        v, w = draw.floats(3, 1.1, 9), draw.floats(3, 1.1, 9)
        a, b = draw.floats(2, 1.1, 4)
        c = f"c = Tensor({v})\n"
        x, y = f"x = Tensor({v}, requires_grad=True)\n", f"y = Tensor({w}, requires_grad=True)\n"
        off = "with no_grad():\n    "
        kept = "try:\n    x.sub_(y)\nexcept RuntimeError:\n    pass"
        gradients = "x.grad.data", "y.grad.data"
        late = f"{off}x.sub_(Tensor({a}))\n"
        yield program_case(
            "a constant",
            f"{c}z = c.sub_(Tensor({w}))",
            "c.data",
            "c.version",
            "z is c",
            "type(z).__name__",
        )
        yield program_case(
            "three times",
            f"{c}d = Tensor({w})\nfor _ in range(3):\n    z = c.sub_(d)",
            "c.data",
            "c.version",
            "d.version",
            "z is c",
            "type(z).__name__",
        )
        yield program_case(
            "the same array",
            f"{c}d = Tensor({a})\nnumbers = c.data\nc.sub_(d)",
            "numbers",
            "c.data is numbers",
            "c.version",
            "d.version",
        )
        yield program_case(
            "without recording", f"{x}{off}x.sub_(Tensor({w}))", "x.data", "x.version"
        )
        yield program_case("recording", f"{x}x.sub_(Tensor({w}))", "x.data", raises=True)
        yield program_case(
            "changed after it was saved",
            f"{x}{y}z = (x * y).sum()\n{late}z.backward()",
            *gradients,
            weight=3,
            raises=True,
        )
        yield program_case(
            "changed before", f"{x}{y}{late}z = (x * y).sum()\nz.backward()", *gradients
        )
        yield program_case(
            "changed, not saved", f"{x}{y}z = (x + y).sum()\n{late}z.backward()", *gradients
        )
        yield program_case(
            "other requires grad, without recording", f"{c}{y}{off}c.sub_(y)", "c.data", "c.version"
        )
        yield program_case(
            "a result, recording", f"{x}z = x * x\nz.sub_(Tensor({a}))", "z.data", raises=True
        )
        yield program_case("other requires grad", f"{c}{y}c.sub_(y)", "c.data", raises=True)
        yield program_case("both require grad", f"{x}{y}x.sub_(y)", "x.data", raises=True)
        yield program_case("other is a result", f"{c}{y}c.sub_(y * y)", "c.data", raises=True)
        yield program_case("nothing changed before", f"{x}{y}{kept}", "x.data", "x.version")
        yield program_case(
            "nothing changed before, for the other", f"x = Tensor({v})\n{y}{kept}", "x.data"
        )
        yield program_case(
            "the second one changed",
            f"{x}{y}z = (y * x).sum()\n{late}{late}z.backward()",
            *gradients,
            raises=True,
        )
        yield program_case(
            "changed twice, once before",
            f"{x}{y}{late}z = (y * x).sum()\n{late}z.backward()",
            *gradients,
            raises=True,
        )
        yield program_case(
            "the result changed",
            f"{x}{y}z = x * y\n{off}z.sub_(Tensor({a}))\nz.sum().backward()",
            *gradients,
        )
        yield program_case(
            "two steps of training",
            f"{x}for _ in range(2):\n    x.zero_grad()\n    (x * x).sum().backward()\n"
            "    with no_grad():\n        x.sub_(x.grad * 0.1)",
            "x.data",
            "x.version",
        )
        yield program_case(
            "a single number (0-d)", f"c = Tensor({a})\nc.sub_(Tensor({b}))", "c.data"
        )
