"""How large the library is: these numbers only ever go down."""

import importlib.util
from collections import Counter
from pathlib import Path

_spec = importlib.util.spec_from_file_location("size", Path(__file__).parents[1] / "size.py")
size = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(size)

MOST = {
    "autograd": 1457,
    "cuda": 666,
    "explain": 266,
    "nn": 613,
    "ops": 2723,
    "optim": 166,
    "tensorkit": 2876,
    "utils": 107,
    "viz": 1709,
}
MOST_OF_CORE, MOST_IMPORTS = 3270, 268
# What the chapters on dispatch and on kernels have added. They were to take 100 lines in the core,
# and 1,000 in all, which they exceed.
DISPATCH = {"autograd": 22, "ops": 29, "optim": 2, "tensorkit": 314, "viz": 126}
KERNELS = {"cuda": 773, "explain": 16, "tensorkit": 5, "viz": 77}
DISPATCH_IN_CORE, DISPATCH_IMPORTS, KERNELS_IN_CORE = 88, 18, 5
DARK_PICTURES = {"viz": 15}


def test_no_room_of_the_library_has_grown():
    lines = Counter()
    for path, count in size.sizes().items():
        lines[size.room_of(path)] += count
    most = Counter(MOST) + Counter(DISPATCH) + Counter(KERNELS) + Counter(DARK_PICTURES)
    assert {room: lines[room] for room in most if lines[room] > most[room]} == {}
    assert lines.keys() == MOST.keys()


def test_the_core_has_not_grown():
    lines, imports = size.core()
    assert lines <= MOST_OF_CORE + DISPATCH_IN_CORE + KERNELS_IN_CORE
    assert imports <= MOST_IMPORTS + DISPATCH_IMPORTS


def test_no_file_is_longer_than_400_lines():
    assert {path: count for path, count in size.sizes().items() if count > 400} == {}


def test_blanks_comments_and_docstrings_do_not_count():
    text = '"""Words."""\n\n# more\nx = 1  # here\n\n\ndef f():\n    """Words."""\n    return x\n'
    assert size.code_lines(text) == 3
