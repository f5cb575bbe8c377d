"""`check` and `judge`: what a learner is told, in every state an answer can be in."""

from __future__ import annotations

import ast
import enum
import math
import operator
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import sample

import tensorkit as tk
from course.notebook.answer import find
from course.notebook.check import check, judge
from course.notebook.exercise import Exercise, case, exercise, load
from course.notebook.history import UNKNOWN, Run
from course.notebook.report import Report

STRIDES = load()["sample-strides"]
NEGATED = load()["sample-negated"]
WHICH = load()["sample-dtype"]


def test_the_reference_gets_full_points():
    report = judge(STRIDES, sample.strides_of)
    assert report.score == 3.0
    assert report.status == "passed"
    assert repr(report) == "3.0"


def test_a_usual_mistake_is_recognised_and_named():
    report = judge(STRIDES, sample.bytes_apart)
    assert report.mistake == "counts bytes"
    assert report.message == "These are bytes: divide by the element size."
    assert report.score == 0.0


def test_a_mistake_is_not_named_on_one_agreement_alone():
    # agrees with "column-major" on the matrix and with nothing elsewhere
    report = judge(STRIDES, lambda shape: (1, 3) if shape == (3, 4) else None)
    assert report.mistake == ""


def test_points_follow_the_weights_of_the_cases():
    report = judge(STRIDES, lambda shape: (1,) if len(shape) == 1 else None)
    assert report.status == "partly"
    assert report.score == pytest.approx(3 * 0.5 / 3)


def test_cases_with_fixed_numbers_count_once_a_drawn_one_passes():
    report = judge(STRIDES, lambda shape: (4, 1) if shape == (3, 4) else None)
    assert [row.status for row in report.rows] == ["passed", "failed", "failed"]
    assert (report.score, report.status) == (0.0, "failed")
    assert report.notes[0].startswith("The cases that pass have the same numbers")
    with_a_vector = judge(STRIDES, lambda shape: {1: (1,), 2: (4, 1)}.get(len(shape)))
    assert with_a_vector.score == pytest.approx(3 * 1.5 / 3)
    assert with_a_vector.notes == ()


def test_points_do_not_depend_on_the_draw():
    # a square, or a single row, may be drawn again as the notebook has it
    board = load()["checkerboard"]
    only_even_rows = next(it.answer for it in board.mistakes() if it.name == "only even rows")
    points = {judge(board, only_even_rows, seed=f"grade {n}").score for n in range(40)}
    assert points == {judge(board, only_even_rows).score} == {2.0}


def test_the_same_seed_gives_the_same_report_and_another_seed_other_numbers():
    def rows(seed: int) -> str:
        return str(judge(STRIDES, lambda shape: None, seed=seed).rows)

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_an_answer_that_changes_its_argument_is_told_so():
    report = judge(NEGATED, sample.broken_negated)
    assert report.score == 0.0
    assert "changes argument 1" in str(report)


def test_the_report_shows_arguments_as_they_were_before_the_answer_changed_them():
    report = judge(NEGATED, sample.broken_negated)
    assert report.rows[0].call == "negated(tk.tensor([ 1., -2.]))"


def test_a_case_of_which_nothing_else_is_known_says_how_to_go_on():
    report = judge(load()["position-of"], lambda index, stride, offset: 1000)
    assert report.mistake == ""
    assert "Work this case out on paper" in str(report)
    assert 'hint("position-of")' in str(report)


def test_a_mistake_that_raises_is_not_named_for_another_exception_of_its_class():
    def detached_and_written_to(x):
        raise RuntimeError("of something else")

    report = judge(load()["column-after-column"], detached_and_written_to)
    assert report.mistake == ""


def test_an_argument_that_is_a_view_is_said_to_be_one():
    report = judge(load()["sliding-windows"], lambda x, size: None)
    calls = {row.label: row.call for row in report.rows}
    assert "# argument 1 is a view: strides (3,), offset 1" in calls["a step and an offset"]
    assert "#" not in calls["pairs"]


