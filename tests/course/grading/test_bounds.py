"""Every step has a bound of time, memory and size, whatever was handed in or is sent back."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from classroom import CHAPTER, FILE, LIMITS, Class, Notebook, cell_of, put_first

from course.grading import intake, judge, pool, similar, worker, writer
from course.grading.clean import (
    MOST_LEFT,
    Quota,
    clean_html,
    clean_markdown,
    clean_outputs,
    cut_code,
)
from course.grading.feedback import Formulas
from course.grading.intake import Submission
from course.grading.pool import Job, Worker
from course.grading.result import Result
from course.notebook import check, exercise
from course.notebook.matching import Source
from course.sandbox import profiles, wire

SECONDS, MEMORY, PAGE = 60, 600, 5_000_000
"""What one submission may take: seconds, megabytes of memory, bytes of its page."""

RUN = (
    "import course.sandbox.learner as it\n"
    "own = it.Learner._run_cell\n"
    "it.Learner._run_cell = lambda *a: own(*a) | dict({forged})"
)
LOOK = (
    "import course.sandbox.learner as it\n"
    "own = it.Learner._do_call\n"
    "def forged(self, message, blocks):\n"
    "    reply, memory = own(self, message, blocks)\n"
    "    if message['function'] == 'look':\n"
    "        reply['value'] = {forged}\n"
    "    return reply, memory\n"
    "it.Learner._do_call = forged"
)
STREAM = "dict(output_type='stream', text='%s'"
FORGED_TEXT = "8 MB of a cell's text"
FORGED = {
    FORGED_TEXT: RUN.format(forged="source='x = 1;' * 1_300_000"),
    "8 MB of a function's text": LOOK.format(forged="{'t': [1, 'x = 1;' * 1_300_000, {'l': []}]}"),
    "8 MB of {} as outputs": RUN.format(forged="outputs=[{}] * 2_000_000"),
    "8 MB of {} as a value": LOOK.format(forged="{'l': [{}] * 2_000_000}"),
    "200,000 outputs": RUN.format(forged=f"outputs=[{STREAM % 'a'})] * 200_000"),
    "7 MB of an output": RUN.format(forged=f"outputs=[{STREAM % '<'} * 7_000_000)]"),
}


@pytest.fixture(
    scope="module",
    params=[profiles.NAMESPACES, pytest.param(profiles.LANDLOCK, marks=pytest.mark.rest)],
)
def grader(request: pytest.FixtureRequest, source: Source) -> Iterator[Worker]:
    """A worker, under each of the two profiles."""
    if (reason := profiles.why_not(request.param)) is not None:
        pytest.skip(reason)
    started = Worker(41, source, request.param, LIMITS)
    yield started
    started.close()


def grade(grader: Worker, notebook: Notebook) -> Result:
    """The result of a submission, which took no more than one may."""
    begun = time.monotonic()
    content = json.dumps(notebook).encode()
    result = pool.grade_one(grader, Job(Submission("ada", CHAPTER, content), "seed"))
    assert time.monotonic() - begun < SECONDS
    assert grader._process is not None
    status = Path(f"/proc/{grader._process.pid}/status").read_text(encoding="ascii")
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert peak < MEMORY << 10
    assert 0 < len(result.page) < PAGE
    return result


@pytest.mark.parametrize(
    "name",
    [
        FORGED_TEXT,
        *(pytest.param(name, marks=pytest.mark.rest) for name in FORGED if name != FORGED_TEXT),
    ],
)
def test_what_the_learners_side_sends_is_cut_by_who_receives_it(
    grader: Worker, source: Source, name: str
) -> None:
    klass = Class(None, source)  # type: ignore[arg-type]
    assert grade(grader, put_first(klass.honest(), FORGED[name])).status == "graded"
    assert grade(grader, klass.honest()).score == 20, "the next one is as before"


def test_a_result_keeps_a_part_of_each_cell_of_a_long_notebook(
    grader: Worker, source: Source
) -> None:
    # it held 36 MB, which every report of the class read
    notebook = Class(None, source).honest()  # type: ignore[arg-type]
    long = {"cell_type": "markdown", "metadata": {}, "source": "a" * 1_000_000}
    notebook["cells"][3:3] = [long] * 17
    result = grade(grader, notebook)
    assert result.score == 20
    assert len(result.to_json()) < 2 << 20
    assert "[The rest is not shown" in result.cells[3]["source"]
    solution = exercise.load()["pixels"].solution_source
    assert cell_of({"cells": result.cells}, "pixels")["source"] == solution


@pytest.mark.parametrize("count", [300, pytest.param(900, marks=pytest.mark.rest)])
def test_many_long_cells_are_not_parsed(grader: Worker, source: Source, count: int) -> None:
    # each is parsed in a hundred times its size and more
    notebook = Class(None, source).honest()  # type: ignore[arg-type]
    for cell in notebook["cells"]:
        del cell["id"]
        cell["metadata"] = {}
    long = {"cell_type": "code", "metadata": {}, "source": "#" + "a," * 10_000}
    notebook["cells"][3:3] = [long] * count
    result = grade(grader, notebook)
    assert result.score == 20
    assert "The rest is not shown: the notebook's code is too long" in result.page


TAKES = {
    "arrays": "import numpy as np\nx = []\nwhile True: x.append(np.ones(1_000_000))",
    "small objects": "x = []\nwhile True: x.append(bytes(1000))",
    "shared memory": "import mmap\nx = []\nwhile True:\n    x.append(mmap.mmap(-1, 1 << 23))\n"
    "    x[-1].write(bytes(1 << 23))",
}


@pytest.mark.parametrize("name", TAKES)
def test_a_submission_has_no_more_memory_than_is_promised(
    grader: Worker, source: Source, name: str
) -> None:
    honest = Class(None, source).honest()  # type: ignore[arg-type]
    grade(grader, honest)  # starts the worker
    assert grader._process is not None
    pid, peak, is_over = grader._process.pid, 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not is_over.wait(0.02):
            peak = max(peak, resident(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    score = grade(grader, put_first(honest, TAKES[name])).score
    is_over.set()
    watcher.join()
    assert score == 20, "the cell that takes it is left out"
    assert 200 < peak < MEMORY


def resident(pid: int) -> float:
    """Megabytes of a process and of all that it started, each page counted once."""
    with contextlib.suppress(OSError):  # it has ended
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        own = next(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return own + sum(resident(int(child)) for child in children)
    return 0.0


def test_more_memory_than_a_submission_has_is_told(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(judge, "grade", large)
    submission = Submission("ada", CHAPTER, b"{}")
    result = worker._graded(klass_once.warm, klass_once.source, submission, "seed")
    assert (result.status, result.score) == ("refused", 0)
    assert "more memory than a submission has" in result.sentence


@pytest.mark.parametrize(
    "fault", [SystemError("error return without exception set"), MemoryError()]
)
def test_a_page_that_cannot_be_made_ends_no_worker(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    # nbconvert, imported where the memory was full, raised SystemError: a traceback in the terminal
    def fail(*_: object) -> None:
        raise fault

    submission = Submission("ada", CHAPTER, json.dumps(klass_once.blank()).encode())
    monkeypatch.setattr(writer, "autograded", fail)
    result = worker._graded(klass_once.warm, klass_once.source, submission, "seed")
    assert (result.status, result.exercises) == ("ungraded", ())
    assert result.sentence == f"Its page cannot be made ({type(fault).__name__})"


def test_a_page_is_made_only_where_there_is_memory(
    klass_once: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    for place, name in ((worker, "needs_memory"), (judge, "grade"), (writer, "autograded")):
        own = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *a, own=own, n=name: steps.append(n) or own(*a))
    submission = Submission("ada", CHAPTER, json.dumps(klass_once.blank()).encode())
    assert worker._graded(klass_once.warm, klass_once.source, submission, "seed").page
    assert steps == ["needs_memory", "grade", "needs_memory", "autograded"]


def opened_anew(count: int, value: str = "{}") -> str:
    """Tags of which each paragraph opens all before it anew."""
    return "".join(f"<b title={value.format(number)}><p>" for number in range(count))


MARKDOWN = [opened_anew(300), opened_anew(3000)]
MARKDOWN += [
    "\\\\[a",
    "\\\\(",
    "\\begin{a}",
    "$$a ",
    "$a",
    "[",
    "[a](",
    "![a](attachment:",
    "<pre>",
    "<div>",
]


@pytest.mark.parametrize("text", MARKDOWN, ids=lambda text: text[:20])
def test_a_text_costs_no_more_than_seconds_on_each_page(text: str) -> None:
    from nbconvert.filters import markdown2html, strip_files_prefix

    begun = time.process_time()
    shown = clean_markdown(text * (59_000 // len(text)))
    cell = nbformat.v4.new_markdown_cell(shown)
    Formulas().preprocess_cell(cell, {}, 0)
    page = strip_files_prefix(markdown2html(cell.source))
    assert time.process_time() - begun < 12
    assert len(page) < PAGE


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        (opened_anew(100), True),
        (opened_anew(3000), False),
        (opened_anew(3000, "'<{}>'"), False),
        (opened_anew(1000, '"a=\'>{}"'), False),
        (f"<a title='{'x' * 500_000}'>" + "<p>" * 10_000, False),
        ("<table>" + "<tr><td><b>1</b></td><td><i>2</i></td></tr>" * 1500, True),
        ("".join(f"<p><a href='https://x.org/{n}'>{n}</a> <b>b</b>" for n in range(2000)), True),
    ],
    ids=range(7),
)
def test_html_that_would_fill_the_memory_is_shown_as_text(text: str, is_kept: bool) -> None:
    assert clean_html(text).startswith("<pre>") != is_kept


@pytest.mark.parametrize("end", ["", "</p>", "</div>", "<p>"])
def test_deeply_nested_html_costs_no_more_than_seconds(end: str) -> None:
    # the sanitiser takes quadratic time in the depth, which the number of tags limits
    begun = time.process_time()
    shown = clean_html("<div>" * 300_000 + end)
    assert shown.startswith("<pre>")
    shown = clean_html("<div>" * 18_000 + end * 1900)
    assert shown.startswith("<div>")
    assert time.process_time() - begun < 8


@pytest.mark.parametrize("between", [" ", "/", "=''", "\n"])
def test_a_tag_with_many_attributes_costs_no_more_than_seconds(between: str) -> None:
    # the sanitiser takes quadratic time in those of one tag: 3 s for each of these, 8 for the first
    tags = [f"<{end}b {between.join(f'{n:x}' for n in range(130_000))}>x" for end in ("", "/")]
    quota = Quota()
    begun = time.process_time()
    shown = [clean_html(text, quota) for text in tags * 4]
    assert all(text.startswith("<pre>") for text in shown)
    assert time.process_time() - begun < 6


def test_what_is_cut_of_a_text_is_told() -> None:
    shown = clean_markdown("\\\\( <b>" * 9000, Quota(seconds=0.0))
    assert "[The rest is left out: it takes too long to show.]".replace("[", "&#91;") in shown
    assert len(shown) < 10 * MOST_LEFT


def test_a_page_has_a_size() -> None:
    quota = Quota(page=1000, code=20)
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": each} for each in ("a", "<" * 900, "b")
    ]
    first, second = clean_outputs(outputs, quota)
    assert first["text"] == "a"
    assert "The rest is not shown: the notebook's outputs are too large" in second["text"]
    texts = Quota(rendered=1000)
    shown = [clean_markdown(f"<b>{'a' * 500}", texts) for _ in range(2)]
    assert ["<pre>" in each for each in shown] == [False, True]
    assert cut_code("x = 1", quota) == "x = 1"
    assert cut_code("y = 1\n" * 100, quota).endswith("the notebook's code is too long for a page.]")


def many_entries(archive: zipfile.ZipFile) -> None:
    for n in range(100_000):
        archive.writestr(zipfile.ZipInfo(str(n)), b"")


def bomb(archive: zipfile.ZipFile) -> None:
    archive.writestr(FILE, bytes(1 << 30), zipfile.ZIP_DEFLATED)


def packed_in_an_unusual_way(archive: zipfile.ZipFile) -> None:
    # LZMA names the gigabytes that it wants to unpack with
    archive.writestr(FILE, "{}", zipfile.ZIP_LZMA)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (many_entries, "more than 1000 files"),
        (bomb, "1074 MB; 21 MB are read"),
        (packed_in_an_unusual_way, "unusual way"),
    ],
)
def test_an_archive_is_opened_in_the_worker_and_refused(
    grader: Worker, tmp_path: Path, write: Callable[[zipfile.ZipFile], None], words: str
) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        write(archive)
    begun = time.process_time()
    submission = intake.read(tmp_path, "ada", CHAPTER)  # in the process that writes
    assert time.process_time() - begun < 1
    result = pool.grade_one(grader, Job(submission, "seed"))
    assert (result.status, result.score) == ("refused", 0)
    assert words in result.sentence


def test_who_always_has_something_to_say_is_late_too() -> None:
    receiver = wire.Wire(os.open("/dev/zero", os.O_RDONLY))
    with pytest.raises(TimeoutError):
        receiver.receive(until=time.monotonic() - 1)
    os.close(receiver.descriptor)


def test_a_page_of_an_older_result_is_written_again(source: Source) -> None:
    result = Result("ada", CHAPTER, status="refused", sentence="No.")
    assert "No." in json.loads(writer.autograded(result, source))["cells"][0]["source"]


def test_of_a_long_answer_the_beginning_is_compared() -> None:
    begun = time.process_time()
    similar.shingles("a," * 1_000_000)
    assert time.process_time() - begun < 2


def test_what_a_mistake_says_of_the_code_is_looked_up_in_seconds() -> None:
    # a pattern with `\w+` takes quadratic time in a long word: this one took 50 s, with no limit
    definition = exercise.load()["cleaned"]
    source = f"def cleaned(readings):\n    word = '{'_' * 90_000}'\n    return readings"
    begun = time.process_time()
    check.judge(definition, lambda readings: readings, source=source)
    assert time.process_time() - begun < 10


@pytest.mark.rest
def test_troubles_are_counted(klass_once: Class) -> None:
    forge = RUN.format(forged="stopped=True")
    notebook = put_first(klass_once.honest(), forge)
    own = cell_of(notebook, "mine")
    notebook["cells"] += [{**own, "id": f"own-{n}", "source": str(n)} for n in range(100)]
    told = klass_once.grade(notebook).troubles
    assert len(told) == 50
    assert told[-1] == "What happened to other cells is left out."
