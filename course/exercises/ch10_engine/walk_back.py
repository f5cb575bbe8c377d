"""The exercise walk-back: gradients from a result back to its leaves."""

from __future__ import annotations

from collections.abc import Iterator

from course.engine import propagate
from course.exercises.ch10_engine.part import Part, program_case
from course.notebook.exercise import Case, Draw, exercise


def _walk(self, gradient, join=None, into=None, wanted=None, fits=None, check=True, pick=max):
    """The walk with one step exchanged, which is how the usual mistakes differ from the answer.

    join: makes one gradient of two that reach the same tensor; by default their sum.
    into: writes what reached a leaf; by default adds to its `grad`.
    wanted: if given, walks into tensors that require no gradient too.
    fits: if given, leaves gradients in the shape of the result, not summed to the input's.
    check: whether saved tensors are checked for changes in place.
    pick: chooses the next tensor of those that a gradient has reached; by default the newest.
    """
    arrived = {self: gradient}
    while arrived:
        tensor = pick(arrived, key=lambda tensor: tensor.number)
        upstream = arrived.pop(tensor)
        if tensor.formula is None:
            if into is not None:
                into(tensor, upstream)
            else:
                tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
            continue
        if check:
            tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(upstream), strict=True):
            if wanted is None and not source.requires_grad:
                continue
            part = part.unbroadcast(source.data.shape) if fits is None else part
            if source in arrived:
                part = arrived[source] + part if join is None else join(arrived[source], part)
            arrived[source] = part


def _last_one(self, gradient):
    _walk(self, gradient, join=lambda before, part: part)


def _multiplied(self, gradient):
    _walk(self, gradient, join=lambda before, part: before * part)


def _replaced_in_leaf(self, gradient):
    _walk(self, gradient, into=lambda leaf, upstream: setattr(leaf, "grad", upstream))


def _constants_too(self, gradient):
    _walk(self, gradient, wanted=all)


def _not_summed(self, gradient):
    _walk(self, gradient, fits=True)


def _never_checked(self, gradient):
    _walk(self, gradient, check=False)


def _only_itself_checked(self, gradient):
    self.check_saved()
    _walk(self, gradient, check=False)


def _first_gradient_again(self, gradient):
    arrived = {self: gradient}
    while arrived:
        tensor = max(arrived, key=lambda tensor: tensor.number)
        upstream = arrived.pop(tensor)
        if tensor.formula is None:
            tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
            continue
        tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(gradient), strict=True):
            if source.requires_grad:
                part = part.unbroadcast(source.data.shape)
                arrived[source] = arrived[source] + part if source in arrived else part


def _written_into(self, gradient):
    def into(leaf, upstream):
        if leaf.grad is None:
            leaf.grad = upstream
        else:
            leaf.grad.data += upstream.data

    _walk(self, gradient, into=into)


def _written_into_what_arrived(self, gradient):
    def join(before, part):
        before.data += part.data
        return before

    def into(leaf, upstream):
        leaf.grad = upstream if leaf.grad is None else join(leaf.grad, upstream)

    _walk(self, gradient, into=into, join=join)


def _numbers_only(self, gradient):
    def into(leaf, upstream):
        before = 0.0 if leaf.grad is None else leaf.grad.data
        leaf.grad = type(leaf)(before + upstream.data)

    _walk(self, gradient, into=into)


def _twice_in_leaf(self, gradient):
    def into(leaf, upstream):
        leaf.grad = upstream + upstream if leaf.grad is None else leaf.grad + upstream

    _walk(self, gradient, into=into)


def _added_to_none(self, gradient):
    _walk(self, gradient, into=lambda leaf, upstream: setattr(leaf, "grad", leaf.grad + upstream))


def _oldest_first(self, gradient):
    _walk(self, gradient, pick=min)


