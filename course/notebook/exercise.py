"""What an exercise is: the classes `Exercise` and `Prediction`, and the decorator `exercise`.

A definition is a subclass of `Exercise` (or `Prediction`) under the decorator `@exercise`. From
it come the cells of the notebook, the check and its points, the diagnosis, the hints, the worked
solution and the tests of the grader. How an answer is run is in `runner`, how it is judged in
`check`; the definitions themselves stand in `exercises/`, a folder a chapter.

Data in words: a *case* is one call of the learner's answer: a label that never changes, arguments
that may be drawn afresh. A *draw* is a source of numbers made from a seed. A *usual mistake* is a
wrong answer that runs, with the message that helps whoever wrote it.
"""

from __future__ import annotations

import ast
import copy
import difflib
import hashlib
import importlib
import inspect
import pkgutil
import random
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from course.notebook import compare
from course.notebook.rules import Rule
from course.notebook.state import put_names_back
from course.notebook.varied import PUT_THESE, Value, Varied, replaced, seed_for
from course.shared.errors import CourseError

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


@dataclass(frozen=True)
class Case:
    """One call of the answer: its arguments, the label that names it, its share of the points."""

    args: tuple[Any, ...]
    label: str
    weight: float = 1.0
    raises: bool = False


def case(*args: Any, label: str, weight: float = 1.0, raises: bool = False) -> Case:
    """A case of an exercise. Points belong to its label, so each label occurs once.

    args: lists and dictionaries in them are copied, or an answer that empties one would empty it
    for every check that follows.
    label: one with a part of `EDGES` in it, such as "(empty)", is that of an edge case. It counts
    only where the statement names that edge in words; elsewhere its weight is 0.
    raises: whether a right answer raises here, with the class of exception that the reference has.
    """
    return Case(tuple(map(_of_its_own, args)), label, weight, raises)


_DTYPE = (
    "(same|any|which|whatever) ((float|shape and|shapes and|size and|length and) )?dtype|dtype of"
)
EDGES = {
    "(empty)": "empty|without elements|0 or (more|larger)|sizes? (of )?0|possibly none",
    "(size 1)": "sizes? (of )?1|at least (one|1)|from 1|equal to 1|any (shape|length)"
    "|0 or (more|larger)",
    "(0-d)": "0-d|without dimensions|any (shape|number of dimensions)",
    "(non-contiguous)": "non-contiguous|a view|strides?",
    "(float16)": f"float16|{_DTYPE}",
    "float64": f"float64|{_DTYPE}",
    "(int)": "whole numbers?|int64|(any|which|whatever) (shape and )?dtype",
}
"""Parts of labels that mark an edge case, and how a statement names that edge."""


@lru_cache(maxsize=1024)
def _is_named(statement: str, label: str) -> bool:
    """Whether the statement names the edge of a case with this label, if it is an edge case."""
    words = " ".join(statement.split())
    return all(
        re.search(rf"\b({named})\b", words) for part, named in EDGES.items() if part in label
    )


def _of_its_own(value: Any) -> Any:
    if type(value) is dict:
        return {key: _of_its_own(entry) for key, entry in value.items()}
    return [_of_its_own(entry) for entry in value] if type(value) is list else value


