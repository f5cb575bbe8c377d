"""The filter of system calls: what it lists is allowed, everything else is refused."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from course.grading.session import Warm
from course.sandbox import linux, seccomp

HEADERS = (
    Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    Path("/usr/include/asm-generic/unistd.h"),  # the numbers of aarch64
)
TABLES = (seccomp._ALLOWED, seccomp._PRETENDED, seccomp._BY_ARGUMENT)
OWN_PID = 7
PROBES = {335, 336}
"""Of x86_64: uretprobe and uprobe, which the kernel keeps from every filter. A process that calls
them without having been probed is ended."""
REFUSED = f"errno {errno.EPERM}"

CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
answers = {{}}
umask = os.umask(0)
for number in {numbers}:
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    answers[number] = ctypes.get_errno() if result == -1 else 0
os.umask(umask)
libc.alarm(0)
wrong = {{number: answer for number, answer in answers.items() if {wrong}}}
assert not wrong, wrong
"""


def error_of(warm: Warm, source: str) -> object:
    """What a cell was stopped by in the sandbox, or None."""
    session = warm.fork()
    try:
        request = {"do": "cells", "sources": [source], "seconds": 20}
        ran, _ = session.ask(request, seconds=20)
        return ran["error"]
    finally:
        session.end()


def listed(machine: int) -> set[int]:
    return {number for table in TABLES for number in seccomp.numbers(table, machine).values()}


def answer(machine: int, number: int, *arguments: int, architecture: int | None = None) -> str:
    """What the filter says to a call: its steps, followed as the kernel follows them."""
    if architecture is None:
        architecture = seccomp._ARCHITECTURE[machine]
    words = {0: number, 4: architecture}
    for n, value in enumerate([*arguments, 0, 0, 0]):
        words |= {16 + 8 * n: value & 0xFFFFFFFF, 20 + 8 * n: value >> 32}
    program = list(seccomp.steps(machine, OWN_PID))
    at = loaded = 0
    while True:
        code, if_true, if_false, value = program[at]
        if code == seccomp._RETURN:
            named = {seccomp._ALLOW: "allowed", seccomp._KILL: "killed"}
            return named.get(value, f"errno {value & 0xFFFF}")
        if code == seccomp._LOAD:
            loaded, is_true = words[value], True
        elif code == seccomp._EQUAL:
            is_true = loaded == value
        elif code == seccomp._AT_LEAST:
            is_true = loaded >= value
        else:
            is_true = bool(loaded & value)
        at += 1 + (0 if code == seccomp._LOAD else if_true if is_true else if_false)


def test_every_number_that_is_not_listed_is_refused(warm: Warm) -> None:
    machine = int(linux.MACHINE == "aarch64")
    others = {seccomp._CLONE[machine], seccomp._CLONE3[machine]} | (set() if machine else PROBES)
    numbers = sorted(set(range(seccomp._LAST_KNOWN + 1)) - listed(machine) - others)
    source = CALL.format(numbers=numbers, wrong=f"answer != {errno.EPERM}")
    assert error_of(warm, source) is None


def test_every_number_that_is_listed_reaches_the_kernel(warm: Warm) -> None:
    machine = int(linux.MACHINE == "aarch64")
    allowed = seccomp.numbers(seccomp._ALLOWED, machine)
    for never_returns in ("exit", "exit_group", "rt_sigreturn", "pause"):
        allowed.pop(never_returns, None)
    numbers = sorted(allowed.values())
    source = CALL.format(numbers=numbers, wrong=f"answer == {errno.EPERM}")
    assert error_of(warm, source) is None


def test_every_number_with_an_answer_of_its_own_has_that(warm: Warm) -> None:
    machine = int(linux.MACHINE == "aarch64")
    expected = dict.fromkeys(seccomp.numbers(seccomp._PRETENDED, machine).values(), 0)
    for name, number in seccomp.numbers(seccomp._BY_ARGUMENT, machine).items():
        expected[number] = errno.ENOTTY if name == "ioctl" else errno.EPERM
    expected[seccomp._CLONE3[machine]] = errno.ENOSYS
    source = CALL.format(numbers=sorted(expected), wrong=f"answer != {expected}[number]")
    assert error_of(warm, source) is None


def test_newer_calls_and_those_of_x32_do_not_exist(warm: Warm) -> None:
    numbers = [*range(seccomp._LAST_KNOWN + 1, 600), *range(0x40000000, 0x40000300)]
    source = CALL.format(numbers=numbers, wrong=f"answer != {errno.ENOSYS}")
    assert error_of(warm, source) is None


