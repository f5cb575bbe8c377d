"""``explain.source``: the lines of the library that do something, with their file and place."""

import ast
import inspect
from pathlib import Path
from typing import Any, NamedTuple

_PACKAGE = Path(__file__).parents[1]


class Excerpt(NamedTuple):
    """Some lines of a file of the library; the first line has the number 1."""

    file: str
    first: int
    lines: list[str]

    @property
    def location(self) -> str:
        """File and lines in words."""
        return f"{self.file}, lines {self.first} to {self.first + len(self.lines) - 1}"


class Source(NamedTuple):
    """Excerpts of the source text: highlighted in a notebook, plain text elsewhere."""

    excerpts: list[Excerpt]

    def __repr__(self) -> str:
        return "\n\n".join("\n".join([f"# {part.location}", *part.lines]) for part in self.excerpts)

    def _repr_markdown_(self) -> str:
        parts = [
            ["`" + part.location + "`", "", "```python", *part.lines, "```"]
            for part in self.excerpts
        ]
        return "\n\n".join("\n".join(part) for part in parts)


def source(*objects: Any) -> Source:
    """The source text of functions, classes and operations of tensorkit, as it is on this machine.

    An operation is shown with its gradient formulas. Raises TypeError for what has no source.

    >>> from tensorkit import explain
    >>> explain.source(tk.relu).excerpts[0].lines[1]
    'def relu(xp: Any, input: Any) -> Any:'
    """
    return Source([excerpt for shown in objects for excerpt in _excerpts(shown)])


def _excerpts(shown: Any) -> list[Excerpt]:
    definition = getattr(shown, "definition", None)
    shown = inspect.unwrap(shown if definition is None else definition.forward)
    try:
        lines, first = inspect.getsourcelines(shown)
        path = Path(inspect.getsourcefile(shown) or "")
    except TypeError:
        raise TypeError(
            f"explain.source() shows functions and classes, not {shown!r}. "
            "Try: explain.source(tk.relu)"
        ) from None
    file = path.relative_to(_PACKAGE.parent).as_posix() if _PACKAGE in path.parents else path.name
    found = [Excerpt(file, first, "".join(lines).rstrip().splitlines())]
    if definition is not None:
        text = path.read_text("utf-8")
        found += [
            Excerpt(file, node.lineno, text.splitlines()[node.lineno - 1 : node.end_lineno])
            for node in ast.parse(text).body
            if ast.unparse(node).startswith(f"{shown.__name__}.grad(")
        ]
    return found
