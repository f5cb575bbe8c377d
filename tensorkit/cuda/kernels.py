"""Kernels in Python: ``@tk.cuda.kernel``, the launch ``kernel[blocks, threads](...)``, the profile.

The simulated device runs every thread and counts what the memory was asked for (``kernel_run``). A
GPU is given the same source by cupyx.jit, which compiles it at the first launch. What may stand in
a kernel is the same for both (``kernel_source``). The kernel of an operation is not here: see
``Definition.kernels`` in tensorkit.definition.
"""

import importlib
import linecache
import sys
import warnings
from functools import cache, cached_property, partial, update_wrapper
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from tensorkit.autograd.versions import bump_version, check_write
from tensorkit.base import TensorBase
from tensorkit.cuda.kernel_run import PIECE, Counts, Log, Pair, run
from tensorkit.cuda.kernel_source import DTYPES, WORDS, Source, name_for_cupy, number
from tensorkit.devices import as_device, check_same_device
from tensorkit.direct_path import without_warnings
from tensorkit.errors import AcceleratorError, DTypeError, message
from tensorkit.random import initial_seed
from tensorkit.thread_state import of_user

threadIdx, blockIdx, blockDim, gridDim, grid, syncthreads, atomic_add, shared = WORDS
MOST_THREADS, MOST_ALONG_Y, MOST_SIMULATED = 1024, 65_535, 1_000_000
_NUMBERS: Any = {int: lambda value: np.int64(number(value)), float: np.float32, bool: np.bool_}


class Launch(NamedTuple):
    """One launch of a kernel: sizes, arguments, the caller's line, and what it did.

    ``counts``: loads, stores, transactions, bank conflicts, idle threads, barriers; ``least``: the
    least of these that the arguments allow. A GPU does not tell: there they are None, and ``log``
    too, which ``viz.kernel(launch)`` draws.
    """

    kernel: "Kernel"
    blocks: Pair
    threads: Pair
    arguments: tuple[Any, ...]
    line: str
    counts: Counts | None
    least: Counts | None
    log: Log | None

    def __repr__(self) -> str:
        blocks, threads = (p.x if p.y == 1 else tuple(p) for p in (self.blocks, self.threads))
        did = "on a GPU, which counts nothing"
        if self.counts and self.least:
            did = f"{self.counts.loads} loads, {self.counts.stores} stores, "
            did += f"{self.counts.transactions} transactions (least {self.least.transactions})"
        return f"<{self.kernel.__name__}[{blocks}, {threads}]: {did}>"


class Kernel:
    """A function that every thread of a launch runs: ``kernel[blocks, threads](x, out, n)``.

    blocks, threads: how many blocks, and threads in each (at most 1,024): integers, or pairs for
    two dimensions. A launch gives a ``Launch``.

    Within it ``tk.cuda`` has CUDA's words: ``grid(1)``, ``threadIdx``, ``blockIdx``, ``blockDim``,
    ``gridDim`` (``.x``, ``.y``), ``syncthreads()``, ``shared(shape, dtype)`` and
    ``atomic_add(x, i, value)``, which gives the value before. Parameters that are indexed are
    tensors on the device; others are numbers. Raises KernelError for what cannot be compiled, and
    on the simulated device for what a GPU does not notice: an index out of bounds, a race, a
    barrier that not all threads reach, shared memory that was read before it was written.

    >>> cuda = tk.cuda
    >>> @cuda.kernel
    ... def double(x, out, n):
    ...     i = cuda.grid(1)
    ...     if i < n:
    ...         out[i] = 2.0 * x[i]
    >>> with cuda.simulate():
    ...     x, out = tk.arange(5., device="cuda"), tk.zeros(5, device="cuda")
    ...     print(double[2, 4](x, out, 5))
    ...     print(out)
    <double[2, 4]: 5 loads, 5 stores, 4 transactions (least 2)>
    tensor([0., 2., 4., 6., 8.], device='cuda:0')
    """

    __name__: str

    def __init__(self, function: Any = None) -> None:
        update_wrapper(self, function)
        self._source = cache(partial(Source, function))
        self.source = without_warnings(self._source)

    def __getitem__(self, sizes: Any) -> Any:
        sizes = sizes if type(sizes) is tuple else (sizes,)
        pairs = [size if type(size) is tuple else (size, 1) for size in sizes]
        is_whole = all(type(n) in (int, np.int64) and n > 0 for pair in pairs for n in pair)
        if [*map(len, pairs)] != [2, 2] or not is_whole:
            what = "two sizes stand in the brackets, each an integer of at least one, or a pair"
            self._refuse_sizes(ValueError, f"{what}, not {sizes}")
        blocks, threads = (Pair(*map(int, pair)) for pair in pairs)
        if threads.x * threads.y > MOST_THREADS or blocks.y > MOST_ALONG_Y or blocks.x >= 2**31:
            what = f"a block has at most {MOST_THREADS:,} threads, x 2**31 - 1, y {MOST_ALONG_Y:,}"
            self._refuse_sizes(AcceleratorError, f"invalid configuration argument; {what} blocks")
        return lambda *args, **named: self._launch(blocks, threads, args, named, sys._getframe(1))

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse_sizes(TypeError, "the numbers of blocks and threads are missing")

    def _refuse_sizes(self, kind: Any, what: str) -> NoReturn:
        repair = f"{self.__name__}[max(1, -(-n // 256)), 256]({', '.join(self.source.parameters)})"
        _refuse(kind, self.__name__, f"Kernel {self.__name__} cannot be launched: {what}", repair)

    def _launch(self, blocks: Pair, threads: Pair, args: Any, named: Any, caller: Any) -> Launch:
        source, name, wanted = self.source, self.__name__, self.source.parameters
        if source.gap:
            source.refuse("a gap is left, `...`", "a value in its place", source.gap)
        if named or len(args) != len(wanted):
            first = f"{name}() takes {len(wanted)} arguments but {len(args)} were given"
            first += f", and {', '.join(named)} by name" * bool(named)
            _refuse(TypeError, name, first, f"{name}[...]({', '.join(wanted)})")
        given, backend = dict(zip(wanted, args, strict=True)), as_device("cuda").backend
        ready = [_checked(source, each, value, backend) for each, value in given.items()]
        without_warnings(self._source, tuple(map(type, args)))  # with these it may not compile
        for parameter in source.written - source.shared.keys():  # also if the launch is refused
            bump_version(given[parameter], name)
        log: Any = None
        if backend.is_simulated:
            if blocks.x * blocks.y > MOST_SIMULATED:
                self._refuse_sizes(AcceleratorError, f"at most {MOST_SIMULATED:,} simulated blocks")
            log = without_warnings(run, source, blocks, threads, given, initial_seed())
            backend.clock.launch(name, PIECE * log.counts.transactions)  # type: ignore[attr-defined]
        else:
            self._compiled[(*blocks, 1), (*threads, 1)](*ready)
        counts, least, line = log and log.counts, log and log.least, _line(caller, name)
        launch = Launch(self, blocks, threads, args, line, counts, least, log)
        for each in _open:
            each.append(launch)
        return launch

    @cached_property
    def _compiled(self) -> Any:
        """What cupyx.jit makes, which reads the text of the function that it is given."""
        jit, source = importlib.import_module("cupyx.jit"), self.source
        text, file = source.for_cupy, f"<{source.name}, {source.file}, {id(self)}>"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        names = {"jit": jit, "numpy": np, "cupy": importlib.import_module("cupy")}
        exec(compile(text, file, "exec"), names)
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # "is experimental"
            return jit.rawkernel()(names[name_for_cupy(source.name)])

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}({', '.join(self.source.parameters)})>"