@pytest.mark.parametrize("machine", [0, 1], ids=["x86_64", "aarch64"])
def test_numbers_are_those_of_the_headers(machine: int) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the headers of the kernel are not installed: linux-libc-dev")
    text = HEADERS[machine].read_text(encoding="utf-8")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.MULTILINE)
    real = {name: int(number) for name, number in found}
    real.setdefault("newfstatat", real.get("fstatat", -1))
    for table in TABLES:
        for name, number in seccomp.numbers(table, machine).items():
            if name in real or number <= 450:  # older headers lack the newest calls
                assert real.get(name) == number, name
    assert real["clone"] == seccomp._CLONE[machine]
    assert real["clone3"] == seccomp._CLONE3[machine]


@pytest.mark.parametrize("machine", [0, 1], ids=["x86_64", "aarch64"])
def test_the_filter_allows_what_it_lists(machine: int) -> None:
    allowed = set(seccomp.numbers(seccomp._ALLOWED, machine).values())
    pretended = set(seccomp.numbers(seccomp._PRETENDED, machine).values())
    special = set(seccomp.numbers(seccomp._BY_ARGUMENT, machine).values())
    clone, clone3 = seccomp._CLONE[machine], seccomp._CLONE3[machine]
    for number in set(range(seccomp._LAST_KNOWN + 1)) - special - {clone, clone3}:
        expected = "allowed" if number in allowed else "errno 0" if number in pretended else REFUSED
        assert answer(machine, number) == expected, number
    assert answer(machine, clone3) == f"errno {errno.ENOSYS}"
    assert answer(machine, clone, seccomp._CLONE_THREAD) == "allowed"
    assert answer(machine, clone, 17) == REFUSED
    assert answer(machine, 0, architecture=0x40000003) == "killed"


@pytest.mark.parametrize("machine", [0, 1], ids=["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("name", "good", "bad", "refusal"),
    [
        ("fcntl", (3, 1030), (3, 8), REFUSED),  # F_DUPFD_CLOEXEC, F_SETOWN
        ("ioctl", (1, 0x5401), (1, 0x80086601), f"errno {errno.ENOTTY}"),  # TCGETS, GETFLAGS
        ("prctl", (15,), (1,), REFUSED),  # SET_NAME, SET_PDEATHSIG
        ("prctl", (16,), (22,), REFUSED),  # GET_NAME, SET_SECCOMP
        ("prlimit64", (0, 7, 0), (1, 7, 0), REFUSED),  # another process's
        ("prlimit64", (0, 7, 0), (0, 7, 8), REFUSED),  # the address of new limits
        ("prlimit64", (0, 7, 0), (0, 7, 1 << 32), REFUSED),
        ("tgkill", (OWN_PID, 1, 6), (OWN_PID + 1, 1, 6), REFUSED),  # SIGABRT
        ("tgkill", (OWN_PID, 1, 6), (OWN_PID, 1, 9), REFUSED),  # SIGKILL
        ("tgkill", (OWN_PID, 1, 6), (OWN_PID, 1, 15), REFUSED),  # SIGTERM
    ],
)
def test_some_are_allowed_by_an_argument(
    machine: int, name: str, good: tuple[int, ...], bad: tuple[int, ...], refusal: str
) -> None:
    number = seccomp.numbers(seccomp._BY_ARGUMENT, machine)[name]
    assert answer(machine, number, *good) == "allowed"
    assert answer(machine, number, *bad) == refusal


def test_what_programs_use_works(warm: Warm) -> None:
    source = """
import concurrent.futures, glob, os, pathlib, shutil, tempfile, threading, time
import matplotlib.pyplot, numpy
with tempfile.TemporaryDirectory(dir=".") as folder:
    path = pathlib.Path(folder) / "a.npy"
    numpy.save(path, numpy.arange(3))
    shutil.copy2(path, path.with_name("b.npy"))
    assert numpy.load(path.with_name("b.npy"), mmap_mode="r")[2] == 2
    figure = matplotlib.pyplot.figure()
    figure.gca().plot([1, 2])
    figure.savefig(path.with_name("c.svg"))
    assert len(glob.glob(f"{folder}/*")) == 3
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
a = numpy.ones((300, 300))
assert (a @ a)[0, 0] == 300
time.sleep(0.01)
"""
    assert error_of(warm, source) is None