class Draw:
    """Numbers drawn from a seed: the same seed gives the same numbers on every machine.

    >>> Draw(1).shape() == Draw(1).shape()
    True
    """

    def __init__(self, seed: object) -> None:
        self._random = random.Random(str(seed))

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return self._random.randint(low, high)

    def integers(self, n: int, low: int, high: int) -> list[int]:
        """`n` whole numbers from `low` to `high`, both included."""
        return [self.integer(low, high) for _ in range(n)]

    def number(self, low: float, high: float) -> float:
        """A number between `low` and `high` with two decimals."""
        return round(self._random.uniform(low, high), 2)

    def floats(self, n: int, low: float, high: float) -> list[float]:
        """`n` numbers between `low` and `high` with two decimals."""
        return [self.number(low, high) for _ in range(n)]

    def shape(self, min_dims: int = 1, max_dims: int = 4, max_size: int = 5) -> tuple[int, ...]:
        """A shape without empty dimensions."""
        return tuple(self.integers(self.integer(min_dims, max_dims), 1, max_size))

    def long_shape(self) -> tuple[int, ...]:
        """Three sizes with so many elements together that no array has this shape.

        They are odd: their product in 64 bits, where it wraps around, is not 0.
        """
        return tuple(2 * half + 1 for half in self.distinct(3, 1_500_000, 4_500_000))

    def distinct(self, n: int, low: int, high: int) -> list[int]:
        """`n` different whole numbers from `low` to `high`, both included."""
        return self._random.sample(range(low, high + 1), n)


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that learners give: its name, an implementation, the message that helps.

    code: a regular expression that is found in the text of an answer with this mistake, where other
    mistakes show the same values.
    """

    name: str
    answer: Any
    message: str
    code: str = ""


class Exercise:
    """One exercise, described by its author; the class docstring is the statement.

    The first line of the docstring is the title, the rest the text that the learner reads: input,
    output, one worked case, in markdown.
    """

    # what an author writes in the class body
    hints: ClassVar[tuple[str, ...]] = ()
    usual_mistakes: ClassVar[Mapping[str, tuple[Any, str] | tuple[Any, str, str]]] = {}
    """By name: the wrong answer, the message and, where values do not tell, `Mistake.code`."""
    imports: ClassVar[str] = ""
    """Imports of the chapter's first cell that the answer needs, beyond `tk` and `np`."""
    changes_arguments: ClassVar[bool] = False
    """True where the exercise asks for a change of its arguments."""
    rules: ClassVar[tuple[Rule, ...]] = ()
    """Demands of the statement that are checked on the text of an answer."""

    # what the decorator sets
    id: str
    chapter: str
    points: float
    difficulty: int
    minutes: int
    kind: str
    further: bool
    without: tuple[str, ...]
    witness: str
    reference: Any
    _stub: Callable[..., Any] | None
    learner: str = ""
    """The learner whose numbers the questions have; empty where they have the released ones."""

    def cases(self, draw: Draw) -> Iterator[Case]:
        """The cases, edge cases by name; labels and weights are the same for every draw."""
        raise NotImplementedError

    def drawn(self, draw: Draw) -> list[Case]:
        """The cases with their weights. Last come those of weight 0, which only give a note."""
        text = type(self).__doc__ or ""
        cases = [
            case if _is_named(text, case.label) else replace(case, weight=0.0)
            for case in self.cases(draw)
        ]
        return sorted(cases, key=lambda case: not case.weight)

    def allows(self, *args: Any) -> bool:
        """Whether the statement allows these arguments; the audit makes others from the cases."""
        return True

    def run(self, answer: Any, *args: Any) -> Any:
        """What is observed of an answer in one case: by default, what it returns."""
        return answer(*args)

    def expected(self, *args: Any) -> Any:
        """What a right answer shows in that case: by default, what the reference shows."""
        return self.run(self.reference, *args)

    def advice(self, *args: Any) -> str | None:
        """What to try when this case fails; None leaves it to the comparison."""
        return None

    # what follows from the definition

    def variant_for(self, learner: str) -> Exercise:
        """This exercise with the learner's own numbers, unchanged where all have the same."""
        return self

    @property
    def title(self) -> str:
        return inspect.cleandoc(type(self).__doc__ or "").partition("\n")[0]

    @property
    def name(self) -> str:
        """The name that the learner's cell defines and the check reads."""
        return str(self.reference.__name__)

    @property
    def statement(self) -> str:
        """The markdown cell above the answer: heading, effort, text."""
        text = inspect.cleandoc(type(self).__doc__ or "").partition("\n")[2].strip()
        effort = (
            f"*{KINDS[self.kind]}{' · further, for the curious' if self.further else ''}"
            f" · difficulty {self.difficulty} of 5 · about {_counted(self.minutes, 'minute')}"
            f" · {_counted(self.points, 'point') if self.points else 'no points'}*"
        )
        return f"### Exercise: {self.title}\n\n{effort}\n\n{text}"

    @property
    def answer_source(self) -> str:
        """The answer cell as it stands in `solutions/`, the part to be cleared between markers."""
        head, body = _split(self.reference)
        return "\n".join([head, *_indented([BEGIN, *body.splitlines(), END])])

    @property
    def solution_source(self) -> str:
        """The worked solution as a learner reads it."""
        markers = {BEGIN, END}
        lines = self.answer_source.splitlines()
        return "\n".join(line for line in lines if line.strip() not in markers)

    @property
    def stub(self) -> str:
        """The code that is released between the markers, without indentation."""
        return "# YOUR CODE HERE\npass" if self._stub is None else _split(self._stub)[1]

    @property
    def released_source(self) -> str:
        """The answer cell as learners receive it."""
        released: list[str] = []
        inside = False
        for line in self.answer_source.splitlines():
            if line.strip() == BEGIN:
                indent = line[: len(line) - len(line.lstrip())]
                released += [indent + part if part else part for part in self.stub.splitlines()]
                inside = True
            elif line.strip() == END:
                inside = False
            elif not inside:
                released.append(line)
        return "\n".join(released)

    def mistakes(self) -> list[Mistake]:
        """The usual mistakes, each as an answer that can be run."""
        return [
            Mistake(name, self._mistaken(answer), *words)
            for name, (answer, *words) in self.usual_mistakes.items()
        ]

    def _mistaken(self, answer: Any) -> Any:
        return answer

    def is_answer(self, answer: Any) -> str | None:
        """None if this could be an answer, else a sentence that says what is there instead."""
        if is_class(answer) and not isinstance(self.reference, type):
            return (
                f"`{self.name}` should be a function, and it is a class. Write `def "
                f"{self.name}(...):` in the answer cell and run it again."
            )
        if callable(answer):
            return None
        return (
            f"`{self.name}` should be a function, and it is {compare.kind(answer)}. "
            f"Write `def {self.name}(...):` in the answer cell and run it again."
        )

    def is_not_started(self, answer: Any, source: str | None) -> bool:
        """True if the code of this answer is still the released stub."""
        body = None if source is None else _body(source, self.name)
        return body is not None and body in (_dump(self.stub), _dump("pass"), _dump("..."))

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        """The case as the learner would type it."""
        return f"{self.name}({', '.join(show(arg) for arg in args)})"