def _called_for_each_input(self, gradient):
    arrived = {self: gradient}
    while arrived:
        tensor = max(arrived, key=lambda tensor: tensor.number)
        upstream = arrived.pop(tensor)
        if tensor.formula is None:
            tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
            continue
        tensor.check_saved()
        for n, source in enumerate(tensor.inputs):
            if source.requires_grad:
                part = tensor.formula(upstream)[n].unbroadcast(source.data.shape)
                arrived[source] = arrived[source] + part if source in arrived else part


def _ends_at_a_leaf(self, gradient):
    arrived = {self: gradient}
    while arrived:
        tensor = max(arrived, key=lambda tensor: tensor.number)
        upstream = arrived.pop(tensor)
        if tensor.formula is None:
            tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
            return
        tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(upstream), strict=True):
            if source.requires_grad:
                part = part.unbroadcast(source.data.shape)
                arrived[source] = arrived[source] + part if source in arrived else part


def _grad_everywhere(self, gradient):
    arrived = {self: gradient}
    while arrived:
        tensor = max(arrived, key=lambda tensor: tensor.number)
        upstream = arrived.pop(tensor)
        tensor.grad = upstream if tensor.grad is None else tensor.grad + upstream
        if tensor.formula is None:
            continue
        tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(upstream), strict=True):
            if source.requires_grad:
                part = part.unbroadcast(source.data.shape)
                arrived[source] = arrived[source] + part if source in arrived else part


def _recursion(self, gradient):
    if self.formula is None:
        self.grad = gradient if self.grad is None else self.grad + gradient
        return
    self.check_saved()
    for source, part in zip(self.inputs, self.formula(gradient), strict=True):
        if source.requires_grad:
            source.propagate(part.unbroadcast(source.data.shape))


