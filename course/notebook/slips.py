"""Slips of syntax that run and do something else, found on the syntax tree of an answer.

They are looked for in a wrong answer whose mistake is not known. A slip is named only where the
tree shows it, and, if that does not settle it, where the error or the value fits as well.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterator, Set

import tensorkit as tk
from course.notebook import raised
from course.notebook.answer_tree import AnswerTree, Slip
from course.notebook.rules import names_read, parsed
from course.notebook.runner import Outcome


def first_slip(
    source: str, outcome: Outcome, right: Outcome, is_certain: bool = False
) -> Slip | None:
    """The first slip in the answer's text that may explain what it did; None if there is none.

    is_certain: only what is a slip whatever the values are, as a line that does nothing.
    """
    tree = parsed(source)
    if tree is None:
        return None
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    answer = AnswerTree(tree, parents, textwrap.dedent(source).splitlines(), outcome, right)
    looks = _CERTAIN if is_certain else _LOOKS
    return next((slip for look in looks for slip in look(answer)), None)


def _is_method(name: str) -> bool:
    return callable(getattr(tk.Tensor, name, None)) and not name.startswith("_")


def _is_property(name: str) -> bool:
    return isinstance(getattr(tk.Tensor, name, None), property) or name in ("shape", "dtype")


def _root(node: ast.AST) -> str:
    """The name with which a chain of attributes begins; "" if it is no name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


_GIVE_ONE_NUMBER = ("argmax", "argmin", "max", "min", "sum", "mean")


def _as_call(node: ast.Attribute, right: object) -> str:
    """A method as it is called: `x.item()`, and `x.reshape(...)` where it takes arguments.

    right: the result that is asked for; if it has dimensions, a sum or the like needs its `dim`.
    """
    _, *parameters = inspect.signature(getattr(tk.Tensor, node.attr)).parameters.values()
    takes = any(
        parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        for parameter in parameters
    )
    takes = takes or node.attr in ("clamp", "clamp_")  # which needs one of its two limits
    has_dimensions = isinstance(right, tk.Tensor) and right.dim() > 0
    takes = takes or (has_dimensions and node.attr in _GIVE_ONE_NUMBER)
    return f"{ast.unparse(node)}({'...' if takes else ''})"


_NO_TENSORS = ("tk", "np", "math", "F", "nn", "self", "Tensor", "torch")
_OTHERS_HAVE = (
    *("values", "indices", "index", "count", "sort", "data", "grad"),
    "is_floating_point",
)
"""Names of tensor methods that lists, dictionaries, dtypes or results have with another meaning."""


def _not_called(answer: AnswerTree) -> Iterator[Slip]:
    # in NumPy `size` is an attribute, and no method
    has_arrays = any(node.id == "np" for node in answer.nodes(ast.Name))
    called = {node.func.id for node in answer.nodes(ast.Call) if isinstance(node.func, ast.Name)}
    users: tuple[type[ast.AST], ...] = ast.BinOp, ast.Return, ast.Tuple, ast.Assign
    users += ast.Attribute, ast.Compare, ast.Subscript
    for node in answer.nodes(ast.Attribute):
        parent = answer.parents[node]
        is_method = _is_method(node.attr) and node.attr not in _OTHERS_HAVE
        if not is_method or not isinstance(parent, users) or _root(node) in _NO_TENSORS:
            continue
        if node.attr == "size" and has_arrays:
            continue
        targets = parent.targets if isinstance(parent, ast.Assign) else []
        if node in targets or any(isinstance(n, ast.Name) and n.id in called for n in targets):
            continue
        yield Slip(
            "not called",
            f"`{ast.unparse(node)}` is the method itself, and nobody calls it there: write "
            f"`{_as_call(node, answer.right.value)}`.",
        )