class Prediction(Exercise):
    """Predict before running: the answer is a dictionary from expressions to predictions.

    `questions` maps each expression to the rule behind its value. A wrong prediction shows the
    rule and not the value, so that running the expression stays the learner's own experiment.
    """

    name: ClassVar[str]  # here a plain name, not that of a function
    ask: ClassVar[str]
    """The comment above the dictionary: what to write in place of each `...`."""
    questions: ClassVar[Mapping[str, str]]
    form: ClassVar[str] = ""
    """A regular expression that matches every text that could be meant as an answer."""
    varied: ClassVar[tuple[Varied, ...]] = ()
    """Numbers of the questions, their rules and wrong answers that may differ between learners."""

    def observe(self, value: Any) -> Any:
        """The property of an expression's value that is asked for."""
        return value

    def evaluate(self, expression: str) -> Any:
        """The right answer to one question, found by running it."""
        import numpy as np

        import tensorkit as tk

        return self.observe(eval(expression, {"tk": tk, "np": np}))

    @property
    def right(self) -> dict[str, Any]:
        return {expression: self.evaluate(expression) for expression in self.questions}

    def cases(self, draw: Draw) -> Iterator[Case]:
        for expression in self.questions:
            yield case(expression, label=expression)

    def drawn(self, draw: Draw) -> list[Case]:
        """All of them count: a question that has `float64` in it is no edge case."""
        return list(self.cases(draw))

    def run(self, answer: Any, *args: Any) -> Any:
        return answer.get(args[0], ...)

    def expected(self, *args: Any) -> Any:
        return self.evaluate(args[0])

    def advice(self, *args: Any) -> str | None:
        return self.questions[args[0]]

    def how_to_look(self, expression: str) -> str:
        """How to see the right answer: said after the rule, where a prediction is wrong."""
        return "Run the expression and look."

    @property
    def answer_source(self) -> str:
        return "\n".join([f"# {self.ask}", BEGIN, self._dictionary(self.right), END])

    @property
    def stub(self) -> str:
        return self._dictionary(dict.fromkeys(self.questions, ...))

    def _dictionary(self, answers: Mapping[str, Any]) -> str:
        rows = [
            f'    "{key}": {"..." if value is ... else _double_quoted(value)},'
            for key, value in answers.items()
        ]
        return "\n".join([f"{self.name} = {{", *rows, "}"])

    def _mistaken(self, answer: Any) -> Any:
        wrong = {
            expression: self.evaluate(value) if isinstance(value, Value) else value
            for expression, value in answer.items()
        }
        return {**self.right, **wrong}

    def variant_for(self, learner: str) -> Exercise:
        seed = seed_for(learner, self.id)
        if not (seed and self.varied):
            return self
        draw = Draw(seed)
        drawn = [(part, _other_numbers(part, draw)) for part in self.varied]

        def with_numbers(question: str, text: str) -> str:
            numbers = next((numbers for part, numbers in drawn if part.is_in(question)), {})
            return replaced(text, numbers) if numbers else text

        def wrong(question: str, value: Any) -> Any:
            if isinstance(value, Value):
                return Value(with_numbers(question, value))
            return ast.literal_eval(with_numbers(question, repr(value)))

        variant = copy.copy(self)
        vars(variant).update(
            learner=learner,
            questions={
                with_numbers(question, question): with_numbers(question, rule)
                for question, rule in self.questions.items()
            },
            usual_mistakes={
                name: (
                    {
                        with_numbers(question, question): wrong(question, value)
                        for question, value in answer.items()
                    },
                    *words,
                )
                for name, (answer, *words) in self.usual_mistakes.items()
            },
        )
        variant.reference = variant.right
        return variant

    def is_answer(self, answer: Any) -> str | None:
        if type(answer) is dict:
            unknown = [question for question, value in answer.items() if value is not ...]
            unknown = [question for question in unknown if question not in self.questions]
            if not (self.learner and unknown):
                return None
            return (
                f"Everybody has numbers of their own here, and `{str(unknown[0])[:80]}` is no "
                f"question of `{self.learner}`. {PUT_THESE}. Then run both cells again."
            )
        return (
            f"`{self.name}` should be the dictionary of the answer cell, and it is "
            f"{compare.kind(answer)}. Restore the cell and replace only the `...`."
        )

    def is_not_started(self, answer: Any, source: str | None) -> bool:
        return all(answer.get(expression, ...) is ... for expression in self.questions)

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        return str(args[0])


