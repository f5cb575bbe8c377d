"""``make bench-operations``: every operation beside PyTorch's, on small tensors and on large ones.

    python tests/benchmarks/operations.py [--rows TEXT ...] [--above 2] [--large] [--rounds 7]

One process, one thread, CPU time. The rounds of both libraries alternate; the figure is the median
of the rounds' ratios. Each operation is timed alone and, where it has a gradient, with the tensors
tracked and backward run. Rows above ``--above`` are printed, and what no row covers.
"""

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import bench
import numpy as np
import workloads


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


# In the calls m is the library and F its nn.functional; x and y are (n, n), p and chance too, with
# positive numbers; v is a vector and f (3, n, n); a, b and i are integers below n, k and c vectors
# of them; mask and other are bools.
UNARY = words(
    "abs atan ceil cos erf exp floor neg reciprocal relu round sigmoid "
    "sign sin square tanh trunc isfinite isinf isnan clone numel is_floating_point "
    "sum mean var std prod amax amin max min argmax argmin any all norm nonzero "
    "t ravel flatten squeeze diagonal tril triu unique"
)
POSITIVE = words("log log1p sqrt")
BINARY = words(
    "add sub mul div maximum minimum remainder floor_divide eq ne lt le gt ge equal "
    "allclose isclose matmul mm result_type"
)
ALONG = words(
    "sum mean var std prod amax amin max min argmax argmin any all norm softmax log_softmax "
    "logsumexp cumsum sort argsort unbind unsqueeze"
)
LIKE = words("zeros_like ones_like empty_like rand_like randn_like")
SIZED = words("zeros ones empty rand randn")
ACTIVATIONS = words("gelu silu softplus leaky_relu relu sigmoid tanh")
PAIR_LOSSES = words("mse_loss l1_loss binary_cross_entropy_with_logits")

