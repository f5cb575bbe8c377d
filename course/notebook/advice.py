"""What a report says of each case: the call, what came back, what to try next."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import tensorkit as tk
from course.notebook import compare
from course.notebook.exercise import Exercise, Prediction
from course.notebook.quiet import ASKS, NotAllowed
from course.notebook.report import Row
from course.notebook.rules import parsed
from course.notebook.runner import Outcome
from course.notebook.state import sentence
from course.notebook.trials import Trial


def row(exercise: Exercise, trial: Trial, seconds: float, source: str) -> Row:
    label, outcome, right = trial.case.label, trial.outcome, trial.right
    call = exercise.describe_call(trial.case.args, compare.as_code) + _layouts(trial.case.args)
    if trial.is_passed:
        return Row(label, "passed", call)
    if outcome.ended == "not run":
        return Row(label, "not run", call)
    if isinstance(exercise, Prediction):
        tip = exercise.advice(*trial.case.args) or ""
        if outcome.value is ...:
            return Row(label, "failed", "", "", "", "Replace this `...` by your prediction.")
        form = _another_kind(outcome.value, right.value) or _another_form(exercise, outcome.value)
        tip = form or f"{tip} {exercise.how_to_look(label)}"
        return Row(label, "failed", "", _shown(outcome), "", tip)
    tip = _advice(exercise, trial, seconds, source)
    return Row(label, "failed", call, _shown(outcome), _shown(right), tip)


def _another_kind(predicted: Any, right: Any) -> str | None:
    """What to write, where a prediction is of another kind than the right one."""
    written = {
        bool: "`True` or `False`, without quotes",
        str: "a text in quotes",
        int: "a number, without quotes",
        list: "a list in brackets, such as `[2, 3]`, without quotes",
    }
    if type(predicted) is float and type(right) is int and predicted == right:
        return f"This prediction is a float; write a whole number: `{right}`."
    entries = predicted if type(predicted) is type(right) is list else []
    if float in map(type, entries) and predicted == right:
        return f"There are floats in this prediction; write whole numbers: `{right}`."
    if {str, list, tuple, tk.Tensor} & set(map(type, entries)):
        return "A list of numbers is asked for, such as `[2, 3]`; in yours are other things."
    kinds = {float: int, tuple: list, tk.Size: list}
    predicted_kind, asked = (kinds.get(type(value), type(value)) for value in (predicted, right))
    if predicted_kind is asked or asked not in written:
        return None
    return f"This prediction is {compare.kind(predicted)}; write {written[asked]}."


def _another_form(exercise: Prediction, predicted: Any) -> str | None:
    """What an answer should look like, if this text cannot be the answer to any question."""
    if not (exercise.form and isinstance(predicted, str)):
        return None
    if re.fullmatch(exercise.form, predicted):
        return None
    return f"“{compare.cut(predicted, 40)}” is no possible answer. {exercise.ask}"


def _shown(outcome: Outcome) -> str:
    """What happened, for the rows "got" and "expected"."""
    if outcome.ended == "returned":
        return compare.show(outcome.value)
    if outcome.ended == "timed out":
        return "no answer"
    text, _ = outcome.message
    named = type(outcome.error).__name__ + (f": {text}" if text else "")
    return f"{named}\n{outcome.place}" if outcome.place else named


def _advice(exercise: Exercise, trial: Trial, seconds: float, source: str) -> str:
    outcome, right = trial.outcome, trial.right
    if stopped := _about_stop(exercise, outcome, seconds, source):
        return stopped
    advised = _unless_there(exercise.advice(*trial.case.args), source)
    if outcome.ended == "raised":
        repair = _unless_there(outcome.message[1].removeprefix("Try: "), source)
        return advised or repair or _about_error(outcome, exercise.name)
    if right.ended == "raised":
        return advised or f"Here it should raise {type(right.error).__name__}."
    if outcome.changed:
        return _about_changes(outcome.changed, trial.case.args)
    difference = compare.difference(outcome.value, right.value)
    if outcome.value is None and right.value is not None:
        difference = f"It is None: {_why_none(source, exercise.name)}"
    if isinstance(right.value, bool | int | float | str) and isinstance(
        outcome.value, type(right.value)
    ):
        difference = None  # "got" and "expected" say it already
    return " ".join(filter(None, [difference, advised]))


def _about_changes(changed: Mapping[int, str], args: tuple[Any, ...]) -> str:
    """What the answer changed in its arguments, and how to leave them alone."""
    parts = [
        f"`{change}` of argument {n + 1}" if change != "values" else f"argument {n + 1}"
        for n, change in changed.items()
    ]
    belongs = "which still belongs" if len(parts) == 1 else "which still belong"
    mend = _work_on([args[position] for position in changed])
    if "values" not in changed.values():
        mend = "`x.detach()` has the same numbers, and a `requires_grad` and a `grad` of its own."
    return f"It changes {' and '.join(parts)}, {belongs} to the caller. {mend}"


def _work_on(values: list[Any]) -> str:
    """How to leave arguments of these kinds alone."""
    if all(isinstance(value, tk.Tensor) for value in values):
        return "Write into a tensor of your own, such as a `.clone()`."
    holds_tensors = any(isinstance(e, tk.Tensor) for v in values for e in v)
    if all(isinstance(value, list) for value in values) and not holds_tensors:
        return "Write into a list of your own: `list(...)` makes one."
    return "Make something new in place of writing into it."


def _about_stop(exercise: Exercise, outcome: Outcome, seconds: float, source: str) -> str | None:
    """What to do where the answer was not allowed to go on."""
    if outcome.ended == "timed out":
        stopped = f"It did not end within {seconds:g} seconds and was stopped."
        tree = parsed(source)
        if tree and any(isinstance(node, ast.While) for node in ast.walk(tree)):
            return f"{stopped} Does the condition of the `while` ever become false?"
        return f"{stopped} Print something in each step, and see which step comes again and again."
    if isinstance(outcome.error, NotAllowed):
        if outcome.message[0] == ASKS:
            return "Leave `input()` out; the call above shows which arguments arrive."
        return f'`hint("{exercise.id}")` in a new cell says how to begin without it.'
    if isinstance(outcome.error, SystemExit):
        return "This ends the whole program (`SystemExit`). A function ends with `return`."
    if isinstance(outcome.error, RecursionError):
        return (
            "Calls inside of calls went deeper than Python allows. Either no case ends them, or "
            "there are too many steps for calls: a loop has no such limit."
        )
    return None


def _unless_there(advice: str | None, source: str) -> str | None:
    """Advice, if it is true of this source.

    Advice is left out if the answer already has the call or the option that is recommended, or has
    no `exp` where the advice says "your `exp`". A second barrier may be recommended beside a first.
    """
    # what a repair of the library calls `x` may be another tensor than the answer's `x`
    if any(re.search(rf"\b{name}\b", source) for name in re.findall(r"# (\w+): ", advice or "")):
        return None
    recommended = re.findall(r"\.(?!syncthreads)\w+_?\((?=\))|\w+=(?=True)", advice or "")
    text = source.replace(" ", "")
    if "requires_grad=True" in text:  # which does the same as the method
        text += ".requires_grad_("
    if any(code in text for code in recommended):
        return None
    assumed = re.findall(r"[Yy]our `(\w+)`", advice or "")
    return advice if all(re.search(rf"\b{name}\b", source) for name in assumed) else None


def _why_none(source: str, name: str) -> str:
    """Where the None comes from that a function with this source gave."""
    function = next(
        (
            node
            for node in ast.walk(parsed(source) or ast.Module([], []))
            if isinstance(node, ast.FunctionDef) and node.name == name
        ),
        None,
    )
    if function is None:
        return "a function gives None where it ends without `return` and a value."
    returned = [node for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
    if not returned:
        return "is a `return` missing?"
    if any(ast.unparse(node.value).startswith("print(") for node in returned if node.value):
        return "`print` shows a value and gives None. Return the value itself."
    if isinstance(function.body[-1], ast.Return):
        return "print what stands behind `return` before it is returned."
    return "either what stands behind `return` is None, or the function ends before it comes there."


_LOOK_AT = {
    "'ellipsis'": "A gap is still open, here or above: put something in place of every `...`.",
    "NoneType": (
        "Something that is used here is None. A function without `return` gives None, and so does "
        "`.grad` as long as no backward came by."
    ),
    "'tuple' object does not support item assignment": (
        "A tuple cannot be changed: work on `list(...)` of it, and make a `tuple(...)` at the end."
    ),
    'concatenate (list .not "tuple|tuple .not "list)': (
        "Print the type of both: one is a list, the other a tuple."
    ),
    "can't multiply sequence|can only concatenate (tuple|list)|operand type.*'(tuple|list)'": (
        "Tuples and lists do not compute element by element. Go through them in a loop; `zip` goes "
        "through two at once."
    ),
    "'(function|method|builtin_function_or_method)' object": (
        "A function is used here as if it were a value. Are parentheses missing behind a name? "
        "`x.cpu` is the method, `x.cpu()` calls it."
    ),
    "on the same device": (
        "The tensors in this line are on different devices. Which of them did you make yourself, "
        "and where is it?"
    ),
    "is not part of": "Do it with what this chapter and those before it have shown.",
    "can be implicitly created only for scalar": (
        "Backward begins at one number, such as a loss. Which tensor is it called on, and of what "
        "shape is that?"
    ),
    "values to unpack": (
        "How many values come at a time, and how many names are there for them? A loop over a "
        "dictionary gives keys alone; `.items()` gives pairs."
    ),
    "^(Name|UnboundLocal)Error": (
        "Is the name spelled as where you made it, and made before this line runs?"
    ),
    r"^TypeError.*(takes|missing|unexpected|multiple values).*\bargument": (
        "Compare this call with what the function takes: how many arguments, and under which names?"
    ),
    "^TypeError.*argument": (
        "Print the arguments of this call just before it: is each of the kind that it should be?"
    ),
    "^AttributeError": (
        "Is the name behind the dot spelled as in the text, and does it belong to what stands "
        "before the dot?"
    ),
    "^ZeroDivisionError": "What makes the divisor 0 in this case?",
    r"^Index\w*Error": (
        "How many entries are there in this case, and which index does the line ask for?"
    ),
    "^KeyError": "Print the keys of the dictionary just before this line: this one is not there.",
    "": "Make this call yourself in a new cell and take the line apart, piece by piece.",
}
"""What to look at first, by a piece of the exception's class and message; the first that fits."""


