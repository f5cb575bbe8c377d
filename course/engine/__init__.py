"""A tensor with gradients in NumPy: what chapter 10 builds, as the course wrote it.

The class `Tensor` is made of parts. Each reaches the others through `self` alone, so that a
learner's part can stand among the course's (`assembly.py`). With all parts a learner's, this
text is the learner's own library: it needs nothing but NumPy.

The other files of the folder serve other chapters, too: `measuring.py` chapters 02 to 07
and 12, `counting.py` and `fusing.py` chapter 11.

>>> x = Tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
Tensor([2., 4.])
"""

import itertools

import numpy as np


class GradMode:
    """Whether operations are recorded: an attribute, so that all code sees it change."""

    def __init__(self) -> None:
        self.enabled = True


grad_mode = GradMode()
numbers = itertools.count()


# the parts


class Basics:
    """The numbers of a tensor, and what the engine notes about it."""

    def __init__(self, data, requires_grad=False):
        self.data = np.array(data, dtype=np.float64)
        self.requires_grad = requires_grad
        self.grad = None
        self.inputs = ()
        self.formula = None
        self.saved = []
        self.version = 0
        self.number = next(numbers)

    def zero_grad(self):
        self.grad = None


def result(self, data, inputs, formula, saved=()):
    """The tensor that an operation makes, and its history if one is needed."""
    new = type(self)(data)
    if grad_mode.enabled and any(tensor.requires_grad for tensor in inputs):
        new.requires_grad = True
        new.inputs = tuple(inputs)
        new.formula = formula
        new.saved = [(tensor, tensor.version) for tensor in saved]
    return new


class Operations:
    """What can be computed with tensors: + * @ relu() sum()."""

    def __add__(self, other):
        other = self.as_tensor(other)
        return self.result(
            self.data + other.data,
            (self, other),
            lambda g: (g, g),
        )

    def __mul__(self, other):
        other = self.as_tensor(other)
        return self.result(
            self.data * other.data,
            (self, other),
            lambda g: (g * other, g * self),
            saved=(self, other),
        )

    def __matmul__(self, other):
        other = self.as_tensor(other)
        return self.result(
            self.data @ other.data,
            (self, other),
            lambda g: (g @ other.T, self.T @ g),
            saved=(self, other),
        )

    def relu(self):
        positive = self.data > 0
        return self.result(
            np.maximum(self.data, 0.0),
            (self,),
            lambda g: (g * positive,),
        )

    def sum(self):
        ones = np.ones(self.data.shape)
        return self.result(
            self.data.sum(),
            (self,),
            lambda g: (g * ones,),
        )


def propagate(self, gradient):
    """Send a gradient from this tensor to the leaves, and add it to their `grad`."""
    arrived = {self: gradient}
    while arrived:
        tensor = max(arrived, key=lambda tensor: tensor.number)
        upstream = arrived.pop(tensor)
        if tensor.formula is None:
            have = tensor.grad
            tensor.grad = upstream if have is None else have + upstream
            continue
        tensor.check_saved()
        for source, part in zip(tensor.inputs, tensor.formula(upstream), strict=True):
            if source.requires_grad:
                part = part.unbroadcast(source.data.shape)
                if source in arrived:
                    part = arrived[source] + part
                arrived[source] = part


class Writing:
    """Writing into a tensor, and noticing it before a stale value is used."""

    def sub_(self, other):
        if grad_mode.enabled and (self.requires_grad or other.requires_grad):
            raise RuntimeError("sub_ is not recorded: use it inside `with no_grad():`")
        self.data -= other.data
        self.version += 1
        return self

    def check_saved(self):
        for tensor, version in self.saved:
            if tensor.version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been "
                    "modified by an inplace operation: it is at version "
                    f"{tensor.version}; expected version {version} instead"
                )


class no_grad:
    """A block in which nothing is recorded: `with no_grad():`."""

    def __enter__(self):
        self.before = grad_mode.enabled
        grad_mode.enabled = False

    def __exit__(self, *error):
        grad_mode.enabled = self.before


def sin(self):
    """The sine of every element; its slope is the cosine."""
    return self.result(
        np.sin(self.data),
        (self,),
        lambda g: (g * (self + np.pi / 2).sin(),),
        saved=(self,),
    )


# what the chapter gives


class TensorBase:
    """What every part may use: conversions, the transpose, sums over stretched dimensions."""

    __array_ufunc__ = None  # so that NumPy leaves `array * tensor` to `__rmul__`

    def as_tensor(self, other):
        if other is None:
            raise TypeError("None has no numbers; a `grad` is None until one was set")
        return other if isinstance(other, TensorBase) else type(self)(other)

    @property
    def shape(self):
        return self.data.shape

    @property
    def is_leaf(self):
        return self.formula is None

    @property
    def T(self):
        return self.result(self.data.T, (self,), lambda g: (g.T,))

    def unbroadcast(self, shape):
        missing = self.data.ndim - len(shape)
        stretched = [missing + dim for dim, size in enumerate(shape) if size == 1]
        dims = (*range(missing), *stretched)
        total = self.data.sum(axis=dims, keepdims=True).reshape(shape)
        ones = np.ones(self.data.shape)
        return self.result(total, (self,), lambda g: (g * ones,))

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -self.as_tensor(other)

    def backward(self, create_graph=False):
        if not self.requires_grad:
            raise RuntimeError(
                "element 0 of tensors does not require grad and does not have a grad_fn"
            )
        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        before, grad_mode.enabled = grad_mode.enabled, create_graph
        try:
            self.propagate(type(self)(np.ones(self.data.shape)))
        finally:
            grad_mode.enabled = before

    def item(self):
        return self.data.item()

    def __repr__(self):
        return f"Tensor({np.array2string(self.data, separator=', ', prefix='Tensor(')})"


class Tensor(Basics, Operations, Writing, TensorBase):
    """An array of numbers that remembers how it was made."""

    result = result
    propagate = propagate
    sin = sin