def _other_numbers(varied: Varied, draw: Draw) -> Mapping[str, str]:
    """The texts that replace the released numbers; at least one differs from the released one."""
    while True:
        replacements = varied.written(draw.distinct(len(varied.numbers), varied.low, varied.high))
        if any(released != drawn for released, drawn in replacements.items()):
            return replacements


KINDS = {
    "write": "Write",
    "predict": "Predict, then run",
    "repair": "Repair",
    "complete": "Complete the program",
}

_registry: dict[str, Exercise] = {}
_E = TypeVar("_E", bound=type[Exercise])


def exercise(
    id: str,
    *,
    points: float = 0.0,
    difficulty: int,
    minutes: int,
    answer: FunctionType | Any = None,
    stub: FunctionType | Any = None,
    kind: str | None = None,
    further: bool = False,
    without: tuple[str, ...] = (),
    witness: str = "checker",
) -> Callable[[_E], _E]:
    """Register the decorated definition under `id`.

    answer: the reference, a function or a class whose head (first line, docstring) is what learners
        receive.
    stub: a function whose body learners receive in place of `pass`: in a repair the broken code,
        in kind="complete" a program with gaps, each a `...` with a comment on what belongs there.
    points: a multiple of 0.25. difficulty: 1 to 5. minutes: for a beginner.
    further: not part of the core, and worth no points, so that the core alone gives them all.
    without: what the answer must not call, such as "Tensor.stride", "linspace" or a function of
        the course by its full name. A reminder and not a lock: NumPy has these functions too.
    witness: who sees whether it is right when it is graded: "checker", on data that the grader can
        recompute, or "inside", the learner's own process alone, which may lie.

    Raises CourseError if the id is taken, and for what every definition needs and this one lacks.
    """

    def register(definition: _E) -> _E:
        _check_form(id, definition, (points, difficulty, minutes))
        if id in _registry and type(_registry[id]).__module__ != definition.__module__:
            raise CourseError(
                f"Two exercises are called {id!r}, in {type(_registry[id]).__module__} and "
                f"{definition.__module__}: rename one of them."
            )
        instance = definition()
        instance.id, instance.points = id, float(points)
        instance.difficulty, instance.minutes = difficulty, minutes
        instance.chapter = _chapter_of(definition.__module__)
        default = "predict" if issubclass(definition, Prediction) else "write"
        instance.kind = kind or (default if stub is None else "repair")
        instance.further, instance.without = further, without
        instance.reference, instance._stub = _copy_of(answer), stub
        instance.witness = witness
        if isinstance(instance, Prediction):
            instance.reference = instance.right
        _registry[id] = instance
        return definition

    return register


