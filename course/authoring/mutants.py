"""Wrong answers made of right ones: small changes of a reference, which its check must fail.

A *variant* is the reference with one change on its syntax tree. It may still be right: it is
*equal* if it agrees with the reference on many inputs that the statement allows. A *survivor* is a
variant that passes the check and is not equal: the cases let a wrong answer through.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import linecache
import math
import random
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tensorkit as tk
from course.notebook import compare
from course.notebook.exercise import Draw, Exercise, Prediction
from course.notebook.limited import limited
from course.notebook.plain import plain
from course.notebook.quiet import Bounded, quiet
from course.notebook.runner import Budget, Outcome
from course.notebook.trials import right_outcomes, trials
from course.shared.errors import TimeLimit
from tensorkit.errors import KernelError

MOST_VARIANTS = 40
SEEDS = (0, 1, 2)
"""The draws of the check that a variant is given, the notebook's first."""
DRAWS, LAUNCHES = 2000, 40
"""Inputs on which an equal variant agrees with the reference; fewer where each is a launch."""
SECONDS, LONGEST = 4.0, 240.0
"""Seconds for one check, and for all inputs; only a loop without an end takes longer.

A check that is stopped counts as one that the variant fails. Checks that end take less than a
second of a processor, so that four programs may share it.
"""


class Variant(NamedTuple):
    """A changed reference: the kind of change, its text, the function."""

    kind: str
    text: str
    answer: Any

    def __str__(self) -> str:
        return f"{self.answer.__name__} ({self.kind}):\n{textwrap.indent(self.text, '    ')}"


def survivors(exercise: Exercise) -> list[Variant]:
    """The variants that pass the check of `exercise` although they are wrong."""
    if isinstance(exercise, Prediction):
        return []
    right = {seed: right_outcomes(exercise, seed) for seed in SEEDS}
    examples = Examples(exercise)
    return [
        variant
        for variant in variants(exercise.reference)
        if _passes(exercise, variant.answer, right) and not examples.agree_on(variant.answer)
    ]


def _passes(exercise: Exercise, answer: Any, right: dict[int, list[Outcome]]) -> bool:
    return all(
        trial.is_passed or not trial.case.weight
        for seed in SEEDS
        for trial in trials(exercise, answer, seed, Budget(SECONDS), right=right[seed])
    )


# Inputs