CALLS: dict[str, str] = {
    **{name: f"m.{name}(x)" for name in UNARY},
    **{name: f"m.{name}(p)" for name in POSITIVE},
    **{name: f"m.{name}(x, y)" for name in BINARY},
    **{f"{name}(1)": f"m.{name}(x, 1)" for name in ALONG},
    **{f"{name}(0)": f"m.{name}(x, 0)" for name in ("sum", "mean", "max", "softmax", "cumsum")},
    **{name: f"m.{name}(x)" for name in LIKE},
    **{name: f"m.{name}(n, n)" for name in SIZED},
    **{f"F.{name}": f"F.{name}(x)" for name in ACTIVATIONS},
    **{f"F.{name}": f"F.{name}(x, p)" for name in PAIR_LOSSES},
    **{name: f"m.{name}(mask, other)" for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: f"m.{name}(a, b)" for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "bitwise_not": "m.bitwise_not(a)",
    "logical_not": "m.logical_not(mask)",
    "x * 2": "x * 2.0",
    "2 - x": "2 - x",
    "x ** 3": "x ** 3",
    "x ** 0.5": "p ** 0.5",
    "pow": "m.pow(p, p)",
    "add(alpha)": "m.add(x, y, alpha=2)",
    "matrix + row": "x + v",
    "matrix * column": "x * v[:, None]",
    "x += y": "x.add_(y)",
    "x.T": "x.T",
    "x[0]": "x[0]",
    "x[:, 1:3]": "x[:, 1:3]",
    "x[k]": "x[k]",
    "x[k, k]": "x[k, k]",
    "x[mask]": "x[mask]",
    "x[mask] = 0": "x.__setitem__(mask, 0.0)",
    "x[0] = v": "x.__setitem__(0, v)",
    "x.item()": "v[0].item()",
    "x.tolist()": "v.tolist()",
    "x.float()": "a.float()",
    "x.to(float64)": "x.to(m.float64)",
    "x.contiguous()": "x.t().contiguous()",
    "x.view": "x.view(-1)",
    "x.expand": "v.expand(n, n)",
    "x.repeat": "v.repeat(4, 1)",
    "x.copy_": "x.copy_(y)",
    "x.fill_": "x.fill_(1.0)",
    "x.detach": "x.detach()",
    "x.masked_fill_": "x.masked_fill_(mask, 0.0)",
    "x.scatter_add_": "x.scatter_add_(1, i, y)",
    "x.uniform_": "x.uniform_()",
    "x.normal_": "x.normal_()",
    "abs_": "x.abs_()",
    "clamp": "m.clamp(x, -0.5, 0.5)",
    "clamp(min)": "m.clamp(x, min=0.0)",
    "clamp_": "m.clamp_(x, -0.5, 0.5)",
    "round_": "m.round_(x)",
    "where": "m.where(mask, x, y)",
    "where(number)": "m.where(mask, x, 0.0)",
    "masked_fill": "m.masked_fill(x, mask, 0.0)",
    "gather": "m.gather(x, 1, i)",
    "scatter": "m.scatter(x, 1, i, y)",
    "scatter_add": "m.scatter_add(x, 1, i, y)",
    "take_along_dim": "m.take_along_dim(x, i, 1)",
    "index_select": "m.index_select(x, 0, k)",
    "index_add": "m.index_add(x, 0, k, y)",
    "topk": "m.topk(x, 3)",
    "sort(stable)": "m.sort(x, dim=1, stable=True)",
    "bincount": "m.bincount(k)",
    "cat": "m.cat([x, y])",
    "cat(1)": "m.cat([x, y, x], 1)",
    "stack": "m.stack([x, y])",
    "split": "m.split(x, 2)",
    "chunk": "m.chunk(x, 4)",
    "narrow": "m.narrow(x, 0, 1, 2)",
    "select": "m.select(x, 0, 1)",
    "flip": "m.flip(x, (0,))",
    "permute": "m.permute(f, (2, 0, 1))",
    "transpose": "m.transpose(x, 0, 1)",
    "swapaxes": "m.swapaxes(x, 0, 1)",
    "movedim": "m.movedim(f, 0, 2)",
    "reshape": "m.reshape(x, (-1,))",
    "as_strided": "m.as_strided(x, (2, 2), (1, 2))",
    "broadcast_to": "m.broadcast_to(v, (n, n))",
    "repeat_interleave": "m.repeat_interleave(v, 3)",
    "bmm": "m.bmm(f, f)",
    "addmm": "m.addmm(v, x, y)",
    "mv": "m.mv(x, v)",
    "dot": "m.dot(v, v)",
    "outer": "m.outer(v, v)",
    "einsum": "m.einsum('ij,jk->ik', x, y)",
    "einsum(batch)": "m.einsum('bij,bjk->bik', f, f)",
    "einsum(trace)": "m.einsum('ii', x)",
    "einsum(outer)": "m.einsum('i,j->ij', v, v)",
    "linalg.solve": "m.linalg.solve(x, v)",
    "tensor": "m.tensor([1.0, 2.0, 3.0])",
    "tensor(array)": "m.tensor(array)",
    "as_tensor": "m.as_tensor(array)",
    "from_numpy": "m.from_numpy(array)",
    "full": "m.full((n, n), 2.0)",
    "full_like": "m.full_like(x, 2.0)",
    "arange": "m.arange(n)",
    "linspace": "m.linspace(0, 1, n)",
    "eye": "m.eye(n)",
    "randint": "m.randint(0, 10, (n, n))",
    "randperm": "m.randperm(n)",
    "manual_seed": "m.manual_seed(1)",
    "F.cross_entropy": "F.cross_entropy(x, c)",
    "F.nll_loss": "F.nll_loss(x, c)",
    "F.binary_cross_entropy": "F.binary_cross_entropy(chance, chance)",
    "F.linear": "F.linear(x, y, v)",
    "F.layer_norm": "F.layer_norm(x, (n,), v, v)",
    "F.embedding": "F.embedding(i, x)",
    "F.dropout": "F.dropout(x, 0.5)",
    "F.one_hot": "F.one_hot(c, n)",
    "no_grad": "scope(m)",
    "is_tensor": "m.is_tensor(x)",
}

# other words for an operation, what is done once in a program, and what is no operation
COVERED = set(
    words("""Generator Size Tensor absolute bool can_cast clip clip_ concat default_generator device
    divide double dtype e enable_grad float float16 float32 float64
    get_default_device get_default_dtype half inf inference_mode initial_seed
    int int16 int32 int64 int8 is_grad_enabled
    is_inference_mode_enabled long multiply nan newaxis pi promote_types seed set_default_device
    set_default_dtype set_grad_enabled set_printoptions short subtract true_divide
    uint8""")
)


def scope(m: Any) -> None:
    """A block without gradients."""
    with m.no_grad():
        pass


def names(m: Any, n: int, grad: bool) -> dict[str, Any]:
    """What the calls speak of, the same for both libraries."""
    rng = np.random.default_rng(0)
    square = (n, n)

    def floats(*shape: int, low: float = -1.0) -> Any:
        x = m.from_numpy(rng.uniform(low, 1.0, shape).astype(np.float32)).clone()
        return x.requires_grad_(grad)

    def integers(*shape: int) -> Any:
        return m.from_numpy(rng.integers(0, n, shape))

    given = {"x": floats(*square), "y": floats(*square), "p": floats(*square, low=0.1)}
    given.update(v=floats(n), f=floats(3, n, n), chance=floats(*square, low=0.1))
    given.update(a=integers(*square), b=integers(*square), i=integers(*square))
    given.update(k=integers(n), c=integers(n))
    given.update(mask=given["a"] > n // 2, other=given["b"] > n // 2)
    given.update(array=np.ones(square, np.float32), n=n, m=m, F=m.nn.functional, scope=scope)
    return given


def round_of(call: str, m: Any, n: int, grad: bool) -> Callable[[], Any] | None:
    """What one round runs; None if it has no gradient."""
    given = names(m, n, grad)
    run: Callable[[], Any] = eval(f"lambda: {call}", given)
    if not grad:
        return run
    try:
        result = run()
    except RuntimeError:  # a write to a leaf
        return None
    first = result[0] if isinstance(result, tuple) and result else result
    if not getattr(first, "requires_grad", False):
        return None
    upstream = m.ones_like(first).detach()
    leaves = [value for value in given.values() if getattr(value, "requires_grad", False)]

    def both() -> None:
        result = run()
        (result[0] if isinstance(result, tuple) else result).backward(upstream)
        for leaf in leaves:
            leaf.grad = None

    try:
        both()
    except (NotImplementedError, RuntimeError):  # a node without a derivative
        return None
    return both


def contest(
    libraries: Any, call: str, n: int, grad: bool, rounds: int
) -> tuple[float, float] | None:
    """PyTorch's time of one call in microseconds and our share of it."""
    players = [round_of(call, m, n, grad) for m in libraries]
    if None in players:
        return None
    counts = [workloads.measured(run, 0.004)[0] for run in players]  # type: ignore[arg-type]
    times = [
        [workloads.timed(run, count) for run, count in zip(players, counts, strict=True)]  # type: ignore[arg-type]
        for _ in range(rounds)
    ]
    return statistics.median(t for t, _ in times), statistics.median(o / t for t, o in times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", default=[""], help="only labels containing a text")
    parser.add_argument("--above", type=float, default=2.0, help="only ratios from here on")
    parser.add_argument("--large", action="store_true", help="1,000,000 elements instead of 256")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    libraries = bench.library("torch"), bench.library(str(bench.ROOT))
    n = 1000 if given.large else 16
    ratios, shown = [], 0
    print(f"{'operation':28}{'PyTorch':>11}{'ratio':>8}{'+ backward':>13}{'ratio':>8}")
    for label, call in CALLS.items():
        if not any(text in label for text in given.rows):
            continue
        found = [contest(libraries, call, n, grad, given.rounds) for grad in (False, True)]
        ratios += [each[1] for each in found if each is not None]
        if any(each is not None and each[1] >= given.above for each in found):
            cells = ["" if e is None else f"{e[0]:9.2f}us{e[1]:8.2f}" for e in found]
            print(f"{label:28}{'  '.join(cells)}", flush=True)
            shown += 1
    mean = statistics.geometric_mean(ratios)
    print(f"{shown} rows above {given.above:g}; geometric mean of {len(ratios)}: {mean:.2f}")
    missing = set(libraries[1].__all__) - COVERED
    missing -= {name for name in missing if any(f"m.{name}(" in call for call in CALLS.values())}
    missing.discard("no_grad")
    if missing:
        print("no row covers:", ", ".join(sorted(missing)))


if __name__ == "__main__":
    main()
