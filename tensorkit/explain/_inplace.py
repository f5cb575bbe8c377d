"""``explain.inplace``: who saved a tensor, who changed it, and three ways out."""

import ast
from functools import partial
from typing import Any

from tensorkit import base, creation
from tensorkit.autograd.modes import no_grad
from tensorkit.base import Tensor
from tensorkit.data import is_tensor
from tensorkit.errors import AutogradError
from tensorkit.explain import trial
from tensorkit.explain.explanation import Explanation
from tensorkit.viz import reading, words


def inplace(error_or_tensor: "AutogradError | Tensor") -> Explanation:
    """Which saved tensor was changed in place: who saved it, who changed it, three repairs.

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
    with words.unseen():
        if is_tensor(error_or_tensor):
            return _in_graph(error_or_tensor, known)  # type: ignore[arg-type]
        error: Any = error_or_tensor
        if not isinstance(error, BaseException):
            raise TypeError(
                "explain.inplace() wants an error or a tensor; this is of class "
                f"{type(error).__name__}. Try: explain.inplace(loss)"
            )
        if hasattr(error, "expected"):
            return _story(error, known)
        first = str(error).partition("\n")[0]
        if "backward through the graph a second time" in first:
            return _freed()
        if "leaf Variable that requires grad" in first:
            return _of_leaf(first)
        sentence = "This error is not about a tensor that was changed in place."
        said = [f"{call} says why." for part, call in _ELSEWHERE.items() if part in first]
        return Explanation("Something else", [sentence, first, *said], [])


_ELSEWHERE = {
    "does not require grad": "explain.no_grad(loss)",
    "must match the size": "explain.broadcast(x, y)",
}


def _in_graph(t: Tensor, known: dict[str, Any]) -> Explanation:
    if t.grad_fn is None:
        sentence = "This tensor has no graph: no operation saved anything for it."
        return Explanation("Nothing was saved", [sentence], [])
    errors = list(reading.refusals(reversed(reading.order(t.grad_fn))))
    changed = [it for it in errors if hasattr(it, "expected")]
    if changed:
        return _story(changed[0], known)
    if errors:
        return _freed()
    sentence = "Every saved tensor still has the version it had when it was saved."
    return Explanation("Nothing was changed", [sentence], [])


def _freed() -> Explanation:
    sentence = (
        "An earlier backward freed what this graph saved: it cannot run again. Each backward needs "
        "a loss of its own: in a loop it is computed inside; in a notebook its cell is run again."
    )

    def twice() -> bool:
        leaf = creation.ones(2, requires_grad=True)
        loss = (leaf * leaf).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        return leaf.grad is not None

    repairs = trial.offered(
        (_AGAIN, "make a new graph", _new_graph),
        (
            "loss.backward(retain_graph=True)    # the first time",
            "keep the graph, if the same one is needed twice",
            twice,
        ),
    )
    return Explanation("The graph is freed", [sentence], repairs)


_AGAIN = "loss = ...    # compute it again, then loss.backward()"


def _new_graph() -> bool:
    leaf = creation.ones(2, requires_grad=True)
    return trial.gets_gradient(leaf) and trial.gets_gradient(leaf)


def _story(error: Any, known: dict[str, Any]) -> Explanation:
    node, saved = error.node, error.saved
    title = node.name().rpartition(":")[2]
    what = {"_saved_result": "result", "_saved_self": "input"}.get(saved, "input")
    saver = f"{title} saved its {what} ({saved}) at version {error.expected}"
    line = node.hooks.line if node.hooks is not None else None
    sentences = []
    if line is None:
        sentences.append(
            f"{saver}. At which line is not known: no recording was on. To see it, run the lines "
            "again inside `with tk.autograd.recording():`."
        )
    else:
        sentences.append(f"{saver} ({words.place(*line)}).")
    operation, file, number = error.writer or ("a write", "", 0)
    since = words.count(error.version - error.expected, "write")
    sentences.append(
        f"Since then {since} changed it; the last was {operation}"
        + (f" ({words.place(file, number)})." if file else ".")
    )
    sentences.append("Backward needs the values as they were, so it refuses.")
    name, write, without, is_leaf = _rewritten(
        words.source(file, number) if file else "", operation, known
    )
    if is_leaf:
        write = f"with tk.no_grad():\n    {write}"
    after = (f"loss.backward()\n{write}", "change it after backward has used it", _afterwards)
    keep = (f"{name}.clone()", f"give {title} a copy, which it can keep", _kept_copy)
    copy = (f"{name} = {name}.clone()\n{write}", "change a copy", _copy)
    anew = (without, "make a new tensor instead of changing the saved one", _new_tensor)
    is_whole = without and "\n" not in without
    attempts = [anew, copy, after] if is_whole else [keep, copy, after, anew]
    if is_leaf or not name:  # a parameter stays the same leaf: no new tensor takes its place
        attempts = [after, *([keep] if name else [])]
    repairs = trial.offered(
        *(
            (code, effect, partial(_runs, node, saved, way))
            for code, effect, way in attempts
            if code
        )
    )[:3]
    if is_leaf or not name:
        effect = "compute the loss from the new values"
        repairs += trial.offered((f"{write}\n{_AGAIN}", effect, _new_graph))
    if not name:
        effect = "go back through both losses at once, before the change"
        repairs += trial.offered((f"(loss + other).backward()\n{write}", effect, _both_at_once))
    return Explanation(f"The {what} of {title} was changed after it was saved", sentences, repairs)


def _rewritten(line: str, operation: str, known: dict[str, Any]) -> tuple[str, str, str, bool]:
    """The name that a line writes to, the statement that does, and the same with a new tensor.

    The last is empty where nothing makes one, the name where it is not seen. Then: whether that
    name is ``known`` to be a leaf that requires grad.
    """
    plain = operation.rstrip("_")
    anew = _MADE_ANEW.get(plain, f"{{0}}.{plain}({{1}})" if hasattr(base.public, plain) else "")
    try:
        statements = ast.parse(line).body
    except SyntaxError:
        statements = []
    for it in statements:
        text = ast.unparse(it)
        target, new = _written(it, plain, anew)
        name, tensor = _holder(target, known) if target is not None else ("", None)
        if name:
            is_leaf = tensor is not None and bool(tensor.is_leaf and tensor.requires_grad)
            return name, text, _made_of(name, target, new), is_leaf
    if line:
        return "", line, "", False
    new = anew.format("x", "...")
    return "x", f"x.{operation}(...)", new and f"x = {new}", False


def _made_of(name: str, target: ast.expr, new: str) -> str:
    """The statement that makes ``name`` anew, where ``target`` is all of it or a part by index."""
    if name == ast.unparse(target) or not new:
        return new
    if not isinstance(target, ast.Subscript) or name != ast.unparse(target.value):
        return ""
    index, value = ast.unparse(target.slice), new.partition(" = ")[2]
    return (
        f"new, part = tk.zeros_like({name}), tk.zeros_like({name}, dtype=tk.bool)\n"
        f"new[{index}], part[{index}] = {value}, True\n"
        f"{name} = tk.where(part, new, {name})"
    )


def _written(statement: ast.stmt, plain: str, anew: str) -> tuple[Any, str]:
    """What a statement writes to, and the statement that makes a new tensor instead."""
    if isinstance(statement, ast.AugAssign):
        target, op = statement.target, statement.op
        new = ast.unparse(ast.BinOp(target, op, statement.value))
        return target, f"{ast.unparse(target)} = {new}"
    for it in ast.walk(statement):
        if isinstance(it, ast.Call) and getattr(it.func, "attr", None) == f"{plain}_":
            target, arguments = it.func.value, [*it.args, *it.keywords]  # type: ignore[attr-defined]
            new = anew.format(ast.unparse(target), ", ".join(map(ast.unparse, arguments)))
            if isinstance(statement, ast.Expr) and statement.value is it:
                return target, new and f"{ast.unparse(target)} = {new}"
            return target, new and ast.unparse(statement).replace(ast.unparse(it), new)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return statement.targets[0], ast.unparse(statement)
    return None, ""


def _holder(target: ast.expr, known: dict[str, Any]) -> tuple[str, Any]:
    """The tensor of which ``target`` is all or a part, as code; and itself, if it is still there.

    ``y`` of ``y[0]``, but ``pairs[0]`` where ``pairs`` is a list of tensors.
    """
    parts: list[Any] = [target]
    while isinstance(parts[-1], (ast.Attribute, ast.Subscript, ast.Call)):
        parts.append(getattr(parts[-1], "value", None) or getattr(parts[-1], "func", None))
    if not isinstance(parts[-1], ast.Name):
        return "", None
    for part in reversed(parts):
        code = ast.unparse(part)
        if any(isinstance(it, ast.Call) for it in ast.walk(part)):
            break
        try:
            value = eval(code, known)
        except Exception:  # whatever the learner's own objects raise
            break
        if is_tensor(value):
            return code, value
    whole = (it for it in parts if all(isinstance(n, _NAMES) for n in ast.walk(it)))
    return ast.unparse(next(whole)), None


_NAMES = (ast.Name, ast.Attribute, ast.expr_context)
_MADE_ANEW = {
    "uniform": "tk.rand_like({0})",
    "normal": "tk.randn_like({0})",
    "zero": "tk.zeros_like({0})",
    "fill": "tk.full_like({0}, {1})",
    "copy": "tk.empty_like({0}).copy_({1})",
}


# The mistake and its repairs, on two numbers


def _runs(node: Any, saved: str, way: Any) -> bool:
    """Whether backward runs with this repair in a small program with the same operation.

    The program must fail without a repair, else it would prove nothing; then one with another
    operation, which saves as much, takes its place.
    """
    usual = ("exp", 1) if saved == "_saved_result" else ("mul", 2)
    for operation, n_inputs in ((node.rule.name, len(node.rule.inputs)), usual):
        run = partial(_program, operation, n_inputs, saved)
        if trial.works(partial(run, way)) and not trial.works(partial(run, _write)):
            return True
    return False


def _program(operation: str, n_inputs: int, saved: str, way: Any) -> bool:
    leaf = creation.ones(2, requires_grad=True)
    middle = leaf * 1.0
    result = getattr(middle, operation)(*[middle] * (n_inputs - 1))
    if way is _kept_copy:
        if saved == "_saved_result":
            return False
        copy = middle.clone()
        result = getattr(copy, operation)(*[copy] * (n_inputs - 1))
    way(result if saved == "_saved_result" else middle, result.sum())
    return leaf.grad is not None


def _write(target: Tensor, loss: Tensor) -> None:
    target.add_(1)
    loss.backward()


def _new_tensor(target: Tensor, loss: Tensor) -> None:
    target.add(1)
    loss.backward()


def _copy(target: Tensor, loss: Tensor) -> None:
    target.clone().add_(1)
    loss.backward()


_kept_copy = partial(_write)


def _afterwards(target: Tensor, loss: Tensor) -> None:
    loss.backward()
    target.add_(1)


def _both_at_once() -> bool:
    leaf = creation.ones(2, requires_grad=True)
    loss, other = (leaf * leaf).sum(), leaf.exp().sum()
    (loss + other).backward()
    with no_grad():
        leaf -= 0.1
    return leaf.grad is not None


def _of_leaf(first: str) -> Explanation:
    sentences = [
        first,
        "A leaf is where gradients end: it has no history in which a change could be recorded.",
    ]

    def updated() -> bool:
        leaf = creation.ones(2, requires_grad=True)
        with no_grad():
            leaf -= 0.1
        return bool(leaf.is_leaf) and trial.gets_gradient(leaf)

    def computed() -> bool:
        leaf = creation.ones(2, requires_grad=True)
        (leaf + 1).sum().backward()
        return leaf.grad is not None

    def copied() -> bool:
        leaf = creation.ones(2, requires_grad=True)
        copy = leaf.clone()
        copy += 1
        copy.sum().backward()
        return leaf.grad is not None

    repairs = trial.offered(
        (
            "with tk.no_grad():\n    w -= lr * w.grad",
            "to update a parameter, which is not recorded",
            updated,
        ),
        ("y = x + 1", "to compute a new tensor", computed),
        ("y = x.clone()\ny += 1", "to change a copy", copied),
    )
    return Explanation("A leaf was changed in place", sentences, repairs)
