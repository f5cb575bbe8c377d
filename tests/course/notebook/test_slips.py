"""Slips of syntax are named where they are, and nowhere else."""

from __future__ import annotations

import pytest

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.exercise import load
from course.notebook.runner import Outcome
from course.notebook.slips import first_slip

EXERCISES = load()

SLIPS = [
    ("celsius", "(fahrenheit - 32) / 1.8", "no return", "is a `return` missing?"),
    (
        "position-of",
        "for i in index:\n        return offset + i",
        "return in the loop",
        "`return offset + i` stands inside the loop",
    ),
    ("block-means", "return x.reshape(-1, 2).mean(dim=1)", "an argument is not used", "`size`"),
    (
        "lost-gradient",
        "x = tk.tensor(values, dtype=tk.float64, requires_grad=True)\n    (x**3).backward()",
        "backward of several numbers",
        "",
    ),
    ("celsius", "return (fahrenheit - 32) / 1,8", "a decimal comma", "`1.8`"),
    ("celsius", "x = fahrenheit - 32\n    x / 1.8\n    return x", "a result is lost", "`x / 1.8`"),
    (
        "celsius",
        "x = fahrenheit - 32\n    x == x / 1.8\n    return x",
        "== in place of =",
        "`x == x / 1.8` compares",
    ),
    ("tanh-gradient", "return upstream * (1 - out ^ 2)", "^ for a power", "`1 - out ** 2`"),
    ("tanh-gradient", "return upstream(1 - out * out)", "a tensor called", "needs a `*`"),
    (
        "lost-gradient",
        "x = tk.tensor(values, requires_grad=True)\n    return x.sum().backward()",
        "None is returned",
        "`backward` changes something",
    ),
    (
        "strides-of",
        "strides = [1]\n    return tuple(strides.reverse())",
        "None is returned",
        "`strides.reverse()` changes something and gives None",
    ),
    (
        "visits",
        "n = 0\n    def go(node):\n        n += 1\n    go(root)\n    return {root: n}",
        "a local name",
        "`nonlocal n` at the beginning of `go`",
    ),
    (
        "train-only",
        "for name in parameters:\n        name.requires_grad = name in names\n    return names",
        "a text for a tensor",
        "A text has no `requires_grad`; a tensor has.",
    ),
    ("stereo", "samples.T\n    return samples", "a result is lost", "`samples.T` computes"),
    ("linear-gradients", "return b.item, w, b", "not called", "write `b.item()`"),
    ("without-batch", "return batch.squeeze[0]", "not called", "write `batch.squeeze()`"),
    ("brighter", "return (pixels + amount).clamp", "not called", ".clamp(...)`"),
    ("nearest-centre", "return (points - centres[0]).argmin", "not called", ".argmin(...)`"),
    (
        "block-means",
        "for _ in range(1, size):\n        x = x + 1\n    return x",
        "a round too few",
        "",
    ),
    (
        "sgd-step",
        (
            "with tk.no_grad():\n        for p, g in zip(parameters, gradients):\n"
            "            p -= lr * (g or 0)"
        ),
        "truth of a tensor",
        "`g or 0` asks whether the numbers in `g` are other than 0",
    ),
    (
        "sgd-step",
        (
            "for p, g in zip(parameters, gradients):\n        if not g:\n            continue\n"
            "        p.data -= lr * g"
        ),
        "truth of a tensor",
        "`if g is None:` asks whether there is no tensor",
    ),
    (
        "linear-gradients",
        (
            "w, b = w.clone().requires_grad_(), b.clone().requires_grad_()\n"
            "    loss = ((x @ w.detach() + b - target) ** 2).mean()\n"
            "    loss.backward()\n"
            "    return loss.item(), w.grad, b.grad"
        ),
        "no gradient is left",
        "What comes of `w.detach()` does not lead back to `w`.",
    ),
    (
        "gradient-penalty",
        (
            "x, w = x.clone().requires_grad_(), w.clone().requires_grad_()\n"
            "    y = tk.tanh(x @ w.detach()).sum()\n"
            "    (slope,) = tk.autograd.grad(y, x, create_graph=True)\n"
            "    (slope**2).sum().backward()\n"
            "    return w.grad"
        ),
        "no gradient is left",
        "What comes of `w.detach()` does not lead back to `w`.",
    ),
    (
        "gradient-penalty",
        (
            "x, w = x.clone().requires_grad_(), w.clone().requires_grad_()\n"
            "    (slope,) = tk.autograd.grad(tk.tanh(x @ w).sum(), x)\n"
            "    (slope.requires_grad_() ** 2).sum().backward(create_graph=True)\n"
            "    return w.grad"
        ),
        "no gradient is left",
        "`w.grad` is None",
    ),
    (
        "cleaned",
        "x = readings.clone()\n    x[x < 0] = x[x >= 0]\n    return x",
        "other elements on the right",
        "`x[mask] = y[mask]`",
    ),
    (
        "top-scores",
        "return tk.where(scores, limit, 0.0)",
        "another order of arguments",
        "condition",
    ),
    ("top-scores", "return scores[~scores > limit]", "not of numbers", "`~(a > b)`"),
    ("broadcast-shape", "return [1] + a", "a list and a tuple", "`tuple(...)`"),
    ("stereo", "return samples.T.reshape", "not called", "write `samples.T.reshape(...)`"),
    (
        "without-batch",
        "photo = batch.squeeze\n    return photo + 0",
        "not called",
        "`batch.squeeze()`",
    ),
    ("stereo", "return samples.T().view(2, -1)", "a property called", "`samples.T` is no method"),
    (
        "cleaned",
        "faulty = readings < 0\n    return tk.where(not faulty, readings, 0.0)",
        "not of a mask",
        "`~(faulty)`",
    ),
    (
        "top-scores",
        "m = scores > limit and scores > 0\n    return scores[m], scores * m",
        "and, or between masks",
        "it is `&`",
    ),
    (
        "cleaned",
        "good = 0 <= readings < 99\n    return readings * good",
        "a chain of comparisons",
        "`0 <= readings < 99`",
    ),
    (
        "cleaned",
        "if readings < 0:\n        return readings * 0\n    return readings",
        "if of a mask",
        "`tk.where(condition, a, b)`",
    ),
    (
        "lost-gradient",
        "x = tk.tensor(values, requires_grad=True)\n    return tk.autograd.grad((x**3).sum(), x)",
        "a tuple not unpacked",
        "`tk.autograd.grad` returns a tuple",
    ),
    (
        "cleaned",
        "r = readings + 0\n    bad = r < 0\n    r[bad][:] = 5.0\n    return r",
        "written into a copy",
        "`r[bad]` picks elements into a copy",
    ),
    (
        "brighter",
        "result = pixels[:]\n    result.add_(amount).clamp_(0, 255)\n    return result",
        "an argument is changed",
        "`result = pixels[:]` makes no copy of it",
    ),
    ("celsius", "return (fahrenheit - 32) * (5 // 9)", "rounded down", "in `5 // 9`"),
    (
        "broadcast-shape",
        "return ValueError('no')",
        "an exception returned",
        "`raise ValueError('no')` stops",
    ),
    (
        "break-even",
        (
            "for n in range(100):\n        if transfer + n * gpu < n * cpu:\n            return n\n"
            "    return 0"
        ),
        "a range that is too short",
        "`range(100)` tries no number above 99",
    ),
    (
        "cleaned",
        "readings.clone()[0] = 0.0\n    return readings",
        "written into a copy",
        "nobody keeps that copy",
    ),
    (
        "pixels",
        "image.float()\n    return image / 2",
        "a result is lost",
        "`image.float()` returns something",
    ),
    (
        "half-precision",
        "return tk.tensor(float(sum(x[i].item() for i in range(len(x) - 1))))",
        "range ends early",
        "`len(x) - 2`",
    ),
    (
        "forgotten-zero",
        (
            "w = tk.tensor(0.0, requires_grad=True)\n    for _ in range(steps):\n        "
            "((w * x - y) ** 2).mean().backward()\n        with tk.no_grad():\n            "
            "w -= lr * w.grad\n        w.grad.zero_\n    return w.item()"
        ),
        "not called",
        "`w.grad.zero_` alone does nothing",
    ),
    ("celsius", "x =+ 1\n    return x", "=+ in place of +=", "sets `x` to 1"),
    (
        "standard-rows",
        "for row in x:\n        row = row - row.mean()\n    return x",
        "another value for a name",
        "changes nothing in `x`. An index writes there: `x[i] = ...`",
    ),
    (
        "standard-rows",
        "for i in range(len(x)):\n        row = x[i]\n        row = row / row.std()\n    return x",
        "another value for a name",
        "`row = row / row.std()` gives the name `row` another value, which nobody reads",
    ),
    ("cleaned", "bad = readings < 0\n    return readings[-bad]", "minus of a mask", "`~` turns"),
    ("top-scores", "return max(scores, limit), scores", "min and max of Python", "`tk.maximum("),
    (
        "cleaned",
        "result = readings.clone()\n    bad = result[result < 0]\n    return result",
        "a name is not used",
        "gives `bad` a value",
    ),
    (
        "lost-gradient",
        "x = tk.tensor(values)\n    x.requires_grad\n    x.sum().backward()\n    return x.grad",
        "a result is lost",
        "`x.requires_grad_()` asks for one",
    ),
    (
        "channels-first",
        "moved = photos.permute(0, 3, 1, 2)\n    moved.contiguous()\n    return moved",
        "a result is lost",
        "`moved.contiguous()` returns something",
    ),
    (
        "sgd-step",
        (
            "with tk.no_grad():\n        for p, g in zip(parameters, gradients):\n            "
            "if g:\n                p -= lr * g"
        ),
        "truth of a tensor",
        "`if g is not None:`",
    ),
    (
        "unscaled",
        (
            "for g in gradients:\n        if not tk.isfinite(g):\n            return []\n"
            "    return gradients"
        ),
        "one answer for all",
        "`tk.isfinite(g).all()`",
    ),
]


