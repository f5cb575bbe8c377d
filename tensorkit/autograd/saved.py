"""What nodes keep for their formulas, and the refusal of what was written to since.

A node keeps a tensor together with the version that its storage had. A write makes a new version;
then backward would compute with other values, and raises instead. It names the node that kept the
tensor and the line that wrote.
"""

import re
from typing import Any

from tensorkit import base
from tensorkit.autograd.marks import HIDDEN_VIEW, INFERENCE, VIEW, Mark
from tensorkit.autograd.modes import state
from tensorkit.autograd.rules import saved_as
from tensorkit.base import Form, Tensor, TensorBase
from tensorkit.errors import AutogradError, sizes
from tensorkit.storage import Storage

NOTHING: dict[str, Any] = {}  # what most nodes with options save beside them; never written to
FREED = Mark("FREED")  # stands where a node kept a value until its graph was freed


class Saved:
    """An input that a formula needs, and the version it had."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: TensorBase) -> None:
        if tensor._node is INFERENCE:
            refuse_inference(tensor)
        self.tensor = tensor
        self.version = 0 if tensor._storage is None else tensor._storage.version

    def check(self, node: Any, name: str) -> None:
        """Raise if the input was written to since."""
        check_version(node, name, self.tensor, self.version)


class SavedResult:
    """The values of a result that its own formula needs: the tensor would point to the node."""

    __slots__ = ("array", "form", "offset", "storage", "version")

    def __init__(self, result: TensorBase) -> None:
        self.array = result._array
        self.form = result._form
        self.storage = base.storage_of(result)
        self.offset = result._offset
        self.version = self.storage.version

    def check(self, node: Any, name: str) -> None:
        """Raise if the result was written to since."""
        if self.storage.version != self.version:
            refuse_stale(node, name, self.form, self.storage, self.version, node)

    def tensor_of(self, node: Any) -> Tensor:
        """The result as a tensor that ``node`` made."""
        result = base.new(self.array, self.form)
        result._storage, result._offset, result._node = self.storage, self.offset, node
        return result


def version_of(x: TensorBase) -> int:
    """How often the memory of ``x`` was written to; counting begins with its storage."""
    return 0 if x._storage is None else x._storage.version


def refuse_inference(x: TensorBase) -> None:
    """Raise if ``x`` was made in inference mode."""
    if x._node is INFERENCE:
        raise AutogradError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors "
            "created in inference mode in computation tracked by autograd. To work around "
            "this, you can make a clone to get a normal tensor and use it in autograd, or use "
            "`torch.no_grad()` instead of `torch.inference_mode()`.",
            repair="x = x.clone()    # outside of inference_mode",
        )


def as_it_was(saved: TensorBase, edge: Any) -> Any:
    """A saved tensor with the history it had, which ``detach_`` may have taken away."""
    if saved is edge or saved._node is edge:
        return saved
    result = base.new(saved._array, saved._form)
    result._storage = base.storage_of(saved)
    result._offset = saved._offset
    result._node = edge  # a leaf's edge is the leaf: only reached if it no longer is one
    if isinstance(edge, TensorBase):
        result._node = None
    return result


def refuse_freed() -> None:
    """Raise: the graph was walked before, and its saved tensors were freed."""
    raise AutogradError(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are "
        "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you "
        "need to backward through the graph a second time or if you need to access saved "
        "tensors after calling backward.",
        "The first backward freed the tensors that the formulas need.",
        repair="y.backward(retain_graph=True)    # the first time; or compute y again",
    )


_HINT = (
    "enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)
_HINT_IN_ANOMALY_MODE = (
    "the backtrace further above shows the operation that failed to compute its gradient. The "
    "variable in question was changed in there or anywhere later. Good luck!"
)


def check_version(node: Any, name: str, x: TensorBase, expected: int) -> None:
    """Raise if ``x``, which ``node`` saved, was written to since it had this version."""
    if version_of(x) != expected:
        refuse_stale(node, name, x._form, x._storage, expected, maker_of(x))


def maker_of(x: TensorBase) -> Any:
    """What ``refuse_stale`` says about the history of ``x``: a node, VIEW or None."""
    if x._node is VIEW or x._node is HIDDEN_VIEW:
        return None if x._viewed._node is None else VIEW
    return None if x._node.__class__ is Mark else x._node


def refuse_stale(
    node: Any, name: str, form: Form, storage: Storage | None, expected: int, origin: Any
) -> None:
    """Raise: a saved tensor was written to. Names the node that saved it and the line that wrote.

    ``origin`` is what ``maker_of`` says about the saved tensor now.
    """
    assert storage is not None
    made_by = ""
    if origin is VIEW:  # its history begins anew with every write
        made_by = ", which is output 0 of AsStrided,"
    elif origin is not None:
        maker = re.sub("Backward0?([0-9]*)$", r"\1", origin.name())
        made_by = f", which is output {origin.output_nr} of {maker},"
    details = [
        f"<{node.rule.node}> needs the values of {saved_as(node.rule, name)} as they were.",
    ]
    if node.hooks is not None and node.hooks.line is not None:
        file, line = node.hooks.line
        details.append(f"It was recorded here: {file}, line {line}.")
    if storage.writer is not None:
        operation, file, line = storage.writer
        details.append(f"{operation} changed it: {file}, line {line}.")
    raise AutogradError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [torch.{form.dtype.word}Tensor {sizes(form.shape)}]{made_by} is at "
        f"version {storage.version}; expected version {expected} instead. Hint: "
        + (_HINT if state.anomaly is None else _HINT_IN_ANOMALY_MODE),
        *details,
        repair="x = x + y instead of x += y there, or save_this = x.clone() before",
        node=node,
        version=storage.version,
        expected=expected,
        saved=saved_as(node.rule, name),
        writer=storage.writer,
    )
