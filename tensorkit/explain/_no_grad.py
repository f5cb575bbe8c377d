"""``explain.no_grad``: why is my grad None?"""

import re
from typing import Any, NamedTuple

from tensorkit.base import Tensor
from tensorkit.creation import is_tensor
from tensorkit.explain.explanation import Explanation, Repair
from tensorkit.viz import autograd_graph, words

MOST_LOOKED_AT = 5_000
_TO_SEE = (
    "cannot be known: no recording was on. To see it, run the lines again inside "
    "`with tk.autograd.recording():`."
)
_REPLACED = re.compile(r"(\w+)\s*=\s*\1\s*([-+*/])\s*(.+)$")  # w = w - step

_CUTTING = {  # what cuts the history in a line of code, and the effect of leaving it out
    r"\.(detach\(\)|data\b(?! *[-+*/]?=))": "leave it out, if the gradient should flow",
    r"\.(long|int|short|byte|char|bool)\(\)": "stay with floating-point numbers",
    r"tk\.(as_)?tensor(?=\()": "compute with the tensor itself: tk.tensor() copies values only",
}


class Names(NamedTuple):
    """How the caller calls tensors."""

    tensors: list[tuple[str, Tensor]]

    def of(self, x: Any, otherwise: str = "a tensor without a name") -> str:
        """The name of a tensor, as code: ``model[0].weight``."""
        return words.as_code(next((name for name, it in self.tensors if it is x), otherwise))


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
    names = Names(list(words.named_tensors(words.caller())))
    with words.unrecorded():
        name = names.of(t, "t")
        if (t.retains_grad or t.is_leaf) and t.grad is not None:
            sentence = f"It is {words.values(t.grad)}, {words.form(t.grad)}."
            return Explanation(f"{name}.grad is not None", [sentence])
        if not t.requires_grad:
            return _untracked(t, name, names)
        if not t.is_leaf:
            return _not_a_leaf(t, name)
        return _leaf(t, name, loss, names)


def _line(origin: Any) -> str:
    return words.code_line(origin.file, origin.line)


# A tensor that does not require grad


def _untracked(t: Tensor, name: str, names: Names) -> Explanation:
    why, code, effect = "it does not require grad", f"{name}.requires_grad_()", f"let {name} ask"
    sentences, repairs = _where_cut(t, names)
    if sentences:
        return Explanation(f"{name}.grad is None: its history was cut", sentences, repairs)
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
    elif t.origin.inputs:
        leaves = [names.of(it) for it in _walk_back(t) if it.origin is None or not it.origin.inputs]
        sentence = f"No tensor that {name} was computed from requires grad: {', '.join(leaves)}."
        code, effect = f"{leaves[0]}.requires_grad_()", "let it ask, before anything is computed"
    else:
        sentence = f"{name} was made at {_line(t.origin)}, without requires_grad=True."
    return Explanation(f"{name}.grad is None: {why}", [sentence], [Repair(code, effect)])


def _walk_back(t: Tensor) -> list[Tensor]:
    """``t`` and what it was computed from, as far as a recording knows and no history is cut."""
    found, seen = [t], {id(t)}
    for x in found:  # grows while it is walked
        for it in x.origin.inputs if x.origin is not None and not _is_cut(x) else ():
            if id(it) not in seen and len(found) < MOST_LOOKED_AT:
                seen.add(id(it))
                found.append(it)
    return found


def _is_cut(x: Tensor) -> bool:
    inputs = x.origin.inputs if x.origin is not None else ()
    return not x.requires_grad and any(it.requires_grad for it in inputs)


def _where_cut(t: Tensor, names: Names) -> tuple[list[str], list[Repair]]:
    """Where the history of ``t`` was cut, and what to write instead; empty if it was not."""
    before = _walk_back(t)
    answers = [_about_cut(it, names) for it in before if _is_cut(it)]
    answers = answers or [_through_numbers(it, names) for it in before if it.origin is not None]
    repairs = dict.fromkeys(repair for _, repair in answers if repair is not None and repair.code)
    return [sentence for sentence, _ in answers if sentence], list(repairs)


