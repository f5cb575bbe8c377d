"""``explain.no_grad``: why is my grad None? ``explain.inplace``: who changed a saved tensor?"""

import re
from typing import Any

from tensorkit import base
from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.viz import autograd_graph, words
from tensorkit.viz.picture import Explanation, Repair

_TO_SEE = (
    "cannot be known: no recording was on. To see it, run the lines again inside "
    "`with tk.autograd.recording():`."
)
_REPLACED = re.compile(r"(\w+)\s*=\s*\1\s*([-+*/])\s*(.+)$")  # w = w - step
# what cuts the history in a line of code
_CUTTING = re.compile(r"\.detach\(\)|\.data\b(?! *[-+*/]?=)|tk\.(as_)?tensor(?=\()")

# a line that writes: to what, and how: with y.add_(, y += or y[0] =
_WRITE = re.compile(
    r"(?:\w+\s*=\s*)?([\w.\[\]]+?)(\.\w+_\(|\s*(?:[-+*/%@]|//|\*\*)=|\[.+\]\s*=(?!=))"
)


def no_grad(t: Tensor, loss: Tensor | None = None) -> Explanation:
    """Why ``t.grad`` is None: where the history ends, why, and what to write instead.

    With ``loss`` the way back from it is looked at too. Lines and causes are known for what ran
    inside ``with tk.autograd.recording():``; where none was on, the answer says so.

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
    if loss is not None:
        words.must_be_tensor("explain.no_grad", loss, "loss")
    with words.unrecorded():
        name = _name(t, "t")
        if (t.retains_grad or t.is_leaf) and t.grad is not None:
            sentence = f"It is {words.values(t.grad)}, {words.form(t.grad)}."
            return Explanation(f"{name}.grad is not None", sentence)
        answer = _tracked(t, name, loss) if t.requires_grad else _untracked(t, name)
    why, sentences, repairs = answer
    return Explanation(f"{name}.grad is None: {why}", *sentences, repairs=repairs)


Answer = tuple[str, list[str], list[Repair]]  # why, sentences, repairs


def _name(x: Any, otherwise: str = "a tensor without a name") -> str:
    return words.names().get(id(x), otherwise)


def _line(origin: Any) -> str:
    return words.code_line(origin.file, origin.line)


def _untracked(t: Tensor, name: str) -> Answer:
    """About a tensor that does not require grad."""
    why, code, effect = "it does not require grad", f"{name}.requires_grad_()", f"let {name} ask"
    sentences, repairs = _where_cut(t)
    if sentences:
        return "its history was cut", sentences, repairs
    if not t.is_floating_point():
        why, dtype = "it holds no floating-point numbers", str(t.dtype).replace("torch", "tk")
        sentence = f"{name} has dtype {dtype}. Only floating-point numbers have gradients."
        code, effect = f"{name} = {name}.float().requires_grad_()", "use floating-point numbers"
    elif t.is_inference():
        sentence = f"{name} was made in inference_mode; it can never take part in autograd."
        code, effect = f"{name} = {name}.clone().requires_grad_()", "outside of it, take a copy"
    elif t.origin is None:
        effect = f"if {name} is a tensor that you made, let it ask for a gradient first"
        sentence = (
            f"{name} has no history. If it was computed, what it was computed from must ask for a "
            "gradient, before that; or the history was cut off (no_grad, detach, item, numpy). "
            f"Which operation made it, and where, {_TO_SEE}"
        )
    else:
        leaves = [_name(it) for it in _walk_back(t) if not _inputs(it)]
        sentence = f"No tensor behind {name} requires grad: {', '.join(leaves)}. "
        sentence += f"{name} was made at {_line(t.origin)}."
        code, effect = f"{leaves[0]}.requires_grad_()", "let it ask, before anything is computed"
    return why, [sentence], [Repair(code, effect)]


def _walk_back(t: Tensor) -> list[Tensor]:
    """``t`` and what it was computed from, as far as a recording knows and no history is cut."""
    found, seen = [t], {id(t)}
    for x in found:  # grows while it is walked
        for it in () if _is_cut(x) else _inputs(x):
            if id(it) not in seen:
                seen.add(id(it))
                found.append(it)
    return found


def _inputs(x: Tensor) -> tuple[Tensor, ...]:
    return () if x.origin is None else x.origin.inputs


def _is_cut(x: Tensor) -> bool:
    return not x.requires_grad and any(it.requires_grad for it in _inputs(x))


def _where_cut(t: Tensor) -> tuple[list[str], list[Repair]]:
    """Where the history of ``t`` was cut, and what to write instead; empty if it was not."""
    answers = [_about_cut(it) for it in _walk_back(t) if _is_cut(it)]
    repairs = dict.fromkeys(repair for _, repair in answers if repair is not None and repair.code)
    return [sentence for sentence, _ in answers], list(repairs)


def _about_cut(cut: Tensor) -> tuple[str, Repair | None]:
    """A sentence about an untracked result of tracked inputs, and what to write instead."""
    origin: Any = cut.origin
    tracked = [it for it in origin.inputs if it.requires_grad]
    inputs = " and ".join(_name(it, "a tensor without a name now") for it in tracked)
    line, reason = words.source(origin.file, origin.line), str(origin.untracked)
    sentence = f"{origin.operation} ({_line(origin)}) took {inputs}"
    if reason.startswith("no input"):  # then; now one does
        repair = Repair(line, "compute it again, now that it asks")
        return f"{sentence} before it asked for a gradient.", repair
    require = "requires" if len(tracked) == 1 else "require"
    sentence += f", which {require} grad; its result does not: {reason}."
    if "no_grad" in reason or "inference" in reason:
        update = _REPLACED.match(line)
        if update is None or all(it.shape != cut.shape for it in tracked):
            return sentence, Repair(line, "move this line out of the block")
        name, operator, change = update.groups()
        code = f"with tk.no_grad():\n    {name} {operator}= {change}"
        sentence += f" {name} was replaced by assignment: the leaf is not called so any more."
        return sentence, Repair(code, f"change {name} in place, so that it stays the same leaf")
    code = _CUTTING.sub("", line, count=1)
    repair = Repair(code, "leave it out, if the gradient should flow")
    return sentence, None if code == line else repair


def _tracked(t: Tensor, name: str, loss: Tensor | None) -> Answer:
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
    tracked = [it for _, it in words.named_tensors() if it.grad_fn is not None]
    tracked.sort(key=lambda it: it.numel() != 1)  # numbers first
    if loss is None:
        loss = next((it for it in tracked if _is_behind(t, it)), None)
    if loss is None:
        other = _name(tracked[0]) if tracked and tracked[0].numel() == 1 else "loss"
        sentence = f"No tensor with a name here was computed from {name} while grad mode was on."
        try_it = f"Try: explain.no_grad({name}, {other})"
        return "nothing was computed from it", [sentence, try_it], []
    called = _name(loss, "loss")
    if not _is_behind(t, loss):
        leaves = [it for it in autograd_graph.order(loss) if is_tensor(it)][:8]
        sentences, repairs = _where_cut(loss)
        behind = f"The leaves behind {called} are: {', '.join(map(_name, leaves))}; not {name}."
        if not loss.requires_grad:
            behind = f"{called} has no history that could lead to {name}."
        if loss.origin is None:
            why_not = "did not ask yet, was replaced or was cut off (no_grad, detach, item, numpy)"
            sentences.append(f"Whether {name} {why_not} when {called} was computed {_TO_SEE}")
        return f"{called} does not depend on it", [behind, *sentences], repairs
    if any(not hasattr(it, "expected") for it in autograd_graph.errors(loss)):
        freed = f"backward() has run from {called}: its graph is freed."
        removed = "The gradient was removed since (zero_grad() sets None), or was given to others."
        return "it was removed again", [freed, removed], []
    sentence = f"{called} was computed from {name}. backward() was not called on it yet."
    call = "backward()" if loss.numel() == 1 else f"backward(tk.ones_like({called}))"
    return "no backward yet", [sentence], [Repair(f"{called}.{call}", "compute the gradients")]


def _is_behind(leaf: Tensor, result: Tensor) -> bool:
    return any(it is leaf for it in autograd_graph.order(result))


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
        error = next((it for it in errors if hasattr(it, "expected")), errors[0])
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
    known = words.named_values()
    name, anew = _written(code, operation, known)
    x: Any = known.get(name)
    if is_tensor(x) and x.is_leaf and x.requires_grad:
        name, code = "", f"with tk.no_grad():\n    {code}"
    after = Repair(f"loss.backward()\n{code}", "change it after backward has used it")
    if not name:  # a parameter stays the same leaf: no new tensor takes its place
        return [after]
    first = [Repair(anew, "make a new tensor instead of changing the saved one")] if anew else []
    return [*first, Repair(f"{name} = {name}.clone()\n{code}", "change a copy"), after]


def _written(code: str, operation: str, known: dict[str, Any]) -> tuple[str, str]:
    """The name that a line writes to, and the line that makes a new tensor instead.

    Either is empty where it is not seen, or where there is none.
    """
    found = _WRITE.match(code)
    if found is None:
        return "", ""
    target, write = found.groups()
    whole, bracket, _ = target.partition("[")
    if write[0] == "[" or (bracket and is_tensor(known.get(whole))):
        return whole, ""  # a part of a tensor
    if write[-1] == "=":
        change = code[found.end() :].strip()
        change = change if re.fullmatch(r"[\w.]+", change) else f"({change})"
        return target, f"{target} = {target} {write.strip()[:-1]} {change}"
    if not hasattr(base.public, operation):
        return target, ""
    anew = code.replace(f".{operation}_(", f".{operation}(")
    return target, anew if re.match(r"[\w.]+\s*=", code) else f"{target} = {anew}"
