"""``explain.no_grad``: why is my grad None?"""

import ast
import re
from typing import Any, NamedTuple

from tensorkit.autograd.modes import no_grad as untracked
from tensorkit.base import Tensor
from tensorkit.data import is_tensor
from tensorkit.explain import trial
from tensorkit.explain.explanation import Explanation, Repair
from tensorkit.viz import reading, words

MOST_LOOKED_AT = 5_000
_SEE = (
    "cannot be known: no recording was on. To see it, run the lines again inside "
    "`with tk.autograd.recording():`."
)
HOW_TO_SEE = f"Which operation made it, and where, {_SEE}"
WHERE_TO_SEE = f"Which of these, and at which line, {_SEE}"


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
    1. keep the gradient of h too:
         h.retain_grad()    # before backward()
    """
    words.must_be_tensor("explain.no_grad", t)
    if loss is not None:
        words.must_be_tensor("explain.no_grad", loss, "loss")
    names = Names(list(words.named_tensors(words.caller())))
    with words.unseen():
        name = names.of(t, "t")
        if t.retains_grad or t.is_leaf:
            gradient = t.grad
            if gradient is not None:
                said = f"It is {words.values(gradient)}, {words.form(gradient)}."
                return Explanation(f"{name}.grad is not None", [said], [])
        if not t.requires_grad:
            return _untracked(t, name, names)
        if not t.is_leaf:
            return _no_leaf(t, name, names)
        return _leaf(t, name, loss, names)


def _place(origin: Any) -> str:
    return words.place(origin.file, origin.line)


# A tensor that does not require grad


def _untracked(t: Tensor, name: str, names: Names) -> Explanation:
    none = f"{name}.grad is None: {name} does not require grad"
    cuts, sources, mixed = _cuts(t)
    if cuts:
        sentences, repairs = [], []
        for cut in cuts:
            sentence, tried = _about_cut(cut, name, names)
            sentences.append(sentence)
            repairs += [it for it in tried if it not in repairs]
        return Explanation(f"{name}.grad is None: its history was cut", sentences, repairs)
    for made in (*sources, *mixed):
        through = _through_numbers(made, names)
        if through is not None:
            return Explanation(f"{name}.grad is None: its history was cut", *through)
    if not t.is_floating_point():
        dtype = str(t.dtype).replace("torch", "tk")
        sentence = (
            f"{name} has dtype {dtype}. Only floating-point numbers have gradients: a small "
            "change of an integer is no integer."
        )
        code = f"{name} = {name}.float().requires_grad_()"
        repairs = trial.offered(
            (
                code,
                "use floating-point numbers",
                lambda: trial.gets_gradient(trial.stand_in(t).float().requires_grad_()),
            )
        )
        return Explanation(
            f"{name}.grad is None: it holds no floating-point numbers", [sentence], repairs
        )
    if t.is_inference():
        sentence = f"{name} was made in inference_mode; it can never take part in autograd."
        code = f"{name} = {name}.clone().requires_grad_()"
        copy = "outside of inference_mode, take a copy"
        repairs = trial.offered(
            (code, copy, lambda: trial.gets_gradient(t.clone().requires_grad_()))
        )
        return Explanation(none, [sentence], repairs)
    ask = "let {} ask for a gradient"
    if t.origin is None:
        ask = "if {} is a tensor that you made, let it ask for a gradient"
        sentences = [
            (
                f"{name} has no history. It was made without requires_grad=True, or computed from "
                "tensors that do not ask for a gradient, or cut off (no_grad, detach, item, numpy)."
            ),
            (
                f"If it was computed, it is too late to let {name} itself ask: what it was "
                "computed from must ask, before that."
            ),
            HOW_TO_SEE,
        ]
    elif not sources or sources[0] is t:
        sentences = [f"{name} was made at {_place(t.origin)}, without requires_grad=True."]
    else:
        told = [f"{names.of(it)}{_where_made(it)}" for it in sources]
        sentences = [f"No tensor that {name} was computed from requires grad: {'; '.join(told)}."]
    leaf = sources[0] if sources else t
    asks = names.of(leaf, name if leaf is t else "x")
    repairs = trial.offered(
        (
            f"{asks}.requires_grad_()    # before anything is computed from it",
            ask.format(asks),
            lambda: trial.gets_gradient(trial.stand_in(leaf).requires_grad_()),
        )
    )
    return Explanation(none, sentences, repairs)


def _where_made(x: Tensor) -> str:
    return "" if x.origin is None else f" (made at {_place(x.origin)})"


def _cuts(t: Tensor) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Walk back over origins: untracked results of tracked inputs, and what has no inputs.

    Third come the results of operations that were given numbers beside tensors.
    """
    cuts, sources, mixed, waiting = [], [], [], [t]
    seen = {id(t)}
    for x in waiting:  # grows while it is walked
        inputs = x.origin.inputs if x.origin is not None else ()
        if inputs and x.origin is not None and x.origin.left:
            mixed.append(x)
        if not x.requires_grad and any(it.requires_grad for it in inputs):
            cuts.append(x)
        elif not inputs:
            sources.append(x)
        elif len(waiting) < MOST_LOOKED_AT:
            new = [it for it in inputs if id(it) not in seen]
            seen |= {id(it) for it in new}
            waiting += new
    return cuts, sources, mixed


