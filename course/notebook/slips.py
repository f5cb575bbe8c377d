"""Slips of syntax that run and do something else, found on the syntax tree of an answer.

They are looked for in a wrong answer whose mistake is not known. A slip is named only where the
tree shows it, and, if that does not settle it, where the error or the value fits as well.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorkit as tk
from course.notebook.rules import parsed
from course.notebook.runner import Outcome


@dataclass(frozen=True)
class Slip:
    """A slip's name, and a sentence that says what the code does and what to write."""

    name: str
    sentence: str


def first_slip(source: str, mine: Outcome, right: Outcome) -> Slip | None:
    """The first slip in the answer's text that may explain what it did; None if there is none."""
    tree = parsed(source)
    if tree is None:
        return None
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    answer = Looked(tree, parents, textwrap.dedent(source).splitlines(), mine, right)
    return next((slip for look in _LOOKS for slip in look(answer)), None)


@dataclass(frozen=True)
class Looked:
    """The tree of an answer, the parent of each node, the lines, what it and a right one did."""

    tree: ast.AST
    parents: dict[ast.AST, ast.AST]
    lines: list[str]
    mine: Outcome
    right: Outcome

    def nodes(self, kind: type[ast.AST]) -> Iterator[Any]:
        """The nodes of this kind in the order of the text."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, kind)]
        return iter(sorted(found, key=lambda node: (getattr(node, "lineno", 0), -_length(node))))

    def said(self, pattern: str) -> bool:
        """Whether the answer raised an exception whose class and message have this in them."""
        error = self.mine.error
        text = f"{type(error).__name__}: {self.mine.message[0]}"
        return error is not None and re.search(pattern, text) is not None

    def raised_in(self, node: ast.expr) -> bool:
        """Whether this part of the code stands in the line that raised, if that is known."""
        line = self.mine.where.partition(": ")[2].strip()
        own = self.lines[node.lineno - 1 : node.end_lineno]
        return not line or line in [each.strip() for each in own]


def _length(node: ast.AST) -> int:
    return len(ast.dump(node))


def _is_method(name: str) -> bool:
    return callable(getattr(tk.Tensor, name, None)) and not name.startswith("_")


def _is_property(name: str) -> bool:
    return isinstance(getattr(tk.Tensor, name, None), property) or name in ("shape", "dtype")


def _root(node: ast.AST) -> str:
    """The name with which a chain of attributes begins; "" if it is no name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _as_call(node: ast.Attribute) -> str:
    """A method as it is called: `x.item()`, and `x.reshape(...)` where it takes arguments."""
    _, *parameters = inspect.signature(getattr(tk.Tensor, node.attr)).parameters.values()
    takes = any(
        each.default is each.empty and each.kind is not each.VAR_KEYWORD for each in parameters
    )
    return f"{ast.unparse(node)}({'...' if takes else ''})"


_NO_TENSORS = ("tk", "np", "math", "F", "nn", "self", "Tensor", "torch")
_OTHERS_HAVE = ("values", "indices", "index", "count", "sort", "data", "grad")
"""Names of tensor methods that lists, dictionaries or results have with another meaning."""


def _not_called(answer: Looked) -> Iterator[Slip]:
    called = {node.func.id for node in answer.nodes(ast.Call) if isinstance(node.func, ast.Name)}
    users = (ast.BinOp, ast.Return, ast.Assign, ast.Attribute, ast.Compare)
    for node in answer.nodes(ast.Attribute):
        parent = answer.parents[node]
        is_method = _is_method(node.attr) and node.attr not in _OTHERS_HAVE
        if not is_method or not isinstance(parent, users) or _root(node) in _NO_TENSORS:
            continue
        targets = parent.targets if isinstance(parent, ast.Assign) else []
        if node in targets or any(isinstance(n, ast.Name) and n.id in called for n in targets):
            continue
        yield Slip(
            "not called",
            f"`{ast.unparse(node)}` is the method itself, and nobody calls it there: write "
            f"`{_as_call(node)}`.",
        )


def _called_property(answer: Looked) -> Iterator[Slip]:
    for node in answer.nodes(ast.Call) if answer.said("not callable") else ():
        function = node.func
        if not isinstance(function, ast.Attribute) or not _is_property(function.attr):
            continue
        if answer.raised_in(node) and _root(function) not in _NO_TENSORS:
            yield Slip(
                "a property called",
                f"`{ast.unparse(function)}` is no method: write it without the parentheses behind "
                "it.",
            )