class Examples:
    """Inputs that the statement allows, and what the reference does with them."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise = exercise
        self.n = LAUNCHES if "cuda" in exercise.imports else DRAWS
        self._known: list[tuple[tuple[Any, ...], Any]] = []
        self._drawn = itertools.chain.from_iterable(map(self._arguments, range(10 * self.n)))

    def agree_on(self, answer: Any) -> bool:
        """Whether `answer` does the same as the reference in all of them."""
        agreements: list[bool] = []

        def run() -> None:
            values = (
                compare.difference(_result(self.exercise, answer, args), expected)
                for args, expected in self._cases()
            )
            agreements.append(not any(values))

        with quiet(Bounded(0)), contextlib.suppress(TimeLimit):
            limited(run, LONGEST)
        return agreements == [True]

    def _cases(self) -> Iterator[tuple[tuple[Any, ...], Any]]:
        yield from self._known
        raises = any(case.raises for case in self.exercise.drawn(Draw("any")))
        while len(self._known) < self.n and (args := next(self._drawn, None)) is not None:
            if not self.exercise.allows(*args):
                continue
            right = _result(self.exercise, self.exercise.reference, args)
            if raises or not isinstance(right, Raised):
                self._known.append((args, right))
                yield args, right

    def _arguments(self, seed: int) -> list[tuple[Any, ...]]:
        """Those of all cases of a draw that count, in every second draw with other numbers."""
        counting = [case.args for case in self.exercise.drawn(Draw(seed)) if case.weight]
        others = random.Random(seed)
        return counting if seed % 2 else [_varied(args, others) for args in counting]


class Raised(str):
    """Stands for an exception: the name of its class."""


def _result(exercise: Exercise, answer: Any, args: tuple[Any, ...]) -> Any:
    try:
        return plain(exercise.run(answer, *_copied(args)))
    except Exception as error:
        return Raised(type(error).__name__)


def _copied(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, tk.Tensor) and value.is_contiguous():
        return value.clone()
    return value.copy() if isinstance(value, np.ndarray) else value


def _varied(value: Any, draw: random.Random) -> Any:
    """A value of the same kind and shape with other numbers in it."""
    kind = type(value)
    if kind in (list, tuple):
        return kind(_varied(item, draw) for item in value)
    if kind is dict:
        return {key: _varied(item, draw) for key, item in value.items()}
    if kind is bool:
        return draw.random() < 0.5
    if kind is int:
        return draw.choice([value, draw.randint(min(value, 0), max(value, 0) + 1)])
    if kind is float:
        return value * draw.choice([0.25, 0.5, 0.75, 1.0, 1.5])
    if kind is tk.Tensor and value.numel():
        numbers = tk.tensor(_varied_numbers(value.flatten().tolist(), draw), dtype=value.dtype)
        return tk.empty_like(value).copy_(numbers.reshape(value.shape))
    return value


def _varied_numbers(numbers: list[Any], draw: random.Random) -> list[Any]:
    """Numbers of about the same size: the same in another order, or new ones, ties among them."""
    finite = [number for number in numbers if math.isfinite(number)] or [0.0]
    low, high = min(finite), max(finite)
    if not isinstance(numbers[0], float):
        return [draw.choice([number, draw.randint(low, high)]) for number in numbers]
    if draw.random() < 0.3:
        return draw.sample(numbers, len(numbers))
    if draw.random() < 0.5:
        return [
            draw.choice([number, number / 2, round(draw.uniform(low, high)) / 2])
            for number in numbers
        ]
    return [draw.uniform(min(low, -high), high) for _ in numbers]


# Variants


def variants(reference: Any) -> list[Variant]:
    """At most `MOST_VARIANTS` variants of a function or class, of as many kinds as possible."""
    source = textwrap.dedent(inspect.getsource(reference))
    by_kind: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for n, (node, function) in enumerate(_nodes(_parsed(source))):
        for k, (kind, _) in enumerate(_changes(node, function)):
            by_kind[kind].append((n, k))
    rounds = itertools.zip_longest(*by_kind.values())
    made = [_variant(reference, source, *place) for places in rounds for place in places if place]
    original = ast.unparse(_parsed(source))
    unlike = {mutant.text: mutant for mutant in filter(None, made) if mutant.text != original}
    return list(unlike.values())[:MOST_VARIANTS]


def _parsed(source: str) -> Any:
    return ast.parse(source).body[0]


def _nodes(tree: Any) -> list[tuple[Any, Any]]:
    """Every node within a function, and that function; of a class, within its methods."""
    methods = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    functions = methods if isinstance(tree, ast.ClassDef) else [tree]
    return [(node, function) for function in functions for node in ast.walk(function)]


def _variant(reference: Any, source: str, n: int, k: int) -> Variant | None:
    """The k-th change of the n-th node; None where that is no kernel any more."""
    tree = _parsed(source)
    node, function = _nodes(tree)[n]
    kind, new = list(_changes(node, function))[k]
    text = ast.unparse(ast.fix_missing_locations(_Replace(node, new).visit(tree)))
    try:
        return Variant(kind, text, rewritten(reference, text))
    except KernelError:
        return None


def rewritten(reference: Any, text: str) -> Any:
    """What `text` defines in the place of `reference`; its source can be read, as a kernel's is."""
    name = f"<variant {hash(text)} of {reference.__name__}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = dict(vars(sys.modules[reference.__module__]))
    exec(compile(text, name, "exec"), namespace)
    return namespace[reference.__name__]


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: Any) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