def _about_cut(cut: Tensor, names: Names) -> tuple[str, Repair | None]:
    """A sentence about an untracked result of tracked inputs, and what to write instead."""
    origin: Any = cut.origin
    tracked = [it for it in origin.inputs if it.requires_grad]
    inputs = " and ".join(names.of(it, "a tensor without a name now") for it in tracked)
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
    for pattern, effect in _CUTTING.items():
        code = re.sub(pattern, "", line, count=1)
        if code != line:
            return sentence, Repair(code, effect)
    return sentence, None


def _through_numbers(made: Tensor, names: Names) -> tuple[str, Repair | None]:
    """A sentence if values with a history left the library and came back as ``made``."""
    origin: Any = made.origin
    for left in reversed(origin.left):
        x = left.inputs[0]
        is_given = x.numel() == 1 and x.item() in origin.arguments.values()
        cuts = [it.origin.inputs for it in _walk_back(x) if it.origin is not None and _is_cut(it)]
        source = next((it for it in [x, *sum(cuts, ())] if it.requires_grad), None)
        if source is not None and (is_given or not origin.inputs):
            sentence = (
                f"The values of {names.of(source)}, which requires grad, left the library through "
                f"{left.operation}() ({_line(left)}). Numbers and arrays have no history. Compute "
                "with the tensors themselves; tk.stack makes one tensor of several."
            )
            return sentence, None
    return "", None


# A result of an operation


def _not_a_leaf(t: Tensor, name: str) -> Explanation:
    assert t.grad_fn is not None
    node = t.grad_fn.name().rpartition(":")[2]
    where = f" ({_line(t.origin)})" if t.origin is not None else ""
    sentence = (
        f"{name} is the result of {node}{where}. Backward passes its gradient on and keeps only "
        f"those of leaves. If {name} was a leaf, it was replaced by assignment."
    )
    repairs = [
        Repair(f"{name} = {name}.detach().requires_grad_()", "make it a leaf, from here on"),
        Repair(f"{name}.retain_grad()    # before backward()", "keep this gradient too"),
    ]
    return Explanation(f"{name}.grad is None: {name} is no leaf", [sentence], repairs)


# A leaf that asks for a gradient


def _leaf(t: Tensor, name: str, loss: Tensor | None, names: Names) -> Explanation:
    tracked = [it for _, it in names.tensors if it.grad_fn is not None]
    tracked.sort(key=lambda it: it.numel() != 1)  # numbers first
    if loss is None:
        loss = next((it for it in tracked if _is_behind(t, it)), None)
    called = names.of(loss, "loss")
    repairs: list[Repair] = []
    if loss is None:
        why = "nothing was computed from it"
        other = names.of(tracked[0]) if tracked and tracked[0].numel() == 1 else "loss"
        sentences = [f"No tensor with a name here was computed from {name} while grad mode was on."]
        sentences.append(f"Try: explain.no_grad({name}, {other})")
    elif not _is_behind(t, loss):
        why = f"{called} does not depend on it"
        leaves = ", ".join([names.of(it) for it in _nodes(loss) if is_tensor(it)][:8])
        sentences, repairs = _where_cut(loss, names)
        if not loss.requires_grad:
            sentences.insert(0, f"{called} has no history that could lead to {name}.")
        else:
            sentences.insert(0, f"The leaves behind {called} are: {leaves}; not {name}.")
        if loss.origin is None:
            why_not = "did not ask yet, was replaced or was cut off (no_grad, detach, item, numpy)"
            sentences.append(f"Whether {name} {why_not} when {called} was computed {_TO_SEE}")
    elif any(not hasattr(it, "expected") for it in autograd_graph.errors(_nodes(loss))):
        why = "it was removed again"
        sentences = [f"backward() has run from {called}: its graph is freed."]
        others = "or backward(inputs=...) or autograd.grad gave it to others"
        sentences.append(f"The gradient was removed since (zero_grad() sets None), {others}.")
    else:
        why = "no backward yet"
        sentences = [f"{called} was computed from {name}. backward() was not called on it yet."]
        call = "backward()" if loss.numel() == 1 else f"backward(tk.ones_like({called}))"
        repairs = [Repair(f"{called}.{call}", f"compute the gradients of {called}")]
    return Explanation(f"{name}.grad is None: {why}", sentences, repairs)


def _nodes(x: Tensor) -> list[Any]:
    return autograd_graph.order(x if x.grad_fn is None else x.grad_fn)


def _is_behind(leaf: Tensor, result: Tensor) -> bool:
    return any(it is leaf for it in _nodes(result))