def _called_property(answer: AnswerTree) -> Iterator[Slip]:
    for node in answer.nodes(ast.Call) if answer.said("not callable") else ():
        function = node.func
        is_tensor = answer.said("'Tensor' object") and isinstance(function, ast.Name)
        if is_tensor and answer.raised_in(node):
            yield Slip(
                "a tensor called",
                f"`{ast.unparse(node)}` calls `{ast.unparse(function)}` like a function, and it is "
                "a tensor. A product needs a `*`, an index square brackets.",
            )
        if not isinstance(function, ast.Attribute) or not _is_property(function.attr):
            continue
        if answer.raised_in(node) and _root(function) not in _NO_TENSORS:
            yield Slip(
                "a property called",
                f"`{ast.unparse(function)}` is no method: write it without the parentheses behind "
                "it.",
            )


def _is_mask(node: ast.AST, compared: Set[str]) -> bool:
    """Whether an expression compares, or is the name of a comparison."""
    return any(
        isinstance(part, ast.Compare) or (isinstance(part, ast.Name) and part.id in compared)
        for part in ast.walk(node)
    )


def _names_of_masks(node: ast.Assign) -> Iterator[str]:
    for target in node.targets if _is_mask(node.value, set()) else ():
        if isinstance(target, ast.Name):
            yield target.id


def _truth_of_many(answer: AnswerTree) -> Iterator[Slip]:
    if not answer.said("[Bb]oolean value of Tensor|truth value of an array"):
        return
    for node in filter(answer.raised_in, answer.nodes(ast.UnaryOp)):
        if isinstance(node.op, ast.Not):
            text = ast.unparse(node.operand)
            yield Slip(
                "not of a mask",
                f"`not` asks for one answer for all elements. `~({text})` turns each of them.",
            )
    compared = {
        name for assignment in answer.nodes(ast.Assign) for name in _names_of_masks(assignment)
    }
    for node in filter(answer.raised_in, answer.nodes(ast.BoolOp)):
        first = node.values[0]
        if isinstance(first, ast.Name) and first.id not in compared:
            text = first.id
            yield Slip(
                "truth of a tensor",
                f"`{ast.unparse(node)}` asks whether the numbers in `{text}` are other than 0, and "
                f"needs one answer for all. `{text} is None` asks whether there is no tensor.",
            )
            return
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
            "`if` asks for one answer for all elements. A loop over the elements chooses for each "
            "of them, and so does `tk.where(condition, a, b)`, from chapter 04.",
        )


def _larger_of_many(answer: AnswerTree) -> Iterator[Slip]:
    """Python's `max` or `min` of tensors or arrays with several elements."""
    is_array = answer.said("truth value of an array")
    for node in answer.nodes(ast.Call) if is_array or answer.said("value of Tensor") else ():
        name = ast.unparse(node.func)
        if name in ("max", "min") and len(node.args) > 1 and answer.raised_in(node):
            yield Slip(
                "min and max of Python",
                f"`{ast.unparse(node)}` compares its arguments as a whole. Element by element it "
                f"is `{'np' if is_array else 'tk'}.{name}imum(...)`.",
            )


def _decimal_comma(answer: AnswerTree) -> Iterator[Slip]:
    value = answer.outcome.value
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
            isinstance(end, ast.Constant) and type(end.value) is int for end in (first, last)
        )
        if are_numbers and isinstance(node.elts[0], ast.BinOp):
            number = f"{ast.unparse(first)}.{ast.unparse(last)}"
            yield Slip(
                "a decimal comma",
                f"The comma makes two values. A decimal number has a point: `{number}`.",
            )


_ENDS_IN_PLACE = ("backward", "retain_grad", "register_hook", *_OTHERS_HAVE)


def _result_lost(answer: AnswerTree) -> Iterator[Slip]:
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


def _written_into_a_copy(answer: AnswerTree) -> Iterator[Slip]:
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
        is_mask = is_mask or ast.unparse(index).startswith("list(")
        if is_mask or isinstance(index, ast.Compare | ast.List):
            text = ast.unparse(inner)
            yield Slip(
                "written into a copy",
                f"`{text}` picks elements into a copy, and what is written goes into that copy. "
                f"Assign to `{text}` itself, in one pair of brackets.",
            )