def _about_error(outcome: Outcome, name: str) -> str:
    said = f"{type(outcome.error).__name__}: {outcome.message[0]}"
    if said.startswith("TypeError") and "argument" in said and not outcome.place:
        return "Compare the `def` line with the call above: how many arguments are there?"
    if said.startswith(f"TypeError: {name}()"):
        return f"Compare this call of `{name}` with its `def` line."
    return next(look for piece, look in _LOOK_AT.items() if re.search(piece, said))


def first_idea(exercise: Exercise) -> str:
    """What to do about a case of which nothing else is known."""
    return (
        "Work this case out on paper, then go through your code line by line. "
        f'`hint("{exercise.id}")` in a new cell gives an idea.'
    )


def _layouts(args: tuple[Any, ...]) -> str:
    """Comments on arguments that the call as it is shown would make with another layout."""
    return "".join(
        f"\n# argument {position} is a view: strides {argument.stride()}, offset "
        f"{argument.storage_offset()}"
        for position, argument in enumerate(args, 1)
        if isinstance(argument, tk.Tensor)
        if not (argument.is_contiguous() and argument.storage_offset() == 0)
    )


_SEEDS = ("tk.manual_seed", "random.seed", "np.random.seed", "numpy.random.seed")


def _seeded(source: str) -> list[str]:
    """The calls in functions of this source that set a seed for the whole process."""
    nodes = ast.walk(parsed(source) or ast.Module([], []))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    calls = [n for function in functions for n in ast.walk(function) if isinstance(n, ast.Call)]
    return [ast.unparse(call) for call in calls if ast.unparse(call.func) in _SEEDS]


