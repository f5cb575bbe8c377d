"""Which system calls a learner's process may make: a filter in the kernel's own small language.

New processes, other processes, namespaces, mounts, sockets, keys, bpf and io_uring are refused
with "Operation not permitted"; threads are allowed. Calls newer than this list do not exist.
Landlock does not look at the modes, owners, times and attributes of files, which may be those of
the grader: to change them is answered with success, and nothing is done.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable

from course.grading import linux

_REFUSED = """
fork 57 -1, vfork 58 -1, execve 59 221, execveat 322 281, unshare 272 97, setns 308 268,
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, mount_setattr 442 442,
fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, open_tree 428 428,
move_mount 429 429, open_tree_attr 467 467,
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272,
process_madvise 440 440, process_mrelease 448 448,
kill 62 129, tkill 200 130, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240,
pidfd_open 434 434, pidfd_send_signal 424 424, pidfd_getfd 438 438,
bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, fanotify_init 300 262,
io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427,
io_setup 206 0, io_submit 209 2,
add_key 248 217, request_key 249 218, keyctl 250 219,
socket 41 198, socketpair 53 199, connect 42 203, bind 49 200, listen 50 201, accept 43 202,
accept4 288 242, sendto 44 206, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212,
sendmmsg 307 269, recvmmsg 299 243,
memfd_create 319 279, memfd_secret 447 447, shmget 29 194, shmat 30 196, shmctl 31 195,
semget 64 190, msgget 68 186, mq_open 240 180,
name_to_handle_at 303 264, open_by_handle_at 304 265, mknod 133 -1, mknodat 259 33,
init_module 175 105, finit_module 313 273, delete_module 176 106, kexec_load 246 104,
kexec_file_load 320 294, reboot 169 142, swapon 167 224, swapoff 168 225, acct 163 89,
quotactl 179 60, syslog 103 116, iopl 172 -1, ioperm 173 -1, modify_ldt 154 -1,
sethostname 170 161, setdomainname 171 162, settimeofday 164 170, clock_settime 227 112,
setuid 105 146, setgid 106 144, setreuid 113 145, setregid 114 143, setresuid 117 147,
setresgid 119 149, setgroups 116 159, setfsuid 122 151, setfsgid 123 152, capset 126 91,
personality 135 92, setpriority 141 140, sched_setscheduler 144 119, ioprio_set 251 30,
sched_setaffinity 203 122, sched_setparam 142 118, sched_setattr 314 274,
truncate 76 45, inotify_init 253 -1, inotify_init1 294 26, inotify_add_watch 254 27
"""
"""Name, number on x86_64, number on aarch64 (-1: not there)."""

_PRETENDED = """
chmod 90 -1, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452,
chown 92 -1, fchown 93 55, lchown 94 -1, fchownat 260 54,
utime 132 -1, utimes 235 -1, futimesat 261 -1, utimensat 280 88,
setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, setxattrat 463 463,
removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, removexattrat 466 466
"""
"""Calls that say they did it, for programs which save a file and then set its mode."""

_ALLOWED_UP_TO = 466
_CLONE, _CLONE3, _TGKILL = (56, 220), (435, 435), (234, 131)
_PRLIMIT, _FCNTL, _IOCTL, _PRCTL = (302, 261), (72, 25), (16, 29), (157, 167)
_WATCHES = (8, 10, 15, 1024, 1026)
"""Of fcntl: who gets a signal about a file (F_SETOWN, F_SETSIG, F_SETOWN_EX), leases, F_NOTIFY."""
_OUTLIVES = (1,)
"""Of prctl: what becomes of this process when its parent ends (PR_SET_PDEATHSIG): it ends too."""
_PLAIN_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""What Python asks of a file: is it a terminal, how wide, how much to read, blocking, inherited."""
_ARCHITECTURE = (0xC000003E, 0xC00000B7)
_CLONE_THREAD = 0x00010000

_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24


class _Step(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step)))


def refused(machine: int, table: str = _REFUSED) -> dict[str, int]:
    """The numbers of the calls that are refused, by name; machine: 0 for x86_64, 1 for aarch64."""
    rows = (row.split() for row in table.replace("\n", " ").split(",") if row.strip())
    numbers = {row[0]: int(row[1 + machine]) for row in rows}
    return {name: number for name, number in numbers.items() if number >= 0}


def _steps(machine: int, own_pid: int) -> Iterable[tuple[int, int, int, int]]:
    """The filter: one step a tuple of code, jump if true, jump if false, value."""
    refuse = (_RETURN, 0, 0, _FAIL | errno.EPERM)
    yield _LOAD, 0, 0, _ARCHITECTURE_AT
    yield _EQUAL, 1, 0, _ARCHITECTURE[machine]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER_AT
    # newer calls, and those of x32; glibc falls back from clone3 to clone, whose flags can be read
    yield _AT_LEAST, 1, 0, _ALLOWED_UP_TO + 1
    yield _EQUAL, 0, 1, _CLONE3[machine]
    yield _RETURN, 0, 0, _FAIL | errno.ENOSYS
    for number in sorted(refused(machine).values()):
        yield _EQUAL, 0, 1, number
        yield refuse
    for number in sorted(refused(machine, _PRETENDED).values()):
        yield _EQUAL, 0, 1, number
        yield _RETURN, 0, 0, _FAIL | 0
    for call, argument, values, others in (
        (_PRLIMIT, _FIRST_ARGUMENT_AT, (0,), refuse[3]),  # limits of its own
        (_IOCTL, _SECOND_ARGUMENT_AT, _PLAIN_IOCTLS, _FAIL | errno.ENOTTY),
    ):
        yield _EQUAL, 0, 2 * len(values) + 2, call[machine]
        yield _LOAD, 0, 0, argument
        for value in values:
            yield _EQUAL, 0, 1, value
            yield _RETURN, 0, 0, _ALLOW
        yield _RETURN, 0, 0, others
    for call, argument, refuses in (
        (_FCNTL, _SECOND_ARGUMENT_AT, _WATCHES),
        (_PRCTL, _FIRST_ARGUMENT_AT, _OUTLIVES),
    ):
        yield _EQUAL, 0, 2 * len(refuses) + 2, call[machine]
        yield _LOAD, 0, 0, argument
        for value in refuses:
            yield _EQUAL, 0, 1, value
            yield refuse
        yield _RETURN, 0, 0, _ALLOW
    yield _EQUAL, 0, 4, _CLONE[machine]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT_AT
    yield _ANY_BIT, 0, 1, _CLONE_THREAD
    yield _RETURN, 0, 0, _ALLOW
    yield refuse
    yield _EQUAL, 0, 4, _TGKILL[machine]  # raise() and abort(): signals to itself alone
    yield _LOAD, 0, 0, _FIRST_ARGUMENT_AT
    yield _EQUAL, 0, 1, own_pid
    yield _RETURN, 0, 0, _ALLOW
    yield refuse
    yield _RETURN, 0, 0, _ALLOW


def restrict() -> None:
    """Put the filter on this process; it cannot be taken off.

    Raises OSError where the kernel refuses, or for a machine whose numbers are not known.
    """
    if not linux.KNOWN:
        raise OSError(errno.ENOSYS, f"seccomp: the calls of {linux.MACHINE} are not known")
    steps = [_Step(*it) for it in _steps(int(linux.MACHINE == "aarch64"), os.getpid())]
    program = _Program(len(steps), (_Step * len(steps))(*steps))
    linux.prctl(linux.NO_NEW_PRIVS, 1)
    set_filter, on_all_threads = 1, 1
    linux.call("seccomp", set_filter, on_all_threads, ctypes.byref(program))
