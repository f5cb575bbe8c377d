"""``explain.inplace``: who saved a tensor, who changed it, and ways out."""

import re
from typing import Any

from tensorkit import base
from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.errors import AutogradError
from tensorkit.explain.explanation import Explanation, Repair
from tensorkit.viz import autograd_graph, words

_AGAIN = "loss = ...    # compute it again, then loss.backward()"
_ELSEWHERE = {
    "does not require grad": "explain.no_grad(loss)",
    "must match the size": "explain.broadcast(x, y)",
}


def inplace(error_or_tensor: "AutogradError | Tensor") -> Explanation:
    """Which saved tensor was changed in place: who saved it, who changed it, repairs.

    Takes the error that backward raised, or a tensor whose graph is looked through. The line that
    saved is known for what ran inside ``with tk.autograd.recording():``.

    >>> from tensorkit import explain
    >>> x = tk.ones(2, requires_grad=True)
    >>> y = x.exp()
    >>> _ = y.add_(1)
    >>> print(explain.inplace(y.sum()).title)
    The result of ExpBackward0 was changed after it was saved
    """
    frame = words.caller()
    known = {**frame.f_globals, **frame.f_locals}
    if is_tensor(error_or_tensor):
        with words.unrecorded():
            return _in_graph(error_or_tensor, known)  # type: ignore[arg-type]
    error: Any = error_or_tensor
    if not isinstance(error, BaseException):
        raise TypeError(
            "explain.inplace() wants an error or a tensor; this is of class "
            f"{type(error).__name__}. Try: explain.inplace(loss)"
        )
    if hasattr(error, "expected"):
        return _changed(error, known)
    first = str(error).partition("\n")[0]
    if "backward through the graph a second time" in first:
        return _freed()
    if "leaf Variable that requires grad" in first:
        return _leaf_changed(first)
    sentences = ["This error is not about a tensor that was changed in place.", first]
    sentences += [f"{call} says why." for part, call in _ELSEWHERE.items() if part in first]
    return Explanation("Something else", sentences)


def _in_graph(t: Tensor, known: dict[str, Any]) -> Explanation:
    if t.grad_fn is None:
        sentence = "This tensor has no graph: no operation saved anything for it."
        return Explanation("Nothing was saved", [sentence])
    errors = autograd_graph.errors(reversed(autograd_graph.order(t.grad_fn)))
    for error in errors:
        if hasattr(error, "expected"):
            return _changed(error, known)
    if errors:
        return _freed()
    sentence = "Every saved tensor still has the version it had when it was saved."
    return Explanation("Nothing was changed", [sentence])


def _freed() -> Explanation:
    sentences = [
        "An earlier backward freed what this graph saved: it cannot run again.",
        "Each backward needs a loss of its own: in a loop it is computed inside.",
    ]
    keep = "loss.backward(retain_graph=True)    # the first time"
    repairs = [Repair(_AGAIN, "make a new graph"), Repair(keep, "keep the graph for a second time")]
    return Explanation("The graph is freed", sentences, repairs)


def _leaf_changed(first: str) -> Explanation:
    why = "A leaf is where gradients end: it has no history in which a change could be recorded."
    repairs = [
        Repair("with tk.no_grad():\n    w -= lr * w.grad", "to update a parameter, unrecorded"),
        Repair("y = x + 1", "to compute a new tensor"),
        Repair("y = x.clone()\ny += 1", "to change a copy"),
    ]
    return Explanation("A leaf was changed in place", [first, why], repairs)


def _changed(error: Any, known: dict[str, Any]) -> Explanation:
    title = error.node.name().rpartition(":")[2]
    is_result = error.saved == "result"
    what = "result" if is_result else "input"
    name = what if error.saved == what else f"{what} ({error.saved})"
    line = autograd_graph.line_of(error.node)
    unknown = "at which line is not known, run it inside `with tk.autograd.recording():`"
    where = unknown if line is None else words.code_line(*line)
    operation, file, number = error.writer or ("a write", "", 0)
    since = words.count(error.version - error.expected, "write")
    writer = f"{operation} ({words.code_line(file, number)})" if file else operation
    sentences = [
        f"{title} saved its {name} at version {error.expected} ({where}).",
        f"Since then {since} changed it; the last was {writer}.",
        "Backward needs the values as they were, so it refuses.",
    ]
    code = words.source(file, number) if file else f"x.{operation}(...)"
    repairs = _repairs(code, operation, known, title, is_result=is_result)
    return Explanation(f"The {what} of {title} was changed after it was saved", sentences, repairs)


def _repairs(
    code: str, operation: str, known: dict[str, Any], saver: str, *, is_result: bool
) -> list[Repair]:
    """Ways out for a line of code that writes to a saved tensor."""
    name, anew = _written(code, operation.rstrip("_"), known)
    x: Any = known.get(name)
    is_leaf = is_tensor(x) and x.is_leaf and x.requires_grad
    code = f"with tk.no_grad():\n    {code}" if is_leaf else code
    after = Repair(f"loss.backward()\n{code}", "change it after backward has used it")
    keep = Repair(f"{name}.clone()", f"give {saver} a copy, which it can keep")
    if is_leaf or not name:  # a parameter stays the same leaf: no new tensor takes its place
        again = Repair(f"{code}\n{_AGAIN}", "compute the loss from the new values")
        both = f"(loss + other).backward()\n{code}"
        effect = "go back through both losses at once, before the change"
        return [after, keep, again] if name else [after, again, Repair(both, effect)]
    repairs = [Repair(f"{name} = {name}.clone()\n{code}", "change a copy"), after]
    if anew:
        return [Repair(anew, "make a new tensor instead of changing the saved one"), *repairs]
    return repairs if is_result else [keep, *repairs]


def _written(code: str, operation: str, known: dict[str, Any]) -> tuple[str, str]:
    """The name that a line writes to, and the line that makes a new tensor instead.

    Either is empty where it is not seen, or where there is none.
    """
    augmented = re.fullmatch(r"([\w.\[\]]+?)\s*([-+*/%@]|//|\*\*)=\s*(.+)", code)
    called = re.search(r"([\w.\[\]]+)\.\w+_\(", code)
    assigned = re.match(r"([\w.]+)\[.+\]\s*=[^=]", code)
    found = augmented or called or assigned
    if found is None:
        return "", ""
    target, anew = found[1], ""
    whole, bracket, _ = target.partition("[")
    if found is assigned or (bracket and is_tensor(known.get(whole))):
        return whole, ""  # a part of a tensor
    if augmented:
        simple = re.fullmatch(r"[\w.]+", augmented[3])
        anew = (
            f"{target} = {target} {augmented[2]} {augmented[3] if simple else f'({augmented[3]})'}"
        )
    elif hasattr(base.public, operation):
        anew = code.replace(f".{operation}_(", f".{operation}(")
        anew = anew if re.match(r"[\w.]+\s*=", code) else f"{target} = {anew}"
    return target, anew