_KEEPS_A_TUPLE = (ast.Assign, ast.Return, ast.BinOp, ast.ListComp, ast.GeneratorExp)


def _tuple_not_unpacked(answer: AnswerTree) -> Iterator[Slip]:
    value = answer.outcome.value
    is_returned = isinstance(value, list | tuple) and len(value) == 1
    if not (is_returned or answer.said("'?tuple'?|converted to an index")):
        return
    subscripted = {ast.unparse(node.value) for node in answer.nodes(ast.Subscript)}
    for node in answer.nodes(ast.Call):
        parent = answer.parents[node]
        is_grad = isinstance(node.func, ast.Attribute) and node.func.attr == "grad"
        if not is_grad or not isinstance(parent, _KEEPS_A_TUPLE):
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


def _range_ends_early(answer: AnswerTree) -> Iterator[Slip]:
    if any("+ 1" in ast.unparse(node.slice) for node in answer.nodes(ast.Subscript)):
        return  # an index `i + 1` reads the next entry: then the range ends in time
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


def _rounds_from_one(answer: AnswerTree) -> Iterator[Slip]:
    """A loop that only repeats, whose rounds are counted from 1."""
    read = names_read(answer.tree)
    for loop in answer.nodes(ast.For):
        text, name = ast.unparse(loop.iter), ast.unparse(loop.target)
        match loop.iter:
            case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=1), ast.Name() as n]):
                if name not in read:
                    yield Slip(
                        "a round too few",
                        f"`for {name} in {text}` has one round less than `{n.id}` says: `range` "
                        f"leaves out its end. `range({n.id})` has {n.id} rounds.",
                    )


def _no_return(answer: AnswerTree) -> Iterator[Slip]:
    value, asked = answer.outcome.value, answer.right.value
    if isinstance(value, dict) and isinstance(asked, dict):  # what an exercise saw of it
        values = [(entry, asked[key]) for key, entry in value.items() if key in asked]
    else:
        values = [(value, asked)]
    if answer.outcome.ended != "returned" or not any(a is None is not b for a, b in values):
        return
    functions = list(answer.nodes(ast.FunctionDef))
    if functions and not any(node.value for node in answer.nodes(ast.Return)):
        yield Slip("no return", "Your function gives nothing back: is a `return` missing?")


def _return_forgotten(answer: AnswerTree) -> Iterator[Slip]:
    """A function that ends with `self.result(...)` and gives None, which nobody can use."""
    for function in answer.nodes(ast.FunctionDef) if answer.said("'NoneType'") else ():
        last = function.body[-1]
        if isinstance(last, ast.Expr) and ast.unparse(last).startswith("self.result("):
            yield Slip(
                "no return",
                f"The last line of `{function.name}` makes a result, and `return` is missing in "
                "front of it.",
            )


def _returns_in_a_loop(answer: AnswerTree) -> Iterator[Slip]:
    for loop in (*answer.nodes(ast.For), *answer.nodes(ast.While)):
        body = loop.body[-1].body if isinstance(loop.body[-1], ast.With) else loop.body
        goes_on = any(isinstance(node, ast.Continue) for node in ast.walk(loop))
        if isinstance(body[-1], ast.Return) and not goes_on:
            yield Slip(
                "return in the loop",
                f"`{ast.unparse(body[-1])}` stands inside the loop, which ends there in its first "
                "round. Move it below the loop.",
            )


def _unused_argument(answer: AnswerTree) -> Iterator[Slip]:
    function = next(answer.nodes(ast.FunctionDef), None)
    if function is None or answer.outcome.ended != "returned":
        return
    used = names_read(answer.tree)
    for argument in function.args.args:
        if argument.arg in used | {"self"} or answer.right.value is None:
            continue
        then = "so the result does not depend on it"
        if argument.arg == "out" and _is_kernel(answer):
            then = "so nothing is written there"
        yield Slip("an argument is not used", f"`{argument.arg}` is not used, {then}.")