def _truth_of_many(answer: Looked) -> Iterator[Slip]:
    if not answer.said("[Bb]oolean value of Tensor|truth value of an array"):
        return
    for node in filter(answer.raised_in, answer.nodes(ast.UnaryOp)):
        if isinstance(node.op, ast.Not):
            text = ast.unparse(node.operand)
            yield Slip(
                "not of a mask",
                f"`not` asks for one answer for all elements. `~({text})` turns each of them.",
            )
    for node in filter(answer.raised_in, answer.nodes(ast.BoolOp)):
        word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
        yield Slip(
            "and, or between masks",
            f"`{word}` asks each tensor for one answer. Element by element it "
            f"is `{sign}`, with brackets around each comparison: `(a > 0) {sign} (b > 0)`.",
        )
    for node in filter(answer.raised_in, answer.nodes(ast.Compare)):
        if len(node.ops) > 1:
            yield Slip(
                "a chain of comparisons",
                f"`{ast.unparse(node)}` is an `and` of two comparisons, and "
                "asks each for one answer. Write two comparisons in brackets with `&` in between.",
            )
    if any(answer.raised_in(node.test) for node in answer.nodes(ast.If)):
        yield Slip(
            "if of a mask",
            "`if` asks for one answer for all elements. "
            "`tk.where(condition, a, b)` chooses for each of them.",
        )


def _decimal_comma(answer: Looked) -> Iterator[Slip]:
    value = answer.mine.value
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if isinstance(answer.right.value, list | tuple) or not (is_pair or answer.said("'tuple'")):
        return
    for node in answer.nodes(ast.Tuple):
        if len(node.elts) != 2 or isinstance(answer.parents[node], ast.Subscript):
            continue
        first, last = node.elts
        while isinstance(first, ast.BinOp):
            first = first.right
        are_numbers = all(
            isinstance(each, ast.Constant) and type(each.value) is int for each in (first, last)
        )
        if are_numbers and isinstance(node.elts[0], ast.BinOp):
            number = f"{ast.unparse(first)}.{ast.unparse(last)}"
            yield Slip(
                "a decimal comma",
                f"The comma makes two values. A decimal number has a point: `{number}`.",
            )


_ENDS_IN_PLACE = ("backward", "retain_grad", "register_hook", *_OTHERS_HAVE)