def _check_form(id: str, definition: type, numbers: tuple[float, ...]) -> None:
    """Raises CourseError for a definition that would be misread, or end in a traceback."""
    if not issubclass(definition, Exercise):
        raise CourseError(f"{id}: write `class {definition.__name__}(Exercise):`.")
    if not all(type(number) in (int, float) for number in numbers):
        raise CourseError(f"{id}: points, difficulty and minutes are numbers, as `minutes=5` is.")
    points = numbers[0]
    if points < 0 or points * 4 % 1:  # a check gives quarters: of 2.1 points, 2 at most
        raise CourseError(f"{id}: points={points} is not a multiple of 0.25 from 0 upwards.")
    if not isinstance(definition.hints, tuple):  # of one text, each letter would be a hint
        raise CourseError(f'{id}: hints are a tuple of texts: `hints = ("One.", "Two.")`.')
    for name, mistake in definition.usual_mistakes.items():
        is_named = isinstance(name, str)
        if not (is_named and isinstance(mistake, tuple) and len(mistake) in (2, 3)):
            subject = f"the mistake {name!r}" if is_named else "a mistake"
            raise CourseError(f'{id}: write {subject} as `"name": (answer, "message")`.')


@cache
def chapters() -> tuple[str, ...]:
    """The names of all chapters that have exercises, in order: "01_tensors", ..."""
    modules = pkgutil.iter_modules([str(Path(__file__).parents[1] / "exercises")])
    return tuple(sorted(module.name.removeprefix("ch") for module in modules))


def _chapter_of(module: str) -> str:
    """The chapter of a module, which lies in the chapter's folder.

    >>> _chapter_of("course.exercises.ch10_engine.walk_back")
    '10_engine'
    """
    return module.removeprefix("course.exercises.").partition(".")[0].removeprefix("ch")


def load(chapter: str | None = None) -> dict[str, Exercise]:
    """All exercises by id, in the order of their chapters, or those of one chapter.

    Raises CourseError if a definition cannot be imported.
    """
    put_names_back()  # definitions and drawn cases are made with the library
    for name in chapters():
        try:
            importlib.import_module(f"course.exercises.ch{name}")
        except CourseError:
            raise
        except Exception as error:  # whatever a definition that is being written raises
            raise CourseError(_not_imported(name, error)) from None
    # not in the order in which they were imported
    in_order = sorted(_registry.items(), key=lambda pair: pair[1].chapter)
    return {id: defined for id, defined in in_order if chapter in (None, defined.chapter)}