def test_a_list_of_tensors_is_shown_as_it_would_be_typed():
    report = judge(load()["sgd-step"], lambda parameters, gradients, lr: 1 / 0)
    call = "sgd_step([tk.tensor([1., 2.])], [tk.tensor([ 10., -10.])], 0.1)"
    assert report.rows[0].call == call


def test_a_question_keeps_its_mark_and_gets_no_colon():
    assert judge(load()["contiguous-by-hand"], lambda shape, stride: 1).headline.startswith(
        "Is it contiguous? 0 of 4 points"
    )


def test_a_wrong_prediction_shows_the_rule_and_not_the_value():
    wrong = {**WHICH.reference, "tk.tensor([1, 2])": "int32"}
    report = judge(WHICH, wrong)
    assert "Whole numbers become int64" in str(report)
    assert report.rows[0].expected == ""
    assert report.score == 0.5  # two thirds of a point, in quarters


def test_an_unanswered_prediction_says_so():
    report = judge(WHICH, {**WHICH.reference, "tk.tensor([1, 2])": ...})
    assert report.rows[0].tip == "Replace this `...` by your prediction."


def test_an_endless_loop_is_stopped_and_the_other_cases_are_not_run():
    def endless(shape):
        while True:
            pass

    report = judge(STRIDES, endless, seconds=0.2)
    assert [row.status for row in report.rows] == ["failed", "not run", "not run"]
    assert "did not end within 0.2 seconds" in str(report)


def bare_except(shape):
    i = 0
    while True:
        try:
            for _ in range(1000):
                i += 1
        except:  # noqa: E722
            pass


def sleeper(shape):
    while True:
        try:  # noqa: SIM105
            time.sleep(0.05)
        except BaseException:
            pass


def _finally_continue():
    source = """
def answer(shape):
    while True:
        try:
            sum(range(1000))
        finally:
            continue
"""
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of Python 3.14
        exec(source, made)
    return made["answer"]


class EndlessLength(tuple):
    def __len__(self):
        while True:
            pass


class EndlessText:
    def __repr__(self):
        while True:
            pass


STUBBORN = [
    bare_except,
    sleeper,
    _finally_continue(),
    lambda shape: EndlessText(),
]


@pytest.mark.parametrize(
    ("stubborn", "in_a_thread"),
    [(one, False) for one in STUBBORN]
    # without the alarm signal a sleeping loop is not reached; see `limited`
    + [(one, True) for one in STUBBORN if one is not sleeper],
)
def test_an_endless_loop_that_catches_everything_is_stopped_too(stubborn, in_a_thread):
    reports: list[Report] = []

    def work() -> None:
        reports.append(judge(STRIDES, stubborn, seconds=0.2))

    if in_a_thread:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(timeout=60)
        assert not thread.is_alive()
    else:
        work()
    assert "did not end within 0.2 seconds" in str(reports[0])
    time.sleep(0.05)  # no late raise may hit what comes after


def test_a_container_that_lies_about_its_length_is_taken_apart_by_its_base_class():
    assert judge(STRIDES, lambda shape: EndlessLength(sample.strides_of(shape))).score == 3.0


class Liar(tuple):
    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class Pretender:
    @property
    def __class__(self):
        return tuple

    def __getattr__(self, name):
        raise SystemExit

    def __repr__(self):
        raise SystemExit


@pytest.mark.parametrize("odd", [lambda shape: Liar(shape), lambda shape: Pretender()])
def test_an_object_that_lies_earns_nothing(odd):
    assert judge(STRIDES, odd).score == 0.0


def test_what_an_answer_displays_or_logs_reaches_neither_score_nor_stderr(capsys):
    def noisy(shape):
        sys.displayhook(99.0)
        sys.stdout.close()
        return sample.strides_of(shape)

    assert judge(STRIDES, noisy).score == 3.0
    assert capsys.readouterr() == ("", "")


def test_an_endless_loop_is_stopped_where_there_is_no_alarm_signal():
    def endless(shape):
        while True:
            pass

    reports: list[Report] = []
    thread = threading.Thread(target=lambda: reports.append(judge(STRIDES, endless, seconds=0.2)))
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert "did not end within 0.2 seconds" in str(reports[0])