def _about_cut(cut: Tensor, name: str, names: Names) -> tuple[str, list[Repair]]:
    origin: Any = cut.origin
    tracked = [it for it in origin.inputs if it.requires_grad]
    took = " and ".join(names.of(it, "a tensor without a name now") for it in tracked)
    sentence = (
        f"{origin.operation} ({_place(origin)}) took {took}, which "
        f"{'requires' if len(tracked) == 1 else 'require'} grad; its result does not: "
        f"{origin.untracked}."
    )
    line = words.source(origin.file, origin.line)
    reason = str(origin.untracked)
    if reason.startswith("no input"):  # then; now one does
        sentence = (
            f"{origin.operation} ({_place(origin)}) took {took} before it asked for a gradient."
        )
        again = (line, "compute it again, now that it asks", lambda: _again(origin))
        return sentence, trial.offered(again)
    for written in (".detach()", ".data") if "leaves the history" in reason else ():
        if re.search(rf"{re.escape(written)}(?!\w)(?! *[-+*/]?=)", line):
            code = line.replace(written, "", 1)
            effect = f"leave out {written[1:]}, if the gradient should flow"
            return sentence, trial.offered((code, effect, lambda: tracked[0].requires_grad))
    if origin.operation == "tensor":
        code = _with_tensors(line, "")
        effect = "compute with the tensor itself: tk.tensor() copies values only"
        return sentence, trial.offered((code, effect, lambda: code and tracked[0].requires_grad))
    if "no_grad" in reason or "inference" in reason:
        updated = [it for it in tracked if it.is_leaf and it.shape == cut.shape]
        update = _ASSIGNED_AGAIN.match(line)
        if updated and update is not None:
            sentence += (
                f" {update[1]} was replaced by assignment: the leaf is not called so any more."
            )
            return sentence, trial.offered(_in_place(update, updated[0]))
        block = "no_grad block" if "no_grad" in reason else "inference_mode block"
        return sentence, trial.offered(
            (line or f"{name} = ...", f"move this line out of the {block}", lambda: _again(origin))
        )
    if "dtype" in reason:
        code = re.sub(r"\.(long|int|short|byte|char|bool)\(\)", "", line)
        return sentence, trial.offered(
            (
                code,
                "stay with floating-point numbers",
                lambda: code != line and tracked[0].is_floating_point(),
            )
        )
    return sentence, []


_ASSIGNED_AGAIN = re.compile(r"(\w+)\s*=\s*\1\s*([-+*/])\s*(.+)$")  # w = w - step


def _in_place(update: Any, leaf: Tensor) -> tuple[str, str, Any]:
    """The repair of an assignment that replaced a leaf."""
    name, operator, change = update.groups()
    return (
        f"with tk.no_grad():\n    {name} {operator}= {change}",
        f"change {name} in place, so that it stays the same leaf",
        lambda: _stays_leaf(leaf),
    )


def _stays_leaf(leaf: Tensor) -> bool:
    copy = trial.stand_in(leaf).requires_grad_()
    with untracked():
        copy -= 1
    return bool(copy.is_leaf) and trial.gets_gradient(copy)


def _again(origin: Any) -> bool:
    """Whether the same operation, now tracked, gives a result that requires grad."""
    first, *others = origin.inputs
    if first.numel() > 100_000:
        return first.is_floating_point()
    call = getattr(type(first), origin.operation, None)
    if call is None or (others and origin.arguments):
        return any(it.is_floating_point() for it in origin.inputs)
    result = call(first, *others, **origin.arguments)
    return is_tensor(result) and bool(result.requires_grad)


