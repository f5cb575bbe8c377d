"""``explain.no_grad``: why is my grad None? ``explain.inplace``: who changed a saved tensor?"""

import re
from typing import Any

from tensorkit import base
from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.viz import autograd_graph, words
from tensorkit.viz.picture import Explanation, Repair

_REPLACED = re.compile(r"(\w+)\s*=\s*\1\s*([-+*/])\s*(.+)$")  # w = w - step
# what cuts the history in a line of code
_CUTTING = re.compile(r"\.detach\(\)|\.data\b(?! *[-+*/]?=)|tk\.(as_)?tensor(?=\()")

# a line that writes to a name: with y.add_(, or with y +=
_WRITE = re.compile(r"(\w+)(?:\.\w+_\(|\s*([-+*/%@]|//|\*\*)=(.+))")


def no_grad(t: Tensor) -> Explanation:
    """Why ``t.grad`` is None: where the history ends, why, and what to write instead.

    Lines and causes are known for what ran inside ``with tk.autograd.recording():``.

    >>> from tensorkit import explain
    >>> w = tk.tensor([1., 2.], requires_grad=True)
    >>> h = w * 3
    >>> explain.no_grad(h)
    h.grad is None: h is no leaf
    h is the result of MulBackward0. Backward passes its gradient on and keeps only those of leaves.
    If h was a leaf, it was replaced by assignment.
    1. make it a leaf, from here on:
         h = h.detach().requires_grad_()
    2. keep this gradient too:
         h.retain_grad()    # before backward()
    """
    words.must_be_tensor("explain.no_grad", t)
    with words.unrecorded():
        name = _name(t, "t")
        if (t.retains_grad or t.is_leaf) and t.grad is not None:
            sentence = f"It is {words.values(t.grad)}, {words.form(t.grad)}."
            return Explanation(f"{name}.grad is not None", sentence)
        answer = _tracked(t, name) if t.requires_grad else _untracked(t, name)
    reason, sentences, repairs = answer
    return Explanation(f"{name}.grad is None: {reason}", *sentences, repairs=repairs)


Answer = tuple[str, list[str], list[Repair]]  # why, sentences, repairs


def _name(x: Any, otherwise: str = "a tensor without a name") -> str:
    return words.names().get(id(x), otherwise)


def _line(origin: Any) -> str:
    return words.code_line(origin.file, origin.line)


def _untracked(t: Tensor, name: str) -> Answer:
    """About a tensor that does not require grad."""
    sentences, repairs = _where_cut(t)
    if sentences:
        return "its history was cut", sentences, repairs
    reason, code = "it does not require grad", f"{name}.requires_grad_()"
    effect = f"if {name} is a tensor that you made, let it require grad first"
    sentence = (
        f"{name} has no history. If it was computed, what it was computed from must require grad "
        "before that; or the history was cut off (no_grad, detach, item, numpy). For what runs "
        "inside `with tk.autograd.recording():` the line is named."
    )
    if not t.is_floating_point():
        reason, dtype = "it holds no floating-point numbers", str(t.dtype).replace("torch", "tk")
        sentence = f"{name} has dtype {dtype}. Only floating-point numbers have gradients."
        code, effect = f"{name} = {name}.float().requires_grad_()", "use floating-point numbers"
    elif t.is_inference():
        sentence = f"{name} was made in inference_mode; it can never take part in autograd."
        code, effect = f"{name} = {name}.clone().requires_grad_()", "outside of it, take a copy"
    return reason, [sentence], [Repair(code, effect)]


def _walk_back(t: Tensor) -> list[Tensor]:
    """``t`` and what it was computed from, as far as a recording knows and no history is cut."""
    found, seen = [t], {id(t)}
    for x in found:  # grows while it is walked
        for source in () if _is_cut(x) else _inputs(x):
            if id(source) not in seen:
                seen.add(id(source))
                found.append(source)
    return found


def _inputs(x: Tensor) -> tuple[Tensor, ...]:
    return () if x.origin is None else x.origin.inputs


def _is_cut(x: Tensor) -> bool:
    return not x.requires_grad and any(source.requires_grad for source in _inputs(x))


def _where_cut(t: Tensor) -> tuple[list[str], list[Repair]]:
    """Where the history of ``t`` was cut, and what to write instead; empty if it was not."""
    answers = [_about_cut(cut) for cut in _walk_back(t) if _is_cut(cut)]
    repairs = dict.fromkeys(repair for _, repair in answers if repair is not None and repair.code)
    return [sentence for sentence, _ in answers], list(repairs)


