"""What may be missing on a machine is imported with a guard: tests skip, and the library works.

Optional is whatever the lock does not install: PyTorch, CuPy. In `tensorkit/` that is whatever is
not NumPy, since the library alone needs no more.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "dev.txt"
FOLDERS = (ROOT / "tests", ROOT / "docs" / "site")  # whose modules are imported by their name alone
OUR_OWN = {
    "course",
    "tensorkit",
    *(path.stem for folder in FOLDERS for path in folder.rglob("*.py")),
}


def test_what_is_optional_is_imported_only_with_a_guard() -> None:
    folders = ("course", "tests", "docs", "solutions")
    modules = [
        *ROOT.glob("*.py"),
        *(path for name in folders for path in (ROOT / name).rglob("*.py")),
    ]
    assert sum(map(is_test_module, modules)) > 100
    found = {
        module.relative_to(ROOT).as_posix(): names
        for module in modules
        if (names := optional(module))
    }
    assert found == {}


def test_a_module_of_the_library_imports_only_numpy_and_the_standard_library() -> None:
    found = {
        (path.name, name)
        for path in (ROOT / "tensorkit").rglob("*.py")
        for name in imported(ast.parse(path.read_text(encoding="utf-8")), in_functions=False)
        if name not in {"numpy", "tensorkit", *sys.stdlib_module_names}
    }
    assert found == set()


def test_a_test_that_skips_without_a_package_says_how_to_install_it() -> None:
    for module in filter(is_test_module, (ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip":
                reasons = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
                assert "install " in "".join(map(ast.unparse, reasons)), f"{module}:{node.lineno}"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import torch", ["torch"]),
        ("import torch.nn as nn, numpy", ["torch", "numpy"]),
        ("from cupy.cuda import Device", ["cupy"]),
        ("if True:\n    import torch", ["torch"]),
        ("try:\n    import torch\nexcept ValueError:\n    pass", ["torch"]),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", []),
        ("if find_spec('cupy'):\n    import cupy", []),
        ("if find_spec('cupy'):\n    pass\nelse:\n    import cupy", ["cupy"]),
        ("if TYPE_CHECKING:\n    import torch", []),
        ("torch = pytest.importorskip('torch')", []),
        ("from .near import it", []),
    ],
)
def test_an_import_without_a_guard_is_noticed(source: str, names: list[str]) -> None:
    assert list(imported(ast.parse(source), in_functions=True)) == names
    body = source.replace("\n", "\n    ")
    inside = ast.parse(f"def function():\n    {body}")
    assert list(imported(inside, in_functions=True)) == names
    assert list(imported(inside, in_functions=False)) == []


def test_optional_is_what_the_lock_does_not_install() -> None:
    assert is_optional("torch")
    assert is_optional("cupy")
    assert not any(
        map(is_optional, ["numpy", "bs4", "pytest", "nbgrader", "course", "sys", "tiny"])
    )


def is_test_module(file: Path) -> bool:
    return file.name.startswith("test_") or file.name == "conftest.py"


def optional(file: Path) -> list[str]:
    """The optional packages that this file imports without a guard.

    A program may import them in a function, which somebody calls who has them. A test may not.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [name for name in imported(tree, in_functions=is_test_module(file)) if is_optional(name)]


def imported(node: ast.AST, in_functions: bool) -> Iterator[str]:
    """The packages that are imported without a guard, in functions too where that is asked for."""
    if isinstance(node, ast.Import):
        yield from (name.name.partition(".")[0] for name in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.partition(".")[0]
    is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    if is_function and not in_functions:
        return
    guarded = node.body if is_guard(node) else []
    for child in ast.iter_child_nodes(node):
        if child not in guarded:
            yield from imported(child, in_functions)


def is_guard(node: ast.AST) -> bool:
    """Whether the body of this statement may import what is not there."""
    if isinstance(node, ast.Try):
        caught = " ".join(ast.unparse(handler.type) for handler in node.handlers if handler.type)
        return re.search(r"\b(ImportError|ModuleNotFoundError)\b", caught) is not None
    asks = ("find_spec", "TYPE_CHECKING")
    return isinstance(node, ast.If) and any(ask in ast.unparse(node.test) for ask in asks)


@cache
def is_optional(package: str) -> bool:
    if package in OUR_OWN or package in sys.stdlib_module_names:
        return False
    return not distributions().get(package, {package}) & locked()


@cache
def distributions() -> dict[str, set[str]]:
    """The names under which a package that can be imported is installed."""
    found = packages_distributions()
    return {
        package: {canonicalize_name(name) for name in names} for package, names in found.items()
    }


@cache
def locked() -> set[str]:
    return set(re.findall(r"(?m)^([a-z0-9-]+)==", LOCK.read_text(encoding="utf-8")))
