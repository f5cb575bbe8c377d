"""What a statement demands beyond a value is checked: an answer that ignores it does not pass."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest
from broken_kernels import KERNELS

import tensorkit as tk
from course.authoring.audit import _as_in_a_notebook
from course.notebook.check import judge
from course.notebook.exercise import Draw, Exercise, load
from course.notebook.runner import Budget, run_case

BROKEN = [
    (
        "linspace-by-hand",
        "by hand",
        """
        def evenly_spaced(start, end, n):
            from numpy import linspace as spaced

            return tk.from_numpy(spaced(start, end, n, dtype=np.float32))
        """,
    ),
    (
        "linspace-by-hand",
        "by hand",
        """
        def evenly_spaced(start, end, n):
            return tk.tensor(np.r_[start : end : n * 1j], dtype=tk.float32)
        """,
    ),
    (
        "linspace-by-hand",
        "by hand",
        """
        def evenly_spaced(start, end, n):
            return tk.from_numpy(np.linspace(start, end, n, dtype=np.float32))
        """,
    ),
    (
        "brighter",
        "`pixels` stays as it was",
        """
        def brighter(pixels, amount):
            pixels += amount
            return pixels.clamp(0, 255)
        """,
    ),
    (
        "batch-product",
        "here write the loop",
        """
        def batch_product(a, b):
            return a @ b
        """,
    ),
    (
        "batch-product",
        "here write the loop",
        """
        def batch_product(a, b):
            for _ in range(1):
                product = a @ b
            return product
        """,
    ),
    (
        "strides-of",
        "`Tensor.stride` switches itself off",
        """
        def strides_of(shape):
            return tk.zeros(shape).stride()
        """,
    ),
    (
        "private-copy",
        "A later write to the array must not show",
        """
        def private_copy(array):
            return tk.from_numpy(array)[::2, ::2].to(tk.float32)
        """,
    ),
    (
        "private-copy",
        "every second row and column",
        """
        def private_copy(array):
            return tk.tensor(array, dtype=tk.float32)[::2]
        """,
    ),
    (
        "stereo",
        "It shares the memory of `samples`",
        """
        def channels_of(samples):
            return samples.reshape(-1, 2).T.clone()
        """,
    ),
    (
        "product-chain",
        "as a Python int",
        """
        def product_chain(A, B):
            flat = (A @ B).T.flatten()
            return flat, flat.argmax()
        """,
    ),
    (
        "broadcast-shape",
        "raise `ValueError`, whatever the library itself raises",
        """
        def broadcast_shape(a, b):
            pairs = zip((1,) * (len(b) - len(a)) + a, (1,) * (len(a) - len(b)) + b)
            return tuple(y if x == 1 else x for x, y in pairs)
        """,
    ),
    (
        "broadcast-shape",
        "compute with the sizes alone",
        """
        def broadcast_shape(a, b):
            try:
                return tuple((tk.ones(a) + tk.ones(b)).shape)
            except RuntimeError:
                raise ValueError from None
        """,
    ),
    (
        "numeric-gradient",
        "with the measured slopes",
        """
        def numeric_gradient(x, h):
            return 3 * x**2 + 2
        """,
    ),
    (
        "linear-gradients",
        "stay as they are, `requires_grad` included",
        """
        def linear_gradients(x, target, w, b):
            w.requires_grad_()
            b.requires_grad_()
            loss = ((x @ w + b - target) ** 2).mean()
            loss.backward()
            return loss.item(), w.grad, b.grad
        """,
    ),
    (
        "channels-first",
        "a contiguous float32 tensor",
        """
        def channels_first(photos):
            return (photos.float() / 255).permute(0, 3, 1, 2)
        """,
    ),
    (
        "sliding-windows",
        "It shares the memory of `x`",
        """
        def sliding_windows(x, size):
            return tk.stack([x[i : i + size] for i in range(len(x) - size + 1)])
        """,
    ),
    (
        "cleaned",
        "`readings` itself stays as it was",
        """
        def cleaned(readings):
            readings[readings < 0] = readings[readings >= 0].mean()
            return readings
        """,
    ),
    (
        "lost-gradient",
        "as autograd finds it",
        """
        def slopes_of_cubes(values):
            return 3 * tk.tensor(values, dtype=tk.float64) ** 2
        """,
    ),
    (
        "lost-gradient",
        "float64 vector",
        """
        def slopes_of_cubes(values):
            x = tk.tensor(values, requires_grad=True)
            (x**3).sum().backward()
            return x.grad.double()
        """,
    ),
    (
        "sine-slope",
        "once as autograd finds it",
        """
        def sine_slope(value):
            import math

            by_hand = 2 * value * math.cos(value**2)
            return by_hand, by_hand
        """,
    ),
    (
        "sine-slope",
        "once as autograd finds it",
        """
        def sine_slope(value):
            import math

            x = tk.tensor(value, requires_grad=True)
            tk.sin(x**2).backward()
            slope = x.grad
            by_hand = 2 * value * math.cos(value**2)
            return by_hand, by_hand
        """,
    ),
    (
        "sine-slope",
        "computed with Python's `math`",
        """
        def sine_slope(value):
            x = tk.tensor(value, requires_grad=True)
            tk.sin(x**2).backward()
            return x.grad.item(), (2 * x * tk.cos(x**2)).item()
        """,
    ),
    (
        "sgd-step",
        "the parameters' own `.grad` stay as they are",
        """
        def sgd_step(parameters, gradients, lr):
            for p, g in zip(parameters, gradients):
                p.grad = g
            tk.optim.SGD(parameters, lr=lr).step()
        """,
    ),
    (
        "sgd-step",
        "The gradients and",
        """
        def sgd_step(parameters, gradients, lr):
            with tk.no_grad():
                for p, g in zip(parameters, gradients):
                    if g is not None:
                        g *= lr
                        p -= g
        """,
    ),
    (
        "sgd-step",
        "Do without `.data`",
        """
        def sgd_step(parameters, gradients, lr):
            for p, g in zip(parameters, gradients):
                if g is not None:
                    p.data -= lr * g
        """,
    ),
    (
        "sgd-step",
        "Do without `.data`",
        """
        def sgd_step(parameters, gradients, lr):
            for p, g in zip(parameters, gradients):
                if g is not None:
                    numbers = getattr(p, "data")
                    numbers -= lr * g
        """,
    ),
    (
        "straight-through",
        "`x` stays as it is",
        """
        def rounded_straight_through(x):
            y = x + (x.round() - x).detach()
            with tk.no_grad():
                x.round_()
            return y
        """,
    ),
    (
        "micro-batches",
        "a `backward` for each piece",
        """
        def micro_batch_gradient(pieces, w):
            w = w.clone().requires_grad_()
            x, y = tk.cat([x for x, y in pieces]), tk.cat([y for x, y in pieces])
            ((x @ w - y) ** 2).mean().backward()
            return w.grad
        """,
    ),
    (
        "micro-batches",
        "a `backward` for each piece",
        """
        def micro_batch_gradient(pieces, w):
            w = w.clone().requires_grad_()
            loss = sum(((x @ w - y) ** 2).sum() for x, y in pieces)
            (loss / sum(len(y) for x, y in pieces)).backward()
            return w.grad
        """,
    ),
    (
        "micro-batches",
        "a `backward` for each piece",
        """
        def micro_batch_gradient(pieces, w):
            w = w.clone().requires_grad_()
            for x, y in [(tk.cat([x for x, y in pieces]), tk.cat([y for x, y in pieces]))]:
                ((x @ w - y) ** 2).mean().backward()
            return w.grad
        """,
    ),
    (
        "second-derivative",
        "Let autograd find it",
        """
        def second_derivative(coefficients, x):
            t = tk.tensor(x, dtype=tk.float64, requires_grad=True)
            slope = sum(n * c * t ** (n - 1) for n, c in enumerate(coefficients) if n) + t * 0
            slope.backward()
            return t.grad.item()
        """,
    ),
    (
        "second-derivative",
        "Let autograd find it",
        """
        def second_derivative(coefficients, x):
            terms = enumerate(coefficients)
            return float(sum(n * (n - 1) * c * x ** (n - 2) for n, c in terms if n > 1))
        """,
    ),
    (
        "second-derivative",
        "Let autograd find it",
        """
        def second_derivative(coefficients, x):
            t = tk.tensor(x, dtype=tk.float64, requires_grad=True)
            (slope,) = tk.autograd.grad(t**3, t, create_graph=True)
            tk.autograd.grad(slope, t)
            terms = enumerate(coefficients)
            return float(sum(n * (n - 1) * c * x ** (n - 2) for n, c in terms if n > 1))
        """,
    ),
    (
        "sigmoid-gradient",
        "with respect to `out` and to `upstream`",
        """
        def sigmoid_gradient(upstream, out):
            return upstream.detach() * out * (1 - out)
        """,
    ),
    (
        "hessian-vector",
        "without the Hessian",
        """
        def hessian_vector(x, v):
            def f(x):
                return (x**3).sum() + x.sum() ** 2

            x = x.clone().requires_grad_()
            (gradient,) = tk.autograd.grad(f(x), x, create_graph=True)
            rows = [tk.autograd.grad(entry, x, retain_graph=True)[0] for entry in gradient]
            return tk.stack(rows) @ v
        """,
    ),
    (
        "hessian-vector",
        "without the Hessian",
        """
        def hessian_vector(x, v):
            def f(x):
                return (x**3).sum() + x.sum() ** 2

            x = x.clone().requires_grad_()
            (gradient,) = tk.autograd.grad(f(x), x, create_graph=True)
            rows = map(lambda slope: tk.autograd.grad(slope, x, retain_graph=True)[0], gradient)
            return sum((row * v[i] for i, row in enumerate(rows)), tk.zeros_like(v))
        """,
    ),
    (
        "hessian-vector",
        "one more walk back",
        """
        def hessian_vector(x, v):
            t = x.clone().requires_grad_()
            (gradient,) = tk.autograd.grad((t**3).sum() + t.sum() ** 2, t, create_graph=True)
            tk.autograd.grad(gradient.sum(), t)
            return 6 * x * v + 2 * v.sum()
        """,
    ),
    (
        "hessian-vector",
        "one more walk back",
        """
        def hessian_vector(x, v):
            return 6 * x * v + 2 * v.sum()
        """,
    ),
    (
        "hessian-vector",
        "one more walk back",
        """
        def hessian_vector(x, v):
            x = x.clone().requires_grad_()
            ((x**3).sum() + x.sum() ** 2).backward()
            return (tk.eye(len(x), dtype=x.dtype) * 6 * x.detach() + 2) @ v
        """,
    ),
    (
        "any-device",
        "`x` is large, and stays where it is",
        """
        def faded(x):
            positions = tk.arange(x.shape[1])
            return (x.to(device="cpu") / (positions + 1.0)).to(x.device)
        """,
    ),
    (
        "any-device",
        "without `.cpu()`, `.numpy()` or `.tolist()`",
        """
        def faded(x):
            positions = tk.arange(x.shape[1])
            return (x.cpu() * (1 / (positions + 1.0))).to(x.device)
        """,
    ),
    (
        "to-device",
        "The batch that was given is not changed",
        """
        def to_device(batch, device):
            if isinstance(batch, tk.Tensor):
                return batch.to(device)
            if isinstance(batch, tuple):
                return tuple(to_device(part, device) for part in batch)
            if isinstance(batch, (dict, list)):
                for key in batch if isinstance(batch, dict) else range(len(batch)):
                    batch[key] = to_device(batch[key], device)
            return batch
        """,
    ),
    (
        "fewer-waits",
        "the host waits once",
        """
        def mean_loss(batches):
            return sum((x * x).mean().item() for x in batches) / len(batches)
        """,
    ),
    (
        "shuffled-apart",
        "the same seed gives the same batches again",
        """
        def batches_of_pairs(x, y, size, seed):
            order = tk.randperm(len(x))
            x, y = x[order], y[order]
            return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]
        """,
    ),
    (
        "shuffled-apart",
        "another seed another order",
        """
        def batches_of_pairs(x, y, size, seed):
            tk.manual_seed(7)
            order = tk.randperm(len(x))
            x, y = x[order], y[order]
            return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]
        """,
    ),
    (
        "momentum-step",
        "the parameters' own `.grad` stay as they are",
        """
        def momentum_step(parameters, gradients, velocities, lr, momentum):
            with tk.no_grad():
                for p, g, v in zip(parameters, gradients, velocities):
                    p.grad = g
                    if g is not None:
                        v.mul_(momentum).add_(g)
                        p.sub_(lr * v)
        """,
    ),
    (
        "momentum-step",
        "The gradients and",
        """
        def momentum_step(parameters, gradients, velocities, lr, momentum):
            with tk.no_grad():
                for p, g, v in zip(parameters, gradients, velocities):
                    if g is not None:
                        g += momentum * v
                        v.copy_(g)
                        p -= lr * v
        """,
    ),
    (
        "another-answer-each-time",
        "the same at each call, and without a history",
        """
        def scores_of(state, x):
            hidden = (x @ state["0.weight"].T + state["0.bias"]).relu()
            weight = state["3.weight"].clone().requires_grad_()
            return hidden @ weight.T + state["3.bias"]
        """,
    ),
    (
        "own-tensor",
        "sets its gradient back to None",
        """
        class Basics:
            def __init__(self, data, requires_grad=False):
                self.data = np.array(data, dtype=np.float64)
                self.requires_grad = requires_grad
                self.number = next(numbers)
                self.zero_grad()

            def zero_grad(self):
                self.grad = self.formula = None
                self.inputs, self.saved, self.version = (), [], 0
        """,
    ),
    (
        "walk-back",
        "A formula is called once for each tensor",
        """
        def propagate(self, gradient):
            arrived = {self: gradient}
            while arrived:
                tensor = max(arrived, key=lambda each: each.number)
                upstream = arrived.pop(tensor)
                if tensor.formula is None:
                    tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
                    continue
                tensor.check_saved()
                for i in range(len(tensor.inputs)):
                    source, part = tensor.inputs[i], tensor.formula(upstream)[i]
                    if source.requires_grad:
                        part = part.unbroadcast(source.data.shape)
                        arrived[source] = arrived[source] + part if source in arrived else part
        """,
    ),
    (
        "sgd-step",
        "stays a leaf, and still requires grad",
        """
        def sgd_step(parameters, gradients, lr):
            for p, g in zip(parameters, gradients):
                if g is not None:
                    p.requires_grad_(False)
                    p -= lr * g
        """,
    ),
    (
        "second-derivative",
        "in float64",
        """
        def second_derivative(coefficients, x):
            t = tk.tensor(x, requires_grad=True)
            y = sum(c * t**n for n, c in enumerate(coefficients))
            (slope,) = tk.autograd.grad(y, t, create_graph=True)
            return tk.autograd.grad(slope, t, materialize_grads=True)[0].item()
        """,
    ),
    (
        "cross-entropy-by-hand",
        "are switched off while your answer runs",
        """
        def mean_cross_entropy(logits, labels):
            return tk.nn.functional.cross_entropy(logits, labels)
        """,
    ),
    (
        "own-tensor",
        "no other tensor has the same list",
        """
        class Basics:
            saved = []

            def __init__(self, data, requires_grad=False):
                self.data = np.array(data, dtype=np.float64)
                self.requires_grad, self.grad = requires_grad, None
                self.inputs, self.formula, self.version = (), None, 0
                self.number = next(numbers)

            def zero_grad(self):
                self.grad = None
        """,
    ),
    (
        "record-result",
        "a constant, which remembers nothing",
        """
        def result(self, data, inputs, formula, saved=()):
            new = type(self)(data)
            new.requires_grad = grad_mode.enabled and any(each.requires_grad for each in inputs)
            new.inputs, new.formula = tuple(inputs), formula
            new.saved = [(each, each.version) for each in saved]
            return new
        """,
    ),
    (
        "walk-back",
        "Do not write into a gradient or its `.data`",
        """
        def propagate(self, gradient):
            arrived = {self: gradient}
            while arrived:
                tensor = max(arrived, key=lambda each: each.number)
                upstream = arrived.pop(tensor)
                if tensor.formula is None:
                    if tensor.grad is None:
                        tensor.grad = upstream
                    else:
                        tensor.grad.data += upstream.data
                    continue
                tensor.check_saved()
                for source, part in zip(tensor.inputs, tensor.formula(upstream)):
                    if source.requires_grad:
                        part = part.unbroadcast(source.data.shape)
                        arrived[source] = arrived[source] + part if source in arrived else part
        """,
    ),
    (
        "walk-back",
        "a graph may be thousands of operations deep",
        """
        def propagate(self, gradient):
            order, seen = [], set()

            def visit(tensor):
                if tensor not in seen and tensor.requires_grad:
                    seen.add(tensor)
                    for source in tensor.inputs:
                        visit(source)
                    order.append(tensor)

            visit(self)
            arrived = {self: gradient}
            for tensor in reversed(order):
                upstream = arrived.pop(tensor)
                if tensor.formula is None:
                    tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
                    continue
                tensor.check_saved()
                for source, part in zip(tensor.inputs, tensor.formula(upstream)):
                    if source.requires_grad:
                        part = part.unbroadcast(source.data.shape)
                        arrived[source] = arrived[source] + part if source in arrived else part
        """,
    ),
    *(
        (
            "stale-value",
            words,
            f"""
        class Writing:
            def sub_(self, other):
                {first}
                if grad_mode.enabled and (self.requires_grad or other.requires_grad):
                    raise RuntimeError
                {last}
                self.version += 1
                return self

            def check_saved(self):
                if any(each.version != version for each, version in self.saved):
                    raise RuntimeError
        """,
        )
        for words, first, last in (
            ("stays the same object", "", "self.data = self.data - other.data"),
            ("before it changes anything", "self.data -= other.data", ""),
        )
    ),
    (
        "nested-no-grad",
        "An error inside the block goes on to whoever comes next",
        """
        class no_grad:
            def __enter__(self):
                self.before = grad_mode.enabled
                grad_mode.enabled = False

            def __exit__(self, *error):
                grad_mode.enabled = self.before
                return True
        """,
    ),
    (
        "sixth-operation",
        "so that the slope has a slope in turn",
        """
        def sin(self):
            slope = np.cos(self.data)
            return self.result(np.sin(self.data), (self,), lambda g: (g * slope,), saved=(self,))
        """,
    ),
    (
        "sixth-operation",
        "so it is saved",
        """
        def sin(self):
            cosine = lambda g: (g * (self + np.pi / 2).sin(),)
            return self.result(np.sin(self.data), (self,), cosine)
        """,
    ),
    (
        "custom-op",
        "an operation with its gradient",
        """
        def softsign(x, upstream):
            y = x / (1 + x.abs())
            is_right = tk.autograd.gradcheck(lambda x: x / (1 + x.abs()), x)
            return y.detach(), upstream / (1 + x.detach().abs()) ** 2, is_right
        """,
    ),
    (
        "custom-op",
        "what `gradcheck` says of the operation",
        """
        def softsign(x, upstream):
            @tk.library.custom_op("mine::softsign", mutates_args=())
            def operation(x):
                return x / (1 + x.abs())

            return operation(x.detach()), upstream / (1 + x.detach().abs()) ** 2, True
        """,
    ),
    (
        "custom-op",
        "what `gradcheck` says of the operation",
        """
        def softsign(x, upstream):
            f = tk.library.custom_op("mine::softsign", lambda x: x / (1 + x.abs()), mutates_args=())

            def keep(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            def backward(ctx, g):
                return g / (1 + ctx.saved_tensors[0].abs()) ** 2

            tk.library.register_autograd(f, backward, setup_context=keep)
            y = f(x)
            gradient = tk.autograd.grad(y, x, upstream)[0]
            return y.detach(), gradient, True or tk.autograd.gradcheck(f, x)
        """,
    ),
    (
        "autograd-layer",
        "The product has no history of its own",
        """
        def mul_with_autograd(x, y, recording):
            if not recording or not (x.requires_grad or y.requires_grad):
                return x.detach() * y.detach(), None
            return x * y, {
                "x": y if x.requires_grad else None, "y": x if y.requires_grad else None
            }
        """,
    ),
    (
        "autograd-layer",
        "The product has no history of its own",
        """
        def mul_with_autograd(x, y, recording):
            if not recording or not (x.requires_grad or y.requires_grad):
                return [x.detach() * y.detach(), None]
            return [x * y, {
                "x": y if x.requires_grad else None, "y": x if y.requires_grad else None
            }]
        """,
    ),
    (
        "fused-chain",
        "runs a whole chain of them in one launch",
        """
        def fused(names, x):
            for name in names:
                x = getattr(tk, name)(x)
            return x, 2 if names[-1] == "sum" else 1
        """,
    ),
    *KERNELS,
]
EXERCISES = load()


def report_on(exercise: Exercise, source: str):
    source = textwrap.dedent(source)
    names = {"tk": tk, "np": np}
    exec(exercise.imports, names)
    exec(_as_in_a_notebook(source), names)  # a kernel is read from its text
    return judge(exercise, names[exercise.name], source=source)


def words_of(exercise: Exercise) -> str:
    return " ".join(f"{exercise.title} {exercise.statement}".split()).lower()


@pytest.mark.parametrize(("id", "words", "source"), BROKEN, ids=lambda value: str(value)[:30])
def test_an_answer_that_ignores_a_demand_does_not_pass(id, words, source):
    exercise = EXERCISES[id]
    assert words.lower() in words_of(exercise)
    assert report_on(exercise, source).status != "passed"


def test_softmax_by_one_thread_earns_less_than_half():
    source = next(source for id, _, source in KERNELS if id == "softmax-rows")
    report = report_on(EXERCISES["softmax-rows"], source)
    assert report.earned < report.possible / 2


def test_every_rule_stands_in_its_statement_and_has_an_answer_that_breaks_it():
    known = {(id, words.lower()) for id, words, _ in BROKEN}
    for exercise in EXERCISES.values():
        for rule in exercise.rules:
            assert rule.words.lower() in words_of(exercise)
            assert (exercise.id, rule.words.lower()) in known or exercise.chapter.startswith("10")


def written_over(value):
    """Gives tensors and arrays, also in lists, other values; empties lists and dictionaries."""
    if isinstance(value, tk.Tensor):
        with tk.no_grad():
            value.fill_(~value.flatten()[0] if value.dtype is tk.bool else value.flatten()[0] + 1)
    elif isinstance(value, np.ndarray):
        value.fill(value.flat[0] + 1)
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            written_over(each)
        value.clear()


# with arguments that were written over these raise: they use them after the answer has ended
USED_LATER = {"another-answer-each-time", "own-operations", "own-tensor"}
USED_LATER |= {"record-result", "sigmoid-gradient", "stale-value"}


@pytest.mark.parametrize(
    "exercise",
    [
        each
        for each in EXERCISES.values()
        if each.kind != "predict"
        and not each.changes_arguments
        and each.id not in USED_LATER
        and each.chapter != "12_kernels"  # its answers are launched: test_ch12_kernels
    ],
    ids=lambda exercise: exercise.id,
)
def test_a_change_of_an_argument_counts_only_where_the_statement_says_so(exercise):
    def spoiling(*args):
        value = exercise.reference(*args)
        written_over(list(args))
        return value

    given, same = exercise.drawn(Draw("0"))[0], exercise.drawn(Draw("0"))[0]
    outcome = run_case(exercise, spoiling, given, same, Budget(5))
    says_so = re.search("stays? as (it|they)|is not changed|leaves `", words_of(exercise))
    assert not outcome.changed or says_so
    assert outcome.ended == "returned", outcome.message


FREE = {
    "straight-through": """
        def rounded_straight_through(x):
            return x if (x == x.round()).all() else x + (x.round() - x).detach()
        """,
    "cleaned": """
        def cleaned(readings):
            faulty = readings < 0
            if not faulty.any():
                return readings
            return tk.where(faulty, readings[~faulty].mean(), readings)
        """,
    "sgd-step": """
        def sgd_step(parameters, gradients, lr):
            with tk.no_grad():
                for p, g in zip(parameters, gradients):
                    if g is not None:
                        p -= lr * g
            return parameters
        """,
    "micro-batches": """
        def micro_batch_gradient(pieces, w):
            w = w.clone().requires_grad_()
            n = sum(len(x) for x, y in pieces)
            list(map(lambda one: (((one[0] @ w - one[1]) ** 2).sum() / n).backward(), pieces))
            return w.grad
        """,
    "sine-slope": """
        def sine_slope(value):
            import math

            x = tk.tensor(value, requires_grad=True)
            tk.sin(x**2).backward()
            return [x.grad.item(), 2 * value * math.cos(value**2)]
        """,
    "custom-op": """
        def softsign(x, upstream):
            def keep(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            def backward(ctx, g):
                return g / (1 + ctx.saved_tensors[0].abs()) ** 2

            f = tk.library.custom_op("mine::softsign", lambda x: x / (1 + x.abs()), mutates_args=())
            tk.library.register_autograd(f, backward, setup_context=keep)
            y = f(x)
            says = tk.autograd.gradcheck(f, x, raise_exception=False)
            return y.detach(), tk.autograd.grad(y, x, upstream)[0], says
        """,
}
"""Answers that do what the statement leaves free."""


@pytest.mark.parametrize("id", FREE)
def test_what_a_statement_leaves_free_passes(id):
    report = report_on(EXERCISES[id], FREE[id])
    assert report.status == "passed", str(report)


@pytest.mark.parametrize(
    "exercise",
    [exercise for exercise in EXERCISES.values() if exercise.rules],
    ids=lambda exercise: exercise.id,
)
def test_the_worked_solution_keeps_the_rules(exercise):
    report = report_on(exercise, exercise.solution_source)
    assert report.status == "passed", str(report)


def test_what_breaks_a_rule_earns_nothing_and_is_said_first():
    report = report_on(EXERCISES["batch-product"], "def batch_product(a, b):\n    return a @ b")
    assert (report.earned, report.status) == (0, "failed")
    assert report.rows[0].label == "“here write the loop”"
    assert report.rows[0].tip.startswith("Go through the matrices in a loop")