def _argument_changed(answer: AnswerTree) -> Iterator[Slip]:
    """The first line that writes into an argument which is no longer as it was."""
    function = next(answer.nodes(ast.FunctionDef), None)
    if function is None or answer.outcome.ended != "returned":
        return
    names = [argument.arg for argument in function.args.args]
    changed = answer.outcome.changed
    at_fault = [names[n] for n, change in changed.items() if change == "values" and n < len(names)]
    sharing = dict.fromkeys(at_fault, "")  # a name, and the line in which it was given this memory
    for node in answer.nodes((ast.stmt, ast.Call)) if sharing else ():
        written = _written(node)
        if written is not None and _owner(written, sharing):
            name = _owner(written, sharing)
            made = sharing[name]
            yield Slip(
                "an argument is changed",
                f"`{ast.unparse(node)}` writes into memory that belongs to the caller."
                + f" `{made}` makes no copy of it." * bool(made),
            )
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            source, target, text = node.iter, node.target, f"for {node.target.id} in "
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            source, target, text = node.value, node.targets[0], f"{node.targets[0].id} = "
        else:
            continue
        if _owner(source, sharing):
            sharing[target.id] = f"{text}{ast.unparse(source)}"
        else:
            sharing.pop(target.id, None)


_CHANGE_LISTS = ("append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse")


