"""The pages of the API reference: which names they show, and docstrings as Sphinx reads them.

`reference.toml` lists the pages. Each becomes a file of autodoc directives. The docstrings are
plain text with ``code`` and examples; Sphinx reads reStructuredText, where `add_` would be a link.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

PAGES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["page"]

CLASSES = {name for page in PAGES for name in page["names"].split() if name[0].isupper()} | {
    "tuple"
}


def names_of(page: dict[str, str]) -> list[str]:
    """The names that a page shows, in its order."""
    return page["names"].split()


def index() -> str:
    """The source of the page that leads to the others."""
    title = "API reference"
    text = "Every public name, with its docstring. The examples run as tests."
    pages = "\n".join(f"   {page['name']}" for page in PAGES)
    head = f"{title}\n{'=' * len(title)}\n\n{text}\n\n"
    return f"{head}.. toctree::\n   :maxdepth: 1\n\n{pages}\n"


def rst_of(page: dict[str, str]) -> str:
    """The source of one page: a title, and an autodoc directive for each name."""
    module = importlib.import_module(page["module"])
    title = page["title"]
    if page["module"] != "tensorkit":
        title = f"{page['module'].removeprefix('tensorkit.')}: {title}"
    lines = [title, "=" * len(title), "", *as_rst(page.get("text", "").splitlines()), ""]
    lines += [f".. py:module:: {page['module']}", "   :no-index:", ""]
    for name in names_of(page):
        lines += [*_directive(page["module"], name, getattr(module, name)), ""]
    return "\n".join(lines)


def _directive(module: str, name: str, value: Any) -> list[str]:
    full = f"{module}.{name}"
    if inspect.isclass(value):
        if issubclass(value, BaseException):
            return [f".. autoexception:: {full}"]
        if value.__name__ != name:  # autodoc would say "alias of", and name a file of the library
            text = as_rst((inspect.getdoc(value) or "").splitlines())
            return [f".. py:class:: {full}", "", *(f"   {line}" for line in text)]
        shown = ", ".join(sorted(CLASSES - {name}))  # what these have stands with them
        return [f".. autoclass:: {full}", "   :members:", f"   :inherited-members: {shown}"]
    if callable(value):
        return [f".. autofunction:: {full}"]
    return [f".. py:data:: {full}", f"   :value: {value!r}"]


def as_rst(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText that says the same.

    Examples and lists stay, indented blocks become literal ones, and every sign that would be
    markup outside of ``code`` is escaped.

    >>> as_rst(["Calls `add_`, or **options."])
    ['Calls ``add_``, or \\\\*\\\\*options.']
    >>> as_rst(["In words:", "", "    a_  b", "", "No more."])
    ['In words:', '', '::', '', '    a_  b', '', 'No more.']
    """
    made: list[str] = []
    inside = "text"  # or "example", until an empty line; or "block", until a line without indent
    for line in lines:
        is_indented = line.startswith(" ")
        if not line.strip():
            inside = "text" if inside == "example" else inside
            made.append(line)
        elif inside == "example" or line.startswith(">>>"):
            if inside != "example" and made and made[-1].strip():
                made.append("")
            inside = "example"
            made.append(line)
        elif inside == "block" and is_indented:
            made.append(line)
        elif is_indented and not (made and re.match(r"\s*(-|\d+\.) |  \S", made[-1])):
            inside = "block"
            made += [*([""] if made and made[-1].strip() else []), "::", "", line]
        else:
            if inside == "block" and made and made[-1].strip():
                made.append("")
            inside = "text"
            made.append(_escaped(line))
    return made


def _escaped(line: str) -> str:
    pieces = re.split(r"(``.+?``|`[^`]+`)", line)
    return "".join(
        f"``{piece.strip('`')}``" if place % 2 else re.sub(r"([\\*_|`])", r"\\\1", piece)
        for place, piece in enumerate(pieces)
    )


def shorter(name: str, lines: list[str]) -> list[str]:
    """The lines for a method of `Tensor`: where a function says the same, its first lines."""
    import tensorkit as tk

    owner, _, method = name.rpartition(".")
    function = getattr(tk, method, None)
    if owner != "tensorkit.Tensor" or method not in tk.__all__ or not callable(function):
        return lines
    if inspect.getdoc(getattr(tk.Tensor, method)) != inspect.getdoc(function):
        return lines
    end = lines.index("") if "" in lines else len(lines)
    return [*lines[:end], "", f"See :func:`tensorkit.{method}`.", ""]