def _not_imported(chapter: str, error: Exception) -> str:
    """A sentence about an error in a chapter's definitions: the line, and what it raised."""
    if isinstance(error, SyntaxError):
        file, line, message = error.filename, error.lineno, error.msg
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        file, line, message = last.filename, last.lineno, str(error)
    kind = type(error).__name__
    return f"The exercises of {chapter} cannot be read: {file}, line {line}: {kind}: {message}"


def digest(chapter: str) -> str:
    """SHA-256 of the text that defines a chapter's exercises: a grade may change with it."""
    folder = Path(__file__).parents[1] / "exercises"
    files = sorted(folder.glob(f"ch{chapter}/**/*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def load_for(learner: str, chapter: str) -> dict[str, Exercise]:
    """The exercises of one chapter with the numbers of one learner."""
    return {id: defined.variant_for(learner) for id, defined in load(chapter).items()}


def no_such_exercise(exercise_id: object, function: str) -> str:
    """A sentence about an id that no exercise has, with the nearest one that exists."""
    if type(exercise_id) is not str:
        return f'`{function}` takes the name of an exercise in quotes, as in `{function}("name")`.'
    close = difflib.get_close_matches(exercise_id, list(load()), n=1)
    mean = f' Did you mean `{function}("{close[0]}")`?' if close else ""
    shown = exercise_id[:60]
    named = "The cell below an exercise, `check(...)`, has its name."
    return f"There is no exercise {shown!r}. {named}{mean}"


@cache
def _split(function: Callable[..., Any]) -> tuple[str, str]:
    """Head (signature and docstring) and body of a function's source, the body unindented."""
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    lines, first = source.splitlines(), definition.body[0]
    # a decorator stands above the line of its definition
    decorators = getattr(first, "decorator_list", [])
    last_of_head = min(node.lineno for node in (first, *decorators)) - 1
    if ast.get_docstring(definition) is not None:
        last_of_head = first.end_lineno or last_of_head
    return "\n".join(lines[:last_of_head]), textwrap.dedent("\n".join(lines[last_of_head:]))


def _copy_of(answer: Any) -> Any:
    """A copy of a function or a class: it can still be called while `without` refuses the other."""
    if isinstance(answer, type):
        of_the_type = ("__dict__", "__weakref__")
        members = {
            n: _copy_of(member) for n, member in vars(answer).items() if n not in of_the_type
        }
        return type(answer.__name__, answer.__bases__, members)
    if not isinstance(answer, FunctionType):
        return answer
    copied = FunctionType(
        answer.__code__,
        answer.__globals__,
        answer.__name__,
        answer.__defaults__,
        answer.__closure__,
    )
    return update_wrapper(copied, answer)


def _counted(number: float, noun: str) -> str:
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line if line else line for line in lines]


def is_class(answer: Any) -> bool:
    """Whether an answer is a class, here or in another process."""
    return isinstance(answer, type) or bool(getattr(answer, "is_class", False))


@cache
def _dump(code: str) -> str:
    return "".join(ast.dump(node) for node in ast.parse(code).body)


LONGEST_STUB = 100_000
"""Characters of an answer that may still be the stub."""


def _body(source: str, name: str) -> str | None:
    """The statements of function `name` in `source`, docstring aside, as comparable text."""
    if len(source) > LONGEST_STUB:
        return None
    try:
        definition = None
        for node in ast.walk(ast.parse(textwrap.dedent(source))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                definition = node
        if definition is None:
            return None
        has_docstring = ast.get_docstring(definition) is not None
        statements = definition.body[1:] if has_docstring else definition.body
        return "".join(ast.dump(node) for node in statements)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: a long sum
        return None


def _double_quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