Change = tuple[str, Any]
"""A kind of change, and what stands in the place of the node."""


def _changes(node: ast.AST, function: ast.FunctionDef) -> Iterator[Change]:
    for kind, *changes in _RULES:
        for change in changes if isinstance(node, kind) else ():
            yield from change(node, function)


def _expression(text: str, **parts: Any) -> Any:
    """The expression `text`, in which the names of `parts` stand for nodes."""
    tree = ast.parse(text, mode="eval").body
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.Name) and node.id in parts:
            tree = _Replace(node, parts[node.id]).visit(tree)
    return tree


def _like(node: Any, **fields: Any) -> Any:
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


_OPERATORS = (
    *("Add Sub", "Sub Add", "Mult Div", "Div Mult", "Div FloorDiv", "FloorDiv Div"),
    *("Mod FloorDiv", "Pow Mult", "MatMult Mult", "And Or", "Or And", "Is IsNot", "IsNot Is"),
    *("Lt LtE", "LtE Lt", "Gt GtE", "GtE Gt", "Eq NotEq", "NotEq Eq", "In NotIn", "NotIn In"),
)
"""Classes of operators, and what stands in the place of each."""
_SIBLINGS = (
    *("mean sum", "max min", "amax amin", "argmax argmin", "std var", "sin cos", "exp log"),
    *("all any", "zeros ones", "zeros_like ones_like", "stack cat", "reshape view", "round floor"),
)
"""Functions that are taken for each other."""


def _other_operators(operator: ast.AST) -> list[Any]:
    pairs = map(str.split, _OPERATORS)
    return [getattr(ast, new)() for name, new in pairs if name == type(operator).__name__]


def _operators(node: Any, _: Any) -> Iterator[Change]:
    for operator in _other_operators(node.op):
        yield "operator", _like(node, op=operator)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub | ast.Div | ast.MatMult | ast.Pow):
            yield "order", _like(node, left=node.right, right=node.left)
        yield "dropped step", node.left
        is_square = isinstance(node.op, ast.Pow) or ast.dump(node.left) == ast.dump(node.right)
        if is_square and isinstance(node.op, ast.Pow | ast.Mult):
            yield "absolute value", _expression("abs(value)", value=node.left)


def _comparisons(node: ast.Compare, _: Any) -> Iterator[Change]:
    first, *operators = node.ops
    for operator in _other_operators(first):
        yield "comparison", _like(node, ops=[operator, *operators])


def _conditions(node: ast.BoolOp, _: Any) -> Iterator[Change]:
    for only in node.values:
        yield "condition dropped", only


def _constants(node: ast.Constant, _: Any) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield "constant", ast.Constant(node.value + 1)
        if node.value >= 1:
            yield "constant", ast.Constant(node.value - 1)


def _calls(node: ast.Call, _: Any) -> Iterator[Change]:
    names = {"keepdim": "keepdim", "dtype": "dtype lost", "dim": "axis"}
    for n, keyword in enumerate(node.keywords):
        kept = [*node.keywords[:n], *node.keywords[n + 1 :]]
        if keyword.arg != "strict":
            yield names.get(str(keyword.arg), "option dropped"), _like(node, keywords=kept)
    if len(node.args) >= 2:
        first, second, *arguments = node.args
        yield "order", _like(node, args=[second, first, *arguments])


def _calls_of_python(node: ast.Call, _: Any) -> Iterator[Change]:
    if getattr(node.func, "id", "") in ("reversed", "max", "min", "list"):
        yield "dropped step", node.args[0]


def _calls_of_methods(node: ast.Call, _: Any) -> Iterator[Change]:
    function = node.func
    if not isinstance(function, ast.Attribute):
        return
    is_module = ast.unparse(function.value) in ("tk", "np")
    if is_module and len(node.args) == 1:
        yield "dropped call", node.args[0]
    elif not is_module and not function.attr.endswith("_"):
        yield "dropped call", function.value
        yield "doubled step", _like(node, func=_like(function, value=node))
    for pair in map(str.split, _SIBLINGS):
        if function.attr in pair:
            method = pair[1 - pair.index(function.attr)]
            yield "another function", _like(node, func=_like(function, attr=method))
    if function.attr == "round":
        yield "another function", _expression("(x + 0.5).floor()", x=function.value)


