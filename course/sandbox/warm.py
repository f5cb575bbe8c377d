"""The warm program: imports everything once, then forks one process for each submission.

Started by `session`, with nothing of the grader's in its environment. It reads its `Sandbox` from
standard input, prepares it, imports, and answers how many bytes of address space it takes by then.
From then on, by its control socket (descriptor 0):

    in   HOME     with one descriptor, the learner's end of a new wire
    out  PID      the process that was made (its parent, where it has a pid namespace of its own)
    in   PID      of a process that has ended
    out  SIGNAL   the signal that ended it; see `_ended_by`

It has no threads, and random states are the same in every process it forks.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import json
import os
import pkgutil
import random
import resource
import signal
import socket
import sys
import traceback
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from course.sandbox import linux, namespaces, profiles

if TYPE_CHECKING:
    from course.sandbox.shell import Shell


def main() -> None:
    """Fork processes until the control socket is closed."""
    control = socket.socket(fileno=0)
    begun = json.loads(control.recv(1 << 20))
    sandbox = profiles.Sandbox(**{**begun, "limits": profiles.Limits(**begun["limits"])})
    sys.path[:] = sandbox.path
    with Path("/proc/self/statm").open("rb", buffering=0) as memory:  # the sandbox has no /proc
        profiles.prepare(sandbox)
        _open_modules(sandbox)
        home = namespaces.HOME if sandbox.profile == profiles.NAMESPACES else sandbox.folder
        os.environ.update({"HOME": home, "MPLCONFIGDIR": home, "LANG": "C.UTF-8"})
        shell = _imports()
        taken = int(memory.read().split()[0]) * resource.getpagesize()
    control.send(b"%d" % taken)
    _serve(control, replace(sandbox, limits=sandbox.limits.beyond(taken)), shell)


def _open_modules(sandbox: profiles.Sandbox) -> None:
    """Raises PermissionError where a learner's import would fail: a module is closed to this user.

    Compiled modules may be closed: Python then reads their source.
    """
    tops = [path for path in sandbox.readable if str(Path(path).parent) in sandbox.path]
    folders = (walked for top in tops for walked in os.walk(top))
    below = (f"{folder}/{name}" for folder, *names in folders for name in chain(*names))
    for path in chain(tops, below):
        if "__pycache__" not in path:
            with contextlib.suppress(FileNotFoundError):  # a link that leads out of the sandbox
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def _imports() -> Shell:
    import matplotlib.pyplot as plt
    import numpy as np

    import tensorkit as tk
    from course.engine import assembly  # noqa: F401
    from course.notebook.quiet import run_quietly
    from course.notebook.state import keep_names
    from course.sandbox import learner, shell  # noqa: F401

    for module in pkgutil.walk_packages(tk.__path__, "tensorkit."):
        import_module(module.name)
    keep_names()
    made = shell.make()
    # the first picture loads fonts and backends, the first error the modules for tracebacks
    plt.figure(figsize=(1, 1)).savefig(os.devnull, format="png")
    plt.close("all")
    made.run_cell("1 / 0", store_history=False)
    # what the first check of each process would compile or copy
    made.run_cell("def warm_up():\n    return 0\nwarm_up()", store_history=False)
    inspect.getsource(made.user_ns.pop("warm_up"))
    run_quietly(gc.collect, 1.0, ())
    made.outputs.begin()
    np.random.seed(0)
    tk.manual_seed(0)
    gc.collect()
    gc.freeze()
    return made


def _serve(control: socket.socket, sandbox: profiles.Sandbox, shell: Shell) -> None:
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
        if not message:
            os._exit(0)
        if not descriptors:
            control.send(b"%d" % _ended_by(int(message), sandbox.limits.seconds))
            continue
        child = os.fork()
        if child == 0:
            _become_learner(control, sandbox, shell, descriptors[0], message.decode())
        os.close(descriptors[0])
        control.send(b"%d" % child)


def _ended_by(pid: int, seconds: float) -> int:
    """The signal that ended a process; 0 if none did, or if its processor time was up.

    The kernel sends SIGKILL for that time, too. A child of an earlier warm process counts as
    ended by none.
    """
    with contextlib.suppress(ChildProcessError):
        _, status, used = os.wait4(pid, 0)
        return os.WTERMSIG(status) if used.ru_utime + used.ru_stime < seconds else 0
    return 0


def _become_learner(
    control: socket.socket, sandbox: profiles.Sandbox, shell: Shell, descriptor: int, home: str
) -> None:
    """In the forked process: enter the sandbox and serve the checker. Never returns."""
    from course.sandbox.wire import Wire  # imports NumPy, which needs `sandbox.path`

    try:
        os.setsid()
        linux.prctl(linux.PDEATHSIG, signal.SIGKILL)
        control.detach()
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(descriptor, 3)
        os.closerange(4, 1 << 16)
        wire = Wire(3)
        child = profiles.enter(sandbox, home)
        if child is not None:
            os.close(3)
            _, status = os.waitpid(child, 0)
            signal.raise_signal(os.WTERMSIG(status))  # 0, which is none, if it ended by itself
            os._exit(0)
        wire.send(profiles.hello(sandbox), [])
        os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), str(Path.cwd())))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        random.seed(0)  # Python seeds it anew in each process that is forked
        from course.sandbox.learner import Learner

        os.dup2(0, 2)
        Learner(wire, shell).serve()
    except BaseException as problem:
        traceback.print_exc()  # to the warm process's log, as long as it is open
        with contextlib.suppress(Exception):  # instead of `hello`; later nobody waits for it
            wire.send({"problem": str(problem)}, [])
    finally:
        os._exit(0)
