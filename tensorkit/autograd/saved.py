"""What nodes keep for their formulas, and the refusal of what was written to since.

A node keeps a tensor together with the version that its storage had. A write makes a new version;
then backward would compute with other values, and raises instead. It names the node that kept the
tensor and the line that wrote.
"""

import re
from typing import Any, NoReturn

from tensorkit import base
from tensorkit.autograd.marks import HIDDEN_VIEW, INFERENCE, VIEW, Mark
from tensorkit.autograd.modes import state
from tensorkit.autograd.rules import saved_as
from tensorkit.base import TensorBase
from tensorkit.errors import AutogradError, sizes

FREED = Mark("FREED")  # stands where a node kept a value until its graph was freed


def version_of(x: TensorBase) -> int:
    """How often the memory of ``x`` was written to; counting begins with its storage."""
    return 0 if x._storage is None else x._storage.version


def refuse_inference(x: Any) -> None:
    """Raise if ``x`` was made in inference mode."""
    if isinstance(x, TensorBase) and x._node is INFERENCE:
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
    result = base.same_memory(saved)
    if not isinstance(edge, TensorBase):  # a leaf's edge is the leaf: it no longer is one
        result._node = edge
    return result


def refuse_freed() -> NoReturn:
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


def maker_of(x: TensorBase) -> Any:
    """What ``refuse_stale`` says about the history of ``x``: a node, VIEW or None."""
    if x._node is VIEW or x._node is HIDDEN_VIEW:
        return None if x._viewed._node is None else VIEW
    return None if x._node.__class__ is Mark else x._node


def refuse_stale(node: Any, name: str, x: TensorBase, expected: int, origin: Any) -> NoReturn:
    """Raise: a saved tensor was written to. Names the node that saved it and the line that wrote.

    ``origin`` is what ``maker_of`` says about the saved tensor now.
    """
    storage = x._storage
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
        f"operation: [torch.{x.dtype.word}Tensor {sizes(x.shape)}]{made_by} is at "
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
