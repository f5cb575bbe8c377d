"""What an exception says about the answer that raised it, with what stands in its line.

The row of the case shows the exception, and often a repair. The sentences here say what the line
does; each is true of every exception that its pattern fits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import tensorkit as tk
from course.notebook.answer_tree import AnswerTree, Slip


def causes(answer: AnswerTree) -> Iterator[Slip]:
    """The slips that the exception fits, the most special first."""
    if answer.outcome.error is None:
        return
    for pattern, name, words in _RAISED:
        match = answer.said(pattern)
        if match:
            sentence = words(answer, match) if callable(words) else words
            if sentence:
                yield Slip(name, sentence)


def _name(answer: AnswerTree) -> str:
    return type(answer.outcome.error).__name__


def _another_exception(answer: AnswerTree, match: re.Match[str]) -> str:
    observed = answer.right.value
    asked = type(answer.right.error).__name__ if answer.right.ended == "raised" else ""
    if isinstance(observed, dict):
        asked = str(observed.get("raises", ""))
    if not asked or asked == _name(answer):
        return ""
    return f"{asked} is expected in this case, and {_name(answer)} is raised."


def _switched_off(answer: AnswerTree, match: re.Match[str]) -> str:
    sentence = f"`{match[1]}` is switched off while your answer runs: find a way without it."
    if answer.line and match[1].rpartition(".")[2] not in answer.line:
        return f"{sentence} The library calls it for `{answer.line}`."
    return sentence


def _raises_itself(answer: AnswerTree, match: re.Match[str]) -> str:
    if answer.right.ended == "raised" or not answer.in_the_line(ast.Raise):
        return ""
    return (
        f"`{answer.line}` is a line of your own, and this case has a result: look at the condition "
        "that leads there."
    )


def _takes_one_number(answer: AnswerTree, match: re.Match[str]) -> str:
    for call in answer.in_the_line(ast.Call):
        name = ast.unparse(call.func)
        if name.endswith(".item") or name in ("float", "int") or name.startswith("math."):
            return (
                f"`{ast.unparse(call)}` takes a single number, and in this case there are several."
            )
    return ""


def _not_recorded(answer: AnswerTree, match: re.Match[str]) -> str:
    if answer.said("One of the differentiated Tensors does not require grad"):
        name = _with_respect_to(answer) or "a tensor"
        return f"You differentiate with respect to {name}, which does not require grad."
    sentence = "Nothing on the way to this result was recorded."
    last = max([node.lineno for node in answer.in_the_line(ast.stmt)], default=0)
    for call in answer.nodes(ast.Call):
        name = ast.unparse(call.func).rpartition(".")[2]
        is_before = not last or call.lineno <= last
        is_of_a_gradient = "grad(" in ast.unparse(call.func) or ".grad." in ast.unparse(call.func)
        is_off = name in ("detach", "item", "tolist", "numpy", "no_grad")
        if is_before and is_off and not is_of_a_gradient:
            return f"{sentence} `{ast.unparse(call)}` takes it off the record."
    if answer.said("RuntimeError|AutogradError") and not answer.line:
        return f"{sentence} Does your answer note where its result comes from?"
    if re.search(r"requires_grad(_\(\)|=True)", answer.text.replace(" ", "")):
        return (
            f"{sentence} Either it does not depend on an input that requires grad, or a call on "
            "the way records nothing."
        )
    return f"{sentence} Is there an input with `requires_grad=True`?"


def _with_respect_to(answer: AnswerTree) -> str:
    """The second argument of the only call of `grad` in the line that raised; or ""."""
    calls = [call for call in answer.in_the_line(ast.Call) if len(call.args) > 1]
    inputs = [call.args[1] for call in calls if ast.unparse(call.func).endswith("autograd.grad")]
    return f"`{ast.unparse(inputs[0])}`" if len(inputs) == 1 else ""


def _not_used(answer: AnswerTree, match: re.Match[str]) -> str:
    name = _with_respect_to(answer)
    return name and (
        f"You differentiate with respect to {name}, and what you differentiate was not computed "
        "from it. Name the tensor from which it was computed."
    )


def _of_several(answer: AnswerTree, match: re.Match[str]) -> str:
    sentence = "Backward begins at one number, and this is a tensor of several."
    calls = [ast.unparse(call.func) for call in answer.in_the_line(ast.Call)]
    begun = [name.removesuffix(".backward") for name in calls if name.endswith(".backward")]
    made = {
        ast.unparse(node.targets[0]): ast.unparse(node.value) for node in answer.nodes(ast.Assign)
    }
    if any("requires_grad" in made.get(name, "") for name in begun):
        return f"{sentence} It is a leaf: call `backward` on the result that is computed from it."
    return f"{sentence} Add them up first, or take their mean."


def _unpacked(answer: AnswerTree, match: re.Match[str]) -> str:
    count = re.search(r"expected (\d+)(?:, got (\d+))?", answer.outcome.message[0])
    if count is None:
        return ""
    names = "1 name" if count[1] == "1" else f"{count[1]} names"
    come = {"1": "1 value comes"}.get(count[2], f"{count[2] or 'more'} values come")
    sentence = f"The line has {names}, and {come} at a time."
    for loop in answer.nodes((ast.For, ast.comprehension)):
        source = ast.unparse(loop.iter)
        is_dictionary = re.search(
            rf"\b{re.escape(source)}: dict|isinstance\({re.escape(source)}, dict\)", answer.text
        )
        if is_dictionary and f"in {source}" in answer.line:
            return f"{sentence} A dictionary gives its keys alone, `{source}.items()` gives pairs."
    return sentence


def _function_itself(answer: AnswerTree, match: re.Match[str]) -> str:
    functions = {node.name for node in answer.nodes(ast.FunctionDef)}
    for call in answer.in_the_line(ast.Call):
        for given in call.args:
            if isinstance(given, ast.Name) and given.id in functions:
                return (
                    f"`{ast.unparse(call)}` gets the function `{given.id}` itself. What it gives "
                    f"back is `{given.id}(...)`."
                )
    return ""


def _one_for_all(answer: AnswerTree, match: re.Match[str]) -> str:
    for call in answer.in_the_line(ast.Call):
        method = getattr(call.func, "attr", "")
        takes_all = not (call.args or call.keywords)
        if takes_all and method in ("argmax", "argmin", "max", "min", "sum", "mean"):
            return (
                f"`{ast.unparse(call)}` gives a single number for all elements, and nothing can go "
                "through that. With `dim=` it gives one for each row or column."
            )
    return ""


def _subscripts(answer: AnswerTree) -> list[ast.Subscript]:
    """The subscripts in the line that raised, those that are inside of another left out."""
    subscripts = answer.in_the_line(ast.Subscript)
    return [node for node in subscripts if not isinstance(answer.parents[node], ast.Subscript)]


def _missing_key(answer: AnswerTree, match: re.Match[str]) -> str:
    asked = {ast.unparse(node) for node in _subscripts(answer)}
    key = answer.outcome.message[0]
    if "<function" in key:
        return "The key is a function, and names are the keys here: `func.__name__` is its name."
    if len(asked) != 1:
        return ""
    return (
        f"`{asked.pop()}` asks for the key {key}, which the dictionary does not have in this case."
    )


def _outside(answer: AnswerTree, match: re.Match[str]) -> str:
    nodes = _subscripts(answer)
    of_tensor = re.search(
        r"index (\d+) is out of bounds for dimension (\d+) with size (\d+)",
        answer.outcome.message[0],
    )
    if of_tensor:
        index, dim, size = of_tensor.groups()
        for node in nodes:
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if index in map(ast.unparse, indices):
                return (
                    f"`{ast.unparse(node)}` asks for entry {index} of dimension {dim}. In this "
                    f"case that dimension has size {size}, and its entries are counted from 0."
                )
    fixed = [node for node in nodes if isinstance(node.slice, ast.Constant)]
    asked = {ast.unparse(node) for node in fixed or nodes}
    if fixed:
        are, text = "are" if len(asked) == 1 else "may be", ast.unparse(fixed[0])
        return f"`{text}` asks for a fixed entry, and in this case there {are} fewer."
    if asked:
        subject = "" if len(asked) == 1 else "One of "
        texts = ", ".join(f"`{text}`" for text in dict.fromkeys(map(ast.unparse, nodes)))
        return f"{subject}{texts} asks for an entry that is not there in this case."
    return ""


def _dimension_gone(answer: AnswerTree, match: re.Match[str]) -> str:
    for call in answer.in_the_line(ast.Call):
        options = {keyword.arg for keyword in call.keywords}
        if "dim" in options and "keepdim" not in options:
            return (
                f"`{ast.unparse(call)}` removes its dimension, and those behind it move up: in "
                "this case the number asked for is no longer there. `keepdim=True` keeps it."
            )
    return ""


def _no_dimensions(answer: AnswerTree, match: re.Match[str]) -> str:
    if "[:]" not in answer.line:
        return ""
    return "An array without dimensions has no `[:]`. `[...]` writes into an array of any shape."


def _float_size(answer: AnswerTree, match: re.Match[str]) -> str:
    for node in answer.in_the_line(ast.BinOp):
        if isinstance(node.op, ast.Div):
            text = ast.unparse(node)
            return (
                f"`{text}` is a float, also where it has no fraction. A size is a whole number: "
                f"`{ast.unparse(node.left)} // {ast.unparse(node.right)}`."
            )
    return ""


def _zero(answer: AnswerTree, match: re.Match[str]) -> str:
    divisions = (ast.Div, ast.FloorDiv, ast.Mod)
    nodes = [node for node in answer.in_the_line(ast.BinOp) if isinstance(node.op, divisions)]
    divisors = {ast.unparse(node.right) for node in nodes}
    if len(divisors) != 1:
        return ""
    return f"`{divisors.pop()}` is 0 in this case, and nothing can be divided by 0."


def _no_order(answer: AnswerTree, match: re.Match[str]) -> str:
    for call in answer.in_the_line(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id in ("max", "min", "sorted"):
            return (
                f"`{ast.unparse(call)}` compares the objects themselves, which have no order. "
                "`key=` takes a function that gives the number to compare."
            )
    return ""


def _no_gradient_yet(answer: AnswerTree, match: re.Match[str]) -> str:
    for node in answer.in_the_line(ast.Attribute):
        owner = node.value
        if node.attr == match[1] and isinstance(owner, ast.Attribute) and owner.attr == "grad":
            return f"`{ast.unparse(owner)}` is None here: no backward has reached it before."
    return ""


def _asked_of_a_part(answer: AnswerTree, match: re.Match[str]) -> str:
    for operation in answer.in_the_line(ast.BinOp):
        method = getattr(operation.right, "func", None)
        if isinstance(method, ast.Attribute) and method.attr == match[1]:
            whole = ast.unparse(ast.BinOp(operation.left, operation.op, method.value))
            return (
                f"`{ast.unparse(method)}` is asked of `{ast.unparse(method.value)}` alone. Are "
                f"brackets missing, as in `({whole}).{match[1]}(...)`?"
            )
    return ""


_NO_TENSORS = {
    "list": (
        "A list",
        (
            "`tk.stack(...)` makes a tensor of a list of tensors, `tk.tensor(...)` one of a list "
            "of numbers."
        ),
    ),
    "str": (
        "A text",
        "A loop over a dictionary gives its keys; `.items()` gives each with its value.",
    ),
    "numpy.ndarray": ("An array", "`tk.from_numpy(...)` makes a tensor of an array."),
    "float": (
        "A Python number",
        "`.item()`, `float(...)` and Python's `math` give Python numbers.",
    ),
}


def _asked_of_another(answer: AnswerTree, match: re.Match[str]) -> str:
    kind, name = match.groups()
    if not hasattr(tk.Tensor, name):
        return ""
    subject, repair = _NO_TENSORS["float" if kind == "int" else kind]
    if kind == "str" and (".items()" in answer.text or "for " not in answer.text):
        repair = ""
    return f"{subject} has no `{name}`; a tensor has. {repair}".strip()


def _list_for_a_tensor(answer: AnswerTree, match: re.Match[str]) -> str:
    return (
        f"`{match[1]}` takes a tensor, and here it is given a list. `tk.stack(...)` makes a tensor "
        "of a list of tensors, `tk.tensor(...)` one of a list of numbers."
    )


def _tuple_for_a_number(answer: AnswerTree, match: re.Match[str]) -> str:
    for node in answer.nodes((ast.Call, ast.Attribute)):
        text = ast.unparse(node)
        if isinstance(answer.parents[node], ast.Assign) and text.endswith((".stride()", ".size()")):
            return (
                f"`{text}` gives a tuple, one number for each dimension. `{text[:-1]}0)` is that "
                "of dimension 0."
            )
        if isinstance(answer.parents[node], ast.Assign) and text.endswith(".shape"):
            return (
                f"`{text}` is a tuple, one number for each dimension. `{text}[0]` is that of "
                "dimension 0."
            )
    return ""


def _dtype_in_quotes(answer: AnswerTree, match: re.Match[str]) -> str:
    for call in answer.in_the_line(ast.Call):
        for option in call.keywords:
            if option.arg == "dtype" and isinstance(option.value, ast.Constant):
                text = ast.unparse(option.value)
                name = text.strip("'").rpartition(".")[2]
                right = (
                    f"tk.{name}" if isinstance(getattr(tk, name, None), tk.dtype) else "tk.int64"
                )
                return (
                    f"`{text}` in quotes is a text. A dtype is a name of the library, as in "
                    f"`dtype={right}`."
                )
    return ""


def _no_attribute(answer: AnswerTree, match: re.Match[str]) -> str:
    name = match[1]
    for method in answer.nodes(ast.FunctionDef):
        local = [node for node in ast.walk(method) if isinstance(node, ast.Name)]
        if not any(node.id == name and isinstance(node.ctx, ast.Store) for node in local):
            continue
        if "self" in ast.unparse(method.args):
            return (
                f"`{name}` is a local name in `{method.name}`, and gone when that ends. "
                f"`self.{name}` belongs to the object."
            )
        for node in answer.in_the_line(ast.Attribute):
            if node.attr == name:
                owner = ast.unparse(node.value)
                return (
                    f"`{ast.unparse(node)}` asks for an attribute of `{owner}`, and `{name}` is a "
                    f"name of your own. As an index it is written `{owner}[{name}]`."
                )
    if answer.said("'numpy.ndarray' object"):
        return f"A NumPy array has no `{name}`, and one stands where a tensor should be."
    made = {node.name for node in answer.nodes(ast.FunctionDef)}
    made |= {node.attr for node in answer.nodes(ast.Attribute)}
    if name not in made and any(answer.nodes(ast.ClassDef)):
        return f"Your class makes no `{name}`, which the case asks for."
    return ""


def _local_elsewhere(answer: AnswerTree, match: re.Match[str]) -> str:
    name = match[1]
    for function in answer.nodes(ast.FunctionDef):
        stored = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        is_made = any(node.id == name and isinstance(node.ctx, ast.Store) for node in stored)
        arguments = function.args.args
        if is_made and arguments and arguments[0].arg == "self":
            return (
                f"`{name}` is a local name of `{function.name}`, and gone when that ends. "
                f"`self.{name}` is there in every method."
            )
    return ""


def _of_the_outer_function(answer: AnswerTree, match: re.Match[str]) -> str:
    """The sentence about a variable of the outer function that an inner function assigns; or ""."""
    name = match[1]
    functions = [f for f in answer.nodes(ast.FunctionDef) if name in _local_names(f)]
    for inner in functions:
        if any(inner in ast.walk(outer) for outer in functions if outer is not inner):
            return (
                f"`{inner.name}` gives `{name}` a value, so `{name}` is a name of its own there. "
                f"`nonlocal {name}` at the beginning of `{inner.name}` means that of the function "
                "around it."
            )
    return ""


def _local_names(function: ast.FunctionDef) -> set[str]:
    """The names to which a function gives a value, without those of functions inside of it."""
    inside = [node for node in ast.walk(function) if isinstance(node, ast.FunctionDef)]
    nested = {node for inner in inside[1:] for node in ast.walk(inner)}
    names = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n not in nested]
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


def _without_a_star(answer: AnswerTree, match: re.Match[str]) -> str:
    for call in answer.in_the_line(ast.Call):
        names = [argument.id for argument in call.args if isinstance(argument, ast.Name)]
        if "kwargs" in names or (names and "save_for_backward" in ast.unparse(call.func)):
            stars = ", ".join("**" * (n == "kwargs") or "*" for n in names)
            with_stars = ", ".join(("**" if n == "kwargs" else "*") + n for n in names)
            subject = "A star takes" if stars == "*" else "Stars take"
            return (
                f"`{ast.unparse(call)}` hands the tuple on as one argument. {subject} it apart: "
                f"`{ast.unparse(call.func)}({with_stars})`."
            )
    return ""


def _no_blocks(answer: AnswerTree, match: re.Match[str]) -> str:
    if "-(-" in answer.line and answer.said(r"not \(0, "):
        return (
            "Without elements there are 0 blocks, and a launch has at least one. Launch only if "
            "there are elements."
        )
    if "//" not in answer.line or "-(-" in answer.line:
        return ""
    return "`//` rounds down, here to 0 blocks. `-(-n // 32)` rounds up."


def _gap(answer: AnswerTree, match: re.Match[str]) -> str:
    line = re.search(r"line (\d+): (.*)", answer.outcome.message[1])
    if line is None:
        return ""
    return f"The first open gap is in line {line[1]}, `{line[2]}`: write something in its place."


def _race(answer: AnswerTree, match: re.Match[str]) -> str:
    runners, place = match[1], match[2]
    reason = (
        "no barrier holds between blocks" if runners == "blocks" else "no barrier is in between"
    )
    return (
        f"Two {runners} touch `{place}`, one of them writes, and {reason}: the result depends on "
        "who is first."
    )


def _computed_with_none(answer: AnswerTree, match: re.Match[str]) -> str:
    for node in answer.in_the_line(ast.BinOp):
        call = node.left
        method = call.func if isinstance(call, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.attr == "backward":
            whole = ast.unparse(ast.BinOp(method.value, node.op, node.right))
            return (
                f"`{ast.unparse(call)}` gives None, and there is nothing to compute with. Compute "
                f"first: `({whole}).backward()`."
            )
    return ""


def _too_many_arguments(answer: AnswerTree, match: re.Match[str]) -> str:
    name, takes, given = match.groups()
    method = next(
        (function for function in answer.nodes(ast.FunctionDef) if function.name == name), None
    )
    if method is None or not isinstance(answer.parents[method], ast.ClassDef):
        return ""
    if not method.args.args:
        more = ", ..." * (given != "1")
        return f"The first argument of a method is the object itself: `def {name}(self{more}):`."
    return f"`{name}` takes {takes}, and Python calls it with {given}; `self` counts as one."


def _not_entered(answer: AnswerTree, match: re.Match[str]) -> str:
    for node in answer.nodes(ast.With):
        for item in node.items:
            text = ast.unparse(item.context_expr)
            if f"with {text}" in answer.line and not isinstance(item.context_expr, ast.Call):
                return f"`{text}` alone cannot be entered. Brackets call it: `with {text}():`."
    return ""


_Words = str | Callable[[AnswerTree, re.Match[str]], str]

_RAISED: tuple[tuple[str, str, _Words], ...] = (
    ("", "another exception", _another_exception),
    ("", "raises where there is a result", _raises_itself),
    ("converted to Scalar|converted to Python scalars", "one number of several", _takes_one_number),
    (
        "'tuple' object does not support item assignment",
        "a tuple is written to",
        (
            "A tuple cannot be written to. Write into `list(...)` of it; `tuple(...)` makes a "
            "tuple of the result."
        ),
    ),
    (
        r"([\w.]+) is not part of",
        "a name that is not there",
        lambda answer, match: f"`{match[1]}` is not part of tensorkit: this needs another way.",
    ),
    (
        "can be implicitly created only for scalar",
        "backward of several numbers",
        _of_several,
    ),
    ("does not require grad", "nothing was recorded", _not_recorded),
    ("appears to not have been used in the graph", "another leaf", _not_used),
    (
        "leaf Variable",
        "a leaf is written to",
        (
            "A leaf that requires grad is written to while operations are recorded. Within "
            "`tk.no_grad()` it may be."
        ),
    ),
    (
        "result type .* can't be cast",
        "fractions into whole numbers",
        (
            "An in-place operation keeps the dtype of the tensor that it writes to, and this dtype "
            "cannot hold the result."
        ),
    ),
    (
        "view size is not compatible",
        "a view that does not fit",
        (
            "`view` makes no copy, and the strides of this tensor do not allow the new shape. "
            "`reshape` copies where it must."
        ),
    ),
    (
        "size of tensor a",
        "shapes that do not fit",
        (
            "Two shapes do not fit in this line. Aligned at the right, two sizes must be equal, "
            "or one of them 1."
        ),
    ),
    (
        "shapes cannot be multiplied|size mismatch, got input",
        "shapes that do not fit",
        "In this product the first matrix needs as many columns as the second one has rows.",
    ),
    (
        r"shape '(.*)' is invalid for input of size (\d+)",
        "a shape for other elements",
        lambda answer, match: (
            f"A new shape keeps every element, and in this case {match[2]} of them cannot have the "
            f"shape {match[1]}."
        ),
    ),
    (
        r'concatenate (list \(not "tuple|tuple \(not "list)',
        "a list and a tuple",
        "A list and a tuple cannot be joined. `list(...)` or `tuple(...)` makes both alike.",
    ),
    (
        "can't multiply sequence|can only concatenate (tuple|list)|operand type.*'(tuple|list)'",
        "computing with lists",
        (
            "A list or a tuple stands here where a number should be. They do not compute element "
            "by element; a tensor does."
        ),
    ),
    ("values to unpack", "values to unpack", _unpacked),
    (
        "'Tensor' object is not iterable",
        "no tuple",
        "A single tensor stands where a tuple is needed. `(x,)`, with a comma, is a tuple of one.",
    ),
    (
        "Negation, the `-` operator, on a bool",
        "minus of a mask",
        "`-` is for numbers, and here it stands before True and False. `~` turns each of them.",
    ),
    ("'function' object", "a function not called", _function_itself),
    ("iteration over a 0-d tensor", "one number for all", _one_for_all),
    (
        r"NotAllowed: (\S+) is switched off",
        "a call that is switched off",
        _switched_off,
    ),
    (
        r"(\w+)\(\) takes (\d+ positional arguments?) but (\d+)",
        "too many arguments",
        _too_many_arguments,
    ),
    (r"unsupported operand.*'NoneType'", "computing with None", _computed_with_none),
    ("context manager protocol", "a context manager not called", _not_entered),
    (
        r"'Tensor' object has no attribute '(\w+)'",
        "an underscore is missing",
        lambda answer, match: (
            f"A tensor has no `{match[1]}`. What changes a tensor ends with an underscore: "
            f"`{match[1]}_`."
            if hasattr(tk.Tensor, f"{match[1]}_") and not hasattr(tk.Tensor, match[1])
            else ""
        ),
    ),
    ("^KeyError", "a missing key", _missing_key),
    ("Dimension out of range", "a dimension that is gone", _dimension_gone),
    ("too many indices for array: array is 0-d", "a slice of a single number", _no_dimensions),
    ("^Index.*out of (range|bounds)", "an index outside", _outside),
    (
        "step must be nonzero",
        "steps of 0",
        "`arange` cannot go in steps of 0, and in this case the step is 0.",
    ),
    (
        "could not be broadcast to indexing result",
        "other elements on the right",
        (
            "The index picks another number of elements than stand on the right. The same index on "
            "the right, as in `x[mask] = y[mask]`, picks those that belong there."
        ),
    ),
    (
        "where expected condition to be a boolean",
        "another order of arguments",
        "The first argument of `where` is the condition: True or False for each element.",
    ),
    (
        "invert. is only implemented",
        "not of numbers",
        (
            "`~` turns True and False, and here it stands before numbers. It comes before a "
            "comparison: brackets make it come after, `~(a > b)`."
        ),
    ),
    ("'float' object cannot be interpreted as an integer", "a float for a size", _float_size),
    (
        "'tuple' object cannot be interpreted as an integer",
        "a tuple for a number",
        _tuple_for_a_number,
    ),
    ("must be torch.dtype, not str", "a dtype in quotes", _dtype_in_quotes),
    (r"(\w+)\(\): argument .* must be Tensor, not list", "a list for a tensor", _list_for_a_tensor),
    ("^ZeroDivisionError", "a division by 0", _zero),
    ("not supported between instances", "objects without an order", _no_order),
    (
        r"missing \d+ required positional argument",
        "an argument without a default",
        (
            "A call leaves an argument out, and the `def` line gives no value for it. One with a "
            "default, `name=value`, may be left out."
        ),
    ),
    (r"'NoneType'.* has no attribute '(\w+)'", "no gradient yet", _no_gradient_yet),
    (r"'(?:int|float)'.* has no attribute '(\w+)'", "brackets missing", _asked_of_a_part),
    (r"'(list)'.* has no attribute '(\w+)'", "a list for a tensor", _asked_of_another),
    (r"'(str)'.* has no attribute '(\w+)'", "a text for a tensor", _asked_of_another),
    (r"^UnboundLocalError.*variable '(\w+)'", "a local name", _of_the_outer_function),
    (
        r"'(numpy\.ndarray|int|float)'.* has no attribute '(\w+)'",
        "a number for a tensor",
        _asked_of_another,
    ),
    (r"has no attribute '(\w+)'", "an attribute that is missing", _no_attribute),
    (r"name '(\w+)' is not defined", "a local name", _local_elsewhere),
    ("must be Tensor, not tuple|can only save variables", "a star is missing", _without_a_star),
    (
        "could not infer output dtype",
        "a mean of whole numbers",
        "`mean` gives fractions, and this dtype has none.",
    ),
    (
        "out of bounds for storage",
        "beyond the storage",
        "A view of these sizes and strides reaches beyond the end of the storage.",
    ),
    (
        "only change requires_grad flags of leaf",
        "a computed tensor",
        (
            "`requires_grad` can be set on leaves alone, and this tensor was computed. `.detach()` "
            "gives one without a history."
        ),
    ),
    ("cannot be launched", "no blocks", _no_blocks),
    (
        "a block has at most",
        "too many threads",
        (
            "A block has at most 1,024 threads, so many elements need several blocks: "
            "`-(-n // 256)` blocks of 256 threads."
        ),
    ),
    (
        r"writes into (\w+), which should stay as it is",
        "an argument is changed",
        lambda answer, match: f"Your kernel writes into `{match[1]}`, which it should only read.",
    ),
    (
        "returns the launch",
        "the launch comes back",
        "`kernel[blocks, threads](...)` gives a report of the launch. Return the tensor it filled.",
    ),
    ("a gap is left", "a gap", _gap),
    (
        "leaves threads idle",
        "idle threads",
        (
            "Some threads do the work of others, which wait or have nothing to do. Let each thread "
            "take elements of its own."
        ),
    ),
    (
        "has a barrier that not all threads of a block reach",
        "a barrier inside an if",
        (
            "Some threads of a block do not come to a barrier: it stands inside of an `if`, or of "
            "a loop that has more rounds in one thread than in another. Move it out."
        ),
    ),
    (r"races: two (\w+) touch (.+), and one", "a race", _race),
    (
        r"reaches (.+), which is outside of (\w+)",
        "a thread outside",
        lambda answer, match: (
            f"A thread reaches `{match[1]}`, and `{match[2]}` has no such element. Which threads "
            "should do this line?"
        ),
    ),
    (
        r"(\w+)\.ndim is (\d), and its index in the kernel is for \d",
        "too few indices",
        lambda answer, match: (
            f"`{match[1]}` has {match[2]} dimension{'s' * (match[2] != '1')}, and a kernel reads "
            "one number at a time: write one index for each dimension."
        ),
    ),
)
"""Pattern of the exception's class and message, name, and a sentence, or what makes one."""
