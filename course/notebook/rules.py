"""Demands of a statement that no value shows: what the text of an answer must have, or must not.

"By hand" forbids a call, "a function that launches a kernel" asks for one. A rule looks at the
answer's own text alone. Where a part of the work is done by a function of another cell, what the
answer lacks may stand there: then nothing is said to be missing. What can be measured while an
answer runs is no rule: see `demands`.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from course.shared.errors import TimeLimit

LONGEST = 10_000
"""The most characters of an answer that is read."""
_TOO_LONG = (
    f"The answer is longer than {LONGEST:,} characters, so what is asked of its text cannot be "
    "looked at. Make it shorter."
)

LAUNCH = "a launch"
OWN_OPERATION = "a call of an operation with its gradient"
OPERATION_CHECKED = "gradcheck of an operation with its gradient"
SUM_WITHOUT_BARRIER = "a sum in a loop without a barrier"
SAME_BLOCKS = "a launch of several blocks, always as many, without a loop"


@dataclass(frozen=True)
class Rule:
    """One demand: its words in the statement, what to do where an answer breaks it.

    needs: names of which the answer calls one, or `LAUNCH`, a call of something that is indexed,
    such as `kernel[blocks, threads](x)`, or `OWN_OPERATION`, a call of what `custom_op` has made,
    beside one of `register_autograd`, or `OPERATION_CHECKED`, a call of `gradcheck` that names one.
    refuses: names that it does not use, such as "linspace", ".data" or `.to("cpu")`, or
    `SUM_WITHOUT_BARRIER`, a loop in a kernel that adds up elements without a barrier, or
    `SAME_BLOCKS`, a launch such as `kernel[64, 32](x)` where there is no loop. With one block a
    case of more than 1,024 elements fails.
    `getattr(x, "data")` uses ".data" as well. A function of the answer's own may have any name.
    """

    words: str
    advice: str
    needs: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()

    def tip(self, source: str) -> str:
        """What to do where the answer with this text breaks the rule."""
        return _TOO_LONG if len(source) > LONGEST else self.advice

    def is_broken_by(self, source: str) -> bool:
        """Whether the answer with this text does not do what is asked, or is too long to read."""
        if len(source) > LONGEST:
            return True
        tree = parsed(source)
        if tree is None:
            return False
        used = set(_used(tree))
        if used & set(self.refuses):
            return True
        lacks = bool(self.needs) and not used & set(self.needs)
        return lacks and not _calls_others(tree)


def names_read(tree: ast.AST) -> set[str]:
    """The names that this part of an answer reads; `x += y` reads `x`, too."""
    nodes = list(ast.walk(tree))
    added_to = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    loaded = [node for node in names if isinstance(node.ctx, ast.Load)]
    return {node.id for node in (*loaded, *added_to) if isinstance(node, ast.Name)}


@lru_cache(maxsize=2)  # many functions ask for the tree of one answer, which may be large
def parsed(source: str | None) -> ast.Module | None:
    """The syntax tree of an answer, to be read only; None if it cannot be read."""
    if source is None or len(source) > LONGEST:
        return None
    try:
        return ast.parse(textwrap.dedent(source))
    except TimeLimit:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _used(tree: ast.AST) -> Iterator[str]:
    """What rules are about: names that are called, `.attributes`, texts, loops, launches."""
    called, operations = _calls_in(tree), _own_operations(tree)
    own_functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    if "register_autograd" in called and operations & called:
        yield OWN_OPERATION
    if any(_called(call) == "gradcheck" and operations & _names_in(call) for call in _calls(tree)):
        yield OPERATION_CHECKED
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    if not loops and _has_same_blocks(tree):
        yield SAME_BLOCKS
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While):
            if _adds_elements(node) and "syncthreads" not in _calls_in(node):
                yield SUM_WITHOUT_BARRIER
        elif isinstance(node, ast.Attribute):
            yield f".{node.attr}"
        elif isinstance(node, ast.alias | ast.ImportFrom):  # the name after `as` does not matter
            yield node.name if isinstance(node, ast.alias) else node.module or ""
        elif isinstance(node, ast.Call) and not (
            isinstance(node.func, ast.Name) and node.func.id in own_functions
        ):
            yield from _in_call(node)


def _in_call(call: ast.Call) -> Iterator[str]:
    """What rules are about in one call."""
    name = _called(call)
    yield LAUNCH if isinstance(call.func, ast.Subscript) else name
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield f'.{name}("{argument.value}")'
            if name in ("getattr", "setattr"):
                yield f".{argument.value}"


def _has_same_blocks(tree: ast.AST) -> bool:
    """Whether a launch has a number of blocks other than 1 that depends on no argument."""
    reads = defaultdict[str, set[str]](set)  # of each name: what its values are computed from
    for node in ast.walk(tree):
        match node:
            case ast.Assign([target], value) | ast.AugAssign(target, _, value):
                for name in _names_in(target):
                    reads[name] |= _names_in(value)
    constant = {name for name, sources in reads.items() if not sources}
    for call in _calls(tree):
        match call.func:
            case ast.Subscript(slice=ast.Tuple(elts=[blocks, _]) | (ast.Name() as blocks)):
                if ast.unparse(blocks) != "1" and _names_in(blocks) <= constant:
                    return True
    return False


def _own_operations(tree: ast.AST) -> set[str]:
    """The names of what `custom_op` makes: of functions that it decorates, and of its results."""
    names = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) if names & _names_in(node):  # it calls one
                names.add(name)
                continue
            case ast.FunctionDef(name=name, decorator_list=makers):
                made = {name}
            case ast.Assign(targets=targets, value=value):
                made, makers = set[str]().union(*map(_names_in, targets)), [value]
            case _:
                continue
        if any("custom_op" in _calls_in(maker) for maker in makers):
            names |= made
    return names


def _names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _adds_elements(loop: ast.AST) -> bool:
    """Whether a loop adds up what is indexed, as `total += x[i]`."""
    added: list[ast.expr] = []
    for node in ast.walk(loop):
        match node:
            case ast.AugAssign(op=ast.Add(), value=value):
                added.append(value)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                added += [left, right]
    return any(isinstance(node, ast.Subscript) for value in added for node in ast.walk(value))


def _calls_in(tree: ast.AST) -> set[str]:
    """The names of what is called in this part of an answer."""
    return set(map(_called, _calls(tree)))


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _calls_others(tree: ast.AST) -> bool:
    """Whether a function or a kernel is called that the answer does not define itself."""
    nodes = list(ast.walk(tree))
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    defined |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    defined |= {(node.asname or node.name) for node in nodes if isinstance(node, ast.alias)}
    functions = [call.func for call in _calls(tree)]
    functions = [
        function.value if isinstance(function, ast.Subscript) else function
        for function in functions
    ]
    called = {function.id for function in functions if isinstance(function, ast.Name)}
    return not called <= defined | set(dir(builtins))
