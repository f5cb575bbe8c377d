"""Which system calls a learner's process may make: a filter in the kernel's own small language.

It lists what is allowed, as container runtimes do; every other call is refused with "Operation not
permitted". What NumPy, matplotlib, IPython, tensorkit and CPython call was traced while the worked
solutions of all chapters were graded: 31 calls. The rest of `_ALLOWED` is what Python's standard
library and the C library use of a process's own memory, files, threads, timers and signals.

Landlock does not restrict changes of modes, owners, times and attributes, and a file may be the
grader's own. Calls that change them return success and do nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator

from course.sandbox import linux

_ALLOWED = """
brk 12 214, mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226, madvise 28 233,
msync 26 227, membarrier 324 283,

read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69,
pwritev 296 70, lseek 8 62, open 2 -1, openat 257 56, creat 85 -1, close 3 57,
close_range 436 436, dup 32 23, dup2 33 -1, dup3 292 24, pipe 22 -1, pipe2 293 59, stat 4 -1,
fstat 5 80, lstat 6 -1, newfstatat 262 79, statx 332 291, access 21 -1, faccessat 269 48,
faccessat2 439 439, readlink 89 -1, readlinkat 267 78, getdents 78 -1, getdents64 217 61,
statfs 137 43, fstatfs 138 44, getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10,
listxattr 194 11, llistxattr 195 12, flistxattr 196 13, getcwd 79 17, chdir 80 49, fchdir 81 50,
umask 95 166, mkdir 83 -1, mkdirat 258 34, rmdir 84 -1, unlink 87 -1, unlinkat 263 35,
rename 82 -1, renameat 264 38, renameat2 316 276, link 86 -1, linkat 265 37, symlink 88 -1,
symlinkat 266 36, ftruncate 77 46, fallocate 285 47, fsync 74 82, fdatasync 75 83,
fadvise64 221 223, flock 73 32, sendfile 40 71, copy_file_range 326 285,

poll 7 -1, ppoll 271 73, select 23 -1, pselect6 270 72, epoll_create 213 -1,
epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -1, epoll_pwait 281 22, eventfd2 290 19,
pause 34 -1, nanosleep 35 101, clock_nanosleep 230 115, alarm 37 -1, setitimer 38 103,
getitimer 36 102,

futex 202 98, set_robust_list 273 99, rseq 334 293, set_tid_address 218 96, sched_yield 24 124,
sched_getaffinity 204 123, getcpu 309 168, restart_syscall 219 128, exit 60 93,
exit_group 231 94,

rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigpending 127 136, rt_sigsuspend 130 133,
rt_sigtimedwait 128 137, rt_sigreturn 15 139, sigaltstack 131 132,

clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169, time 201 -1, times 100 153,
getrandom 318 278, uname 63 160, sysinfo 99 179, getrusage 98 165, getrlimit 97 163,
getpid 39 172, getppid 110 173, gettid 186 178, getuid 102 174, geteuid 107 175, getgid 104 176,
getegid 108 177, getgroups 115 158, getresuid 118 148, getresgid 120 150, getpgid 121 155,
getpgrp 111 -1, getsid 124 156, getpriority 140 141, capget 125 90
"""
"""Name, number on x86_64, number on aarch64 (-1: not there)."""

_PRETENDED = """
chmod 90 -1, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452,
chown 92 -1, fchown 93 55, lchown 94 -1, fchownat 260 54,
utime 132 -1, utimes 235 -1, futimesat 261 -1, utimensat 280 88,
setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463 463,
removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466
"""
"""Calls that return success and do nothing, for programs that save a file and set its mode."""

_BY_ARGUMENT = "fcntl 72 25, ioctl 16 29, prctl 157 167, prlimit64 302 261, tgkill 234 131"
"""Calls that are allowed with some values of their arguments: see `_arguments`."""
_FILE_CONTROLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)
"""Of fcntl: copies of a descriptor, its flags, locks, the size of a pipe; no signals, no leases."""
_PLAIN_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""What Python asks of a file: is it a terminal, how wide, how much to read, blocking, inherited."""
_PROCESS_CONTROLS = (3, 15, 16, 21, 39, 0x53564D41)
"""Of prctl: names of threads and of memory, and what can be read of the process's own limits."""

_OTHER_SIGNALS = tuple(number for number in range(65) if number not in (9, 15, 19))
"""All but SIGKILL, SIGTERM and SIGSTOP. A learner's process can send none of these, nor lower the
limit of its processor time, at which the kernel sends SIGKILL. So one of these that ends or stops
the process comes from somebody else."""

_LAST_KNOWN = 466
_CLONE, _CLONE3 = (56, 220), (435, 435)
_CLONE_THREAD = 0x00010000
_ARCHITECTURE = (0xC000003E, 0xC00000B7)

