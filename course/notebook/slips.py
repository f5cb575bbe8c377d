"""Slips of syntax that run and do something else, found on the syntax tree of an answer.

They are looked for in a wrong answer whose mistake is not known. A slip is named only where the
tree shows it, and, if that does not settle it, where the error or the value fits as well.
"""

from __future__ import annotations

import ast
import re
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


def first_slip(source: str, mine: Outcome) -> Slip | None:
    """The first slip in the answer's text that may explain what it did; None if there is none."""
    tree = parsed(source)
    if tree is None:
        return None
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    looked_at = Looked(tree, parents, mine)
    return next((slip for look in _LOOKS for slip in look(looked_at)), None)


@dataclass(frozen=True)
class Looked:
    """The tree of an answer, the parent of each node, and what the answer did."""

    tree: ast.AST
    parents: dict[ast.AST, ast.AST]
    mine: Outcome

    def nodes(self, kind: type[ast.AST]) -> Iterator[Any]:
        """The nodes of this kind in the order of the text."""
        found = [it for it in ast.walk(self.tree) if isinstance(it, kind)]
        return iter(sorted(found, key=lambda it: (getattr(it, "lineno", 0), -len(ast.dump(it)))))

    def said(self, pattern: str) -> bool:
        """Whether the answer raised an exception whose class and message have this in them."""
        error = self.mine.error
        text = f"{type(error).__name__}: {self.mine.message[0]}"
        return error is not None and re.search(pattern, text) is not None


def _is_method(name: str) -> bool:
    return callable(getattr(tk.Tensor, name, None)) and not name.startswith("_")


def _is_property(name: str) -> bool:
    return isinstance(getattr(tk.Tensor, name, None), property) or name in ("shape", "dtype")


def _root(node: ast.AST) -> str:
    """The name with which a chain of attributes begins; "" if it is no name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


_NO_TENSORS = ("tk", "np", "math", "F", "nn", "self")
_OTHERS_HAVE = ("values", "indices", "index", "count", "sort", "data", "grad")
"""Names of tensor methods that lists, dictionaries or results have with another meaning."""


def _not_called(its: Looked) -> Iterator[Slip]:
    called = {it.func.id for it in its.nodes(ast.Call) if isinstance(it.func, ast.Name)}
    users = (ast.BinOp, ast.Return, ast.Assign, ast.Attribute, ast.Compare)
    for node in its.nodes(ast.Attribute):
        parent = its.parents[node]
        is_method = _is_method(node.attr) and node.attr not in _OTHERS_HAVE
        if not is_method or not isinstance(parent, users) or _root(node) in _NO_TENSORS:
            continue
        named = parent.targets if isinstance(parent, ast.Assign) else []
        if node in named or any(isinstance(it, ast.Name) and it.id in called for it in named):
            continue
        text = ast.unparse(node)
        yield Slip(
            "not called",
            f"`{text}` is the method itself, and nobody calls it there: write `{text}()`.",
        )


def _called_property(its: Looked) -> Iterator[Slip]:
    for node in its.nodes(ast.Call) if its.said("not callable") else ():
        function = node.func
        if isinstance(function, ast.Attribute) and _is_property(function.attr):
            text = ast.unparse(function)
            yield Slip(
                "a property called",
                f"`{text}` is no method: write it without the parentheses behind it.",
            )


def _truth_of_many(its: Looked) -> Iterator[Slip]:
    if not its.said("[Bb]oolean value of Tensor|truth value of an array"):
        return
    for node in its.nodes(ast.UnaryOp):
        if isinstance(node.op, ast.Not):
            text = ast.unparse(node.operand)
            yield Slip(
                "not of a mask",
                f"`not` asks for one answer for all elements. `~({text})` turns each of them.",
            )
    for node in its.nodes(ast.BoolOp):
        word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
        yield Slip(
            "and, or between masks",
            f"`{word}` asks each tensor for one answer. Element by element it "
            f"is `{sign}`, with brackets around each comparison: `(a > 0) {sign} (b > 0)`.",
        )
    for node in its.nodes(ast.Compare):
        if len(node.ops) > 1:
            yield Slip(
                "a chain of comparisons",
                f"`{ast.unparse(node)}` is an `and` of two comparisons, and "
                "asks each for one answer. Write two comparisons in brackets with `&` in between.",
            )
    if next(its.nodes(ast.If), None):
        yield Slip(
            "if of a mask",
            "`if` asks for one answer for all elements. "
            "`tk.where(condition, a, b)` chooses for each of them.",
        )


def _decimal_comma(its: Looked) -> Iterator[Slip]:
    for node in its.nodes(ast.Tuple):
        if len(node.elts) != 2 or isinstance(its.parents[node], ast.Subscript):
            continue
        first, last = node.elts
        while isinstance(first, ast.BinOp):
            first = first.right
        are_numbers = all(
            isinstance(it, ast.Constant) and type(it.value) is int for it in (first, last)
        )
        if are_numbers and isinstance(node.elts[0], ast.BinOp):
            number = f"{ast.unparse(first)}.{ast.unparse(last)}"
            yield Slip(
                "a decimal comma",
                f"The comma makes two values. A decimal number has a point: `{number}`.",
            )


_ENDS_IN_PLACE = ("backward", "retain_grad", "register_hook", *_OTHERS_HAVE)


def _result_lost(its: Looked) -> Iterator[Slip]:
    tensors = {it.arg for it in its.nodes(ast.arg) if "Tensor" in ast.unparse(it)}
    made = {
        target.id
        for node in its.nodes(ast.Assign)
        if isinstance(node.value, ast.Call | ast.BinOp) and "set(" not in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in its.nodes(ast.Expr):
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


def _written_into_a_copy(its: Looked) -> Iterator[Slip]:
    masks = {
        target.id
        for node in its.nodes(ast.Assign)
        if isinstance(node.value, ast.Compare)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in its.nodes(ast.Subscript):
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


def _tuple_not_unpacked(its: Looked) -> Iterator[Slip]:
    is_returned = isinstance(its.mine.value, list | tuple) and len(its.mine.value) == 1
    if not (is_returned or its.said("'?tuple'?")):
        return
    for node in its.nodes(ast.Call):
        is_grad = isinstance(node.func, ast.Attribute) and node.func.attr == "grad"
        if is_grad and isinstance(its.parents[node], ast.Assign | ast.Return | ast.BinOp):
            parent = its.parents[node]
            if isinstance(parent, ast.Assign) and not isinstance(parent.targets[0], ast.Name):
                continue
            yield Slip(
                "a tuple not unpacked",
                f"`{ast.unparse(node.func)}` returns a tuple with one gradient "
                "for each input. Take it out: `[0]` behind the call, or `(gradient,) = ...`.",
            )


def _range_ends_early(its: Looked) -> Iterator[Slip]:
    for node in its.nodes(ast.Call):
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


_LOOKS: tuple[Callable[[Looked], Iterator[Slip]], ...] = (
    _decimal_comma,
    _called_property,
    _not_called,
    _truth_of_many,
    _tuple_not_unpacked,
    _written_into_a_copy,
    _result_lost,
    _range_ends_early,
)
