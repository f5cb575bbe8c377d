"""The time limit on a call."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import tensorkit as tk
from course.notebook.limited import limited
from course.shared.errors import TimeLimit
from tensorkit import direct_path, overrides

AFTER_A_LIMIT = textwrap.dedent("""
    import sys, threading
    from course.shared.errors import TimeLimit
    from course.notebook.limited import limited

    def loop():
        while True:
            pass

    def in_a_thread():
        try:
            limited(loop, 0.05)
        except TimeLimit:
            print("stopped")
        sys.setprofile(lambda *_: None)
        (lambda: None)()
        print("went on")

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
""")


@pytest.mark.skipif(sys.platform == "win32", reason="a process is ended by a timeout")
def test_after_a_limit_outside_the_main_thread_a_profiler_works():
    done = subprocess.run(
        [sys.executable, "-c", AFTER_A_LIMIT], capture_output=True, text=True, timeout=20
    )
    assert done.stdout.split("\n")[:2] == ["stopped", "went on"]


class Slow:
    def __del__(self):
        while True:
            pass


def test_a_destructor_without_end_is_stopped_without_a_word():
    def run():
        Slow()
        while True:
            pass

    with pytest.raises(TimeLimit):  # and, as in all tests, what Python cannot raise is an error
        limited(run, 0.05)


def test_a_limit_undoes_what_a_block_of_tensorkit_changed():
    sizes = overrides.original("broadcast_shapes")

    def endless():
        with overrides.override("broadcast_shapes", lambda a, b: (7,)):
            while True:
                pass

    for _ in range(300):
        with pytest.raises(TimeLimit):
            limited(endless, 0.001)
        assert direct_path.is_open
        assert tuple((tk.ones(3) + 1).shape) == sizes((3,), ())
