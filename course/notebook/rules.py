"""Demands of a statement that no value shows: what the text of an answer must have, or must not.

"In pieces" asks for a loop, "without the Hessian" forbids a call. A rule looks at the answer's own
text alone. Where a part of the work is done by a function of another cell, what the answer lacks
may stand there: then nothing is said to be missing.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from course.shared.errors import TimeLimit

LONGEST = 10_000
"""Characters of an answer that is read."""

LOOP, LAUNCH = "a loop", "a launch"
GRADIENT_IN_LOOP = "a gradient in a loop"
TWO_GRADIENTS = "two gradients"
OWN_OPERATION = "a call of an operation with its gradient"
SUM_WITHOUT_BARRIER = "a sum in a loop without a barrier"


@dataclass(frozen=True)
class Rule:
    """One demand: its words in the statement, what to do where an answer breaks it.

    needs: names of which the answer calls one, or `LOOP`, or `LAUNCH`, a call of something that is
    indexed, such as `kernel[blocks, threads](x)`, or `TWO_GRADIENTS`, or `OWN_OPERATION`, a call of
    what `custom_op` has made, beside one of `register_autograd`. refuses: names that it does not
    use, such as "hessian", ".data" or `.to("cpu")`, or `GRADIENT_IN_LOOP`, or
    `SUM_WITHOUT_BARRIER`, a loop in a kernel that adds up elements without a barrier. `getattr(x,
    "data")` uses ".data" as well. returns: names of which one is used to compute what is returned.

    A loop that can be seen to have one round, as `for _ in range(1):`, is none. `map` repeats the
    gradient of its function.
    """

    words: str
    advice: str
    needs: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()

    def is_broken_by(self, source: str) -> bool:
        """Whether the answer with this text does not do what is asked."""
        tree = parsed(source)
        if tree is None:
            return False
        used = set(_used(tree))
        if used & set(self.refuses):
            return True
        lacks = self.needs and not used & set(self.needs)
        lacks = lacks or (self.returns and not set(_returned(tree)) & set(self.returns))
        return bool(lacks) and not _calls_others(tree)


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


_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


def _used(tree: ast.AST) -> Iterator[str]:
    """What rules are about: names that are called, `.attributes`, texts, loops, launches."""
    walks_back = _walks_back(tree)
    called = [_called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if sum(name in walks_back for name in called) > 1:
        yield TWO_GRADIENTS
    if "register_autograd" in called and _own_operations(tree) & set(called):
        yield OWN_OPERATION
    for node in ast.walk(tree):
        if isinstance(node, _LOOPS) and not _has_one_round(node):
            yield LOOP
            if any(_called(call) in walks_back for call in _repeated(node)):
                yield GRADIENT_IN_LOOP
                yield TWO_GRADIENTS
            if _adds_elements(node) and "syncthreads" not in map(_called, _repeated(node)):
                yield SUM_WITHOUT_BARRIER
        elif isinstance(node, ast.Attribute):
            yield f".{node.attr}"
        elif isinstance(node, ast.alias):
            yield node.name  # as what it is imported does not matter
        elif isinstance(node, ast.Call):
            yield from _in_call(node, walks_back)


def _in_call(call: ast.Call, walks_back: set[str]) -> Iterator[str]:
    """What rules are about in one call."""
    name = _called(call)
    yield LAUNCH if isinstance(call.func, ast.Subscript) else name
    if name == "map" and _asks_for_a_gradient(call.args[:1], walks_back):
        yield GRADIENT_IN_LOOP
        yield TWO_GRADIENTS
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield f'.{name}("{argument.value}")'
            if name in ("getattr", "setattr"):
                yield f".{argument.value}"


def _walks_back(tree: ast.AST) -> set[str]:
    """The names of what asks for a gradient, the answer's own functions among them."""
    names = {"grad", "backward"}
    for function in ast.walk(tree):
        calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
        if isinstance(function, ast.FunctionDef) and any(_called(c) in names for c in calls):
            names.add(function.name)
    return names


def _own_operations(tree: ast.AST) -> set[str]:
    """The names of what `custom_op` makes: of functions that it decorates, and of its results."""
    names = set[str]()
    for node in ast.walk(tree):
        makers = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        makers = [node.value] if isinstance(node, ast.Assign) else makers
        calls = [each for maker in makers for each in ast.walk(maker) if isinstance(each, ast.Call)]
        if "custom_op" in map(_called, calls):
            names |= _sets(node)
    return names


def _asks_for_a_gradient(functions: list[ast.expr], walks_back: set[str]) -> bool:
    """Whether one of these functions, a name or a lambda, asks for a gradient."""
    nodes = [node for function in functions for node in ast.walk(function)]
    called = {_called(node) for node in nodes if isinstance(node, ast.Call)}
    return bool(walks_back & (called | {node.id for node in nodes if isinstance(node, ast.Name)}))


def _returned(tree: ast.AST) -> Iterator[str]:
    """What rules are about in the statements that compute what is returned."""
    setting: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        for name in _sets(node):
            setting.setdefault(name, []).append(node)
    left: list[ast.AST] = []
    left += [node for node in ast.walk(tree) if isinstance(node, ast.Return | ast.Lambda)]
    while left:
        node = left.pop()
        yield from _used(node)
        for name in names_read(node):
            left += setting.pop(name, [])


def _sets(node: ast.AST) -> set[str]:
    """The names to which this part of an answer gives a value, or whose value it changes."""
    match node:
        case ast.Assign(targets=targets):
            return set[str]().union(*map(_names_in, targets))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _names_in(target)
        case ast.For(target=target) | ast.NamedExpr(target=target):
            return _names_in(target)
        case ast.withitem(optional_vars=ast.expr() as target):
            return _names_in(target)
        case ast.FunctionDef(name=name):
            return {name}
        case ast.Expr(value=ast.Call(func=function, args=args)):
            return set[str]().union(*map(_names_in, (function, *args)))
    return set()


def _names_in(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _adds_elements(loop: ast.AST) -> bool:
    """Whether a loop adds up what is indexed, as `total += x[i]`."""
    added: list[ast.expr] = []
    for node in ast.walk(loop):
        match node:
            case ast.AugAssign(op=ast.Add(), value=value):
                added.append(value)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                added += [left, right]
    return any(isinstance(node, ast.Subscript) for each in added for node in ast.walk(each))


def _has_one_round(loop: ast.AST) -> bool:
    """Whether the text shows that a loop has one round, as one over `range(1)` or `[x]`."""
    match getattr(loop, "generators", [loop])[0]:
        case ast.For(iter=source) | ast.comprehension(iter=source):
            match source:
                case ast.List(elts=[each]) | ast.Tuple(elts=[each]):
                    return not isinstance(each, ast.Starred)
                case ast.Call(func=ast.Name("range"), args=[ast.Constant(stop)]):
                    return stop == 1
    return False


def _repeated(loop: ast.AST) -> Iterator[ast.Call]:
    """The calls in a loop, without those in what it goes through, which is computed once."""
    generators = getattr(loop, "generators", None)
    source = generators[0].iter if generators else getattr(loop, "iter", None)
    once = set(ast.walk(source)) if source else set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and node not in once:
            yield node


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _calls_others(tree: ast.AST) -> bool:
    """Whether a function is called by a name that the answer does not define itself."""
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {(node.asname or node.name) for node in nodes if isinstance(node, ast.alias)}
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    called = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    return not called <= own | set(dir(builtins))
