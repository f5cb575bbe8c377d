"""The exercise own-relu: a function that launches a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import tensorkit as tk
from course.engine.measuring import launched
from course.exercises.ch12_kernels.kernel_exercise import (
    ONE_BLOCK_TOO_LATE,
    KernelExercise,
    changed,
)
from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen
from course.notebook.rules import LAUNCH, SAME_BLOCKS, Rule
from tensorkit import cuda
from tensorkit.errors import KernelError

WARP = 32
UNEVEN = 8
"""How many times its share a thread may fill: a few neighbours each are a right way, too."""

_IN_THE_KERNEL = "compute each element in the kernel"


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


def _rows_counted(x: tk.Tensor) -> tk.Tensor:
    @cuda.kernel
    def clamped(x, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = max(x[i], 0.0)

    out = tk.zeros_like(x)
    clamped[-(-max(len(x), 1) // 64), 64](x.reshape(-1), out.reshape(-1), len(x))
    return out


def _every_block_alike(x: tk.Tensor) -> tk.Tensor:
    @cuda.kernel
    def clamped(x, out, n):
        i = cuda.threadIdx.x
        if i < n:
            out[i] = max(x[i], 0.0)

    out = tk.zeros_like(x)
    clamped[-(-max(x.numel(), 1) // 64), 64](x.reshape(-1), out.reshape(-1), x.numel())
    return out


def _one_block_too_late(x: tk.Tensor) -> tk.Tensor:
    @cuda.kernel
    def clamped(x, out, n):
        i = (cuda.blockIdx.x + 1) * cuda.blockDim.x + cuda.threadIdx.x
        if i < n:
            out[i] = max(x[i], 0.0)

    out = tk.zeros_like(x)
    clamped[-(-max(x.numel(), 1) // 64), 64](x.reshape(-1), out.reshape(-1), x.numel())
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


def _multiplied(x: tk.Tensor) -> tk.Tensor:
    @cuda.kernel
    def clamped(x, out, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = x[i] * (x[i] > 0.0)

    out = tk.empty_like(x)
    clamped[-(-max(x.numel(), 1) // 64), 64](x.reshape(-1), out.reshape(-1), x.numel())
    return out


def _slope(x: tk.Tensor) -> tk.Tensor:
    return (x > 0).float()


def _negative_ones(x: tk.Tensor) -> tk.Tensor:
    return -my_relu(-x)


def _flattened(x: tk.Tensor) -> tk.Tensor:
    return my_relu(x).reshape(-1)


@exercise("own-relu", answer=my_relu, points=3, difficulty=3, minutes=10)
class OwnRelu(Exercise):
    """A kernel of your own for tk.relu

    Write `relu` as a function that launches a kernel: make the result, launch, return it. The
    kernel may stand inside of the function. The check also registers it for `tk.relu` on the device
    and trains a layer with it. The cell below does the same with a network.

    **Input:** `x`, a contiguous float32 tensor of any shape on the device, possibly without
    elements. A launch has at least one block, and the number of blocks follows from `x.numel()`, or
    a thread goes on to further elements in a loop.

    **Output:** a tensor of its shape: the larger of 0 and each element, 0 for `-inf` too. The
    threads share the elements. The check
    counts the launches, at most two: a tensor of zeros takes one as well. The elements stay on the
    device.

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
            "`name[blocks, threads](...)`.",
            needs=(LAUNCH,),
            refuses=(
                *("clamp", "clamp_", "clamp_min", "clip", "relu", "relu_", "maximum", "where"),
                ".max",  # not `max` of two numbers in the kernel
            ),
        ),
        Rule(
            "The threads share the elements",
            "Each thread takes an element of its own, such as `i = cuda.grid(1)`.",
            needs=("grid", "threadIdx", "blockIdx", ".threadIdx", ".blockIdx"),
        ),
        Rule(
            "the number of blocks follows from `x.numel()`",
            "So many blocks are too few for some `x`. Take `-(-n // 64)` blocks of 64 threads.",
            refuses=(SAME_BLOCKS,),
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
        "rows are counted": (
            _rows_counted,
            "`len(x)` is the number of rows, and only so many elements are computed. "
            "`x.numel()` counts the elements.",
            r"len\(x\)|shape\[0\]",
        ),
        "a single thread": (
            changed(
                *(my_relu, "i = cuda.grid(1)\n        if i < n:", "for i in range(n):"),
                *("-(-n // 64), 64", "1, 1"),
            ),
            "A single thread fills what many threads could share. Let each take one element: "
            "`i = cuda.grid(1)`, and `-(-n // 64)` blocks of 64 threads.",
        ),
        "blocks that meet": (
            _every_block_alike,
            "Threads of two blocks fill one element: `threadIdx.x` counts within a block. The "
            "thread's element is `cuda.grid(1)`, which is `blockIdx.x * blockDim.x + threadIdx.x`.",
        ),
        "one block too late": (_one_block_too_late, ONE_BLOCK_TOO_LATE),
        "the absolute value": (
            _absolute,
            "Negative elements become 0, not positive: `max(x[i], 0.0)`.",
        ),
        "a product": (
            _multiplied,
            "An element of `-inf` becomes nan: `-inf` times 0 is nan, and so is `-inf + inf`. "
            "Choose one of the two numbers: `max(x[i], 0.0)`.",
        ),
        "the slope": (
            _slope,
            "This is the slope of relu. An element above 0 stays what it is: `out[i] = x[i]`.",
        ),
        "the smaller one": (
            _negative_ones,
            "This is the smaller of 0 and each element. The larger one is `max(x[i], 0.0)`.",
        ),
        "a flat result": (
            _flattened,
            "The result has the shape of `x`. Fill `out.reshape(-1)`, and return `out`.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        def sized(*shape: int, label: str) -> Case:
            eighths = draw.integers(math.prod(shape), -72, 72)
            eighths[:2] = [-draw.integer(1, 72), -draw.integer(1, 72)]
            eighths[-1] = draw.integer(16, 72)
            x = (tk.tensor(eighths) / 8).reshape(shape)
            return case(x, "trains" in label, label=label)

        yield sized(2, 3, label="a matrix")
        yield sized(70, label="more than a block")
        yield sized(150, 2, label="a larger matrix")
        yield sized(2, 3, 4, label="three dimensions")
        yield sized(4, 30, label="a layer that trains with it")
        yield sized(2, 1030, label="more elements than a block can have threads")
        infinite = tk.tensor([-math.inf, -draw.integer(1, 9), -0.0, draw.integer(2, 9)])
        yield case(infinite, False, label="an element of -inf")
        infinite = tk.tensor([[math.inf, -draw.integer(1, 9)], [draw.integer(1, 9), -math.inf]])
        yield case(infinite, False, label="a matrix with infinities")
        yield sized(2, 1, label="one column (size 1)")
        yield case(tk.zeros(0, 3), False, label="no rows (empty)", weight=0.25)

    def run(self, answer: Any, *args: Any) -> Any:
        """The result on the CPU, and what has become of the argument; or the trained weights."""
        x, trains = args
        with cuda.simulate():
            x = x.cuda()
            if trains:
                shown = answer(x.clone())
                shown = shown.cpu() if isinstance(shown, tk.Tensor) else shown
                return Seen({"the result": shown, "the trained weights": _trained(answer, x)})
            with cuda.record() as ledger:
                result, launches = launched(answer, x)
            if any(transfer.direction == "device to host" for transfer in ledger.transfers):
                raise KernelError(f"{self.name} moves elements to the host", repair=_IN_THE_KERNEL)
            if (n := len(ledger.launches)) > 2 and x.numel():
                sentence = (
                    f"{self.name} starts {n} kernels: operations of the library are launches too"
                )
                raise KernelError(sentence, repair=_IN_THE_KERNEL)
            for threads, elements, most in launches:
                if most > UNEVEN * math.ceil(elements / max(threads, WARP)):
                    sentence = f"a thread of {self.name} fills {most} of {elements} elements"
                    raise KernelError(sentence, repair="share the elements among many threads")
            # a launch; from the grader's sandbox it comes as a plain tuple
            if isinstance(result, tuple) and str(result[:1]).startswith("(<kernel"):
                sentence = f"{self.name} returns the launch, which has filled a tensor"
                raise KernelError(sentence, repair="return that tensor")
            is_tensor = isinstance(result, tk.Tensor)
            shown = result.cpu() if is_tensor else result
            return {"the result": shown, "x afterwards": x.cpu()}

    def describe_call(self, args: tuple[Any, ...], show: Callable[[Any], str]) -> str:
        x, trains = args
        if trains:
            return f"three steps with {self.name} for tk.relu, from the weights {show(x)}.cuda()"
        return f"{self.name}({show(x)}.cuda())"


def _trained(answer: Any, weights: tk.Tensor) -> tk.Tensor:
    """The weights of a layer after three steps, with the answer as the kernel of `tk.relu`."""
    inputs = tk.linspace(-1, 1, 12, device="cuda").reshape(3, 4)
    weights = weights.requires_grad_()
    with tk.library.scope():
        tk.library.register_kernel(tk.relu, "cuda", answer)
        for _ in range(3):
            loss = (tk.relu(inputs @ weights) - 1).square().mean()
            (gradient,) = tk.autograd.grad(loss, weights)
            weights = (weights - 5.0 * gradient).detach().requires_grad_()
    return weights.detach().cpu()