def test_exit_is_answered_with_a_sentence():
    report = judge(STRIDES, lambda shape: sys.exit())
    assert "SystemExit" in str(report)
    assert "This ends the whole program (`SystemExit`)" in " ".join(str(report).split())


def test_a_stop_by_the_learner_stops_the_check(monkeypatch):
    def interrupted(shape):
        raise KeyboardInterrupt

    report = checked(strides_of=interrupted)
    assert report.status == "stopped"
    assert report.score == 0.0


def test_an_exception_is_shown_with_the_line_that_raised_it():
    def broken(shape):
        return 1 / 0

    text = str(judge(STRIDES, broken))
    assert "ZeroDivisionError: division by zero" in text
    assert "return 1 / 0" in text


def test_an_object_that_raises_in_repr_gives_a_sentence():
    class Odd:
        def __repr__(self):
            raise ValueError("no")

    assert "whose __repr__ raises ValueError" in str(judge(STRIDES, lambda shape: Odd()))


def test_an_exception_that_raises_in_str_gives_a_sentence():
    class Odd(Exception):
        def __str__(self):
            raise ValueError("no")

    def raises(shape):
        raise Odd

    assert "got       Odd" in str(judge(STRIDES, raises))


@pytest.mark.parametrize("large", ["x" * 60_000_000, [0] * 8_000_000, np.zeros(15_000_000)])
def test_a_return_value_of_60_megabytes_gives_a_short_report(large):
    report = judge(STRIDES, lambda shape: large)
    assert report.score == 0.0
    assert len(str(report)) < 3000
    assert len(report.html()) < 20_000


def test_nan_is_an_answer_like_any_other():
    report = judge(STRIDES, lambda shape: math.nan)
    assert report.score == 0.0
    assert "expected is a tuple" in str(report)


def test_a_tensor_of_the_wrong_dtype_is_told_so():
    report = judge(NEGATED, lambda t: (-t).double())
    assert "Its dtype is torch.float64; expected is torch.float32." in str(report)


def test_warnings_and_prints_cost_nothing_and_are_noted(capsys):
    def noisy(shape):
        print("hello")
        print("oh", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        return sample.strides_of(shape)

    report = judge(STRIDES, noisy)
    assert report.score == 3.0
    assert any("careful" in note for note in report.notes)
    assert any("hello" in note for note in report.notes)
    assert capsys.readouterr() == ("", "")


def test_what_the_exercise_asks_for_cannot_be_called(monkeypatch):
    monkeypatch.setattr(STRIDES, "without", ("Tensor.stride", "zeros"))
    report = judge(STRIDES, lambda shape: tk.zeros(shape).stride())
    assert "zeros is what you are asked to write here" in str(report)
    report = judge(STRIDES, lambda shape: tk.ones(shape).stride())
    assert "Tensor.stride is what you are asked to write here" in str(report)
    assert tk.zeros(2, 3).stride() == (3, 1)


def checked(exercise_id: object = "sample-strides", **names: object) -> Report:
    """The report of a `check` in a notebook that holds these names."""
    from course.notebook.check import _reported

    return _reported(exercise_id, names)  # type: ignore[arg-type]


def test_check_reads_the_answer_from_the_callers_namespace():
    namespace = {"check": check, "strides_of": sample.strides_of}
    exec("report = check('sample-strides')", namespace)
    assert repr(namespace["report"]) == "3.0"


def test_an_unknown_id_suggests_the_nearest():
    report = checked("sample-stride")
    assert report.status == "unknown"
    assert 'did you mean `check("sample-strides")`' in report.message
    assert repr(report) == "0.0"


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: 3,
        lambda: sample.strides_of,
        lambda: np.zeros(3),
        lambda: tk.zeros(3),
        lambda: Pretender(),
    ],
)
def test_an_id_that_is_no_string_gives_a_sentence(make):
    assert "takes the name of an exercise in quotes" in checked(make()).message


def test_a_number_instead_of_a_function_gives_a_sentence():
    report = checked(strides_of=12)
    assert report.status == "unfit"
    assert "should be a function, and it is an int" in str(report)


def test_a_list_instead_of_a_dictionary_gives_a_sentence():
    assert "should be the dictionary of the answer cell" in str(checked("sample-dtype", dtypes=[1]))