def _unwrapped(node: Any, _: Any) -> Iterator[Change]:
    is_slice = isinstance(getattr(node, "slice", None), ast.Slice)
    if isinstance(node, ast.UnaryOp):
        yield "operator", node.operand
    elif getattr(node, "attr", "") in ("T", "mT") or (is_slice and isinstance(node.ctx, ast.Load)):
        yield "dropped step", node.value


def _loops(node: Any, _: Any) -> Iterator[Change]:
    for part in ("[:1]", "[-1:]", "[1:]", "[:-1]"):
        kind = "loop bound" if part in ("[1:]", "[:-1]") else "some of the elements"
        yield kind, _like(node, iter=_expression(f"list(every){part}", every=node.iter))


def _statements(node: ast.stmt, _: Any) -> Iterator[Change]:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if is_call or isinstance(node, ast.Assign | ast.AugAssign | ast.If | ast.For):
        yield "dropped statement", ast.Pass()
    if isinstance(node, ast.AugAssign):
        yield "doubled step", [node, node]
    if isinstance(node, ast.With):
        yield "block dropped", node.body


def _results(node: ast.Return, function: ast.FunctionDef) -> Iterator[Change]:
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        yield "order", _like(node, value=_like(node.value, elts=node.value.elts[::-1]))
    if function.returns is not None and ast.unparse(function.returns) == "tk.Tensor":
        yield "dtype lost", _like(node, value=_expression("value.float()", value=node.value))


def _names(node: ast.Name, function: ast.FunctionDef) -> Iterator[Change]:
    arguments = function.args.args
    if not isinstance(node.ctx, ast.Load) or node.id in ("tk", "np"):
        return
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    assigned = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    for argument in arguments if node.id in assigned else ():
        is_list = argument.annotation and ast.unparse(argument.annotation).startswith("list")
        replacement = f"{argument.arg}[0]" if is_list else argument.arg
        if argument.arg != node.id:
            yield "another name", _expression(replacement)


_IGNORED = {"int": "1", "float": "1.0", "tk.Tensor": "tk.ones_like({name})"}
_SPOILED = {"tk.Tensor": "given += 1", "np.ndarray": "given += 1"}
_SPOILED |= {"list": "given.clear()", "dict": "given.clear()"}


def _arguments(node: ast.FunctionDef, function: ast.FunctionDef) -> Iterator[Change]:
    """Changes at the beginning and the end of the whole function."""
    for argument in node.args.args if node is function else ():
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        if kind in _IGNORED:
            first = ast.parse(f"{argument.arg} = {_IGNORED[kind].format(name=argument.arg)}").body
            yield "argument ignored", _like(node, body=[*first, *node.body])
        if spoiling := _SPOILED.get(kind.partition("[")[0]):
            before = ast.parse(f"given = {argument.arg}").body
            after = ast.parse(spoiling).body
            attempt = ast.Try(body=node.body, handlers=[], orelse=[], finalbody=after)
            yield "argument changed", _like(node, body=[*before, attempt])


_RULES: list[tuple[Any, ...]] = [
    (ast.FunctionDef, _arguments),
    (ast.BinOp | ast.AugAssign | ast.BoolOp, _operators),
    (ast.Compare, _comparisons),
    (ast.BoolOp, _conditions),
    (ast.Constant, _constants),
    (ast.Call, _calls, _calls_of_python, _calls_of_methods),
    (ast.UnaryOp | ast.Attribute | ast.Subscript, _unwrapped),
    (ast.For | ast.comprehension, _loops),
    (ast.stmt, _statements),
    (ast.Return, _results),
    (ast.Name, _names),
]
