"""What CuPy's functions take: read from CuPy where it is installed, else from a committed table.

    python tests/tensorkit/cupy_signatures.py [NAME ...]    # writes the table anew, with these

CuPy can be imported without a GPU: pip install --no-deps cupy-cuda12x cuda-pathfinder (137 MB).
"""

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import NamedTuple

from tensorkit.cuda import cupy_backend

TABLE = Path(__file__).with_name("cupy_signatures.txt")
# what the backend of a GPU asks of objects that CuPy gave it
_OF_OBJECTS = {
    "add": "at reduce",
    "multiply": "reduce",
    "ndarray": "base data set",
    "cuda.Device": "mem_info synchronize",
    "cuda.Event": "done record",
    "cuda.MemoryPool": "free_all_blocks malloc total_bytes used_bytes",
}
_PLACES = {"cupy": "", "xp": ""}


def _attributes(path):
    """The names that a file asks CuPy for: ``xp.empty`` is empty, ``self.cupy.cuda.Event`` that."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Name) and names:
            chain = [node.id, *names] if node.id != "self" else names
            if chain[0] in _PLACES and len(chain) > 1:
                yield _PLACES[chain[0]] + ".".join(chain[1:])


def backend_names():
    """What the backend of a GPU uses of CuPy beside the functions of its array library."""
    found = {*_attributes(Path(cupy_backend.__file__))}
    found |= {f"{kind}.{name}" for kind, names in _OF_OBJECTS.items() for name in names.split()}
    places = {each for each in found if any(other.startswith(f"{each}.") for other in found)}
    classes = {each for each in places if each.rpartition(".")[2][0].isupper()}
    return sorted(found - (places - classes))


class Signature(NamedTuple):
    """What a function takes: names by position, names only, and whether any number of arguments."""

    positional: list[str]
    by_name: list[str]
    any_number: bool

    def __str__(self):
        star = ["*"] if self.any_number else []
        return " ".join([*self.positional, *star, *(["|", *self.by_name] if self.by_name else [])])


def _signature(function):
    if not callable(function):
        return Signature([], [], False)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # compiled: the signature is the first line of the docstring
        return _of_text((function.__doc__ or "()").split("\n")[0])
    kinds = inspect.Parameter
    return Signature(
        [p.name for p in parameters if p.kind is kinds.POSITIONAL_OR_KEYWORD and p.name != "self"],
        [p.name for p in parameters if p.kind is kinds.KEYWORD_ONLY],
        any(p.kind is kinds.VAR_POSITIONAL for p in parameters),
    )


def _of_text(line):
    inside = re.search(r"\((.*)\)", line)
    given = inside[1].split(", ") if inside and inside[1] else []
    names = [re.search(r"\*{0,2}\w+$", each.partition("=")[0]) for each in given]
    names = [name[0] for name in names if name and name[0] not in ("self", "**kwargs")]
    star = next((place for place, name in enumerate(names) if name[0] == "*"), None)
    return Signature(names[:star], [] if star is None else names[star + 1 :], star is not None)


def _find(root, name):
    for part in name.split("."):
        root = getattr(root, part)
    return root


def _of_ufunc(ufunc):
    names = re.findall(r"^    (\w+)\b.*:", ufunc.__call__.__doc__, re.M)
    return Signature(
        [f"x{place}" for place in range(ufunc.nin)],
        sorted({"out", "dtype"} & {*names}),
        False,
    )


def installed(names=()):
    """The table as the installed CuPy has it; names that it lacks are left out."""
    import cupy

    found = {"version": cupy.__version__}
    for name in sorted({*committed(), *backend_names(), *names} - {"version"}):
        name = name.removeprefix("ufunc ")
        try:
            value = _find(cupy, name)
        except (AttributeError, ImportError):
            continue
        if isinstance(value, cupy.ufunc):
            found[f"ufunc {name}"] = _of_ufunc(value)
        else:
            found[name] = _signature(value)
    return found


def committed():
    """The table in this folder."""
    version, *lines = TABLE.read_text().splitlines()
    found = {"version": version.split()[2].rstrip(":")}
    for line in lines:
        name, _, told = line.partition(":")
        names, _, by_name = told.partition("| ")
        positional = names.split()
        is_open = "*" in positional
        positional = [each for each in positional if each != "*"]
        found[name] = Signature(positional, by_name.split(), is_open)
    return found


def as_text(table):
    """The table as a file."""
    lines = [f"# CuPy {table['version']}: what its functions take, by cupy_signatures.py"]
    lines += [f"{name}: {table[name]}".rstrip() for name in table if name != "version"]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    TABLE.write_text(as_text(installed(sys.argv[1:])))