def written(id, body):
    exercise = EXERCISES[id]
    head = exercise.released_source.partition('"""')[0].rstrip()
    source = f"{head}\n    {body}\n"
    names = {"tk": tk}
    exec(source, names)
    return exercise, names[exercise.name], source


@pytest.mark.parametrize(("id", "body", "name", "words"), SLIPS, ids=lambda value: str(value)[:25])
def test_a_slip_is_named(id, body, name, words):
    exercise, answer, source = written(id, body)
    report = judge(exercise, answer, source=source)
    assert report.mistake == name, str(report)
    assert words in report.message


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    seen = set()\n    seen.add(x)\n    return seen",
        "def f(names):\n    names.sort()\n    return names",
        "def f(x: tk.Tensor):\n    x.requires_grad_()\n    x.sum().backward()\n    return x.grad",
        "def f(x):\n    g = x.sum\n    return g()",
        "def f(x):\n    return x.max(dim=1).values",
        "def f(x):\n    return 1, 8",
        "def f(x):\n    x[1, 2] = 3\n    x[::2][1:] = 4\n    return x",
        "def f(x):\n    return map(tk.relu, x), tk.relu",
        "def f(x, rows):\n    rows[0][1] = x\n    return not rows and x",
        "def f(x: list[tk.Tensor]):\n    x.add(1)\n    return x",
        "def f(x):\n    model = tk.nn.Linear(2, 2)\n    model.to('cpu')\n    return model(x)",
        "def f(xs):\n    for x in xs:\n        if x:\n            continue\n        return x",
        "def f(xs):\n    for x in xs:\n        if x:\n            return x",
        "def f(x",
        "def f(x):\n    return x[: x.shape[0] // 2], [i for i in range(len(x) // 2)]",
        "def f(pairs):\n    return [a for a, _ in pairs if a]",
        "def f(x, n):\n    for i in range(1, n):\n        x[i] += x[i - 1]\n    return x",
        "def f(x):\n    for n in range(len(x)):\n        if x[n]:\n            return n",
        "class F:\n    def set(self, x):\n        x = self.x = x\n        return x",
        "@cuda.kernel\ndef f(x, out):\n    out[0] = 0\n    out[0] += x[0]",
        "def f(x):\n    y = x.clone()\n    y += 1\n    return y",
        "def f(xs):\n    for x in xs:\n        x = x * 2\n        xs += x\n    return xs",
        "def f(x):\n    _ = x * 2\n    return x",
        "def f(xs):\n    for n in xs:\n        x = xs[n]\n        x = x * 2\n        x += 1",
        "def f(xs):\n    for n in xs:\n        x = xs[n]\n        x = x * 2\n    return x",
        "def f(pairs):\n    for a, b in pairs:\n        a, b = b, a\n        pairs += [a, b]",
        "def f(t):\n    kind = t.dtype.is_floating_point\n    return kind, t.ndim > 0",
    ],
)
def test_what_looks_like_a_slip_and_is_none(source):
    assert first_slip(source, Outcome(), Outcome()) is None