def notes(exercise: Exercise, tried: list[Trial], source: str) -> list[str]:
    """What is worth knowing and costs no points: edge cases, changes, warnings, prints."""
    notes = []
    answered = (trial for trial in tried if trial.outcome.ended in ("returned", "raised"))
    beyond = next((trial for trial in answered if not (trial.case.weight or trial.is_passed)), None)
    if beyond is not None and all(trial.is_passed for trial in tried if trial.case.weight):
        call = exercise.describe_call(beyond.case.args, compare.as_code)
        notes.append(
            f"Not asked for, and it costs nothing: {beyond.case.label}. For `{call}` your answer "
            f"gives `{_shown(beyond.outcome)}`; the course's own gives `{_shown(beyond.right)}`."
        )
    changed = [words for trial in tried for words in trial.outcome.left_changed]
    if changed:
        notes.append(sentence(changed))
    if seeded := _seeded(source):
        notes.append(
            f"`{seeded[0]}` in your code sets a seed for the whole notebook. After the check the "
            "random numbers go on as if it had not run."
        )
    warned = [text for trial in tried for text in trial.outcome.warned]
    if warned:
        notes.append(f"Python warned while your code ran: {compare.cut(warned[0], 200)}")
    printed = next((trial.outcome.printed for trial in tried if trial.outcome.printed.strip()), "")
    if printed:
        first, *more = printed.strip().splitlines()
        text = compare.cut(first + " ..." * bool(more), 80).strip()
        notes.append(f"Your code prints `{text}`; the check does not read what is printed.")
    return notes