def test_a_name_that_does_not_exist_says_what_to_run():
    report = checked()
    assert report.status == "missing"
    assert "run the answer cell above" in str(report)


@pytest.mark.parametrize("exercise_id", ["sample-strides", "sample-negated", "sample-dtype"])
def test_the_released_cell_is_not_started(exercise_id):
    cell = load()[exercise_id].released_source
    report = _run_in_python(
        f"{cell}\nreport = check({exercise_id!r})\nprint(repr(report.status), report.score)"
    )
    assert report.endswith("'not started' 0.0\n")


def _run_in_python(program: str) -> str:
    """What a fresh IPython prints for `program`, cell by cell at `# %%`."""
    runner = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "for cell in ['import tensorkit as tk, sample\\nfrom course import check', "
        "*sys.argv[2].split('# %%\\n')]:\n"
        "    shell.run_cell(cell, store_history=True)\n"
    )
    here = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", runner, here, program], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_none_alone_is_not_not_started():
    text = _run_in_python("def strides_of(shape):\n    x = 1\n# %%\ncheck('sample-strides')")
    assert "is a `return` missing?" in text
    text = _run_in_python("def strides_of(shape):\n    return None\n# %%\ncheck('sample-strides')")
    assert "missing" not in text
    assert "A function gives None where it ends without" in text


RIGHT = "def strides_of(shape):\n    return sample.strides_of(shape)\n"


def words(*cells: str) -> str:
    """What a notebook with these cells prints, on one line."""
    return " ".join(_run_in_python("# %%\n".join(cells)).split())


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        ("def strides_of(shape:\n    return 1\n", "SyntaxError"),
        ("print(undefined)\ndef strides_of(shape):\n    return 1\n", "NameError"),
    ],
)
def test_an_edit_that_did_not_run_is_noted_and_the_older_version_checked(edit, error):
    text = words(RIGHT, edit, "check('sample-strides')")
    assert "3 of 3 points" in text
    assert f"Your edit in cell [3] did not run ({error}" in text
    assert "This is the version before your last edit" in text


def test_an_edit_whose_function_was_defined_before_the_error_is_the_one_checked():
    text = words(
        "def strides_of(shape):\n    return 1\n",
        RIGHT + "print(undefined)\n",
        "check('sample-strides')",
    )
    assert "3 of 3 points" in text
    assert "did not run" not in text


def test_a_prediction_cell_that_stopped_is_noted():
    released = load()["sample-dtype"].released_source
    first = released.replace("...", '"int64"', 3)
    second = released.replace("...", "int64", 3)
    text = words(first, second, "check('sample-dtype')")
    assert "Your edit in cell [3] did not run (NameError: name 'int64' is not defined)" in text


def test_a_first_edit_that_did_not_run_is_told_so():
    text = words("def strides_of(shape:\n    return 1\n", "check('sample-strides')")
    assert "`strides_of` does not exist yet. Your edit in cell [2] did not run (SyntaxError" in text


def test_a_renamed_answer_is_told_its_name():
    cell = load()["sample-strides"].released_source.replace(
        "strides_of(shape)", "my_strides(shape)"
    )
    text = words(cell + "\n", "check('sample-strides')")
    assert "Your cell defines `my_strides`; this exercise is called `strides_of`" in text


def test_of_many_cells_a_few_are_read_for_the_name_of_an_answer(monkeypatch):
    # each may be long, and grading waits for it
    sample, read = load()["sample-strides"], []
    head = ast.parse(sample.released_source).body[0]
    text = f"# {ast.get_docstring(head).splitlines()[0]}"
    runs = [Run(n, f"{text} {n}", f"own-{n}", None) for n in range(500)]
    own = Run.defines
    monkeypatch.setattr(Run, "defines", lambda run: read.append(run) or own(run))
    assert find(sample, {}, runs).state == "missing"
    assert 0 < len(read) < 50


def test_an_answer_without_docstring_under_another_name_is_told_its_name():
    text = words("def my_strides(shape): return 1\n", "check('sample-strides')")
    assert "Your cell defines `my_strides`; this exercise is called `strides_of`" in text