def test_a_sum_in_the_wrong_place_is_not_repaired_by_writing():
    source = "@cuda.kernel\ndef f(x, out):\n    i = cuda.grid(1)\n    out[i] += x[i]"
    outcome, right = Outcome(value=tk.tensor([1.0, 2.0])), Outcome(value=tk.tensor([3.0, 0.0]))
    assert first_slip(source, outcome, right) is None


ON_A_MASK = ValueError("Boolean value of Tensor with more than one value is ambiguous")


@pytest.mark.parametrize(
    ("lines", "raised", "value"),
    [
        (["if not isinstance(x, tk.Tensor): x = 1", "return bool(x)"], ON_A_MASK, None),
        (["x = x and x", "return bool(x)"], ON_A_MASK, None),
        (["if 0 < 1 < 2: x = x", "return bool(x)"], ON_A_MASK, None),
        (
            ["g = tk.autograd.grad(x, x)", "return (5)(g)"],
            TypeError("'int' object is not callable"),
            None,
        ),
        (
            ["g = tk.autograd.grad(x, x)", "return g[0] + (1,)"],
            TypeError("unsupported operand: 'tuple'"),
            None,
        ),
        (["return x.reshape((n * 2, 2))"], None, 5),
    ],
    ids=["not", "and", "chain", "called", "unpacked", "comma"],
)
def test_a_slip_is_not_named_for_what_another_line_did(lines, raised, value):
    source = "def f(x):\n    " + "\n    ".join(lines)
    where = f"line {len(lines) + 1}: {lines[-1]}"
    outcome = Outcome("raised", error=raised, message=(str(raised), ""), place=where)
    if raised is None:
        outcome = Outcome(value=value)
    assert first_slip(source, outcome, Outcome(value=1)) is None


