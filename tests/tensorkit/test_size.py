"""How large the library is: the sum of its rooms stays within these limits."""

from collections import Counter

import size

# of each room; all are to be within the limits below
ROOMS = {
    "autograd": 1403,  # a view that was a leaf is a view again
    "cuda": 1299,  # a diagonal on the simulated device can be written to
    "explain": 278,
    "nn": 633,
    "ops": 2692,  # one operation of 14 lines fits
    "optim": 177,
    "tensorkit": 3155,
    "utils": 113,
    "viz": 1846,
}
MOST_OF_CORE, MOST_IMPORTS = 3220, 263

# The library without what the chapters on dispatch and on kernels have added has at most 10,500
# lines. They may add 1,000 in the files that begin with these names, and 100 in other files: no
# count tells those from the rest, so the limit of everything is the sum.
ADDED = ("cuda/kernel", "dispatch_mode", "explain/_dispatch", "library", "viz/_dispatch", "viz/_k")
MOST_ADDED, MOST = 1_000, 10_500 + 1_000 + 100
MOST_FILES_ADDED, MOST_FILES_BESIDE = 12, 80


def test_no_room_of_the_library_has_grown():
    lines = Counter()
    for path, count in size.sizes().items():
        lines[size.room_of(path)] += count
    grown = {room: count for room, count in lines.items() if count > ROOMS[room]}
    assert not grown, f"{grown}: remove as many lines of code there, or say here why it has to grow"


def test_the_library_and_what_the_chapters_have_added_stay_within_their_limits():
    found = {path.relative_to(size.PACKAGE).as_posix(): n for path, n in size.sizes().items()}
    files_added = [name for name in found if name.startswith(ADDED)]
    added = sum(found[name] for name in files_added)
    everything = sum(found.values())
    print(f"{everything:,} lines, of {MOST:,}; {added:,} in added files, of {MOST_ADDED:,}")
    assert added <= MOST_ADDED
    assert everything <= MOST
    assert len(files_added) <= MOST_FILES_ADDED
    assert len(found) - len(files_added) <= MOST_FILES_BESIDE


def test_the_core_has_not_grown():
    lines, imports = size.core()
    assert lines <= MOST_OF_CORE
    assert imports <= MOST_IMPORTS


def test_no_file_is_longer_than_400_lines():
    assert {path: count for path, count in size.sizes().items() if count > 400} == {}


def test_blanks_comments_and_docstrings_do_not_count():
    text = '"""Words."""\n\n# more\nx = 1  # here\n\n\ndef f():\n    """Words."""\n    return x\n'
    assert size.code_lines(text) == 3