_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE = _FAIL | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _SECOND_AT, _THIRD_AT = 0, 4, 16, 24, 32
"""Where the kernel puts what a call is, and its arguments."""


_STEP = struct.Struct("HBBI")
"""How the kernel reads one step: code, jump if true, jump if false, value."""


def numbers(table: str, machine: int) -> dict[str, int]:
    """The numbers of a table's calls, by name; machine: 0 for x86_64, 1 for aarch64."""
    rows = (row.split() for row in table.replace("\n", " ").split(",") if row.strip())
    known = {row[0]: int(row[1 + machine]) for row in rows}
    return {name: number for name, number in known.items() if number >= 0}


def _arguments(own_pid: int) -> dict[str, tuple[dict[int, tuple[int, ...]], int]]:
    """For each call of `_BY_ARGUMENT`: the values that pass, by place; the reply to others."""
    return {
        "fcntl": ({_SECOND_AT: _FILE_CONTROLS}, _REFUSE),
        "ioctl": ({_SECOND_AT: _PLAIN_IOCTLS}, _FAIL | errno.ENOTTY),
        "prctl": ({_FIRST_AT: _PROCESS_CONTROLS}, _REFUSE),
        # may read its own limits: the address of new limits, two words long, must be 0
        "prlimit64": ({_FIRST_AT: (0,), _THIRD_AT: (0,), _THIRD_AT + 4: (0,)}, _REFUSE),
        # raise() and abort(): to itself alone
        "tgkill": ({_FIRST_AT: (own_pid,), _THIRD_AT: _OTHER_SIGNALS}, _REFUSE),
    }


def steps(machine: int, own_pid: int) -> Iterator[tuple[int, int, int, int]]:
    """The filter: one step a tuple of code, jump if true, jump if false, value."""
    yield from _by_number(machine)
    yield from _by_argument(machine, own_pid)


def _by_number(machine: int) -> Iterator[tuple[int, int, int, int]]:
    yield _LOAD, 0, 0, _ARCHITECTURE_AT
    yield _EQUAL, 1, 0, _ARCHITECTURE[machine]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER_AT
    # Newer calls, and those of x32, do not exist: the C library falls back to older ones, as from
    # clone3 to clone, whose flags can be read.
    yield _AT_LEAST, 1, 0, _LAST_KNOWN + 1
    yield _EQUAL, 0, 1, _CLONE3[machine]
    yield _RETURN, 0, 0, _FAIL | errno.ENOSYS
    for number in numbers(_ALLOWED, machine).values():
        yield _EQUAL, 0, 1, number
        yield _RETURN, 0, 0, _ALLOW
    for number in numbers(_PRETENDED, machine).values():
        yield _EQUAL, 0, 1, number
        yield _RETURN, 0, 0, _FAIL | 0


def _by_argument(machine: int, own_pid: int) -> Iterator[tuple[int, int, int, int]]:
    arguments = _arguments(own_pid)
    for name, number in numbers(_BY_ARGUMENT, machine).items():
        wanted, reply = arguments[name]
        yield _EQUAL, 0, sum(len(values) + 2 for values in wanted.values()) + 1, number
        for place, values in wanted.items():
            yield _LOAD, 0, 0, place
            for position, value in enumerate(values):
                yield _EQUAL, len(values) - position, 0, value
            yield _RETURN, 0, 0, reply
        yield _RETURN, 0, 0, _ALLOW
    yield _EQUAL, 0, 3, _CLONE[machine]
    yield _LOAD, 0, 0, _FIRST_AT
    yield _ANY_BIT, 0, 1, _CLONE_THREAD
    yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _REFUSE


_OWN = int(linux.MACHINE == "aarch64")
_FIRST = b"".join(_STEP.pack(*step) for step in _by_number(_OWN))
"""The part that is the same in each process: made once, before they are forked."""


def restrict() -> None:
    """Put the filter on this process; it cannot be taken off.

    Raises OSError where the kernel refuses, or for a machine whose numbers are not known.
    """
    if not linux.KNOWN:
        raise OSError(errno.ENOSYS, f"seccomp: the calls of {linux.MACHINE} are not known")
    last_steps = (_STEP.pack(*step) for step in _by_argument(_OWN, os.getpid()))
    packed = b"".join([_FIRST, *last_steps])
    linux.prctl(linux.NO_NEW_PRIVS, 1)
    set_filter, on_all_threads = 1, 1
    buffer = ctypes.create_string_buffer(packed)
    program = struct.pack("HP", len(packed) // _STEP.size, ctypes.addressof(buffer))
    linux.call("seccomp", set_filter, on_all_threads, program)