@exercise(
    "walk-back",
    answer=propagate,
    points=5,
    difficulty=4,
    minutes=15,
    without=("course.engine.propagate",),
)
class WalkBack(Part):
    """The backward pass

    This is the heart of the engine: the way from a result to the leaves. `backward()` calls it on
    the result, with the gradient 1.

    **Input:** `self`, the tensor to begin at; `gradient`, its gradient, a tensor.

    **Output:** none is needed. Afterwards every leaf that requires grad and that `self` was made of
    has this gradient *added* to its `grad`; where `grad` is None, it becomes the gradient. Other
    tensors keep their `grad` as it is.

    Keep a dictionary from tensors to the gradient that has arrived for them, and repeat until it is
    empty:

    1. Take out the **youngest** tensor, the one with the largest `number`, with its gradient.
    2. If it is a leaf (its `formula` is None), add the gradient to its `grad`.
    3. Otherwise call `tensor.check_saved()`, which raises if a number that the formula needs was
       changed. Then call its formula with the gradient: it gives a gradient for each of
       `tensor.inputs`.
    4. For each input that requires grad, `gradient.unbroadcast(input.data.shape)` sums over the
       dimensions that were stretched. Add what results to what has arrived for this input.

    Add tensors to tensors. Do not write into a gradient or its `.data`: with `create_graph=True` a
    gradient has a history, which knows nothing of the write. A formula is called once for each
    tensor, and a graph may be thousands of operations deep. An empty tensor needs no special care.

    ```python
    Tensor = tensor_with(propagate)
    x = Tensor(3.0, requires_grad=True)
    (x * x + x).backward()
    x.grad
    # Tensor(7.)
    ```
    """

    hints = (
        "Begin with `arrived = {self: gradient}` and `while arrived:`. The youngest is "
        "`max(arrived, key=lambda each: each.number)`, and `arrived.pop(tensor)` takes it out and "
        "gives its gradient.",
        "A loop over `zip(tensor.inputs, tensor.formula(upstream))` gives each input together with "
        "its gradient.",
        "Two places add up. In a leaf: `tensor.grad + upstream`, unless `tensor.grad` is None. In "
        "the dictionary: `arrived[source] + part`, if `source` is in `arrived` already.",
    )
    usual_mistakes = {
        "the last one": (
            _last_one,
            "A gradient that arrives replaces the one before it. All of them count: add them up.",
        ),
        "multiplied": (
            _multiplied,
            "You multiply gradients that come along different ways. Along one way slopes are "
            "multiplied, different ways are added up.",
        ),
        "grad replaced": (
            _replaced_in_leaf,
            "A second backward replaces the `grad` of a leaf. Add to the one that is there.",
        ),
        "constants too": (
            _constants_too,
            "Constants get a gradient too. Pass one on only to inputs with `requires_grad`.",
        ),
        "not summed": (
            _not_summed,
            "Where an input was stretched, its gradient has the shape of the result. Sum it: "
            "`part.unbroadcast(source.data.shape)`.",
        ),
        "never checked": (
            _never_checked,
            "A changed value is not noticed. Call `tensor.check_saved()` before the formula of the "
            "tensor.",
        ),
        "only itself checked": (
            _only_itself_checked,
            "Only the tensor where backward begins is checked. Each one has saved tensors of its "
            "own: call `tensor.check_saved()` in the loop.",
        ),
        "the first gradient again": (
            _first_gradient_again,
            "Every formula gets the gradient of the result. Give each the one that has arrived for "
            "its own tensor, which you took out of the dictionary.",
        ),
        "written into a gradient": (
            _written_into,
            "You write into the numbers of a gradient, and its history does not know of that. Add "
            "tensors: `tensor.grad + upstream`.",
            r"\.data",
        ),
        "written into what arrived": (
            _written_into_what_arrived,
            "You write into the numbers of a gradient, and its history does not know of that. Add "
            "tensors, also to what has arrived: `arrived[source] + part`.",
            r"\.data",
        ),
        "numbers without a history": (
            _numbers_only,
            "The gradient is made of numbers alone, so it cannot be differentiated once more. Keep "
            "the tensor that arrived.",
            r"\.data",
        ),
        "twice in a leaf": (
            _twice_in_leaf,
            "The first gradient of a leaf counts twice: you set `grad` to it and add it as well. "
            "Do one or the other.",
        ),
        "added to None": (
            _added_to_none,
            "The `grad` of a leaf is None at first, and nothing can be added to that. Set it the "
            "first time, and add later.",
        ),
        "oldest first": (
            _oldest_first,
            "You do not take the youngest tensor first, so its gradient may not be complete yet. "
            "The youngest is the one with the largest `number`.",
        ),
        "called for each input": (
            _called_for_each_input,
            "You call the formula of a tensor once for each of its inputs. Call it once, and go "
            "through what it gives with `zip`.",
        ),
        "ends at a leaf": (
            _ends_at_a_leaf,
            "The walk ends at the first leaf, and the others get nothing. Go on as long as the "
            "dictionary has entries: `continue`.",
            r"break|return",
        ),
        "grad everywhere": (
            _grad_everywhere,
            "Results on the way get a `grad` too. Only leaves keep theirs.",
        ),
        "recursion": (
            _recursion,
            "The gradients are right, but you follow every way on its own: a tensor that is used "
            "twice is walked twice, and a deep graph goes deeper than Python's calls may. Use a "
            "loop with a dictionary, and take the youngest each time.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        a, b, c = draw.floats(3, 1.1, 4)
        v, w = draw.floats(3, 1.1, 9), draw.floats(3, 1.1, 9)
        x, y = f"x = Tensor({a}, requires_grad=True)\n", f"y = Tensor({b}, requires_grad=True)\n"
        vectors = f"x = Tensor({v}, requires_grad=True)\ny = Tensor({w}, requires_grad=True)\n"
        write = f"with no_grad():\n    x.sub_(Tensor({c}))\n"
        count = "calls = []\n"
        noted = "u = x.result(x.data, (x, x, x), lambda g: (calls.append(g) or g, g, g))\n"
        chain = f"for _ in range({draw.integer(1010, 1050)}):\n    y = y + c\n"
        yield program_case(
            "a chain", f"{x}z = x * {b} * {c}\nz.backward()", "x.grad.data", "z.grad"
        )
        yield program_case("two ways", f"{x}z = x * x + x\nz.backward()", "x.grad.data", "z.grad")
        yield program_case(
            "a value that was changed",
            f"{x}{y}z = x * y + y\n{write}z.backward()",
            "y.grad.data",
            raises=True,
        )
        yield program_case(
            "a bias for each row",
            f"x = Tensor([{v}, {w}], requires_grad=True)\nb = Tensor({w}, requires_grad=True)\n"
            "(x * x + b).sum().backward()",
            "x.grad.data",
            "b.grad.data",
        )
        yield program_case("twice", f"{x}(x * x).backward()\n(x * {b}).backward()", "x.grad.data")
        yield program_case(
            "a constant", f"{x}c = Tensor({b})\n(x * c + c).backward()", "x.grad.data", "c.grad"
        )
        yield program_case(
            "a short way and a long way",
            f"{count}{x}{noted}((u * {b} + {c}) * {b} + u).backward()",
            "len(calls)",
            "x.grad.data",
            weight=3,
        )
        yield program_case(
            "ways that meet again",
            f"{x}{y}u = x * y\n((u + x) * u + y).backward()",
            "x.grad.data",
            "y.grad.data",
            "u.grad",
        )
        yield program_case("a leaf itself", f"{x}x.backward()", "x.grad.data")
        yield program_case(
            "vectors", f"{vectors}((x + y) * x + x).sum().backward()", "x.grad.data", "y.grad.data"
        )
        yield program_case(
            "constant data",
            f"w = Tensor({v}, requires_grad=True)\nx = Tensor({w})\n((x * w) * x).sum().backward()",
            "w.grad.data",
            "x.grad",
        )
        yield program_case(
            "a column, a number",
            f"x = Tensor([[{a}], [{b}]], requires_grad=True)\ny = Tensor({c}, requires_grad=True)\n"
            f"(x * {v} * y).sum().backward()",
            "x.grad.data",
            "y.grad.data",
        )
        yield program_case(
            "twice, set back between",
            f"{x}(x * x).backward()\nx.zero_grad()\n(x * {c}).backward()\n(x * x).backward()",
            "x.grad.data",
        )
        yield program_case(
            "the last one changed",
            f"{x}{y}z = x * y\n{write}z.backward()",
            "y.grad.data",
            raises=True,
        )
        yield program_case(
            "changed on the way",
            f"{x}u = x * {b}\nv = u * u * {c}\n"
            f"with no_grad():\n    u.sub_(Tensor({c}))\nv.backward()",
            "x.grad.data",
            raises=True,
        )
        yield program_case(
            "changed, but not needed", f"{x}{y}z = x + y\n{write}z.backward()", "x.grad.data"
        )
        yield program_case(
            "a long way and a short way",
            f"{count}{x}{noted}(u + u * {c} * {b}).backward()",
            "len(calls)",
            "x.grad.data",
            weight=3,
        )
        yield program_case(
            "a deep graph",
            f"{x}c = Tensor({b})\ny = x * {c}\n{chain}y.backward()",
            "y.data",
            "x.grad.data",
            weight=3,
        )
        yield program_case(
            "the slope of a slope",
            f"{x}(x * x * x).backward(create_graph=True)\nslope = x.grad\nx.zero_grad()\n"
            "slope.backward()",
            "slope.data",
            "x.grad.data",
        )
        yield program_case(
            "slopes of vectors added up",
            f"{vectors}for _ in range(2):\n    (x * y * x).sum().backward(create_graph=True)\n"
            "slope = x.grad.sum()\nx.zero_grad()\nslope.backward()",
            "slope.data",
            "x.grad.data",
        )
        yield program_case(
            "slopes added up",
            f"{x}(x * x).backward(create_graph=True)\n(x * x * x).backward(create_graph=True)\n"
            "slope = x.grad\nx.zero_grad()\nslope.backward()",
            "slope.data",
            "x.grad.data",
        )
        yield program_case(
            "no elements (empty)",
            f"x = Tensor(np.zeros((0, 3)), requires_grad=True)\n"
            f"b = Tensor({v}, requires_grad=True)\n(x * b).sum().backward()",
            "x.grad.data",
            "b.grad.data",
        )