def in_cells(*cells: str, cell_id: str = "sample-strides") -> str:
    """The same with the ids of a notebook: every cell is the answer cell, but for the last."""
    program = "\n".join(
        [
            "import sys; sys.path.insert(0, sys.argv[1])",
            "from IPython.core.interactiveshell import InteractiveShell",
            "shell = InteractiveShell.instance()",
            "first = 'import tensorkit as tk, sample; from course import check'",
            "shell.run_cell(first, store_history=True)",
            "for number, cell in enumerate(sys.argv[3:]):",
            "    own = sys.argv[2] if number < len(sys.argv) - 4 else 'other'",
            "    shell.run_cell(cell, store_history=True, cell_id=own)",
        ]
    )
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", program, here, cell_id, *cells]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split())


CHECK = "check('sample-strides')"


@pytest.mark.parametrize(
    "cell",
    [
        "def board(rows): return 1",
        "def stride_of(shape): return 1\nstrides_of((2, 3))",
        "%timeit -n1 -r1 pass\ndef board(rows): return 1",
    ],
)
def test_an_older_answer_is_not_checked_when_the_cell_defines_another_name(cell):
    text = in_cells(RIGHT, cell, CHECK)
    assert "An older `strides_of` is still in memory and was not checked" in text


def test_an_edit_that_begins_as_the_older_version_did_is_not_taken_for_it():
    longer = "undefined_name\ndef strides_of(shape):\n    return sample.strides_of(shape)[:9]"
    text = in_cells(RIGHT.rstrip(), longer, CHECK)
    assert "This is the version before your last edit" in text


def test_a_definition_before_the_line_that_failed_is_the_last_edit():
    edit = "dtypes = {'tk.tensor([1, 2])': 'int64'}\nundefined_name"
    text = in_cells("dtypes = {}", edit, "check('sample-dtype')", cell_id="sample-dtype")
    assert "before your last edit" not in text
    assert "1 of 3 cases" in text


def test_an_answer_beside_the_answer_cell_is_checked_with_a_note():
    sample, name = load()["sample-strides"], "strides_of"

    def answer(shape):
        return shape

    stub = Run(1, sample.released_source, sample.id, None, bound=frozenset([name]))
    own = Run(2, RIGHT, "own", None, bound=frozenset([name]))
    assert "Move it into the answer cell" in find(sample, {name: answer}, [stub, own]).note
    assert not find(sample, {name: answer}, [own]).note  # a host may give other ids
    assert not find(sample, {name: answer}, [own, stub]).note
    other = Run(2, RIGHT, "sample-dtype", None, bound=frozenset([name]))
    assert "Move it into the answer cell" in find(sample, {name: answer}, [other]).note


def test_an_answer_and_its_check_in_one_cell_are_checked():
    text = in_cells("def board(rows): return 1", RIGHT + CHECK)
    assert "3 of 3 points" in text


@pytest.mark.parametrize(
    "cell",
    [
        "%timeit pass\ndef strides_of(shape): ...\n",
        "if True:\n    def strides_of(shape): ...\n",
        "from sample import strides_of\n",
        "import sample as strides_of\n",
        "a, strides_of = 1, lambda shape: None\n",
        "strides_of: object = 1\n",
    ],
)
def test_an_unusual_definition_is_not_taken_for_another_name(cell):
    runs = [Run(3, cell, "sample-strides", None)]
    assert find(STRIDES, {"strides_of": sample.strides_of}, runs).state == "ready"


def test_a_deleted_answer_is_told_so():
    text = words("def strides_of(shape): return 1\n", "del strides_of\n", "check('sample-strides')")
    assert "was defined in cell [2] and is gone now" in text


def test_a_cell_that_ran_before_the_course_was_imported_is_not_said_to_have_defined_anything():
    found = find(STRIDES, {}, [Run(1, RIGHT, None, UNKNOWN)])
    assert "`strides_of` does not exist yet: run the answer cell above" in found.sentence


