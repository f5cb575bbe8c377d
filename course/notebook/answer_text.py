"""Whether the text of a cell holds an answer, told without parsing it.

A text can be made to take a parser minutes, and hundreds of times its size. A cell *gives* an
answer if it defines a name of the released answer cell as a function, a class or another name of
one; or, where the answer is a dictionary, as a dictionary, or if it changes that dictionary. A
number, a list or the value of a call that has such a name is no answer.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

Cell = dict[str, Any]


def is_untouched(answer: Cell, released: Cell) -> bool:
    """Whether an answer cell is as released but for comments, or has no code of an answer.

    It has none if it is empty, if its lines are `pass`, constants and `print(...)`, or if it is the
    first line of the released definition with nothing but `pass` or constants as its body.
    """
    text, stub = (_without_comments(cell["source"]) for cell in (answer, released))
    return text in ("", stub) or _without_code(released["source"]).fullmatch(text) is not None


def is_copy(cell: Cell, released: Cell) -> bool:
    """Whether a cell defines a name of this answer cell as the released code does: no answer."""
    return bool(begin(cell, released)) and is_untouched(cell, released)


def ends_as_released(cell: Cell, released: Cell) -> bool:
    """Whether a cell defines an answer and, below it, the same name as it was released."""
    places = [match.start() for match in _begin(released["source"]).finditer(cell["source"])]
    if not places[1:]:
        return False
    above, below = cell["source"][: places[-1]], cell["source"][places[-1] :]
    return is_copy({"source": below}, released) and not is_untouched({"source": above}, released)


def answered(cell: Cell, released_cells: list[Cell]) -> set[str]:
    """The ids of the answer cells among these to whose exercises a cell has an answer."""
    text = without_texts(cell["source"])
    return {
        released["id"]
        for released in released_cells
        if _begin(released["source"]).search(text) and not is_untouched(cell, released)
    }


def begin(cell: Cell, released: Cell) -> str:
    """The first text in a cell that defines or changes a name of this answer cell; or ""."""
    match = _begin(released["source"]).search(without_texts(cell["source"]))
    return match[0].strip() if match else ""


def names(cell: Cell, released: Cell) -> bool:
    """Whether a name that this answer cell defines stands anywhere in a cell."""
    return re.search(rf"\b(?:{_names(released['source'])})\b", cell["source"]) is not None


def defined_names(source: str) -> set[str]:
    """The functions, classes and variables that a cell defines at its top level."""
    return set(_DEFINED.findall(source))


_DEFINED = re.compile(r"^(?:(?:def|class) +|(?=\w+[ \t]*=[^=]))(\w+)", re.MULTILINE)


@cache
def _names(released: str) -> str:
    """A pattern of the names that this answer cell defines."""
    return "|".join(map(re.escape, sorted(defined_names(released)))) or "(?!)"  # matches nothing


@cache
def _begin(released: str) -> re.Pattern[str]:
    """A pattern of texts that define a name of this answer cell as an answer, or change it."""
    name = f"(?:{_names(released)})"
    # neither a method, nor a keyword argument or a dictionary's key, whose name begins a line
    head = rf"^(?:|[ \t]+(?!def[ ]+\w+\(self\b))(?:def|class)[ ]+{name}\b"
    assigned = rf"^(?<![(\[{{,]\n){name}[ \t]*(?::[^=\n]*)?=[ \t]*"
    other_name = r'(?!\d|(?:None|True|False)\b)\w+(?:\.\w+)*[ \t]*(?:""|;|$)'
    if re.search(r"^(?:def|class)\b", released, re.MULTILINE):
        return re.compile(rf"(?m){head}|{assigned}(?:\(?lambda\b|{other_name})")
    entry = r"\[\s*+[^\n]{0,200}\s*+\][ \t]*+=(?!=)"
    changed = rf"\b{name}[ \t]*+(?:{entry}|\.(?:update|setdefault)[ \t]*+\(|\|=)"
    dictionary = rf"\{{|dict\(|{name}[ ]*\||{other_name}"
    return re.compile(rf"(?m){assigned}(?:{dictionary})|{changed}")


def without_texts(source: str) -> str:
    """A program with "" in place of its comments and its strings, which may mention any name.

    So is a cell with a magic that does not run it as a part of the notebook, as `%%writefile`.

    >>> without_texts("# f\\nx = \'\'\'\\nf, and g\'\'\'\\ndef f(): ...")
    '""\\nx = ""\\ndef f(): ...'
    """
    return _TEXTS.sub('""', source)


# a string that does not end takes all the rest: to look for each end anew is quadratic
_TEXTS = re.compile(
    r"""\A\s*%%(?!(?:time|capture|prun)\b).* | \#[^\n]* | ("{3}|'{3}) .*? (?:\1|\Z)"""
    r"""| "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?""",
    re.DOTALL | re.VERBOSE,
)


def _without_comments(source: str) -> str:
    """The text without lines that are comments, and without spaces at the ends."""
    lines = [line.rstrip() for line in source.splitlines()]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


_CONSTANT = r"""(?:pass|None|[\d.]+|"{3}[^"]*"{3}|'{3}[^']*'{3}|"[^"\n]*"|'[^'\n]*')"""
_PARAMETERS = r"\((?:[^()]|\([^()]*\))*\)"
"""In their parentheses, which may stand on several lines."""


@cache
def _without_code(released: str) -> re.Pattern[str]:
    """A pattern of whole texts that an answer cell may have instead, without code of an answer."""
    name = _names(released)
    following = rf"(?:{_PARAMETERS})?[^\n]*:\s*(?:{_CONSTANT}(?:\n\s*|\Z))+"
    head = rf"(?:def|class)[ ]+(?:{name})\b{following}"
    # where no name is defined, a person reads the answer: that may be a text or `print(...)`
    lines = "(?!)" if name == "(?!)" else rf"(?:(?:{_CONSTANT}|print\([^\n]*\))(?:\n|\Z))+"
    return re.compile(f"{head}|{lines}")