def test_a_pair_that_is_asked_for_has_no_decimal_comma():
    source = "def f(x):\n    return x * 2, 1"
    assert first_slip(source, Outcome(value=(4, 1)), Outcome(value=(4, 2))) is None
    assert first_slip(source, Outcome(value=(4, 1)), Outcome(value=4)).name == "a decimal comma"


@pytest.mark.parametrize(
    ("body", "mistake"),
    [
        ("pixels += amount\n    return pixels.clamp(0, 255)", "writes into the photo"),
        ("pixels.add(amount)\n    return (pixels + amount).clamp(max=255)", "a result is lost"),
    ],
)
def test_a_known_mistake_comes_before_a_slip_and_a_line_that_does_nothing_before_both(
    body, mistake
):
    source = f"def brighter(pixels: tk.Tensor, amount):\n    {body}"
    names = {"tk": tk}
    exec(source, names)
    assert judge(EXERCISES["brighter"], names["brighter"], source=source).mistake == mistake


AN_INTEGER = "'float' object cannot be interpreted as an integer"
NO_BLOCK = "'type' object does not support the context manager protocol"
OF_NONE = "unsupported operand type(s) for *: 'NoneType' and 'int'"


@pytest.mark.parametrize(
    ("line", "error", "name", "words"),
    [
        ("return x.item()", "converted to Scalar", "one number of several", "`x.item()` takes"),
        ("return x[0]", "index 0 is out of bounds", "an index outside", "`x[0]` asks for a fixed"),
        ("return a / (n - 2)", "division by zero", "a division by 0", "`n - 2` is 0"),
        ("return max(x)", "'>' not supported between instances", "objects without an", "`key=`"),
        ("return x.sum(dim=d)", "Dimension out of range", "a dimension that is gone", "keepdim"),
        ("return f(args, kwargs)", "must be Tensor, not tuple", "a star", "`f(*args, **kwargs)`"),
        ("return x.z", "'F' object has no attribute 'z'", "", ""),
        ("x.zero()", "'Tensor' object has no attribute 'zero'", "an underscore", "`zero_`"),
        ("x.nil()", "'Tensor' object has no attribute 'nil'", "", ""),
        ("with f.g: x = y", "the context manager protocol", "a context", "`with f.g():`"),
        (
            "x.backward() * n",
            "unsupported operand: 'NoneType'",
            "computing",
            "`(x * n).backward()`",
        ),
        ("return x.grad * n", "unsupported operand: 'NoneType'", "", ""),
        ("x.f()", "F.f() takes 1 positional argument but 2 were given", "", ""),
        ("x.data[:] = 1", "too many indices for array: array is 0-d", "a slice of", "`[...]`"),
        ("raise ValueError", "", "raises where there is a result", "`raise ValueError` is a line"),
        ("return x + y", "The size of tensor a (2)", "shapes that do not fit", "at the right"),
        ("return x + y", "NotAllowed: f is switched off", "a call", "calls it for"),
        (
            "a, b = x",
            "not enough values to unpack (expected 2, got 1)",
            "values",
            "and 1 value comes",
        ),
        (
            "for a, b in x: isinstance(x, dict), a, b",
            "not enough values to unpack (expected 2, got 1)",
            "values",
            "`x.items()` gives pairs",
        ),
        ("return n(f)", "'function' object is not iterable", "a function not", "`f(...)`"),
        ("for a in x.max(): a", "iteration over a 0-d tensor", "one number for all", "`dim=`"),
        ("for a in x.max(dim=n): a", "iteration over a 0-d tensor", "", ""),
        ("return x.z", "'numpy.ndarray' object has no attribute 'z'", "an attribute", "array has"),
        ("return x.item()", "something else", "", ""),
        ("x = zeros(dtype='int8')", "must be torch.dtype, not str", "a dtype", "`dtype=tk.int8`"),
        ("x = zeros(dtype='torch.whole')", "must be torch.dtype, not str", "a dtype", "tk.int64`"),
        ("y = f(x.stride())", "'tuple' object cannot be interpreted as an integer", "", ""),
        ("y = x.shape", "'tuple' object cannot be interpreted as an integer", "a tuple", "[0]`"),
        ("y = mean(x)", "mean(): argument 'input' must be Tensor, not list", "a list for", "stack"),
        ("x.clone()", "'numpy.ndarray' object has no attribute 'clone'", "a number", "An array"),
        ("x.backward()", "'float' object has no attribute 'backward'", "a number", "`.item()`"),
        ("x.own()", "'float' object has no attribute 'own'", "", ""),
        ("return 5", "converted to Scalar", "", ""),
        ("tk.autograd.grad(x, y)", "appears to not have been used in the graph", "another", "`y`"),
        ("x.backward()", "appears to not have been used in the graph", "", ""),
        (
            "tk.autograd.grad(x, y)",
            "One of the differentiated Tensors does not require grad",
            "nothing",
            "to `y`, which",
        ),
        ("return x[n] + y[n]", "index 0 is out of bounds", "an index", "One of `x[n]`, `y[n]`"),
        ("return a / n + a / m", "division by zero", "", ""),
        ("return x.cos()", "'Tensor' object has no attribute 'cos'", "", ""),
        ("f(x)", "'NoneType' object has no attribute 'data'", "", ""),
        ("return x.zero()", "'Tensor' object has no attribute 'zero'", "an underscore", "`zero_`"),
        ("with tk.no_grad: x = 1", NO_BLOCK, "a context manager", "`with tk.no_grad():`"),
        ("with f(x): x = 1", NO_BLOCK, "", ""),
        ("return tk.zeros(n / 2)", AN_INTEGER, "a float for a size", "`n // 2`"),
        ("return range(x)", AN_INTEGER, "", ""),
        (
            "x.grad.zero_()",
            "'NoneType' object has no attribute 'zero_'",
            "no gradient yet",
            "`x.gr",
        ),
        ("f(x).zero_()", "'NoneType' object has no attribute 'zero_'", "", ""),
        ("return x.backward() * n", OF_NONE, "computing with None", "`(x * n).backward()`"),
        ("return f(x) * n", OF_NONE, "", ""),
        ("return a - n.sum()", "'int' object has no attribute 'sum'", "brackets", "`(a - n).sum("),
        ("return n.sums", "'int' object has no attribute 'sums'", "", ""),
        ("return list(x.sum())", "iteration over a 0-d tensor", "one number for all", "`x.sum()`"),
        ("return list(x)", "iteration over a 0-d tensor", "", ""),
        (
            "tk.zeros(2, dtype='int')",
            "must be torch.dtype, not str",
            "a dtype in",
            "`dtype=tk.int`",
        ),
        ("tk.zeros(2, dtype=d)", "must be torch.dtype, not str", "", ""),
        ("return x < y", "'<' not supported between instances", "", ""),
        ("return f(args)", "must be Tensor, not tuple", "", ""),
    ],
)
def test_an_exception_is_told_by_what_stands_in_its_line(line, error, name, words):
    kinds = {"index": IndexError, "division": ZeroDivisionError}
    kind = next((kind for word, kind in kinds.items() if word in error), TypeError)
    source = f"def f(x, y, a, n, m, d, args, kwargs):\n    {line}\n"
    outcome = Outcome("raised", error=kind(error), message=(error, ""), place=f"line 2: {line}")
    found = first_slip(source, outcome, Outcome(value=1))
    assert (found.name if found else "").startswith(name)
    assert words in (found.sentence if found else "")
    assert bool(found) == bool(name)