def _about_cut(cut: Tensor) -> tuple[str, Repair | None]:
    """A sentence about an untracked result of tracked inputs, and what to write instead."""
    origin: Any = cut.origin
    tracked = [x for x in origin.inputs if x.requires_grad]
    inputs = " and ".join(_name(x, "a tensor without a name now") for x in tracked)
    line, reason = words.source(origin.file, origin.line), str(origin.untracked)
    sentence = f"{origin.operation} ({_line(origin)}) took {inputs}"
    if reason.startswith("no input"):  # then; now one does
        repair = Repair(line, "compute it again, now that it requires grad")
        return f"{sentence} before it required grad.", repair
    require = "requires" if len(tracked) == 1 else "require"
    sentence += f", which {require} grad; its result does not: {reason}."
    if "no_grad" in reason or "inference" in reason:
        update = _REPLACED.match(line)
        if update is None or all(x.shape != cut.shape for x in tracked):
            return sentence, Repair(line, "move this line out of the block")
        name, operator, change = update.groups()
        code = f"with tk.no_grad():\n    {name} {operator}= {change}"
        sentence += f" {name} was replaced by assignment: the leaf is not called so any more."
        return sentence, Repair(code, f"change {name} in place, so that it stays the same leaf")
    code = _CUTTING.sub("", line, count=1)
    repair = Repair(code, "leave it out, if the gradient should flow")
    return sentence, None if code == line else repair


def _tracked(t: Tensor, name: str) -> Answer:
    """About a tensor that requires grad: the result of an operation, or a leaf."""
    if t.grad_fn is not None:
        where = f" ({_line(t.origin)})" if t.origin is not None else ""
        sentence = (
            f"{name} is the result of {t.grad_fn.name().rpartition(':')[2]}{where}. Backward "
            f"passes its gradient on and keeps only those of leaves. If {name} was a leaf, it was "
            "replaced by assignment."
        )
        leaf = Repair(f"{name} = {name}.detach().requires_grad_()", "make it a leaf, from here on")
        keep = Repair(f"{name}.retain_grad()    # before backward()", "keep this gradient too")
        return f"{name} is no leaf", [sentence], [leaf, keep]
    named = (x for _, x in words.named_tensors() if x is not t)
    candidates = [x for x in named if any(node is t for node in autograd_graph.order(x))]
    loss = min(candidates, key=lambda x: x.numel() != 1, default=None)  # numbers first
    if loss is None:
        sentence = (
            f"No tensor with a name here has {name} in its graph. Each was computed before {name} "
            "required grad, or from another tensor, or its history was cut off. viz.graph(loss) "
            "shows what a loss was computed from."
        )
        return "nothing was computed from it", [sentence], []
    called = _name(loss)
    if any(not hasattr(error, "expected") for error in autograd_graph.errors(loss)):
        freed = f"backward() has run from {called}: its graph is freed."
        removed = "The gradient was removed since (zero_grad() sets None), or was given to others."
        return "it was removed again", [freed, removed], []
    sentence = f"{called} was computed from {name}. backward() was not called on it yet."
    call = "backward()" if loss.numel() == 1 else f"backward(tk.ones_like({called}))"
    return "no backward yet", [sentence], [Repair(f"{called}.{call}", "compute the gradients")]


# Changed in place


def inplace(error_or_tensor: Exception | Tensor) -> Explanation:
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
    error: Any = error_or_tensor
    if not isinstance(error, BaseException):
        words.must_be_tensor("explain.inplace", error)
        with words.unrecorded():
            errors = autograd_graph.errors(error)
        if not errors:
            sentence = "Every saved tensor still has the version it had when it was saved."
            return Explanation("Nothing was changed", sentence)
        error = next((each for each in errors if hasattr(each, "expected")), errors[0])
    if not hasattr(error, "expected"):
        sentence = "This is not about a saved tensor that was changed in place. The error says:"
        return Explanation("Something else", sentence, *str(error).splitlines())
    title = error.node.name().rpartition(":")[2]
    what = "result" if error.saved == "result" else "input"
    name = what if error.saved == what else f"{what} ({error.saved})"
    unknown = "at which line is not known, run it inside `with tk.autograd.recording():`"
    where = autograd_graph.line_of(error.node) or unknown
    operation, file, number = error.writer or ("a write", "", 0)
    since = words.count(error.version - error.expected, "write")
    writer = f"{operation} ({words.code_line(file, number)})" if file else operation
    code = words.source(file, number) if file else f"x.{operation}(...)"
    return Explanation(
        f"The {what} of {title} was changed after it was saved",
        f"{title} saved its {name} at version {error.expected} ({where}).",
        f"Since then {since} changed it; the last was {writer}.",
        "Backward needs the values as they were, so it refuses.",
        repairs=_repairs(code, operation.rstrip("_")),
    )


def _repairs(code: str, operation: str) -> list[Repair]:
    """Ways out for a line of code that writes to a saved tensor."""
    found, known = _WRITE.match(code), words.named_values()
    name, operator, change = found.groups() if found else ("", "", "")
    x: Any = known.get(name)
    if is_tensor(x) and x.is_leaf and x.requires_grad:
        name, code = "", f"with tk.no_grad():\n    {code}"
    after = Repair(f"loss.backward()\n{code}", "change it after backward has used it")
    if not name:  # a parameter stays the same leaf: no new tensor takes its place
        return [after]
    copy = Repair(f"{name} = {name}.clone()\n{code}", "change a copy")
    if operator:
        change = change.strip()
        change = change if re.fullmatch(r"[\w.]+", change) else f"({change})"
        anew = f"{name} = {name} {operator} {change}"
    elif hasattr(base.tensor_class, operation):
        anew = f"{name} = " + code.replace(f".{operation}_(", f".{operation}(")
    else:
        return [copy, after]
    return [Repair(anew, "make a new tensor instead of changing the saved one"), copy, after]
