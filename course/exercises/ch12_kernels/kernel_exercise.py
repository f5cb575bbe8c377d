"""What the exercises of chapter 12 share: a case launches the learner's kernel."""

from __future__ import annotations

import inspect
import linecache
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from typing import Any, ClassVar

import tensorkit as tk
from course.notebook import compare
from course.notebook.exercise import Draw, Exercise
from course.shared.errors import CourseError
from tensorkit import cuda
from tensorkit.cuda import Counts
from tensorkit.errors import KernelError

Size = int | tuple[int, int]


class KernelExercise(Exercise):
    """An exercise whose answer is a kernel.

    A case has the numbers of blocks and threads, then the arguments of the kernel, on the CPU.
    Usual mistakes are functions without the decorator; ``changed`` makes them of the answer.
    """

    imports = "import math\nfrom tensorkit import cuda"
    filled: ClassVar[int]
    """Which argument the kernel fills; its other tensors stay as they are."""

    def _mistaken(self, answer: Any) -> Any:
        made = _compiled(answer)
        made.source.name = self.name  # its errors speak of the learner's kernel
        return made

    def is_answer(self, answer: Any) -> str | None:
        if str(answer).startswith("<kernel"):
            return None
        kind = compare.kind(answer)
        if kind != "a function":
            return (
                f"`{self.name}` should be a kernel, and it is {kind}. Begin the answer cell with "
                f"`@cuda.kernel` and `def {self.name}(...):` and run it again."
            )
        return (
            f"`{self.name}` should be a kernel. Put `@cuda.kernel` on the line above "
            f"`def {self.name}` and run the cell again."
        )

    def unmet(self, counts: Counts, log: Any, *args: Any) -> tuple[str, str] | None:
        """The demand of the statement that a launch does not meet, and a repair.

        No value shows it: a product without tiles has the right elements. The counts of the launch
        and its log come from the process of the answer, as ``out`` does, and are a demand on top
        of it.
        """
        return None

    def run(self, answer: Any, *args: Any) -> Any:
        """The filled tensor after the launch; KernelError for an unmet demand or another write."""
        blocks, threads, *values = args
        with cuda.simulate():
            given = [value.cuda() if isinstance(value, tk.Tensor) else value for value in values]
            _, _, _, arguments, _, counts, _, log = answer[blocks, threads](*given)
            filled = self.filled_alone(arguments, values)
            if unmet := self.unmet(Counts(*counts), log, *args):
                raise KernelError(f"{self.name} {unmet[0]}", repair=unmet[1])
            return filled

    def filled_alone(self, arguments: Any, before: Any) -> Any:
        """The filled tensor on the CPU; KernelError if another one has changed."""
        names = self.reference.source.parameters
        for at, (now, value) in enumerate(zip(arguments, before, strict=True)):
            if at == self.filled or not isinstance(value, tk.Tensor):
                continue
            if not tk.equal(now.cpu(), value.cpu()):
                sentence = f"{self.name} writes into {names[at]}, which should stay as it is"
                raise KernelError(sentence, repair=f"write into {names[self.filled]} only")
        return arguments[self.filled].cpu()

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        blocks, threads, *values = args
        shown = (show(value) + ".cuda()" * isinstance(value, tk.Tensor) for value in values)
        return f"{self.name}[{blocks}, {threads}]({', '.join(shown)})"


def changed(answer: Any, *texts: str) -> Any:
    """A usual mistake: the answer with one text of its source in place of another, in pairs."""
    source = inspect.getsource(answer)
    source = source[source.index("def ") :]
    for old, new in zip(texts[::2], texts[1::2], strict=True):
        if old not in source:
            raise CourseError(f"{answer.__name__} has no {old!r}")
        source = source.replace(old, new)
    file, names = f"<{answer.__name__} with {texts}>", {**inspect.unwrap(answer).__globals__}
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec", dont_inherit=True), names)
    return names[answer.__name__]


@cache
def _compiled(function: Any) -> Any:
    """The kernel of a usual mistake, compiled at its first use."""
    return cuda.kernel(function)


EVERY_BLOCK_ALIKE = (
    "`threadIdx.x` counts within a block, so all blocks take the same first elements. "
    "`cuda.grid(1)` is `blockIdx.x * blockDim.x + threadIdx.x`."
)
NOT_MULTIPLIED = (
    "Block 1 begins after all threads of block 0: `blockIdx.x` counts blocks, so multiply it by "
    "`blockDim.x`, or take `cuda.grid(1)`."
)
ONE_BLOCK_TOO_LATE = (
    "Blocks are counted from 0. Your block 0 takes the elements of block 1, and the first ones are "
    "left out. Take `cuda.grid(1)`."
)
LAST_LEFT_OUT = "The last element, `n - 1`, is left out. The guard is `i < n`."
FIRST_LEFT_OUT = "Elements are counted from 0, and the first one is left out. The guard is `i < n`."
"""Sentences about mistakes that can be made in several exercises."""

ALONE = (
    "leaves threads idle: some of them do the work of others",
    "share the elements among all threads",
)


def works_alone(log: Any, kind: str, n: int, blocks: Size, threads: Size) -> tuple[str, str] | None:
    """The unmet demand where threads do the work of others.

    kind: the accesses that count: ``WRITES``, or ``READS`` of the elements that no thread writes.
    n: the number of elements of global memory that are accessed so. No thread of the launch may
    take more of them than its share, `n` divided by the number of threads, rounded up.
    """
    done = Counter[tuple[int, int]]()
    for accesses_there in log.touched.values():
        did = [(kind, block, thread) for block, thread, kind, *_ in accesses_there.values()]
        if kind == WRITES or all(access[0] == READS for access in did):
            done.update(
                (block, thread) for access_kind, block, thread in did if access_kind == kind
            )
    most = -(-n // (_number(blocks) * _number(threads)))
    return ALONE if max(done.values(), default=0) > most else None


def _number(size: Size) -> int:
    return size if isinstance(size, int) else math.prod(size)


READS, WRITES = "reads", "writes"
"""The two kinds of access, in the words of the log of a launch and of its picture."""


def accesses(phases: Any) -> Iterator[tuple[int, str, int]]:
    """The accesses of block 0 in some phases: the thread, the kind such as ``READS``, the address.

    The phases are of ``log.shown``. Addresses of shared memory are below 0.
    """
    for phase in phases:
        for _, thread, kind, *_, address in chain.from_iterable(chain(*phase.values())):
            yield thread, kind, address


def most_read(phases: Any) -> int:
    """The most numbers of shared memory that one thread of block 0 reads in these phases."""
    reads = (thread for thread, kind, at in accesses(phases) if kind == READS and at < 0)
    return max(Counter(reads).values(), default=0)


def floats(draw: Draw, *shape: int, low: int = 1, high: int = 9) -> tk.Tensor:
    """Positive multiples of 1/8 from low to high, and negatives of such numbers less 1/16.

    Sums and products of these are exact. A sum with an odd number of negative ones is not 0.
    """
    n = math.prod(shape)
    eighths, signs = draw.integers(n, 8 * low, 8 * high), draw.integers(n, 0, 1)
    pairs = zip(eighths, signs, strict=True)
    return tk.tensor(
        [-number / 8 - 1 / 16 if sign else number / 8 for number, sign in pairs]
    ).reshape(shape)


def unfilled(draw: Draw, *shape: int) -> tk.Tensor:
    """A tensor of one drawn number, so low that a sum which begins with it is wrong."""
    return tk.full(shape, float(draw.integer(-999, -100)))
