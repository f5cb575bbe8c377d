"""What `course/` takes of tensorkit is public: the API reference shows it."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

import tensorkit as tk
from tensorkit.base import TensorBase

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "course").rglob("*.py"))
_spec = importlib.util.spec_from_file_location("reference", ROOT / "docs/site/reference.py")
assert _spec is not None
assert _spec.loader is not None
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

SHOWN = {
    f"{page['module']}.{name}" for page in reference.PAGES for name in reference.names_of(page)
}
MODULES = {page["module"] for page in reference.PAGES}
# what only tensors, nodes and definitions of the library have
PRIVATE = {*TensorBase.__slots__, "_strides", "_xp", "definition", "rule"} - {"__weakref__"}


def imported(tree: ast.AST) -> set[str]:
    """Names of tensorkit that a file imports, in full."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {
                name.name for name in node.names if name.name.partition(".")[0] == "tensorkit"
            }
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorkit"):
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_course_uses_public_names(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert imported(tree) <= SHOWN | MODULES
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    own |= {node.attr for node in ast.walk(tree) if _is_of_self(node)}
    assert (used - own) & PRIVATE == set()


def _is_of_self(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls")
    )


def test_what_is_private_is_found() -> None:
    assert hasattr(tk.ones(1), "_array")
    assert imported(ast.parse("from tensorkit.base import new")) == {"tensorkit.base.new"}
    assert not {"tensorkit.base.new", "tensorkit.base"} & (SHOWN | MODULES)