def _written(node: ast.AST) -> ast.expr | None:
    """What a statement or a call writes into."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        is_in_place = name.endswith("_") and not name.startswith("_")
        return node.func.value if is_in_place or name in _CHANGE_LISTS else None
    return None


_VIEWS = ("view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "T", "t")
_MAY_SHARE = (*_VIEWS, "float", "double", "to", "contiguous", "detach", "numpy", "data")


def _owner(node: ast.AST, sharing: dict[str, str]) -> str:
    """The name in whose memory the value of this expression lies; "" if that is not known."""
    if isinstance(node, ast.Name):
        return node.id if node.id in sharing else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_in_place = node.func.attr.endswith("_")
        return _owner(node.func.value, sharing) if is_in_place else _owner(node.func, sharing)
    if isinstance(node, ast.Attribute):
        return _owner(node.value, sharing) if node.attr in _MAY_SHARE else ""
    if isinstance(node, ast.Subscript):
        copies = isinstance(node.slice, ast.Compare | ast.List)
        return "" if copies else _owner(node.value, sharing)
    return ""


def _exception_returned(answer: AnswerTree) -> Iterator[Slip]:
    for node in answer.nodes(ast.Return):
        value = node.value.func if isinstance(node.value, ast.Call) else node.value
        named = getattr(builtins, value.id, None) if isinstance(value, ast.Name) else None
        if isinstance(named, type) and issubclass(named, BaseException):
            yield Slip(
                "an exception returned",
                f"`{ast.unparse(node)}` gives the exception back as a value. "
                f"`raise {ast.unparse(node.value)}` stops the function with it.",
            )


def _never_raises(answer: AnswerTree) -> Iterator[Slip]:
    if answer.right.ended != "raised" or answer.outcome.ended != "returned":
        return
    if not any(answer.nodes(ast.Raise)):
        name = type(answer.right.error).__name__
        yield Slip(
            "nothing is raised",
            f"In this case {name} is expected, and no line of your code raises one: "
            f"`raise {name}(...)`.",
        )


def _rounds_down(answer: AnswerTree) -> Iterator[Slip]:
    right = answer.right.value
    is_fraction = isinstance(right, float) or (
        isinstance(right, tk.Tensor) and right.dtype.is_floating_point
    )
    for node in answer.nodes(ast.BinOp) if is_fraction else ():
        text = ast.unparse(node)
        counts = any(word in text for word in ("len(", ".shape", ".size", ".numel", ".ndim"))
        above = ast.unparse(answer.parents[node])
        counts = counts or above.startswith("range(") or "kernel[" in above
        if isinstance(node.op, ast.FloorDiv) and not (counts or _is_kernel(answer)):
            yield Slip("rounded down", f"`//` rounds down in `{text}`; `/` divides.")


def _generator_returned(answer: AnswerTree) -> Iterator[Slip]:
    for node in answer.nodes(ast.Return):
        if isinstance(node.value, ast.GeneratorExp):
            text = ast.unparse(node.value)
            yield Slip(
                "a generator returned",
                f"Parentheses around a `for` make a generator, and no tuple: `tuple{text}`.",
            )


def _range_too_short(answer: AnswerTree) -> Iterator[Slip]:
    for loop in answer.nodes(ast.For):
        text = ast.unparse(loop.iter)
        stop = loop.iter.args[-1] if text.startswith("range(") else None
        last = getattr(stop, "value", None)
        if type(last) is not int or len(loop.iter.args) > 2:
            continue
        if any(isinstance(node, ast.Return) for node in ast.walk(loop)):
            yield Slip(
                "a range that is too short",
                f"`{text}` tries no number above {last - 1}, whatever the arguments are.",
            )


def _ends_without_return(answer: AnswerTree) -> Iterator[Slip]:
    is_none = answer.outcome.ended == "returned" and answer.outcome.value is None
    if not (is_none or answer.said("NoneType")) or answer.right.value is None:
        return
    for function in answer.nodes(ast.FunctionDef):
        last = function.body[-1]
        inside = [node for node in ast.walk(last) if isinstance(node, ast.Return)]
        if isinstance(last, ast.If) and not last.orelse and inside:
            yield Slip(
                "a return inside the if",
                f"`{ast.unparse(inside[0])}` stands inside `if {ast.unparse(last.test)}`. Where "
                "that is false, the function ends without `return` and gives None.",
            )


def _local_in_a_method(answer: AnswerTree) -> Iterator[Slip]:
    """A local variable that no line reads, where `self` has an attribute of its name."""
    attributes = {ast.unparse(node) for node in answer.nodes(ast.Attribute)}
    methods = [
        method for method in answer.nodes(ast.FunctionDef) if "self" in ast.unparse(method.args)
    ]
    for method in methods:
        read = names_read(method)
        for node in (
            statement for statement in ast.walk(method) if isinstance(statement, ast.Assign)
        ):
            name = ast.unparse(node.targets[0])
            if name not in read and f"self.{name}" in attributes:
                yield Slip(
                    "self is missing",
                    f"`{ast.unparse(node)}` in `{method.name}` makes a local name, which nobody "
                    f"reads. `self.{name}` is that of the object.",
                )


def _another_value(answer: AnswerTree) -> Iterator[Slip]:
    """The variable of a loop, or an entry in it, given another value that no line reads."""
    names = [read for read in answer.nodes(ast.Name) if isinstance(read.ctx, ast.Load)]
    for loop in answer.nodes(ast.For):
        for taken, node in _entries_replaced(loop):
            name, lines = ast.unparse(node.targets[0]), range(taken.lineno, node.lineno + 1)
            if all(n.lineno in lines for n in answer.nodes(ast.Name) if n.id == name):
                yield Slip(
                    "another value for a name",
                    f"`{ast.unparse(node)}` gives the name `{name}` another value, which nobody "
                    "reads: no tensor and no list is written to.",
                )
        name = ast.unparse(loop.target)
        given = [node for node in ast.walk(loop) if isinstance(node, ast.Assign)]
        for node in given if name.isidentifier() else ():
            if ast.unparse(node.targets[0]) != name:
                continue
            if any(read.id == name and read.lineno > node.lineno for read in names):
                continue
            of = ast.unparse(loop.iter)
            yield Slip(
                "another value for a name",
                f"`{ast.unparse(node)}` gives the name `{name}` another value, and changes "
                f"nothing in `{of}`."
                + f" An index writes there: `{of}[i] = ...`."
                * isinstance(loop.iter, ast.Name),
            )


def _entries_replaced(loop: ast.For) -> Iterator[tuple[ast.Assign, ast.Assign]]:
    """Two lines of a loop: `row = x[i]`, which takes an entry, and one that replaces `row`."""
    taken: dict[str, ast.Assign] = {}
    for node in loop.body:
        if isinstance(node, ast.Assign):
            name = ast.unparse(node.targets[0])
            if name in taken:
                yield taken[name], node
            elif isinstance(node.value, ast.Subscript):
                taken[name] = node


def _unused_name(answer: AnswerTree) -> Iterator[Slip]:
    """One of several variables of a `for` loop that no line reads."""
    read = names_read(answer.tree)
    for loop in answer.nodes(ast.For):
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
        for name in (ast.unparse(target) for target in targets):
            if name.isidentifier() and not name.startswith("_") and name not in read:
                yield Slip(
                    "a name is not used",
                    f"`for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}` gives `{name}` "
                    "a value, and nobody reads it.",
                )


def _unused_value(answer: AnswerTree) -> Iterator[Slip]:
    """A variable that is given a value and that no line reads."""
    read = names_read(answer.tree)
    attributes = [node for definition in answer.nodes(ast.ClassDef) for node in definition.body]
    for node in answer.nodes(ast.Assign) if answer.outcome.ended == "returned" else ():
        name = ast.unparse(node.targets[0])
        is_local = name.isidentifier() and node not in attributes
        if is_local and not name.startswith("_") and name not in read:
            yield Slip(
                "a name is not used",
                f"`{ast.unparse(node)}` gives `{name}` a value, and nobody reads it.",
            )


def _idle_line(answer: AnswerTree) -> Iterator[Slip]:
    """A line that does nothing; none where the answer has no `return`, which explains the line."""
    if any(_no_return(answer)):
        return
    for node in answer.nodes(ast.Expr):
        text = ast.unparse(node)
        match node.value:
            case ast.Attribute(attr=name) if not _is_property(name):
                if answer.said("NoneType") and answer.raised_in(node):
                    continue  # the line itself raised: with parentheses it raises as well
                yield Slip("not called", f"`{text}` alone does nothing: `{text}()` calls it.")
            case ast.Compare(ops=[ast.Eq()]) | ast.Tuple() if "==" in text:
                yield Slip(
                    "== in place of =",
                    f"`{text}` compares, and nobody keeps the answer. One `=` gives a value to "
                    "what stands on the left.",
                )
            case ast.Attribute(attr="requires_grad"):
                yield Slip(
                    "a result is lost",
                    f"`{text}` only says whether there will be a gradient. `{text}_()` asks for "
                    "one.",
                )
            case ast.BinOp() | ast.Compare() | ast.Attribute() if ".backward(" not in text:
                yield Slip(
                    "a result is lost",
                    f"`{text}` computes something, and nobody keeps it. Give it a name, or return "
                    "it.",
                )


def _power_sign(answer: AnswerTree) -> Iterator[Slip]:
    for node in answer.nodes(ast.BinOp):
        if isinstance(node.op, ast.BitXor) and isinstance(node.right, ast.Constant):
            text = f"{ast.unparse(node.left)} ** {ast.unparse(node.right)}"
            yield Slip("^ for a power", f"`^` is no power in Python. A power is written `{text}`.")


_GIVE_NONE = ("backward", "append", "extend", "insert", "reverse", "sort", "step", "zero_grad")


def _returns_none(answer: AnswerTree) -> Iterator[Slip]:
    is_used = answer.said("'NoneType' object is not")
    for node in answer.nodes(ast.Call) if is_used else ():
        is_argument = isinstance(answer.parents[node], ast.Call) and answer.raised_in(node)
        if is_argument and getattr(node.func, "attr", "") in _GIVE_NONE:
            yield Slip(
                "None is returned",
                f"`{ast.unparse(node)}` changes something and gives None. Call it in a line of its "
                "own, before this one.",
            )
    is_none = answer.outcome.ended == "returned" and answer.outcome.value is None
    for node in answer.nodes(ast.Return) if is_none else ():
        name = getattr(getattr(node.value, "func", None), "attr", "")
        if name in _GIVE_NONE:
            yield Slip(
                "None is returned",
                f"`{ast.unparse(node)}` returns None: `{name}` changes something and gives nothing "
                "back. Return what it changes, in a line of its own.",
            )


def _no_gradient_left(answer: AnswerTree) -> Iterator[Slip]:
    """A `.grad` that is returned, alone or in a tuple, and is None."""
    given, right = answer.outcome.value, answer.right.value
    returned = [statement.value for statement in answer.nodes(ast.Return)]
    if len(returned) != 1 or answer.outcome.ended != "returned":
        return
    parts = [(returned[0], given, right)]
    if isinstance(returned[0], ast.Tuple) and isinstance(given, tuple) and isinstance(right, tuple):
        parts = list(zip(returned[0].elts, given, right, strict=False))
    texts = {ast.unparse(call) for call in answer.nodes(ast.Call)}
    for node in [
        node for node, given_part, right_part in parts if given_part is None is not right_part
    ]:
        match node:
            case ast.Attribute(attr="grad", value=ast.Name(id=name)):
                off = f" What comes of `{name}.detach()` does not lead back to `{name}`."
                yield Slip(
                    "no gradient is left",
                    f"`{name}.grad` is None: no backward has left a gradient there."
                    + off * (f"{name}.detach()" in texts),
                )


def _plus_behind_equals(answer: AnswerTree) -> Iterator[Slip]:
    for node in answer.nodes(ast.Assign):
        if isinstance(node.value, ast.UnaryOp) and isinstance(node.value.op, ast.UAdd):
            name, added = ast.unparse(node.targets[0]), ast.unparse(node.value.operand)
            yield Slip(
                "=+ in place of +=",
                f"`{name} =+ {added}` sets `{name}` to {added}. `+=` adds, and writes into a "
                "tensor.",
            )


def _truth_of_a_tensor(answer: AnswerTree) -> Iterator[Slip]:
    """An `if` for a whole tensor: is there one, or does something hold for its elements?"""
    tests = [node for node in answer.nodes(ast.If) if answer.raised_in(node.test)]
    for node in tests if answer.said("Boolean value of Tensor") else ():
        test, text = node.test, ast.unparse(node.test)
        if isinstance(test, ast.Name):
            yield Slip(
                "truth of a tensor",
                f"`if {text}:` asks whether the numbers in `{text}` are other than 0, and needs "
                f"one answer for all. `if {text} is not None:` asks whether there is a tensor.",
            )
        is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        name = getattr(test.operand, "id", "") if isinstance(test, ast.UnaryOp) else ""
        masks = {mask for node in answer.nodes(ast.Assign) for mask in _names_of_masks(node)}
        if is_not and name and name not in masks:
            yield Slip(
                "truth of a tensor",
                f"`if {text}:` asks whether the numbers in `{name}` are 0, and needs one answer "
                f"for all. `if {name} is None:` asks whether there is no tensor.",
            )
        reads_on = names_read(test) & names_read(ast.Module(node.body, []))
        is_one = isinstance(test, ast.Compare) and len(test.ops) == 1
        if is_not or (is_one and not reads_on):
            text = ast.unparse(test.operand) if isinstance(test, ast.UnaryOp) else f"({text})"
            yield Slip(
                "one answer for all",
                f"`if` needs one answer for all elements. `{text}.all()` is True where it holds "
                f"for every element, `{text}.any()` where it holds for at least one.",
            )


def _is_kernel(answer: AnswerTree) -> bool:
    """Whether there is a function under `@cuda.kernel` in the answer."""
    functions = answer.nodes(ast.FunctionDef)
    return any(
        "kernel" in ast.unparse(decorator)
        for function in functions
        for decorator in function.decorator_list
    )


def _is_off_by_a_constant(answer: AnswerTree) -> bool:
    """Whether all elements differ from the right ones by one number, as that of a filled tensor."""
    given, right = answer.outcome.value, answer.right.value
    if answer.outcome.ended != "returned" or answer.right.ended != "returned":
        return False
    if not (isinstance(given, tk.Tensor) and isinstance(right, tk.Tensor)):
        return True
    difference = given - right if given.shape == right.shape else tk.zeros(0)
    return difference.numel() > 0 and (difference.max() - difference.min()).item() < 1e-3


def _adds_to_what_was_there(answer: AnswerTree) -> Iterator[Slip]:
    for function in answer.nodes(ast.FunctionDef) if _is_kernel(answer) else ():
        parameters = {argument.arg for argument in function.args.args}
        set_before = {
            _root(target.value)
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Subscript)
        }
        for node in ast.walk(function) if _is_off_by_a_constant(answer) else ():
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
                name, is_sum = _root(node.target.value), isinstance(node.target.slice, ast.Constant)
                if name in parameters - set_before and not is_sum:
                    yield Slip(
                        "added to what was there",
                        f"`{ast.unparse(node)}` adds to what `{name}` holds already, and `{name}` "
                        "need not hold zeros. `=` writes.",
                    )


def _not_always_written(answer: AnswerTree) -> Iterator[Slip]:
    """A kernel that leaves some elements of what `tk.empty` made."""
    calls = [ast.unparse(node) for node in answer.nodes(ast.Call)]
    made = next((call for call in calls if call.startswith(("tk.empty(", "tk.empty_like("))), None)
    for node in answer.nodes(ast.If) if made and _is_kernel(answer) else ():
        above = answer.parents[node]
        writes = any(isinstance(statement, ast.Assign) for statement in node.body)
        if isinstance(above, ast.If) and len(above.body) == 1 and writes and not node.orelse:
            yield Slip(
                "not always written",
                f"`{made}` holds whatever lies in that memory. Where `{ast.unparse(node.test)}` is "
                "false, nothing is written over it.",
            )


def _goes_on_for_ever(answer: AnswerTree) -> Iterator[Slip]:
    for loop in answer.nodes(ast.While) if answer.outcome.ended == "timed out" else ():
        yield Slip(
            "a loop without an end",
            f"It did not come to an end. `while {ast.unparse(loop.test)}` goes on as long as that "
            "is true: does it become false in this case?",
        )


_CERTAIN: tuple[Callable[[AnswerTree], Iterator[Slip]], ...] = (
    _idle_line,
    _plus_behind_equals,
    _result_lost,
)

_LOOKS: tuple[Callable[[AnswerTree], Iterator[Slip]], ...] = (
    _argument_changed,
    _no_return,
    _return_forgotten,
    _returns_none,
    _no_gradient_left,
    _power_sign,
    _ends_without_return,
    _exception_returned,
    _never_raises,
    _returns_in_a_loop,
    _goes_on_for_ever,
    _generator_returned,
    _decimal_comma,
    _called_property,
    _not_called,
    _truth_of_a_tensor,
    _truth_of_many,
    _larger_of_many,
    _tuple_not_unpacked,
    _written_into_a_copy,
    _range_ends_early,
    _rounds_from_one,
    _local_in_a_method,
    _another_value,
    _unused_name,
    raised.causes,
    _rounds_down,
    _range_too_short,
    _adds_to_what_was_there,
    _not_always_written,
    _unused_argument,
    _unused_value,
)
