"""Feedback: formulas without a network, no source of what was hidden, no script."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from classroom import CHAPTER, Class, School, cell_of
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from course.grading.batch import grade
from course.grading.feedback import older_than_grades, with_mathml
from course.grading.nbgrader_way import ReleaseFeedback
from course.notebook import matching
from course.shared.errors import CourseError


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("costs 5$ or 6$ a piece", "costs 5$ or 6$ a piece"),
        ("`$x$`", "`$x$`"),
        ("```\n$x$\n```", "```\n$x$\n```"),
        (r"\$x\$", r"\$x\$"),
        ("$\\bad{$", "$\\bad{$"),
        ('<a title="$x$">$</a>', '<a title="$x$">$</a>'),
    ],
)
def test_what_is_no_formula_stays(text: str, kept: str) -> None:
    assert with_mathml(text) == kept


def test_a_formula_is_one_element_without_signs_that_markdown_reads() -> None:
    found = with_mathml(r"$a * b * c_1 < \frac{1}{2}$ and $$\tanh^2 u$$")
    assert re.findall(r'<math display="(\w+)">', found) == ["inline", "block"]
    assert "$" not in found
    assert "*" not in found
    assert "_" not in found
    assert "&lt;" in found


@pytest.mark.parametrize(
    "latex",
    [
        r"\text{<script>alert(1)</script>}",
        r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
        r"\href{javascript:alert(1)}{x}",
        r"\style{background:url(x)}{x}",
        r'\class{a" onclick="alert(1)}{x}',
    ],
)
def test_a_formula_brings_no_tag_and_no_attribute_of_its_own(latex: str) -> None:
    found = with_mathml(f"${latex}$")
    assert "<math" in found
    assert not re.search(r"<script|href=|style=|class=|onclick=", found)


def _config(school: School) -> Config:
    """The configuration of nbgrader for a class."""
    from course.authoring.release import nbgrader_config

    config = nbgrader_config()
    config.CourseDirectory.root = str(school.root)
    config.CourseDirectory.db_url = f"sqlite:///{school.root}/course/gradebook.db"
    config.CourseDirectory.assignment_id = CHAPTER
    return config


@pytest.fixture
def graded(school: School, klass_once: Class) -> Config:
    """The configuration of a class with a learner who wrote a formula, a script and a mistake."""
    notebook = klass_once.honest()
    text = "Mine: $E = m c^2$ <script>alert(1)</script>"
    notebook["cells"].insert(
        1, {"cell_type": "markdown", "id": "m", "metadata": {}, "source": text}
    )
    id = next(iter(klass_once.exercises))
    cell_of(notebook, id)["source"] = cell_of(klass_once.blank(), id)["source"]
    folder = school.submit("ada", notebook)
    (folder / "timestamp.txt").write_text("2027-03-02 01:30:00 UTC")
    with school.gradebook() as book:
        book.update_or_create_student("ada", first_name="Ada", last_name="Lovelace")
        book.update_or_create_assignment(CHAPTER, duedate=datetime(2027, 3, 1, 0, 30))
    config = _config(school)
    grade(school.root, CHAPTER, workers=1, config=config)
    other = list(klass_once.exercises)[-1]
    with school.gradebook() as book:
        book.find_comment(other, CHAPTER, CHAPTER, "ada").manual_comment = "See $a^2$."
        book.db.commit()
    return config


def _feedback(config: Config) -> Path:
    """Run `nbgrader generate_feedback` and give the learner's page."""
    from nbgrader.converters import GenerateFeedback

    GenerateFeedback(coursedir=CourseDirectory(config=config), config=config).start()
    folder = Path(config.CourseDirectory.root, "course", "feedback", "ada", CHAPTER)
    return folder / f"{CHAPTER}.html"


@pytest.fixture
def page(graded: Config) -> str:
    """The learner's feedback."""
    return _feedback(graded).read_text(encoding="utf-8")


@pytest.mark.rest
def test_the_page_of_a_notebook_that_is_as_full_as_may_be_has_a_size(
    school: School, klass_once: Class
) -> None:
    notebook = klass_once.honest()
    texts = [f"print('a' * 99_000)  # {n}" for n in range(25)] + ["1+" * 29_900 + "1"]
    texts += ["1"] * (matching.MOST_CELLS - 1 - len(notebook["cells"]) - len(texts))
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in texts]
    notebook["cells"] += [{"cell_type": "markdown", "metadata": {}, "source": "# a\n" * 15_000}]
    school.submit("ada", {**notebook, "cells": [*notebook["cells"], *cells]})
    config = _config(school)
    grade(school.root, CHAPTER, config=config, workers=1)
    assert 4_000_000 < _feedback(config).stat().st_size < 5_000_000