def test_no_cell_numbers_are_named_while_grading(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    found = find(STRIDES, {}, [Run(12, "def strides_of(\n", None, "SyntaxError", "never closed")])
    assert "Your edit in the cell did not run (SyntaxError: never closed)" in found.sentence


def test_a_library_that_was_changed_earns_nothing(monkeypatch):
    monkeypatch.setattr(tk, "tensor", 5)
    report = checked("sample-negated", negated=lambda t: tk.tensor(t))
    assert report.score == 0.0
    assert "Restart the kernel" in report.message


def test_a_library_that_was_changed_before_the_first_check_gives_a_sentence():
    text = words("tk.zeros = 5\n", "check('checkerboard')")
    assert "could not be checked (TypeError" in text
    assert "Traceback" not in text


def test_a_loop_at_the_recursion_limit_is_stopped():
    # in a process of its own: with no stack left, pytest's own hooks fail too
    text = words(
        "def at_the_limit(shape):\n"
        "    try:\n"
        "        return at_the_limit(shape)\n"
        "    except RecursionError:\n"
        "        while True:\n"
        "            pass\n",
        "from course.notebook.check import judge\nfrom course.notebook.exercise import load\n"
        "print(judge(load()['sample-strides'], at_the_limit, seconds=0.2))",
    )
    assert "did not end within 0.2 seconds" in text


def test_a_check_inside_an_answer_leaves_the_outer_limit_as_it_was():
    def nested(shape):
        judge(NEGATED, sample.negated, seconds=5.0)
        while True:
            pass

    assert "did not end within 0.3 seconds" in str(judge(STRIDES, nested, seconds=0.3))


def test_checks_in_several_threads_leave_standard_output_as_it_was():
    before = sys.stdout
    threads = [
        threading.Thread(target=checked, kwargs={"strides_of": sample.strides_of}) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sys.stdout is before


@pytest.mark.parametrize("answer", [lambda n: 10**5000, lambda n: sample.bytes_apart])
def test_a_huge_number_or_a_function_gives_a_short_report(answer):
    report = judge(STRIDES, answer)
    assert report.status == "failed"
    assert len(str(report)) < 1000


def test_an_enumeration_of_numbers_counts_as_its_numbers():
    sizes = enum.IntEnum("sizes", {"FOUR": 4, "ONE": 1})

    def answer(shape):
        right = sample.strides_of(shape)
        return (sizes.FOUR, sizes.ONE) if right == (4, 1) else right

    assert judge(STRIDES, answer).score == 3.0


def test_input_is_refused_with_a_sentence():
    report = judge(STRIDES, lambda shape: input("rows?"))
    assert "`input()` asks a person" in str(report)


def test_a_mistake_that_does_not_explain_the_first_failure_is_not_named(monkeypatch):
    # agrees with "column-major" on the later cases; the first fails otherwise
    def answer(shape):
        return "odd" if shape == (3, 4) else sample.from_the_left(shape)

    assert judge(STRIDES, answer).mistake == ""


def test_validate_lists_what_is_not_full_on_stderr(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    exec("check('sample-strides')", {"check": check, "strides_of": sample.bytes_apart})
    assert "These are bytes" in capsys.readouterr().err
    exec("check('sample-strides')", {"check": check, "strides_of": sample.strides_of})
    assert capsys.readouterr().err == ""


def test_a_check_calls_the_answer_once_for_each_case():
    calls = []
    judge(STRIDES, lambda shape: calls.append(shape) or sample.strides_of(shape))
    assert len(calls) == 3


def misspelt(shape):
    return shpae  # noqa: F821


def with_too_few_parameters():
    return None


def strides_of(shape):
    return strides_of()


def beyond_the_end(shape):
    return shape[9]


class EndlessMessage(Exception):
    def __str__(self):
        while True:
            pass


def raises_without_end(shape):
    raise EndlessMessage


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (misspelt, "Is the name spelled"),
        (with_too_few_parameters, "keep the `def` line as it was released"),
        (beyond_the_end, "which index does the line ask for"),
        (lambda shape: 1 // 0, "makes the divisor 0"),
        (lambda shape: {}["no"], "this key is not there"),
        (lambda shape: int("no"), "Make this call yourself"),
        (lambda shape: shape.__setitem__(0, 1), "Is the name behind the dot spelled"),
        (lambda shape: operator.setitem(shape, 0, 1), "make a `tuple(...)` at the end"),
        (lambda shape: shape * shape, "Go through them in a loop"),
        (lambda shape: None + 1, "Something in this line is None"),
        (lambda shape: ... + 1, "A gap is still open"),
        (lambda shape: tk.zeros(2).tolist.sum(), "Parentheses are missing"),
        (lambda shape: [a + b for a, b in {"key": 1}], "`.items()` gives pairs"),
        (lambda shape: tk.zeros(4).unfold(0, 2, 1), "what this chapter and those before it"),
        (lambda shape: tk.zeros(4).as_strided((2,), ((1,),)), "Print the arguments"),
        (strides_of, "Compare this call of `strides_of` with its `def` line"),
        (lambda shape: tk.zeros(2) + tk.zeros(3), "The size of tensor a (2)"),
    ],
)
def test_an_exception_is_answered_by_what_to_look_at(answer, words):
    assert words in " ".join(str(judge(STRIDES, answer)).split())


def test_an_exception_whose_message_never_ends_is_stopped():
    assert "did not end within" in str(judge(STRIDES, raises_without_end, seconds=0.2))


@exercise("sample-without", answer=sample.strides_of, difficulty=1, minutes=1, without=("numel",))
class WithoutNumel(Exercise):
    """Without numel

    Nothing.
    """

    def cases(self, draw):
        yield case(tk.ones(2), label="a vector")

    def expected(self, t):
        return 2


counted = tk.numel


@pytest.mark.parametrize("answer", [lambda t: tk.numel(t), tk.numel, lambda t: counted(t)])
def test_a_refused_function_is_refused_under_every_name(answer):
    report = judge(load()["sample-without"], answer)
    assert "what you are asked to write" in report.rows[0].got


# No sentence says what is not so


def advice(source, name="strides_of"):
    """What the first failure of an answer with this source is advised."""
    namespace = {"sample": sample, "tk": tk}
    exec(source, namespace)
    report = judge(load()["sample-strides"], namespace[name], source=source)
    return next(row.tip for row in report.rows if row.status == "failed")


def test_deep_calls_are_not_called_endless():
    tip = advice("def strides_of(shape, n=0):\n    return strides_of(shape, n + 1)")
    assert "deeper than Python allows" in tip
    assert "without end" not in tip


@pytest.mark.parametrize(
    ("line", "is_said"),
    [("x.backward()", True), ("x.requires_grad_(); tk.ones(2).sum().backward()", False)],
)
def test_a_repair_that_stands_in_the_answer_is_not_said(line, is_said):
    tip = advice(f"def strides_of(shape):\n    x = tk.ones(())\n    {line}")
    assert ("requires_grad_()" in tip) == is_said


def test_the_line_that_is_named_is_one_of_the_learners():
    answer = "import statistics\ndef strides_of(shape):\n    return statistics.mean([])"
    assert "got" not in advice(answer)
    text = words(answer + "\n", "check('sample-strides')")
    assert "line 3: return statistics.mean([])" in text


def test_a_line_of_another_cell_is_said_to_be_one():
    text = words("def other(): return 1 / 0\n", "strides_of = lambda shape: other()\n", CHECK)
    assert "line 1: strides_of = lambda shape: other()" in text


@pytest.mark.parametrize(
    ("predicted", "said"),
    [
        (4, "a whole number; write a text in quotes"),
        (["int64"], "a list; write a text in quotes"),
        ("float64", "Whole numbers become int64."),
    ],
)
def test_a_prediction_of_another_kind_is_told_how_to_write_it(predicted, said):
    predictions = dict.fromkeys(load()["sample-dtype"].questions, predicted)
    assert said in judge(load()["sample-dtype"], predictions).rows[0].tip


def test_an_answer_that_prints_nothing_is_not_said_to_print():
    def silent(fahrenheit):
        fahrenheit - 32

    def printing(fahrenheit):
        print((fahrenheit - 32) / 1.8)

    celsius = load()["celsius"]
    assert judge(celsius, printing).mistake == "prints"
    assert judge(celsius, silent).mistake == ""
