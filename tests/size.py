"""``make size``: code lines of tensorkit by room, without blanks, comments and docstrings.

The core is what runs in ``a + b``, a view, a write in place and ``backward()``, without the
definitions in ``ops/`` and the backends of devices; its imports are counted apart.

python tests/size.py
"""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "tensorkit"
_CORE = (
    "_tensor autograd/ base definition devices direct_path dispatch dispatch_layers "
    "dtypes errors refusals layout ops/arguments ops/copying ops/inplace overrides "
    "storage thread_state"
)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """How many lines of this source hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else []:
            value = each.value if isinstance(each, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                lines -= {*range(each.lineno, (each.end_lineno or each.lineno) + 1)}
    return len(lines)


def room_of(path: Path) -> str:
    """The folder in the package; for a file outside of all folders, the package."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "tensorkit"


def sizes() -> dict[Path, int]:
    """The code lines of every file."""
    return {path: code_lines(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def core() -> tuple[int, int]:
    """The code lines of the core without its imports, and those of the imports."""
    lines = imports = 0
    for path, count in core_files().items():
        tree = ast.parse(path.read_text("utf-8"))
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        imports += sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in found)
        lines += count
    return lines - imports, imports


def core_files() -> dict[Path, int]:
    """The code lines of every file of the core."""

    def is_core(path: Path) -> bool:
        name = path.relative_to(PACKAGE).as_posix().removesuffix(".py")
        return any(name == core or (core[-1] == "/" and name.startswith(core)) for core in names)

    names = _CORE.split()
    return {path: count for path, count in sizes().items() if is_core(path)}


def main() -> None:
    """Print the table."""
    found = sizes()
    lines: Counter[str] = Counter()
    for path, count in found.items():
        lines[room_of(path)] += count
    for room, count in sorted(lines.items(), key=lambda pair: -pair[1]):
        n_files = sum(room_of(path) == room for path in found)
        print(f"{room:12}{n_files:5} files{count:8,} lines")
    for name, count in zip(("core", "its imports"), core(), strict=True):
        print(f"{name:12}{count:19,} lines")
    largest = max(found, key=lambda path: found[path])
    print(f"{'all':12}{len(found):5} files{sum(found.values()):8,} lines")
    print(f"the largest file: {largest.relative_to(PACKAGE)}, {found[largest]} lines")


if __name__ == "__main__":
    main()