@pytest.mark.parametrize(
    ("kind", "change"),
    [("grades", "manual_score"), ("grades", "extra_credit"), ("comments", "manual_comment")],
)
def test_a_page_of_before_a_change_by_hand_is_not_released(
    school: School, graded: Config, kind: str, change: str
) -> None:
    _feedback(graded)
    assert older_than_grades(school.root, CHAPTER, graded) == []
    with school.gradebook() as book:
        entries = getattr(book.find_submission(CHAPTER, "ada").notebooks[0], kind)
        setattr(entries[0], change, 0.5)
        book.db.commit()
    assert older_than_grades(school.root, CHAPTER, graded) == ["ada"]
    exchange = school.root / "exchange"
    exchange.mkdir()
    graded.Exchange.root = str(exchange)
    directory = CourseDirectory(config=graded)
    with pytest.raises(SystemExit, match=r"generate_feedback 01_tensors --force\. Nothing was"):
        ReleaseFeedback(coursedir=directory, authenticator=None, config=graded).start()
    assert not list(exchange.rglob("*.html"))


@pytest.mark.rest
@pytest.mark.parametrize("is_there", [True, False])
def test_no_page_is_made_of_a_grade_by_other_points(
    school: School, graded: Config, is_there: bool
) -> None:
    with school.gradebook() as book:
        cells = book.find_assignment(CHAPTER).notebooks[0].grade_cells
        changed = next(cell for cell in cells if cell.max_score)
        changed.max_score = 9
        changed.name = changed.name if is_there else "check-other"
        book.db.commit()
    with pytest.raises(SystemExit, match="nbgrader generate_assignment"):
        _feedback(graded)
    assert not (school.root / "course" / "feedback" / "ada" / CHAPTER).exists()


@pytest.mark.rest
def test_no_page_is_made_of_a_chapter_that_is_not_built(
    school: School, graded: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_built(*_: object) -> None:
        raise CourseError("not built")

    monkeypatch.setattr("course.notebook.matching.source_of", not_built)
    with pytest.raises(SystemExit, match="not built"):
        _feedback(graded)


def test_no_page_is_made_of_another_notebook_than_the_graded_one(
    school: School, graded: Config
) -> None:
    # an older folder was restored, or another learner's
    file = school.root / "course" / "autograded" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    file.write_text(file.read_text("utf-8").replace("Mine: ", "Hers: "), "utf-8")
    with pytest.raises(SystemExit, match=r"notebook of ada is not .*: course grade 01_tensors"):
        _feedback(graded)


@pytest.mark.rest
def test_the_list_above_the_page_leads_to_each_answer(page: str, klass_once: Class) -> None:
    listed = page[page.index("<nav") : page.index("</nav>")]
    first, *others = klass_once.exercises.values()
    for other in others:
        points = f"{other.points:g} of " if other.points else "further, "
        title = other.title.replace("`", "")
        assert re.search(rf'class="good">.*<a href="#{other.id}">{title}</a>: {points}', listed)
        begins = re.search(rf'<section [^>]*id="{other.id}"', page)
        assert begins is not None
        assert other.name in page[begins.end() :], "the link leads to the answer, not below it"
    assert re.search(rf'class="open">.*○.*<a href="#{first.id}">.*: not started, 0 of ', listed)
    assert listed.count("A comment on") == 1  # the one that a person wrote
    assert "No response." in page


@pytest.mark.rest
def test_the_page_begins_with_learner_time_lateness_and_points(page: str) -> None:
    head = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page[page.index("<h1>") :]))
    assert head.startswith(" 01 Tensors learner Ada Lovelace (ada) ")
    assert "handed in 2 March 2027, 01:30 UTC 1 day 1 hour late " in head
    assert " points 19 of 20 " in head


@pytest.mark.rest
def test_the_page_of_feedback_is_whole_without_a_network(page: str) -> None:
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', re.sub(r"<a [^>]*>", "", page))
    assert re.search(r"<math display=\"inline\">.*<mi>E</mi>", page)
    assert re.search(r"See <math display=\"inline\">.*<mi>a</mi>", page)
    assert "default-src 'none'" in page
    assert "not started" in page
    assert page.count("<table") > 3