kernel = Kernel


def _refuse(kind: Any, name: str, first: str, repair: str) -> NoReturn:
    """An error about a launch, with the caller's line where that names the kernel."""
    line = _line(sys._getframe(1), name)
    raise kind(message(first, *[line] * (name in line), repair=repair))


def _line(frame: Any, name: str) -> str:
    """The user's line in words: its number and its text, or the name where that is not known."""
    user = of_user(frame)
    text = linecache.getline(user.f_code.co_filename, user.f_lineno).strip() or name
    return f"line {user.f_lineno}: {text if len(text) <= 48 else text[:47] + '…'}"


def _checked(source: Source, parameter: str, value: Any, backend: Any) -> Any:
    """What cupyx.jit is given for a parameter; raises unless this can be the parameter's value."""
    name, kind = f"{source.name}(): {parameter}", type(value).__name__
    if parameter not in source.arrays and type(value) in _NUMBERS:
        return without_warnings(_NUMBERS[type(value)], value)
    if parameter in source.plain:
        repair = f"{parameter}.item(), or {parameter}[i] for an element inside of the kernel"
        _refuse(TypeError, source.name, f"{name} is a number here, not {kind}", repair)
    if not isinstance(value, TensorBase):
        _refuse(TypeError, source.name, f"{name} must be Tensor, not {kind}", "tk.rand(n).cuda()")
    line = _line(sys._getframe(1), source.name)
    check_same_device(value.device, backend.device, repair=f"{parameter}.to('cuda')    # {line}")
    known = DTYPES[:2] if parameter in source.added else DTYPES
    if value.dtype.name not in known:
        what = f"{name} has dtype {value.dtype}; this kernel takes {', '.join(known)}"
        _refuse(DTypeError, source.name, what, f"{parameter}.float(), or {parameter}.int()")
    if (n_dims := source.n_dims.get(parameter, value._array.ndim)) != value._array.ndim:
        what = f"{name}.ndim is {value._array.ndim}, and its index in the kernel is for {n_dims}"
        _refuse(TypeError, source.name, what, f"{parameter}.reshape({'1, ' * (n_dims - 1)}-1)")
    if parameter in source.written and check_write(value):
        what = f"{name} requires grad, and autograd does not see what a kernel writes"
        _refuse(TypeError, source.name, what, f"{parameter}.detach()")
    return value._array


# Profile


_open: list["profile"] = []


class profile(list[Launch]):
    """``with tk.cuda.profile() as profile:`` notes the launches of kernels written in Python.

    It is a list of them, which is printed as a table.

    >>> with tk.cuda.profile() as profile:
    ...     pass
    >>> len(profile)
    0
    """

    def __enter__(self) -> Self:
        _open.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _open.pop()

    def __repr__(self) -> str:
        rows = [("launch", *(name.replace("_", " ") for name in Counts._fields)), *map(_row, self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, "In brackets: the least that the arguments allow."])


def _row(launch: Launch) -> tuple[str, ...]:
    pairs = zip(launch.counts or (), launch.least or (), strict=True)
    cells = [f"{now:,} ({least:,})" if least else f"{now:,}" for now, least in pairs]
    return (launch.line, *(cells or ["not counted"] * len(Counts._fields)))