def _through_numbers(made: Tensor, names: Names) -> tuple[list[str], list[Repair]] | None:
    """Sentences and repairs if values with a history left the library and came back as ``made``."""
    if made.origin is None:
        return None
    exits = [(it, _tracked_behind(it.inputs[0])) for it in made.origin.left]
    exits = [(gone, source) for gone, source in exits if source is not None]
    same_line = [it for it in exits if _place(it[0]) == _place(made.origin)]
    if made.origin.inputs:  # of several numbers, only one that the operation was given
        taken = made.origin.arguments.values()
        exits = [it for it in exits if _number(it[0].inputs[0]) in taken]
        same_line = [it for it in exits if it in same_line]
    if not exits:
        return None
    gone, source = (same_line or exits)[-1]
    how = "computed with such a number" if made.origin.inputs else "made anew from numbers"
    sentences = [
        (
            f"The values of {names.of(source)}, which requires grad, left the library through "
            f"{gone.operation}() ({_place(gone)}). Numbers and arrays have no history."
        ),
        f"{names.of(made, 'A tensor')} was {how} ({_place(made.origin)}).",
    ]
    line = words.source(gone.file, gone.line)
    is_tracked = bool(gone.inputs[0].requires_grad)
    if gone.operation == "tensor":  # of a list with tensors in it
        code = line.replace("tk.tensor(", "tk.stack(")
        is_list = code != line and made.dim() == 1 and not gone.inputs[0].dim()
        effect = "stack the tensors: that is an operation, with a history"
        return sentences, trial.offered((code, effect, lambda: is_list and is_tracked))
    code = _with_tensors(line, gone.operation)
    repairs = trial.offered(
        (code, "compute with the tensor itself", lambda: code and "[" not in code and is_tracked)
    )
    return sentences, repairs


def _number(x: Tensor) -> Any:
    return x.item() if x.numel() == 1 else None


