"""The exercises of chapter 12, Kernels, in the order of its text.

The answers are kernels, or functions that launch one. A case holds the two sizes of a launch and
its arguments; what a check sees is the tensor that the kernel fills. The device is always the
simulated one, also where there is a GPU: only that one notices a race. Numbers are small and whole
where they are added, so that the order of additions does not show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar

import tensorkit as tk
from course.notebook.exercise import Case, Draw, Exercise, Prediction, case, exercise
from course.notebook.rules import LAUNCH, Rule
from tensorkit import cuda
from tensorkit.cuda import Counts
from tensorkit.errors import KernelError

Size = int | tuple[int, int]


class KernelExercise(Exercise):
    """An exercise whose answer is a kernel.

    A case has the numbers of blocks and threads, then the arguments of the kernel, on the CPU.
    Usual mistakes are functions without the decorator.
    """

    imports = "import math\nfrom tensorkit import cuda"
    filled: ClassVar[int]
    """Which argument the kernel fills: that is what the check looks at."""

    def _mistaken(self, answer: Any) -> Any:
        made = _compiled(answer)
        made.source.name = self.name  # its errors speak of the learner's kernel
        return made

    def is_answer(self, answer: Any) -> str | None:
        if str(answer).startswith("<kernel"):
            return None
        return (
            f"`{self.name}` should be a kernel. Put `@cuda.kernel` on the line above "
            f"`def {self.name}` and run the cell again."
        )

    def unmet(self, counts: Counts, *args: Any) -> tuple[str, str] | None:
        """The demand of the statement that a launch with these counts does not meet, and a repair.

        No value shows it: a product without tiles has the right elements. The counts come from the
        process of the answer, as ``out`` does, and are a demand on top of it.
        """
        return None

    def run(self, answer: Any, *args: Any) -> Any:
        """The filled tensor, as it was after the launch; KernelError for an unmet demand."""
        blocks, threads, *values = args
        with cuda.simulate():
            given = [it.cuda() if isinstance(it, tk.Tensor) else it for it in values]
            _, _, _, arguments, _, counts, *_ = answer[blocks, threads](*given)
            if unmet := self.unmet(Counts(*counts), *args):
                raise KernelError(f"{self.name} {unmet[0]}", repair=unmet[1])
            return arguments[self.filled].cpu()

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        blocks, threads, *values = args
        shown = (show(it) + ".cuda()" * isinstance(it, tk.Tensor) for it in values)
        return f"{self.name}[{blocks}, {threads}]({', '.join(shown)})"


@cache
def _compiled(function: Any) -> Any:
    """A kernel of a usual mistake, made when somebody needs it."""
    return cuda.kernel(function)


# Mistakes that show themselves by the same error share a message.
_BEYOND = (
    "A thread beyond the end reaches outside of the tensors. A guard keeps such threads still, and "
    "the last element is `n - 1`: `if i < n:`."
)
_BEYOND_BOTH = (
    "Threads beyond the last row or the last column reach outside. Guard both: "
    "`if row < rows and column < columns:`."
)
_THREE_STEPS = (
    "Reading, adding and writing are three steps, with `+=` as well, and other threads come in "
    "between. `cuda.atomic_add(out, 0, x[i])` is a single step."
)
_ONE_PHASE = (
    "A place of `part` is added to and read by another thread in one phase. Only the first `half` "
    "threads add. At the end of a round all threads wait: in the loop, after the `if`."
)
_USED_TWICE = (
    "`part` is written and read by different threads in one phase. A barrier stands between a "
    "write and the reads of others, and another one before `part` is used again."
)


_ALONE = (
    "leaves most threads idle: few of them do the work of all",
    "share the elements among all threads",
)


def _works_alone(counts: Counts, n: int, n_threads: int) -> tuple[str, str] | None:
    """The unmet demand where few threads do the work of all.

    n: elements; n_threads: threads among which they can be shared. Where they are, a warp has no
    more idle threads at an access than there are threads for one element.
    """
    accesses, rounds = counts.loads + counts.stores, -(-n // n_threads)
    return _ALONE if counts.idle_threads * n > accesses * rounds * n_threads else None


def _n_threads(blocks: Size, threads: Size) -> int:
    return math.prod(it if isinstance(it, int) else math.prod(it) for it in (blocks, threads))


def _floats(draw: Draw, *shape: int, low: int = 1, high: int = 9) -> tk.Tensor:
    """Whole numbers as floats."""
    values = draw.integers(math.prod(shape), low, high)
    return tk.tensor(values, dtype=tk.float32).reshape(shape)


def _unfilled(*shape: int) -> tk.Tensor:
    return tk.full(shape, -1.0)


@cuda.kernel
def axpy(a, x, y, out, n):
    """One element of a * x + y for each thread."""
    i = cuda.grid(1)
    if i < n:
        out[i] = a * x[i] + y[i]


def _no_guard(a, x, y, out, n):
    i = cuda.grid(1)
    out[i] = a * x[i] + y[i]


def _every_block_alike(a, x, y, out, n):
    i = cuda.threadIdx.x
    if i < n:
        out[i] = a * x[i] + y[i]


def _block_not_multiplied(a, x, y, out, n):
    i = cuda.blockIdx.x + cuda.threadIdx.x
    if i < n:
        out[i] = a * x[i] + y[i]


def _one_too_far(a, x, y, out, n):
    i = cuda.grid(1)
    if i <= n:
        out[i] = a * x[i] + y[i]


def _one_block_too_late(a, x, y, out, n):
    i = (cuda.blockIdx.x + 1) * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        out[i] = a * x[i] + y[i]


def _last_one_left_out(a, x, y, out, n):
    i = cuda.grid(1)
    if i < n - 1:
        out[i] = a * x[i] + y[i]


@exercise("one-thread-each", answer=axpy, points=2, difficulty=2, minutes=5)
class OneThreadEach(KernelExercise):
    """One thread for each element

    Write the kernel that computes `a * x + y`. Each thread fills one element of `out`. There may be
    more threads than elements: those have nothing to do.

    **Input:** a number `a`; `x`, `y` and `out`, tensors with `n` elements on the device; `n`.

    **Output:** none. `out` is filled: element `i` becomes `a * x[i] + y[i]`.

    ```python
    x, y = tk.tensor([1.0, 2.0, 3.0]).cuda(), tk.tensor([10.0, 10.0, 10.0]).cuda()
    out = tk.zeros(3).cuda()
    axpy[2, 2](2, x, y, out, 3)      # 2 blocks of 2 threads: one of the four does nothing
    out                              # tensor([12., 14., 16.], device='cuda:0')
    ```
    """

    filled = 3
    hints = (
        "Which element is this thread's own? `cuda.grid(1)` is its number among all threads of the "
        "launch.",
        "`i = cuda.grid(1)`, then a guard, `if i < n:`, and in it one line that fills `out[i]`.",
    )
    usual_mistakes = {
        "no guard": (
            _no_guard,
            _BEYOND,
        ),
        "every block alike": (
            _every_block_alike,
            "`threadIdx.x` counts within a block, so all blocks fill the same first elements. "
            "`cuda.grid(1)` is `blockIdx.x * blockDim.x + threadIdx.x`.",
        ),
        "the block is not multiplied": (
            _block_not_multiplied,
            "Block 1 begins after all threads of block 0: `blockIdx.x` counts blocks, so multiply "
            "it by `blockDim.x`, or take `cuda.grid(1)`.",
        ),
        "one too far": (
            _one_too_far,
            _BEYOND,
        ),
        "one block too late": (
            _one_block_too_late,
            "Blocks are counted from 0. Your block 0 fills the elements of block 1, and the first "
            "ones stay as they were. Take `cuda.grid(1)`.",
        ),
        "the last one is left out": (
            _last_one_left_out,
            "The element `n - 1` stays as it was. The guard is `i < n`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int, blocks: int, threads: int, label: str) -> Case:
            x, y = _floats(draw, n), _floats(draw, n)
            return case(blocks, threads, draw.integer(2, 9), x, y, _unfilled(n), n, label=label)

        yield some(8, 1, 8, "one block, a thread for each element")
        yield some(8, 2, 4, "two blocks, a thread for each element")
        yield some(7, 2, 4, "one thread too many")
        yield some(10, 4, 4, "six threads too many")
        yield some(33, 2, 32, "nearly a block too many")
        yield some(2, 4, 2, "more blocks than are needed")
        yield some(1, 3, 1, "one element (size 1)")
        whole = tk.tensor(draw.integers(6, 1, 9))
        yield case(2, 4, 3, whole, whole + 1, whole * 0, 6, label="whole numbers (int)")

    def unmet(self, counts: Counts, *args: Any) -> tuple[str, str] | None:
        """Each thread fills one element."""
        blocks, threads, *_, n = args
        return _works_alone(counts, n, _n_threads(blocks, threads))


@cuda.kernel
def squares(x, out, n):
    """All squares, however few threads there are."""
    for i in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x):
        out[i] = x[i] * x[i]


def _one_each(x, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] * x[i]


def _stride_of_a_block(x, out, n):
    for i in range(cuda.grid(1), n, cuda.blockDim.x):
        out[i] = x[i] * x[i]


def _all_of_it(x, out, n):
    for i in range(n):
        out[i] = x[i] * x[i]


def _from_the_thread(x, out, n):
    for i in range(cuda.threadIdx.x, n, cuda.gridDim.x * cuda.blockDim.x):
        out[i] = x[i] * x[i]


def _stride_of_blocks(x, out, n):
    for i in range(cuda.grid(1), n, cuda.gridDim.x):
        out[i] = x[i] * x[i]


@exercise("grid-stride", answer=squares, points=2, difficulty=2, minutes=5)
class GridStride(KernelExercise):
    """More elements than threads

    A launch has as many threads as its caller likes. Write the kernel that squares all `n` elements
    with any number of threads: each thread takes its first element, then the one that lies as many
    further as there are threads in the whole launch, and so on.

    **Input:** `x` and `out`, tensors with `n` elements on the device; `n`.

    **Output:** none. `out[i]` becomes `x[i] * x[i]` for every `i`.

    ```python
    x, out = tk.arange(5.0).cuda(), tk.zeros(5).cuda()
    squares[1, 2](x, out, 5)     # thread 0 takes 0, 2, 4; thread 1 takes 1, 3
    out                          # tensor([ 0.,  1.,  4.,  9., 16.], device='cuda:0')
    ```
    """

    filled = 1
    hints = (
        "How many threads has the whole launch? `gridDim.x` blocks of `blockDim.x` threads.",
        "`for i in range(start, n, step):` with the thread's own number as the start and the "
        "number of all threads as the step. The range ends at `n`, so no guard is needed.",
    )
    usual_mistakes = {
        "one element each": (
            _one_each,
            "Each thread fills one element, and the rest stays as it was. Let it go on: the next "
            "one lies `gridDim.x * blockDim.x` further.",
        ),
        "the step of a block": (
            _stride_of_a_block,
            "With the step `blockDim.x` a thread walks into the elements of the next block. Step "
            "over all threads of the launch: `gridDim.x * blockDim.x`.",
        ),
        "every thread does everything": (
            _all_of_it,
            "Every thread fills every element: they race, and nothing is gained. Begin at "
            "`cuda.grid(1)` and step by the number of all threads.",
        ),
        "begins at the thread of the block": (
            _from_the_thread,
            "The threads of all blocks begin at the same elements. Begin at `cuda.grid(1)`.",
        ),
        "the step of the blocks": (
            _stride_of_blocks,
            "The step is the number of threads, not of blocks: `gridDim.x * blockDim.x`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int, blocks: int, threads: int, label: str) -> Case:
            return case(blocks, threads, _floats(draw, n), _unfilled(n), n, label=label)

        yield some(12, 2, 3, "two elements for each thread")
        yield some(17, 2, 4, "two or three for each thread")
        yield some(23, 3, 2, "three blocks of two threads")
        yield some(9, 4, 2, "four blocks of two threads")
        yield some(6, 1, 4, "one block")
        yield some(300, 2, 32, "four or five for each thread")
        yield some(10, 1, 1, "one thread")
        yield some(5, 3, 4, "more threads than elements")
        yield some(1, 2, 2, "one element (size 1)")
        whole = tk.tensor(draw.integers(15, 1, 9))
        yield case(2, 3, whole, whole * 0, 15, label="whole numbers (int)")

    def unmet(self, counts: Counts, *args: Any) -> tuple[str, str] | None:
        """Neighbouring threads take neighbouring elements, which shows where there are many."""
        blocks, threads, _, _, n = args
        if n > 100 and 8 * counts.transactions > counts.loads + counts.stores:
            return (
                f"takes {counts.transactions} transactions: threads of a warp are far apart",
                "let each thread step over all threads of the launch",
            )
        return _works_alone(counts, n, _n_threads(blocks, threads))


@cuda.kernel
def neighbours(x):
    i = cuda.grid(1)
    value = x[0, i]


@cuda.kernel
def backwards(x):
    i = cuda.grid(1)
    value = x[0, 31 - i]


@cuda.kernel
def shifted(x):
    i = cuda.grid(1)
    value = x[0, i + 1]


@cuda.kernel
def every_second(x):
    i = cuda.grid(1)
    value = x[0, 2 * i]


@cuda.kernel
def one_for_all(x):
    value = x[0, 0]


@cuda.kernel
def down(x):
    i = cuda.grid(1)
    value = x[i, 0]


def transactions(kernel: Any) -> int:
    """The transactions in which one warp reads of a matrix of 32 rows of 64 float32."""
    with cuda.simulate():
        return int(kernel[1, 32](tk.zeros(32, 64, device="cuda")).counts.transactions)


@exercise("how-many-transactions", points=2, difficulty=3, minutes=4)
class HowManyTransactions(Prediction):
    """Predict the transactions

    The kernels of the cell above read a matrix `x` of 32 rows with 64 float32 each, so a row takes
    256 bytes. One warp of 32 threads reads. How many pieces of 128 bytes does the memory send?

    One is done for you: if thread `i` read `x[0, 32 + i]`, the answer would be `1`. These are 32
    neighbours, 128 bytes, and they begin where a piece begins.
    """

    name = "pieces"
    ask = "Replace each ... by a number of transactions."
    questions = {
        "transactions(neighbours)": "32 neighbours of 4 bytes fill one piece of 128 bytes.",
        "transactions(backwards)": (
            "Which thread reads which of them does not matter: together they touch one piece."
        ),
        "transactions(shifted)": (
            "The elements 1 to 32: the first 31 lie in one piece, the last one in the next."
        ),
        "transactions(every_second)": (
            "The elements 0, 2, ..., 62 spread over 256 bytes; half of what is sent is not used."
        ),
        "transactions(one_for_all)": "One element lies in one piece, however many threads want it.",
        "transactions(down)": (
            "Elements of one column lie 256 bytes apart, each in a piece of its own."
        ),
    }
    hints = (
        "Number the bytes: element `[i, j]` begins at byte `256 * i + 4 * j`. A piece begins at "
        "each multiple of 128.",
        "Only the set of pieces counts, not the order of the threads, nor how many want the same.",
    )
    usual_mistakes = {
        "one for each thread": (
            {
                "transactions(neighbours)": 32,
                "transactions(backwards)": 32,
                "transactions(one_for_all)": 32,
            },
            "A warp asks together: what lies in one piece of 128 bytes comes in one transaction.",
        ),
        "one for each warp": (
            {
                "transactions(shifted)": 1,
                "transactions(every_second)": 1,
                "transactions(down)": 1,
            },
            "A transaction is a piece of 128 bytes. Where the elements of a warp lie in several "
            "pieces, there are several.",
        ),
        "order matters": (
            {"transactions(backwards)": 32, "transactions(shifted)": 32},
            "Neither the order nor a shift makes every thread wait alone: count the pieces that "
            "the elements lie in.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        name = expression.partition("(")[2].rstrip(")")
        return transactions(globals()[name])


@cuda.kernel
def add_bias(x, bias, out, rows, columns):
    """A row of numbers added to every row of a matrix."""
    column, row = cuda.grid(2)
    if row < rows and column < columns:
        out[row, column] = x[row, column] + bias[column]


def _no_guard_of_rows(x, bias, out, rows, columns):
    column, row = cuda.grid(2)
    if column < columns:
        out[row, column] = x[row, column] + bias[column]


def _no_guard_at_all(x, bias, out, rows, columns):
    column, row = cuda.grid(2)
    out[row, column] = x[row, column] + bias[column]


def _bias_of_the_row(x, bias, out, rows, columns):
    column, row = cuda.grid(2)
    if row < rows and column < columns:
        out[row, column] = x[row, column] + bias[row]


def _axes_swapped(x, bias, out, rows, columns):
    row, column = cuda.grid(2)
    if row < rows and column < columns:
        out[row, column] = x[row, column] + bias[column]


def _one_dimension(x, bias, out, rows, columns):
    column = cuda.grid(1)
    row = cuda.threadIdx.y
    if row < rows and column < columns:
        out[row, column] = x[row, column] + bias[column]


@exercise("add-bias", answer=add_bias, points=3, difficulty=3, minutes=6)
class AddBias(KernelExercise):
    """Two dimensions, and a bias

    A linear layer adds a bias to every row. Write the kernel: one thread for each element of the
    matrix. Columns go along x and rows along y, so that neighbouring threads read neighbouring
    elements.

    **Input:** `x` and `out` of shape `[rows, columns]`, `bias` of shape `[columns]`, all on the
    device; the two sizes.

    **Output:** none. `out[row, column]` becomes `x[row, column] + bias[column]`.

    ```python
    x, bias = tk.zeros(2, 3).cuda(), tk.tensor([1.0, 2.0, 3.0]).cuda()
    out = tk.zeros(2, 3).cuda()
    add_bias[(2, 1), (2, 2)](x, bias, out, 2, 3)     # 4 threads along x, 2 along y
    out      # tensor([[1., 2., 3.], [1., 2., 3.]], device='cuda:0')
    ```
    """

    filled = 2
    hints = (
        "`cuda.grid(2)` gives two numbers: first the one along x, then the one along y.",
        "`column, row = cuda.grid(2)`. Both may lie outside: "
        "`if row < rows and column < columns:`.",
        "Broadcasting is an index that is left out: the bias has no row, so it is `bias[column]`.",
    )
    usual_mistakes = {
        "no guard": (
            _no_guard_at_all,
            _BEYOND_BOTH,
        ),
        "one guard": (
            _no_guard_of_rows,
            _BEYOND_BOTH,
        ),
        "the bias of the row": (
            _bias_of_the_row,
            "The bias belongs to the columns: all elements of a column get the same number, "
            "`bias[column]`.",
        ),
        "axes swapped": (
            _axes_swapped,
            "`cuda.grid(2)` gives x first, and here x goes along the columns: "
            "`column, row = cuda.grid(2)`.",
        ),
        "the blocks along y are alike": (
            _one_dimension,
            "`threadIdx.y` begins at 0 in every block. The row is the second number of "
            "`cuda.grid(2)`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(rows: int, columns: int, blocks: Size, threads: Size, label: str) -> Case:
            x, bias = _floats(draw, rows, columns), _floats(draw, columns, low=10, high=99)
            out = _unfilled(rows, columns)
            return case(blocks, threads, x, bias, out, rows, columns, label=label)

        yield some(2, 4, (1, 1), (4, 2), "one block, a thread for each element")
        yield some(2, 6, (3, 1), (2, 2), "three blocks side by side")
        yield some(3, 5, (2, 2), (3, 2), "threads too many on both sides")
        yield some(5, 3, (1, 3), (4, 2), "more rows than columns")
        yield some(6, 2, (1, 3), (2, 2), "three blocks, one below the other")
        yield some(1, 7, (2, 1), (4, 2), "one row (size 1)")
        yield some(7, 1, (1, 2), (2, 4), "one column (size 1)")
        turned = _floats(draw, 5, 3).T
        bias = _floats(draw, 5, low=10, high=99)
        arguments = turned, bias, _unfilled(3, 5), 3, 5
        yield case((2, 2), (3, 2), *arguments, label="a turned matrix (non-contiguous)")

    def unmet(self, counts: Counts, *args: Any) -> tuple[str, str] | None:
        """One thread for each element of the matrix."""
        blocks, threads, *_, rows, columns = args
        return _works_alone(counts, rows * columns, _n_threads(blocks, threads))


@cuda.kernel
def total(x, out, n):
    """The sum of all elements, in out[0]."""
    i = cuda.grid(1)
    if i < n:
        cuda.atomic_add(out, 0, x[i])


def _races(x, out, n):
    i = cuda.grid(1)
    if i < n:
        out[0] += x[i]


def _barrier_inside(x, out, n):
    i = cuda.grid(1)
    if i < n:
        cuda.syncthreads()
        cuda.atomic_add(out, 0, x[i])


def _atomic_without_guard(x, out, n):
    i = cuda.grid(1)
    cuda.atomic_add(out, 0, x[i])


def _assigned(x, out, n):
    i = cuda.grid(1)
    if i < n:
        out[0] = out[0] + x[i]


def _adds_its_number(x, out, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic_add(out, 0, i)


def _adds_one_place_each(x, out, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic_add(out, cuda.threadIdx.x, x[i])


@exercise("racing-sum", answer=total, stub=_races, points=2, difficulty=3, minutes=4)
class RacingSum(KernelExercise):
    """A sum that races

    The kernel below adds every element to `out[0]`. Launch it in a new cell, as in the example, and
    read the error: two threads read the same old value, and one addition is lost. Repair it.

    **Input:** `x` with `n` elements and `out` with at least one, on the device; `out` holds zeros.

    **Output:** none. `out[0]` becomes the sum of all elements of `x`; the rest of `out` stays.

    ```python
    x, out = tk.tensor([1.0, 2.0, 3.0]).cuda(), tk.zeros(1).cuda()
    total[1, 4](x, out, 3)
    out                          # tensor([6.], device='cuda:0')
    ```
    """

    filled = 1
    hints = (
        "`out[0] += x[i]` is three steps: read, add, write. Another thread may come in between.",
        "`cuda.atomic_add(out, 0, value)` makes one step of the three.",
    )
    usual_mistakes = {
        "still races": (
            _races,
            _THREE_STEPS,
        ),
        "still races, written out": (
            _assigned,
            _THREE_STEPS,
        ),
        "a barrier inside an if": (
            _barrier_inside,
            "Not all threads of a block reach this barrier. An atomic addition needs none: leave "
            "`cuda.syncthreads()` out.",
        ),
        "the guard is gone": (
            _atomic_without_guard,
            "The threads beyond the end read outside of `x`. Keep the guard: `if i < n:`.",
        ),
        "adds its number": (
            _adds_its_number,
            "You add the number of the thread. Add its element: `x[i]`.",
        ),
        "not one place": (
            _adds_one_place_each,
            "Each thread adds to a place of its own. The sum belongs in `out[0]`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int, blocks: int, threads: int, label: str, out: int = 1) -> Case:
            x = _floats(draw, n, low=13, high=19)  # no sum is that of the threads' numbers
            return case(blocks, threads, x, tk.zeros(out), n, label=label)

        yield some(3, 1, 4, "three elements, four threads", 4)
        yield some(8, 1, 8, "one block", 8)
        yield some(13, 4, 4, "four blocks", 4)
        yield some(20, 1, 32, "a warp", 32)
        yield some(5, 3, 2, "three blocks of two", 2)
        yield some(40, 2, 32, "two warps", 32)
        yield some(1, 1, 1, "one element (size 1)")
        whole = tk.tensor(draw.integers(6, 3, 9), dtype=tk.int32)
        out = tk.zeros(4, dtype=tk.int32)
        yield case(2, 4, whole, out, 6, label="whole numbers (int)")


@cuda.kernel
def block_sums(x, out, n):
    """The sum of each block's elements, in out[block], by a tree."""
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = 0.0
    if i < n:
        part[t] = x[i]
    cuda.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def _tree_program(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    ...  # part[t]: the thread's own element, or 0.0 beyond the end
    cuda.syncthreads()
    half = 4
    while half > 0:
        if ...:  # which threads add in this round
            part[t] += ...  # the number that lies half further
        ...  # before the next round reads what was added
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def _no_barrier_in_the_loop(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = 0.0
    if i < n:
        part[t] = x[i]
    cuda.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def _barrier_within_the_if(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = 0.0
    if i < n:
        part[t] = x[i]
    cuda.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            part[t] += part[t + half]
            cuda.syncthreads()
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def _nothing_beyond_the_end(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if i < n:
        part[t] = x[i]
    cuda.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def _all_threads_add(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = 0.0
    if i < n:
        part[t] = x[i]
    cuda.syncthreads()
    half = 4
    while half > 0:
        if t < 8 - half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def _the_same_elements_again(x, out, n):
    part = cuda.shared(8, tk.float32)
    t = cuda.threadIdx.x
    part[t] = 0.0
    if t < n:
        part[t] = x[t]
    cuda.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half = half // 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


@exercise(
    "tree-sum",
    answer=block_sums,
    stub=_tree_program,
    kind="complete",
    points=3,
    difficulty=4,
    minutes=6,
)
class TreeSum(KernelExercise):
    """A tree in shared memory

    Atomic additions to one place wait for each other. Here each block of 8 threads adds its own
    elements in shared memory, in three rounds: four threads add, then two, then one. Fill the gaps.

    **Input:** `x` with `n` elements on the device; `out`, with an element for each block; `n`. A
    block has 8 threads.

    **Output:** none. `out[b]` becomes the sum of the elements `8 * b` to `8 * b + 7` of `x`, as far
    as there are any.

    ```python
    x, out = tk.arange(10.0).cuda(), tk.zeros(2).cuda()
    block_sums[2, 8](x, out, 10)
    out                          # tensor([28., 17.], device='cuda:0')
    ```
    """

    filled = 1
    hints = (
        "Every element of `part` is read in some round, so every thread writes its own one first: "
        "`part[t] = 0.0`, and within the guard `part[t] = x[i]`.",
        "In a round with `half = 4` the threads 0 to 3 add `part[t + 4]`: `if t < half:`.",
        "A round reads what the round before has written. Between the two all threads wait: "
        "`cuda.syncthreads()`, outside of the `if`.",
    )
    usual_mistakes = {
        "no barrier in the loop": (
            _no_barrier_in_the_loop,
            _ONE_PHASE,
        ),
        "a barrier inside the if": (
            _barrier_within_the_if,
            "Only some threads come into the `if`, and a barrier is for all of the block. Move it "
            "below the `if`, still in the loop.",
        ),
        "nothing beyond the end": (
            _nothing_beyond_the_end,
            "Threads beyond the end write nothing, and their places are read all the same. Write "
            "`part[t] = 0.0` in every thread first.",
        ),
        "too many threads add": (
            _all_threads_add,
            _ONE_PHASE,
        ),
        "every block alike": (
            _the_same_elements_again,
            "Every block adds the first elements. The thread's own element is `x[i]` with "
            "`i = cuda.grid(1)`; `t` is its place in `part`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int, label: str) -> Case:
            blocks = -(-n // 8)
            return case(blocks, 8, _floats(draw, n), _unfilled(blocks), n, label=label)

        yield case(2, 8, tk.arange(10.0), _unfilled(2), 10, label="ten elements, two blocks")
        yield some(8, "one whole block")
        yield some(24, "three whole blocks")
        yield some(5, "a block that is not full")
        yield some(19, "a last block that is not full")
        yield some(33, "a last block with one element")
        yield some(1, "one element (size 1)")
        yield case(1, 8, tk.zeros(0), _unfilled(1), 0, label="no elements (empty)", weight=0.25)

    def unmet(self, counts: Counts, *args: Any) -> tuple[str, str] | None:
        """Three rounds in each block, with a barrier between one and the next."""
        blocks, *_ = args
        if counts.barriers >= 3 * blocks:
            return None
        return (
            f"has {counts.barriers // blocks} barriers in a block: its threads do not add in three "
            "rounds",
            "four threads add, then two, then one, with `cuda.syncthreads()` after each round",
        )


@cuda.kernel
def matmul(a, b, out, n):
    """The product of two n x n matrices, tile by tile."""
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for tile in range(n // 4):
        left[ty, tx] = a[row, 4 * tile + tx]
        right[ty, tx] = b[4 * tile + ty, column]
        cuda.syncthreads()
        for k in range(4):
            value += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    out[row, column] = value


def _matmul_program(a, b, out, n):
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for tile in range(n // 4):
        left[ty, tx] = ...  # row `row` of a, column tx of tile number `tile`
        right[ty, tx] = ...  # row ty of tile number `tile`, column `column` of b
        ...  # all 32 numbers are there before anybody reads them
        for k in range(4):
            value += ...  # a product of two numbers of the tiles
        ...  # nobody writes the next tile before all have read this one
    out[row, column] = value


def _reads_before_the_barrier(a, b, out, n):
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for tile in range(n // 4):
        left[ty, tx] = a[row, 4 * tile + tx]
        right[ty, tx] = b[4 * tile + ty, column]
        for k in range(4):
            value += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    out[row, column] = value


def _writes_too_early(a, b, out, n):
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for tile in range(n // 4):
        left[ty, tx] = a[row, 4 * tile + tx]
        right[ty, tx] = b[4 * tile + ty, column]
        cuda.syncthreads()
        for k in range(4):
            value += left[ty, k] * right[k, tx]
    out[row, column] = value


def _always_the_first_tile(a, b, out, n):
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for _ in range(n // 4):
        left[ty, tx] = a[row, tx]
        right[ty, tx] = b[ty, column]
        cuda.syncthreads()
        for k in range(4):
            value += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    out[row, column] = value


def _right_tile_turned(a, b, out, n):
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for tile in range(n // 4):
        left[ty, tx] = a[row, 4 * tile + tx]
        right[ty, tx] = b[4 * tile + ty, column]
        cuda.syncthreads()
        for k in range(4):
            value += left[ty, k] * right[tx, k]
        cuda.syncthreads()
    out[row, column] = value


def _element_by_element(a, b, out, n):
    left = cuda.shared((4, 4), tk.float32)
    right = cuda.shared((4, 4), tk.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    value = 0.0
    for tile in range(n // 4):
        left[ty, tx] = a[row, 4 * tile + tx]
        right[ty, tx] = b[4 * tile + ty, column]
        cuda.syncthreads()
        value += left[ty, tx] * right[ty, tx]
        cuda.syncthreads()
    out[row, column] = value


def _without_tiles(a, b, out, n):
    column, row = cuda.grid(2)
    value = 0.0
    for k in range(n):
        value += a[row, k] * b[k, column]
    out[row, column] = value


@exercise(
    "tiled-matmul",
    answer=matmul,
    stub=_matmul_program,
    kind="complete",
    points=3,
    difficulty=5,
    minutes=8,
)
class TiledMatmul(KernelExercise):
    """A matrix product in tiles

    Each block computes a square of 4 x 4 elements of `a @ b`. It brings a tile of `a` and one of
    `b` into shared memory, adds the products of these, and goes on to the next pair. So each number
    is read from global memory once for 4 threads. Fill the gaps.

    **Input:** `a`, `b` and `out` of shape `[n, n]` on the device; `n`, a multiple of 4. A block has
    `(4, 4)` threads, and there are `(n // 4, n // 4)` blocks.

    **Output:** none. `out` becomes `a @ b`, and the check counts the reads of global memory, too.

    ```python
    a, out = tk.ones(4, 4).cuda(), tk.zeros(4, 4).cuda()
    matmul[(1, 1), (4, 4)](a, a, out, 4)
    out[0]                       # tensor([4., 4., 4., 4.], device='cuda:0')
    ```
    """

    filled = 2
    hints = (
        "In tile number `tile` the columns of `a` begin at `4 * tile`, and so do the rows of `b`.",
        "`a[row, 4 * tile + tx]` and `b[4 * tile + ty, column]`; the product is "
        "`left[ty, k] * right[k, tx]`.",
        "Both single gaps are barriers: `cuda.syncthreads()`. One is for the reads after it, one "
        "for the writes of the next turn.",
    )
    usual_mistakes = {
        "reads before the barrier": (
            _reads_before_the_barrier,
            "Threads read numbers of the tile that others have not brought yet. The first barrier "
            "stands between bringing and reading.",
        ),
        "writes too early": (
            _writes_too_early,
            "A quick thread brings the next tile while others still read this one. A second "
            "barrier stands at the end of the turn.",
        ),
        "always the first tile": (
            _always_the_first_tile,
            "Every turn brings the first tile again. The columns of `a` and the rows of `b` begin "
            "at `4 * tile`.",
        ),
        "the right tile is turned": (
            _right_tile_turned,
            "`k` is the column in `left` and the row in `right`: `left[ty, k] * right[k, tx]`.",
        ),
        "element by element": (
            _element_by_element,
            "You multiply the tiles element by element. A matrix product adds over `k`: "
            "`left[ty, k] * right[k, tx]`.",
        ),
        "without tiles": (
            _without_tiles,
            "The product is right, and each of its elements reads a row and a column from global "
            "memory. Read them from the tiles, `left[ty, k] * right[k, tx]`, which the 16 threads "
            "have brought together.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int, a: tk.Tensor, b: tk.Tensor, label: str) -> Case:
            return case((n // 4, n // 4), (4, 4), a, b, _unfilled(n, n), n, label=label)

        def matrix(n: int) -> tk.Tensor:
            return _floats(draw, n, n, low=1, high=5)

        yield some(4, tk.ones(4, 4), tk.ones(4, 4), "one tile of ones")
        yield some(8, matrix(8), tk.eye(8), "times the identity")
        yield some(8, matrix(8), matrix(8), "four tiles")
        yield some(12, matrix(12), matrix(12), "nine tiles")
        yield some(8, matrix(8).T, matrix(8), "a turned matrix (non-contiguous)")
        yield some(12, matrix(12), matrix(12).T, "the other one turned")

    def unmet(self, counts: Counts, *args: Any) -> tuple[str, str] | None:
        """Each number is read from global memory once for 4 threads."""
        n = args[-1]
        least = n**3 // 2  # 2 numbers in each of n // 4 turns, for each element
        if counts.loads <= least:
            return None
        return (
            f"reads {counts.loads} numbers from global memory, where {least} are enough",
            "read each number once for 4 threads, into `left` and `right`, and multiply these",
        )


@cuda.kernel
def softmax(x, out, columns):
    """Softmax of each row: a block of 4 threads for each."""
    part = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(t, columns, 4):
        largest = max(largest, x[row, j])
    part[t] = largest
    cuda.syncthreads()
    for k in range(4):
        largest = max(largest, part[k])
    cuda.syncthreads()
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    part[t] = own
    cuda.syncthreads()
    whole = 0.0
    for k in range(4):
        whole += part[k]
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / whole


def _largest_not_taken_off(x, out, columns):
    part = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(min(x[row, j], 88.0))
    part[t] = own
    cuda.syncthreads()
    whole = 0.0
    for k in range(4):
        whole += part[k]
    for j in range(t, columns, 4):
        out[row, j] = math.exp(min(x[row, j], 88.0)) / whole


def _own_sum_only(x, out, columns):
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(columns):
        largest = max(largest, x[row, j])
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / own


def _no_barrier_for_the_sum(x, out, columns):
    part = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(columns):
        largest = max(largest, x[row, j])
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    part[t] = own
    whole = 0.0
    for k in range(4):
        whole += part[k]
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / whole


def _written_over(x, out, columns):
    part = cuda.shared(4, tk.float32)
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(t, columns, 4):
        largest = max(largest, x[row, j])
    part[t] = largest
    cuda.syncthreads()
    for k in range(4):
        largest = max(largest, part[k])
    own = 0.0
    for j in range(t, columns, 4):
        own += math.exp(x[row, j] - largest)
    part[t] = own
    cuda.syncthreads()
    whole = 0.0
    for k in range(4):
        whole += part[k]
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest) / whole


def _first_columns_only(x, out, columns):
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(columns):
        largest = max(largest, x[row, j])
    whole = 0.0
    for j in range(columns):
        whole += math.exp(x[row, j] - largest)
    if t < columns:
        out[row, t] = math.exp(x[row, t] - largest) / whole


def _not_divided(x, out, columns):
    t = cuda.threadIdx.x
    row = cuda.blockIdx.x
    largest = x[row, 0]
    for j in range(columns):
        largest = max(largest, x[row, j])
    for j in range(t, columns, 4):
        out[row, j] = math.exp(x[row, j] - largest)


@exercise("softmax-rows", answer=softmax, points=3, difficulty=4, minutes=7)
class SoftmaxRows(KernelExercise):
    """Softmax in one launch

    Written in operations, softmax is five launches, and each goes through global memory: the
    largest of each row, a difference, exp, a sum, a quotient. Write it as one kernel. A block takes
    a row; its 4 threads share the columns: thread `t` takes `t`, `t + 4`, `t + 8`, ...

    **Input:** `x` and `out` of shape `[rows, columns]` on the device; `columns`, at least 1. There
    are `rows` blocks of 4 threads.

    **Output:** none. `out` becomes the softmax of each row: `exp(x - largest)`, divided by the sum
    of these. The largest element of the row is taken off so that nothing overflows.

    ```python
    x, out = tk.tensor([[1.0, 1.0], [0.0, 100.0]]).cuda(), tk.zeros(2, 2).cuda()
    softmax[2, 4](x, out, 2)
    out                          # about [[0.5, 0.5], [0, 1]]
    ```
    """

    filled = 1
    hints = (
        "Begin simply: every thread finds the largest of its row in a loop over all columns, and "
        "the sum as well, and then fills its own columns. No barrier is needed for that. The "
        "largest so far begins with `x[row, 0]`.",
        "To share the work: each thread finds the largest of its own columns, writes it to "
        "`part[t]`, waits, and takes the largest of the four. The same for the sum.",
        "`part` is used twice. Between the last read of the first time and the first write of the "
        "second time all threads wait.",
    )
    usual_mistakes = {
        "the largest is not taken off": (
            _largest_not_taken_off,
            "`exp` of a large number overflows. Take the largest element of the row off first: "
            "`math.exp(x[row, j] - largest)`.",
        ),
        "the sum of its own columns": (
            _own_sum_only,
            "Each thread divides by the sum of its own columns. The sum of the whole row is in the "
            "four parts together.",
        ),
        "reads before the barrier": (
            _no_barrier_for_the_sum,
            _USED_TWICE,
        ),
        "written over": (
            _written_over,
            _USED_TWICE,
        ),
        "four columns only": (
            _first_columns_only,
            "Only the first four columns are filled. A thread goes on in steps of 4: "
            "`for j in range(t, columns, 4):`.",
        ),
        "not divided": (
            _not_divided,
            "These are the exponentials. Divide by their sum over the row.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(rows: int, columns: int, label: str, more: float = 0.0) -> Case:
            values = [[it + more for it in draw.floats(columns, -2, 2)] for _ in range(rows)]
            x = tk.tensor(values).reshape(rows, columns)
            return case(rows, 4, x, _unfilled(rows, columns), columns, label=label)

        yield some(2, 6, "two rows of six")
        yield some(1, 9, "one row")
        yield some(3, 7, "large numbers", 100.0)
        yield some(2, 5, "very large numbers", 1000.0)
        yield some(2, 6, "numbers far below 0", -1000.0)
        apart = tk.tensor(draw.floats(42, -2, 2)).reshape(6, 7)
        apart[range(6), range(1, 7)] += 1000
        yield case(6, 4, apart, _unfilled(6, 7), 7, label="one large number in each row")
        yield some(4, 8, "four rows of eight")
        yield some(2, 13, "three or four columns for each thread")
        yield some(3, 1, "one column (size 1)")
        turned = tk.tensor([draw.floats(3, -2, 2) for _ in range(6)]).T
        yield case(3, 4, turned, _unfilled(3, 6), 6, label="a turned matrix (non-contiguous)")

    def unmet(self, counts: Counts, *args: Any) -> tuple[str, str] | None:
        """The 4 threads of a block share the columns: not three of them are idle at each access."""
        columns, accesses = args[-1], counts.loads + counts.stores
        return _ALONE if columns > 4 and counts.idle_threads > 2.5 * accesses else None


@cuda.kernel
def exclusive_scan(x, out, n):
    """The sum of all elements before each one."""
    part = cuda.shared(16, tk.float32)
    t = cuda.threadIdx.x
    part[t] = 0.0
    if t > 0 and t <= n:
        part[t] = x[t - 1]
    cuda.syncthreads()
    step = 1
    while step < 16:
        before = 0.0
        if t >= step:
            before = part[t - step]
        cuda.syncthreads()
        part[t] += before
        cuda.syncthreads()
        step = 2 * step
    if t < n:
        out[t] = part[t]


def _inclusive(x, out, n):
    part = cuda.shared(16, tk.float32)
    t = cuda.threadIdx.x
    part[t] = 0.0
    if t < n:
        part[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < 16:
        before = 0.0
        if t >= step:
            before = part[t - step]
        cuda.syncthreads()
        part[t] += before
        cuda.syncthreads()
        step = 2 * step
    if t < n:
        out[t] = part[t]


def _reads_and_adds(x, out, n):
    part = cuda.shared(16, tk.float32)
    t = cuda.threadIdx.x
    part[t] = 0.0
    if t > 0 and t <= n:
        part[t] = x[t - 1]
    cuda.syncthreads()
    step = 1
    while step < 16:
        if t >= step:
            part[t] += part[t - step]
        cuda.syncthreads()
        step = 2 * step
    if t < n:
        out[t] = part[t]


def _only_the_neighbour(x, out, n):
    part = cuda.shared(16, tk.float32)
    t = cuda.threadIdx.x
    part[t] = 0.0
    if t > 0 and t <= n:
        part[t] = x[t - 1]
    cuda.syncthreads()
    if t < n:
        out[t] = part[t]


@exercise(
    "exclusive-scan",
    answer=exclusive_scan,
    difficulty=5,
    minutes=15,
    further=True,
)
class ExclusiveScan(KernelExercise):
    """Sums of all before

    An exclusive scan gives each element the sum of all elements before it. It looks like work for
    one thread, and 16 threads do it in four rounds: in round `step` = 1, 2, 4, 8 each thread adds
    the number that lies `step` before its own.

    **Input:** `x` and `out` with `n` elements on the device, `n` at most 16; `n`. There is one
    block of 16 threads.

    **Output:** none. `out[i]` becomes `x[0] + ... + x[i - 1]`, and `out[0]` becomes 0. The check
    counts the barriers of the rounds, too.

    ```python
    x, out = tk.tensor([3.0, 1.0, 2.0]).cuda(), tk.zeros(3).cuda()
    exclusive_scan[1, 16](x, out, 3)
    out                          # tensor([0., 3., 4.], device='cuda:0')
    ```
    """

    filled = 1
    hints = (
        "Shift first: thread `t` begins with `x[t - 1]`, thread 0 with 0. Then make the inclusive "
        "sums of these.",
        "In a round a thread reads what another one writes. Read into a name, wait, write, wait.",
        "A thread with `t < step` has nothing that many places before it: it adds 0.0.",
    )
    usual_mistakes = {
        "inclusive": (
            _inclusive,
            "Your sums contain the element itself. Shift by one: thread `t` begins with "
            "`x[t - 1]`.",
        ),
        "reads and writes in one phase": (
            _reads_and_adds,
            "`part[t] += part[t - step]` reads a number that another thread writes in the same "
            "round. Read into a name, `cuda.syncthreads()`, then add.",
        ),
        "one round": (
            _only_the_neighbour,
            "This is the element before, not the sum of all before. Add in rounds with `step` = 1, "
            "2, 4, 8.",
            r"- 1\b",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(n: int, label: str) -> Case:
            return case(1, 16, _floats(draw, n, low=2), _unfilled(n), n, label=label)

        yield some(16, "sixteen elements")
        yield some(5, "five elements")
        yield some(9, "nine elements")
        yield some(15, "fifteen elements")
        yield some(2, "two elements")
        yield some(1, "one element (size 1)")

    def unmet(self, counts: Counts, *args: Any) -> tuple[str, str] | None:
        """Four rounds, with a barrier between one and the next."""
        if counts.barriers >= 4:
            return None
        return (
            f"has {counts.barriers} barriers: its threads do not add in four rounds",
            "read into a name, wait, add, wait, in each of the rounds 1, 2, 4, 8",
        )


@cuda.kernel
def transposed(x, out):
    """A matrix of 32 x 32 turned, without bank conflicts."""
    tile = cuda.shared((32, 33), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[row, t] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[row, t] = tile[t, row]


def _with_conflicts(x, out):
    tile = cuda.shared((32, 32), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[row, t] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[row, t] = tile[t, row]


def _padded_by_two(x, out):
    tile = cuda.shared((32, 34), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[row, t] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[row, t] = tile[t, row]


def _conflicts_when_written(x, out):
    tile = cuda.shared((32, 32), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[t, row] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[t, row] = tile[t, row]


def _not_turned(x, out):
    tile = cuda.shared((32, 33), tk.float32)
    t = cuda.threadIdx.x
    for row in range(32):
        tile[row, t] = x[row, t]
    cuda.syncthreads()
    for row in range(32):
        out[row, t] = tile[row, t]


@exercise(
    "bank-conflict",
    answer=transposed,
    stub=_with_conflicts,
    difficulty=4,
    minutes=10,
    further=True,
    witness="inside",
)
class BankConflict(KernelExercise):
    """A column more than is needed

    The kernel turns a matrix of 32 x 32. It reads and writes whole rows of global memory, so the
    columns are left to shared memory. There 32 threads read one column, and all 32 words lie in
    one bank: for each of the 32 reads the warp waits 31 times. Remove the waits by changing one
    number.

    **Input:** `x` and `out` of shape `[32, 32]` on the device. There is one block of 32 threads.

    **Output:** none. `out` becomes `x.T`, with 64 transactions and no bank conflict.

    ```python
    x, out = tk.arange(1024.0).reshape(32, 32).cuda(), tk.zeros(32, 32).cuda()
    transposed[1, 32](x, out).counts.bank_conflicts      # 992 now, 0 when repaired
    ```
    """

    filled = 1
    hints = (
        "Word number `w` of shared memory lies in bank `w % 32`. In a tile with 32 columns the "
        "element `[t, row]` is word `32 * t + row`: always the same bank.",
        "Make the rows of the tile one element longer. The element `[t, row]` is then word "
        "`33 * t + row`, in another bank for each `t`.",
    )
    usual_mistakes = {
        "as it was": (
            _with_conflicts,
            "The elements of a column still lie in one bank. Change the width of the tile, so that "
            "two neighbours in a column lie in different banks.",
        ),
        "two columns more": (
            _padded_by_two,
            "With 34 columns every second bank is used, each twice. The width and 32 should have "
            "no common divisor: 33.",
        ),
        "conflicts when it is written": (
            _conflicts_when_written,
            "Now columns are written, to shared and to global memory. Leave the loops as they were "
            "and change the width of the tile.",
        ),
        "not turned": (
            _not_turned,
            "The matrix comes out as it was: row `row` of `out` is column `row` of the tile, "
            "`tile[t, row]`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(low: int, high: int, label: str) -> Case:
            return case(
                1, 32, _floats(draw, 32, 32, low=low, high=high), _unfilled(32, 32), label=label
            )

        yield some(1, 99, "any numbers")
        yield some(-99, 99, "negative numbers as well")
        yield some(100, 999, "larger numbers")
        turned = _floats(draw, 32, 32, high=99).flip(0).contiguous()[:, :]
        yield case(1, 32, turned, _unfilled(32, 32), label="whole numbers, upside down (int)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The filled tensor, transactions and bank conflicts."""
        blocks, threads, x, out = args
        with cuda.simulate():
            _, _, _, arguments, _, counts, *_ = answer[blocks, threads](x.cuda(), out.cuda())
            return {"out": arguments[1].cpu(), "transactions": counts[2], "conflicts": counts[3]}


def my_relu(x: tk.Tensor) -> tk.Tensor:
    """The larger of 0 and each element of x, by a kernel of your own."""

    @cuda.kernel
    def clamped(x, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = max(x[i], 0.0)

    out, n = tk.empty_like(x), x.numel()
    if n > 0:
        clamped[-(-n // 64), 64](x.reshape(-1), out.reshape(-1), n)
    return out


def _written_into_x(x: tk.Tensor) -> tk.Tensor:
    @cuda.kernel
    def clamped(x, n):
        i = cuda.grid(1)
        if i < n:
            x[i] = max(x[i], 0.0)

    clamped[-(-max(x.numel(), 1) // 64), 64](x.reshape(-1), x.numel())
    return x


def _one_block(x: tk.Tensor) -> tk.Tensor:
    @cuda.kernel
    def clamped(x, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = max(x[i], 0.0)

    out = tk.zeros_like(x)
    clamped[1, 8](x.reshape(-1), out.reshape(-1), x.numel())
    return out


def _absolute(x: tk.Tensor) -> tk.Tensor:
    @cuda.kernel
    def clamped(x, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = abs(x[i])

    out = tk.empty_like(x)
    clamped[-(-max(x.numel(), 1) // 64), 64](x.reshape(-1), out.reshape(-1), x.numel())
    return out


def _flattened(x: tk.Tensor) -> tk.Tensor:
    return my_relu(x).reshape(-1)


@exercise("own-relu", answer=my_relu, difficulty=3, minutes=10, further=True)
class OwnRelu(Exercise):
    """A kernel of your own for tk.relu

    Write `relu` as a function that launches a kernel: make the result, launch, return it. The
    kernel may stand inside of the function. Below, the library is told to use it wherever `tk.relu`
    is called on the device, and a network trains with it.

    **Input:** `x`, a contiguous float32 tensor of any shape on the device, possibly without
    elements. A launch has at least one block.

    **Output:** a new tensor of its shape: the larger of 0 and each element.

    ```python
    my_relu(tk.tensor([[-1.0, 2.0]]).cuda())
    # tensor([[0., 2.]], device='cuda:0')
    ```
    """

    imports = KernelExercise.imports
    rules = (
        Rule(
            "a function that launches a kernel",
            "Compute the elements in a kernel of your own, and launch it: "
            "`clamped[blocks, threads](...)`.",
            needs=(LAUNCH,),
        ),
    )
    hints = (
        "A kernel indexes in one dimension or in two. `x.reshape(-1)` shows a contiguous tensor of "
        "any shape as one row; what is written there is seen in the tensor.",
        "`out = tk.empty_like(x)`, a launch with `-(-n // 64)` blocks of 64 threads on the two "
        "`reshape(-1)`, `return out`. No blocks are needed where there are no elements.",
    )
    usual_mistakes = {
        "written into x": (
            _written_into_x,
            "Your kernel writes into `x`, which still belongs to the caller. Make a new tensor: "
            "`tk.empty_like(x)`.",
        ),
        "too few threads": (
            _one_block,
            "Only the first elements are computed: there are fewer threads than elements. Take "
            "`-(-n // 64)` blocks of 64 threads.",
        ),
        "the absolute value": (
            _absolute,
            "Negative elements become 0, not positive: `max(x[i], 0.0)`.",
        ),
        "a flat result": (
            _flattened,
            "The result has the shape of `x`. Fill `out.reshape(-1)`, and return `out`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def some(*shape: int, label: str) -> Case:
            values = draw.integers(math.prod(shape), -9, 9)
            values[:2] = [-draw.integer(1, 9), -draw.integer(1, 9)]
            return case(tk.tensor(values, dtype=tk.float32).reshape(shape), label=label)

        yield some(2, 3, label="a matrix")
        yield some(70, label="more than a block")
        yield some(5, 30, label="a larger matrix")
        yield some(2, 3, 4, label="three dimensions")
        yield some(2, 1, label="one column (size 1)")
        yield case(tk.zeros(0, 3), label="no rows (empty)", weight=0.25)

    def run(self, answer: Any, *args: Any) -> Any:
        """The result on the CPU, and what has become of the argument."""
        with cuda.simulate():
            x = args[0].cuda()
            result = answer(x)
            is_tensor = isinstance(result, tk.Tensor)
            shown = result.cpu() if is_tensor else result
            return {"the result": shown, "x afterwards": x.cpu()}

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        return f"{self.name}({show(args[0])}.cuda())"