def _result_lost(answer: Looked) -> Iterator[Slip]:
    tensors = {arg.arg for arg in answer.nodes(ast.arg) if _is_tensor(arg.annotation)}
    made = {
        target.id
        for node in answer.nodes(ast.Assign)
        if isinstance(node.value, ast.Call | ast.BinOp) and not _makes_another(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in answer.nodes(ast.Expr):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            name = call.func.attr
            is_in_place = name.endswith("_") or name in _ENDS_IN_PLACE
            if _is_method(name) and not is_in_place and _root(call.func) in tensors | made:
                yield Slip(
                    "a result is lost",
                    f"`{ast.unparse(call)}` returns something and changes "
                    f"nothing; nobody keeps what it returns. Give it a name.",
                )


def _is_tensor(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation) in ("tk.Tensor", "Tensor")


def _makes_another(node: ast.expr) -> bool:
    """Whether this makes a set, or an object of a class, whose methods of that name change it."""
    called = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return called == "set" or called[:1].isupper()


def _written_into_a_copy(answer: Looked) -> Iterator[Slip]:
    masks = {
        target.id
        for node in answer.nodes(ast.Assign)
        if isinstance(node.value, ast.Compare)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in answer.nodes(ast.Subscript):
        inner = node.value
        if isinstance(node.ctx, ast.Store) and ast.unparse(inner).endswith(".clone()"):
            yield Slip(
                "written into a copy",
                f"What is written into `{ast.unparse(inner)}` is lost: nobody keeps that copy. "
                "Give it a name first.",
            )
        if not isinstance(node.ctx, ast.Store) or not isinstance(inner, ast.Subscript):
            continue
        index = inner.slice
        if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
            index = index.operand
        is_mask = isinstance(index, ast.Name) and index.id in masks
        if is_mask or isinstance(index, ast.Compare | ast.List):
            text = ast.unparse(inner)
            yield Slip(
                "written into a copy",
                f"`{text}` picks elements into a copy, and what is written goes into that copy. "
                f"Assign to `{text}` itself, in one pair of brackets.",
            )


def _tuple_not_unpacked(answer: Looked) -> Iterator[Slip]:
    value = answer.mine.value
    is_returned = isinstance(value, list | tuple) and len(value) == 1
    if not (is_returned or answer.said("'?tuple'?")):
        return
    subscripted = {ast.unparse(node.value) for node in answer.nodes(ast.Subscript)}
    for node in answer.nodes(ast.Call):
        parent = answer.parents[node]
        is_grad = isinstance(node.func, ast.Attribute) and node.func.attr == "grad"
        if not is_grad or not isinstance(parent, ast.Assign | ast.Return | ast.BinOp):
            continue
        if isinstance(parent, ast.Assign):
            target = parent.targets[0]
            if not isinstance(target, ast.Name) or target.id in subscripted:
                continue
        yield Slip(
            "a tuple not unpacked",
            f"`{ast.unparse(node.func)}` returns a tuple with one gradient "
            "for each input. Take it out: `[0]` behind the call, or `(gradient,) = ...`.",
        )


def _range_ends_early(answer: Looked) -> Iterator[Slip]:
    if any("+ 1" in ast.unparse(node.slice) for node in answer.nodes(ast.Subscript)):
        return  # the next entry is looked at as well
    for node in answer.nodes(ast.Call):
        is_range = isinstance(node.func, ast.Name) and node.func.id == "range" and node.args
        stop = node.args[-1] if is_range and len(node.args) < 3 else None
        if not isinstance(stop, ast.BinOp) or not isinstance(stop.op, ast.Sub):
            continue
        if ast.unparse(stop.right) == "1":
            text, last = ast.unparse(node), ast.unparse(stop.left)
            yield Slip(
                "range ends early",
                f"The last number of `{text}` is `{last} - 2`: `range` leaves out its end. Is one "
                "missing?",
            )


def _no_return(answer: Looked) -> Iterator[Slip]:
    is_none = answer.mine.ended == "returned" and answer.mine.value is None
    if not is_none or answer.right.value is None:
        return
    functions = list(answer.nodes(ast.FunctionDef))
    if functions and not any(node.value for node in answer.nodes(ast.Return)):
        yield Slip("no return", "Your function gives nothing back: is a `return` missing?")


def _returns_in_a_loop(answer: Looked) -> Iterator[Slip]:
    for loop in (*answer.nodes(ast.For), *answer.nodes(ast.While)):
        body = loop.body[-1].body if isinstance(loop.body[-1], ast.With) else loop.body
        goes_on = any(isinstance(node, ast.Continue) for node in ast.walk(loop))
        if isinstance(body[-1], ast.Return) and not goes_on:
            yield Slip(
                "return in the loop",
                f"`{ast.unparse(body[-1])}` stands inside the loop, which ends there in its first "
                "round. Move it below the loop.",
            )


def _unused_argument(answer: Looked) -> Iterator[Slip]:
    function = next(answer.nodes(ast.FunctionDef), None)
    if function is None or answer.mine.ended != "returned":
        return
    used = {node.id for node in answer.nodes(ast.Name) if isinstance(node.ctx, ast.Load)}
    for argument in function.args.args:
        if argument.arg not in used and answer.right.value is not None:
            yield Slip(
                "an argument is not used",
                f"`{argument.arg}` is not used, so the result is the same whatever its value is.",
            )


_RAISED = {
    "'tuple' object does not support item assignment": "a tuple is written to",
    "is not part of": "a name that is not there",
    "can be implicitly created only for scalar": "backward of several numbers",
    "does not require grad": "nothing was recorded",
    "leaf Variable": "a leaf is written to",
    "result type .* can't be cast": "fractions into whole numbers",
    "view size is not compatible": "a view that does not fit",
    "size of tensor a|shapes cannot be multiplied": "shapes that do not fit",
    "can't multiply sequence|can only concatenate (tuple|list)|operand type.*'(tuple|list)'": (
        "computing with lists"
    ),
    "values to unpack": "values to unpack",
    "is what you are asked to write": "a call that is switched off",
}
"""Names of slips by what the exception says; the row of the case tells what to do."""


def _raised(answer: Looked) -> Iterator[Slip]:
    yield from (Slip(name, "") for pattern, name in _RAISED.items() if answer.said(pattern))


_LOOKS: tuple[Callable[[Looked], Iterator[Slip]], ...] = (
    _no_return,
    _returns_in_a_loop,
    _decimal_comma,
    _called_property,
    _not_called,
    _truth_of_many,
    _tuple_not_unpacked,
    _written_into_a_copy,
    _result_lost,
    _range_ends_early,
    _unused_argument,
    _raised,
)