def test_the_keys_of_a_dictionary_are_spoken_of_where_a_loop_gives_them():
    def said(line):
        error = AttributeError("'str' object has no attribute 'to'")
        outcome = Outcome("raised", error=error, message=(str(error), ""), place=f"line 2: {line}")
        return first_slip(f"def f(x):\n    {line}\n", outcome, Outcome(value=1)).sentence

    assert "`.items()`" in said("return [each.to(1) for each in x]")
    assert said("return x.to(1)") == "A text has no `to`; a tensor has."


def test_another_exception_than_the_one_that_is_asked_for_is_named():
    outcome = Outcome(
        "raised", error=KeyError("a"), message=("'a'", ""), place="line 2: return x[a]"
    )
    right = Outcome("raised", error=ValueError())
    found = first_slip("def f(x, a):\n    return x[a]\n", outcome, right)
    assert found.sentence == "ValueError is expected in this case, and KeyError is raised."


@pytest.mark.parametrize(("line", "name"), [("p -= g", None), ("print(g)", "a name is not used")])
def test_a_name_that_is_written_in_place_is_read(line, name):
    source = f"def f(pairs):\n    for p, g in pairs:\n        {line}\n    return pairs[0]\n"
    found = first_slip(source, Outcome(value=1), Outcome(value=2))
    assert (found and found.name) == name


def test_what_comes_after_the_line_that_raised_is_no_cause():
    source = "loss = x.mean()\nloss.backward()\nnumber = loss.item()"
    error = RuntimeError("element 0 of tensors does not require grad")
    outcome = Outcome(
        "raised", error=error, message=(str(error), ""), place="line 2: loss.backward()"
    )
    slip = first_slip(source, outcome, Outcome())
    assert slip.sentence.endswith("Is there an input with `requires_grad=True`?")
