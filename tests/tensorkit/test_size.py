"""How large the library is: these numbers only ever go down."""

import importlib.util
from collections import Counter
from pathlib import Path

_spec = importlib.util.spec_from_file_location("size", Path(__file__).parents[1] / "size.py")
size = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(size)

MOST = {
    "autograd": 1455,
    "cuda": 666,
    "explain": 266,
    "nn": 613,
    "ops": 2723,
    "optim": 166,
    "tensorkit": 2873,
    "utils": 106,
    "viz": 1693,
}
MOST_OF_CORE, MOST_IMPORTS = 3266, 268
# What the chapters on dispatch and on kernels have added.
LATER = {
    "autograd": 22,
    "cuda": 832,
    "explain": 16,
    "ops": 29,
    "optim": 2,
    "tensorkit": 297,
    "utils": 1,
    "viz": 251,
}
LATER_IN_CORE, LATER_IMPORTS = 94, 18


def test_no_room_of_the_library_has_grown():
    lines = Counter()
    for path, count in size.sizes().items():
        lines[size.room_of(path)] += count
    most = Counter(MOST) + Counter(LATER)
    assert {room: lines[room] for room in most if lines[room] > most[room]} == {}
    assert lines.keys() == MOST.keys()


def test_the_core_has_not_grown():
    lines, imports = size.core()
    assert lines <= MOST_OF_CORE + LATER_IN_CORE
    assert imports <= MOST_IMPORTS + LATER_IMPORTS


def test_no_file_is_longer_than_400_lines():
    assert {path: count for path, count in size.sizes().items() if count > 400} == {}


def test_blanks_comments_and_docstrings_do_not_count():
    text = '"""Words."""\n\n# more\nx = 1  # here\n\n\ndef f():\n    """Words."""\n    return x\n'
    assert size.code_lines(text) == 3