def _with_tensors(line: str, operation: str) -> str:
    """A line without the call that gives values and the one that makes a tensor of them."""
    makers = ("tensor", "as_tensor", "from_numpy")

    class Without(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            name = getattr(node.func, "attr", None)
            if name == operation:
                return node.func.value  # type: ignore[attr-defined]
            return node.args[0] if name in makers and node.args else node

    try:
        return ast.unparse(Without().visit(ast.parse(line)))
    except SyntaxError:
        return ""


def _tracked_behind(x: Tensor) -> Any:
    """``x``, or a tensor before it that requires grad; None if there is none."""
    cuts, *_ = _cuts(x)
    inputs = cuts[0].origin.inputs if cuts and cuts[0].origin is not None else (x,)
    return next((it for it in inputs if it.requires_grad), None)


# A result of an operation


def _no_leaf(t: Tensor, name: str, names: Names) -> Explanation:
    node = t.grad_fn
    assert node is not None
    where = f" ({_place(t.origin)})" if t.origin is not None else ""
    why = (
        f"{name} is the result of {node.name().rpartition(':')[2]}{where}. Backward passes its "
        "gradient on and keeps only those of leaves."
    )
    retain = (
        f"{name}.retain_grad()    # before backward()",
        f"keep the gradient of {name} too",
        lambda: _retains(t),
    )
    own_leaf = (
        f"{name} = {name}.detach().requires_grad_()",
        f"make {name} a leaf, from here on",
        lambda: trial.gets_gradient(trial.stand_in(t).detach().requires_grad_()),
    )
    old = _former_self(t, reading.order(t.grad_fn), names)
    title = f"{name}.grad is None: {name} is no leaf"
    (source, *_) = [*reading.inputs_of(node), None]
    if node.name() == "ToCopyBackward0" and is_tensor(source) and names.of(source, ""):
        leaf = names.of(source)
        copy = f"It is a copy of {leaf}, a leaf: look at {leaf}.grad."
        return Explanation(title, [why, copy], trial.offered(own_leaf, retain))
    if old is None:
        return Explanation(title, [why], trial.offered(retain))
    held = "no gradient yet" if old.grad is None else f"the gradient {words.values(old.grad)}"
    behind = f"The leaf behind it has the same shape, {held}, and no name of yours refers to it now"
    line = words.source(t.origin.file, t.origin.line) if t.origin is not None else ""
    update = _ASSIGNED_AGAIN.match(line)
    if not line and node.name() in ("SubBackward0", "AddBackward0"):
        update = _ASSIGNED_AGAIN.match(f"{name} = {name} - step")
    if update is None:
        repairs = trial.offered(own_leaf, retain)
        behind += f". Set requires_grad when the values of {name} are final."
    else:
        repairs = trial.offered(_in_place(update, old), own_leaf, retain)
        behind += f": it looks as if {name} was replaced by assignment."
    return Explanation(title, [why, behind], repairs)


def _retains(t: Tensor) -> bool:
    result = trial.stand_in(t).requires_grad_() * 2
    result.retain_grad()
    result.sum().backward()
    return result.grad is not None


def _former_self(t: Tensor, nodes: list[Any], names: Names) -> Any:
    """A leaf among the nodes that has the shape of ``t``, and no name now, while ``t`` has one."""
    named = {id(it) for _, it in names.tensors}
    fits = (it for it in nodes if is_tensor(it) and it.shape == t.shape and id(it) not in named)
    return next(fits, None) if id(t) in named else None


# A leaf that asks


def _leaf(t: Tensor, name: str, loss: Any, names: Names) -> Explanation:
    asks = f"{name} is a leaf that asks for a gradient"
    results = [(names.of(loss, "loss"), loss)] if loss is not None else _results_of(t, names)
    if not results:
        sentences = [
            f"{asks}, and no tensor with a name here was computed from it while grad mode was on.",
            (
                "Its .grad stays None until backward() is called on such a result. "
                f"Try: explain.no_grad({name}, {_some_loss(names)})"
            ),
        ]
        return Explanation(f"{name}.grad is None: nothing was computed from it", sentences, [])
    called, result = results[-1]
    if not result.requires_grad:
        title = f"{name}.grad is None: {called} has no history"
        sentences = [f"{asks}, but {called} has no history that could lead to it."]
        if result.origin is None:
            why = (
                f"Either {name} did not ask yet when {called} was computed, or that was inside "
                "no_grad, or from values without their history (detach, item, numpy)."
            )
            return Explanation(title, [*sentences, why, WHERE_TO_SEE], [])
        told = _untracked(result, called, names)
        return Explanation(title, [*sentences, *told._sentences], told._offered)
    nodes = reading.order(result.grad_fn if result.grad_fn is not None else result)
    if not any(node is t for node in nodes):
        return _not_reached(t, name, called, result, nodes, names)
    changed = [hasattr(error, "expected") for error in reading.refusals(nodes)]
    if not all(changed):
        why = (
            f"{asks}, and backward() has run from {called}: its graph is freed. So the gradient "
            "was removed since (zero_grad() sets None), or backward(inputs=...) or autograd.grad "
            "gave it to others."
        )
        return Explanation(f"{name}.grad is None again", [why], [])
    call = "backward()" if result.numel() == 1 else f"backward(tk.ones_like({called}))"
    why = (
        f"{asks}, and {called} was computed from it. backward() was not called on it yet, or the "
        "gradient was removed since (zero_grad() sets None)."
    )
    repairs = trial.offered(
        (f"{called}.{call}", f"compute the gradients of {called}", lambda: not changed)
    )
    return Explanation(f"{name}.grad is None: no backward yet", [why], repairs)


def _some_loss(names: Names) -> str:
    """The name of a number with a history, as an example."""
    losses = (it for _, it in names.tensors if it.grad_fn is not None and it.numel() == 1)
    return names.of(next(losses, None), "loss")


def _results_of(t: Tensor, names: Names) -> list[tuple[str, Any]]:
    """The first tensor with a name that was computed from ``t``, numbers before all others."""
    tracked = [pair for pair in names.tensors if pair[1].grad_fn is not None]
    for called, it in sorted(tracked, key=lambda pair: pair[1].numel() != 1):
        if reading.leads_to(it.grad_fn, t, MOST_LOOKED_AT):
            return [(called, it)]
    return []


def _not_reached(
    t: Tensor, name: str, called: str, result: Tensor, nodes: list[Any], names: Names
) -> Explanation:
    title = f"{name}.grad is None: {called} does not depend on it"
    old = _former_self(t, nodes, names)
    if old is not None:
        held = "none yet" if old.grad is None else words.values(old.grad)
        why = (
            f"{called} was computed from another leaf of the same shape, to which no name of "
            f"yours refers now (its gradient: {held}). It looks as if {name} was replaced "
            f"by assignment after {called} was computed: compute {called} again."
        )
        code = f"with tk.no_grad():\n    {name}.copy_(new)    # instead of {name} = new"
        effect = f"change {name} in place, so that it stays the same leaf"
        return Explanation(title, [why], trial.offered((code, effect, lambda: _stays_leaf(t))))
    cuts, _, mixed = _cuts(result)
    if cuts:
        sentence, repairs = _about_cut(cuts[0], called, names)
        return Explanation(title, ["The way from it to the result was cut.", sentence], repairs)
    if result.is_leaf:
        itself = f"{called} is a leaf itself: made of values, not computed from {name}."
        sentences, repairs = _through_numbers(result, names) or ([], [])
        return Explanation(title, [itself, *sentences], repairs)
    leaves = [names.of(it) for it in nodes if is_tensor(it)]
    sentences = [
        f"The leaves behind {called} are: {', '.join(leaves[:8])}. {name} is not among them."
    ]
    for made in mixed:
        through = _through_numbers(made, names)
        if through is not None:
            return Explanation(title, [*sentences, *through[0]], through[1])
    if result.origin is None:
        sentences.append(
            f"Whether {name} took part and was cut off (detach, item, numpy, no_grad) {_SEE}"
        )
    return Explanation(title, sentences, [])
