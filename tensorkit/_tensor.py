"""The class ``Tensor``: what a tensor is and where it lies, gradients, Python's protocols.

What it computes, its methods and operators, is in ``tensorkit.ops.methods``.
"""

from builtins import bool as _bool  # the class has methods of these names
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from tensorkit import absent, base, direct_path, dtypes, errors, layout, pickling, printing
from tensorkit.autograd import engine, hooks, versions
from tensorkit.autograd._recording import origin_of
from tensorkit.autograd.node import INFERENCE, Node, edge_of
from tensorkit.autograd.versions import version_of
from tensorkit.base import TensorBase
from tensorkit.devices import CPU, as_device, cuda_device
from tensorkit.direct_path import without_warnings
from tensorkit.dispatch_mode import through_modes
from tensorkit.dtypes import DType
from tensorkit.ops import arguments, copying, joining, reductions, views
from tensorkit.ops.methods import Methods
from tensorkit.storage import Storage
from tensorkit.thread_state import state


def _as(dtype: DType) -> Callable[["Tensor"], "Tensor"]:
    """The method that converts to ``dtype``."""

    def convert(self: "Tensor") -> "Tensor":
        return self.to(dtype)

    convert.__doc__ = f"As {dtype}; see ``to``."
    return convert


_PERMUTE, _EXCHANGED = views.permute.definition.rules[None], ((1, 0),)


class Tensor(Methods):
    """An n-dimensional array of numbers of one dtype, on one device.

    Make one with ``tk.tensor``, ``tk.zeros``, ``tk.arange`` and the like.

    >>> tk.tensor([[1., 2.], [3., 4.]]) * 10
    tensor([[10., 20.],
            [30., 40.]])
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse: PyTorch's old constructor means data or sizes, depending on its argument."""
        raise TypeError(
            errors.message(
                "Tensor() is not a way to make a tensor in tensorkit",
                repair="tk.tensor(data), tk.empty(sizes) or tk.zeros(sizes)",
            )
        )

    # What it is

    def size(self, dim: int | None = None) -> Any:
        """Sizes of all dimensions, or the size of one.

        >>> tk.zeros(2, 3).size(), tk.zeros(2, 3).size(-1)
        (torch.Size([2, 3]), 3)
        """
        if dim is None:
            return self.shape
        return self.shape[self._dim("size", dim)]

    def stride(self, dim: int | None = None) -> Any:
        """How many elements apart neighbours along each dimension lie in memory.

        >>> tk.zeros(2, 3).stride(), tk.zeros(2, 3).stride(0)
        ((3, 1), 3)
        """
        if dim is None:
            return self._strides
        return self._strides[self._dim("stride", dim)]

    def _dim(self, function: str, dim: Any) -> int:
        if isinstance(dim, (bool, float)) or not hasattr(dim, "__index__"):
            raise errors.must_be(function, "dim", 1, "int", dim)
        return layout.wrap_dim(dim.__index__(), len(self.shape))

    @property
    def ndim(self) -> int:
        """Number of dimensions.

        >>> tk.zeros(2, 3).ndim
        2
        """
        return len(self.shape)

    def dim(self) -> int:
        """Number of dimensions.

        >>> tk.tensor(5.).dim()
        0
        """
        return len(self.shape)

    def numel(self) -> int:
        """Number of elements.

        >>> tk.zeros(2, 3).numel()
        6
        """
        return self.shape.numel()

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a CUDA device."""
        return self.device.type == "cuda"

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Size of one element in bytes.

        >>> tk.zeros(2).element_size()
        4
        """
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes.

        >>> tk.zeros(2, 3).nbytes
        24
        """
        return self.numel() * self.itemsize

    def is_floating_point(self) -> bool:
        """Whether the elements are floating-point numbers.

        >>> tk.tensor([1, 2]).is_floating_point()
        False
        """
        return self.dtype.is_floating_point

    # Where it lies

    @absent.explains_options
    def is_contiguous(self) -> bool:
        """Whether the elements lie in memory one after the other in row-major order.

        >>> a = tk.zeros(2, 3)
        >>> a.is_contiguous(), a[:, 0].is_contiguous()
        (True, False)
        """
        return layout.is_contiguous(self._array.shape, self._strides)

    contiguous = copying.contiguous

    def storage_offset(self) -> int:
        """Position of the first element in the storage, counted in elements.

        >>> tk.arange(6)[2:].storage_offset()
        2
        """
        return base.offset_of(self)

    def data_ptr(self) -> int:
        """Address of the first element in memory; 0 if there is none."""
        return self.device.backend.address(self._array)

    def untyped_storage(self) -> Storage:
        """The flat memory this tensor looks at, shared by all its views.

        >>> tk.zeros(2, 3)[0].untyped_storage().nbytes()
        24
        """
        return base.storage_of(self)

    @property
    def T(self) -> "Tensor":
        """View with all dimensions in reverse order.

        >>> tk.arange(6).view(2, 3).T.shape
        torch.Size([3, 2])
        """
        array, n_dims = self._array, self._array.ndim
        if n_dims == 2 and direct_path.is_open:
            return versions.make_view(self, array.T, _PERMUTE, _EXCHANGED)
        return views.permute(self, tuple(range(n_dims - 1, -1, -1)))

    @property
    def mT(self) -> "Tensor":
        """View with the last two dimensions exchanged: the transpose of each matrix.

        >>> tk.zeros(5, 2, 3).mT.shape
        torch.Size([5, 3, 2])
        """
        if len(self.shape) < 2:
            raise errors.ShapeError(
                "tensor.mT is only supported on matrices or batches of matrices. "
                f"Got {len(self.shape)}-D tensor.",
            )
        return views.transpose(self, -2, -1)

    def view_as(self, other: "Tensor") -> "Tensor":
        """View in the shape of ``other``."""
        arguments.need_tensor("view_as", other, "other", 1)
        return views.view(self, tuple(other.shape))

    # Gradients

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded; may be set for leaves.

        >>> x = tk.ones(2, requires_grad=True)
        >>> x.requires_grad, (x * 2).requires_grad, tk.ones(2).requires_grad
        (True, True, False)
        """
        return self._node is not None and edge_of(self) is not None

    @requires_grad.setter
    def requires_grad(self, value: Any) -> None:
        hooks.set_requires_grad(self, value, by_assignment=True)

    def requires_grad_(self, requires_grad: Any = True) -> "Tensor":
        """Record operations on this tensor from now on, or no longer; only for leaves.

        >>> tk.ones(2).requires_grad_()
        tensor([1., 1.], requires_grad=True)
        """
        hooks.set_requires_grad(self, requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor.

        >>> x = tk.ones(2, requires_grad=True)
        >>> x.is_leaf, (x * 2).is_leaf
        (True, False)
        """
        return self._node is None or not isinstance(edge_of(self), Node)

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that made this tensor, if it was recorded.

        >>> (tk.ones(2, requires_grad=True) * 2).grad_fn
        <MulBackward0>
        """
        edge = None if self._node is None else edge_of(self)
        return edge if isinstance(edge, Node) else None

    grad = property(hooks.get_grad, hooks.set_grad, lambda self: hooks.set_grad(self, None))

    def backward(
        self,
        gradient: "Tensor | None" = None,
        retain_graph: Any = None,
        create_graph: Any = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradient of this tensor to the ``.grad`` of every leaf it depends on.

        A tensor of one element starts with the gradient 1; others need ``gradient``. The graph is
        freed unless ``retain_graph``; ``create_graph`` records the backward itself.

        >>> x = tk.tensor(3., requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad
        tensor(6.)
        """
        engine.backward(self, gradient, retain_graph, create_graph, inputs)

    retain_grad = hooks.retain_grad

    retains_grad = property(hooks.retains_grad)
    register_hook = hooks.register_hook

    def detach(self) -> "Tensor":
        """The same memory without the history: a tensor that does not require grad.

        >>> tk.ones(2, requires_grad=True).detach()
        tensor([1., 1.])
        """
        if not direct_path.is_open and state.dispatch_modes:
            return through_modes(Tensor.detach, (self,), {}, records=True)
        result = base.new(self._array)
        result._storage = self._storage or base.storage_of(self)
        result._offset = self._offset
        if self._node is INFERENCE:
            result._node = INFERENCE
        return result

    origin = property(origin_of)

    data = property(hooks.get_data, hooks.set_data)

    @property
    def _version(self) -> int:
        """How often the memory of this tensor was written to."""
        if self._node is INFERENCE:
            raise errors.AutogradError("Inference tensors do not track version counter.")
        return version_of(self)

    def is_inference(self) -> bool:
        """Whether this tensor was made in inference mode.

        >>> tk.ones(2).is_inference()
        False
        """
        return self._node is INFERENCE

    _is_view = versions.is_view

    @property
    def _base(self) -> "Tensor | None":
        """Of a view: the tensor, itself no view, that it was made from."""
        return self._view_base if versions.is_view(self) else None

    # Out of the tensor

    def item(self) -> Any:
        """The only element, as a Python number.

        >>> tk.tensor([3.5]).item()
        3.5
        """
        if self._array.size != 1:
            raise errors.ShapeError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar",
                f"Its shape is {tuple(self.shape)}.",
                repair="x.tolist()",
            )
        return self._value("item")

    def _value(self, reason: str) -> Any:
        """The only element; ``reason`` is noted where the host must wait for it."""
        if self.device is CPU:
            return self._array.item()
        return self.device.backend.item(self._array, reason)

    def tolist(self) -> Any:
        """All elements as nested lists of Python numbers.

        >>> tk.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return self.device.backend.to_host(self._array, "tolist").tolist()

    def numpy(self, *, force: Any = False) -> "np.ndarray[Any, Any]":
        """A NumPy array on the same memory: writes to one are seen in the other.

        Raises for a tensor that requires grad, as its history would not see the writes, unless
        recording is off; and for one that is on another device. ``force=True`` detaches and copies
        to the CPU where it must.

        >>> a = tk.zeros(2)
        >>> a.numpy()[0] = 5.
        >>> a
        tensor([5., 0.])
        """
        if not force and self.device is not CPU:
            raise TypeError(
                errors.message(
                    f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to "
                    "copy the tensor to host memory first.",
                    repair="x.cpu().numpy()",
                )
            )
        if not force and state.grad and self._node is not None and edge_of(self) is not None:
            raise errors.AutogradError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead.",
                "Writes to the array would not be recorded.",
                repair="x.detach().numpy()",
            )
        return self.device.backend.to_host(self._array, "numpy").view()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "np.ndarray[Any, Any]":
        """What ``numpy.asarray(tensor)`` uses; shares memory unless it must convert or copy."""
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return without_warnings(array.astype, dtype)
        return array.copy() if copy else array

    # Copies and conversions

    clone = copying.clone

    @absent.explains_options
    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: Any = False,
        copy: Any = False,
    ) -> "Tensor":
        """This tensor with another dtype or on another device; itself if nothing changes.

        The first arguments may be a dtype, a device, a device and a dtype, or another tensor
        whose dtype and device are taken.

        >>> tk.tensor([1.7, -1.7]).to(tk.int64)
        tensor([ 1, -1])
        """
        dtype, device = arguments.conversion(args, dtype, device)
        where = None if device is None else as_device(device)
        return copying.to(self, dtype, where, copy=copy)

    def cpu(self) -> "Tensor":
        """This tensor on the CPU; itself if it is there already."""
        return self.to(CPU)

    def cuda(self, device: Any = None, non_blocking: Any = False) -> "Tensor":
        """This tensor on a CUDA device; itself if it is there already."""
        return self.to(cuda_device(device))

    float = _as(dtypes.float32)
    double = _as(dtypes.float64)
    half = _as(dtypes.float16)
    long = _as(dtypes.int64)
    int = _as(dtypes.int32)
    short = _as(dtypes.int16)
    char = _as(dtypes.int8)
    byte = _as(dtypes.uint8)
    bool = _as(dtypes.bool_)

    # Python's protocols

    def __len__(self) -> _int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator["Tensor"]:
        if not self.shape:
            raise TypeError(errors.message("iteration over a 0-d tensor", repair="x.item()"))
        return iter(views.unbind(self))

    def __reversed__(self) -> "Tensor":
        return joining.flip(self, (0,)) if self.shape else self

    def __contains__(self, element: Any) -> _bool:
        if not isinstance(element, TensorBase) and arguments.as_number(element) is None:
            raise errors.DTypeError(
                "Tensor.__contains__ only supports Tensor or scalar, "
                f"but you passed in a {type(element)}."
            )
        # The element comes first, as in PyTorch: so the words of an error name the sizes.
        same = element == self if isinstance(element, TensorBase) else self == element
        return bool(reductions.any(same)._value("in"))

    def __bool__(self) -> Any:
        if self._array.size != 1:
            how_many = "more than one value" if self._array.size else "no values"
            raise errors.ShapeError(
                f"Boolean value of Tensor with {how_many} is ambiguous",
                f"Its shape is {tuple(self.shape)}; if, while, and, or, not need one answer.",
                repair="tk.equal(a, b) compares whole tensors; & and | work element by element",
            )
        return self._value("if") != 0

    def _only(self, reason: str) -> Any:
        if self._array.size != 1:
            raise ValueError(
                errors.message(
                    "only one element tensors can be converted to Python scalars",
                    f"This one has shape {tuple(self.shape)}.",
                    repair="x.tolist()",
                )
            )
        return self._value(reason)

    def __int__(self) -> _int:
        return _int(self._only("int"))

    def __float__(self) -> _float:
        return _float(self._only("float"))

    def __index__(self) -> _int:
        if self._array.size != 1 or self.dtype.is_floating_point:
            raise TypeError(
                errors.message(
                    "only integer tensors of a single element can be converted to an index",
                    f"This one has shape {tuple(self.shape)} and dtype {self.dtype}.",
                )
            )
        return _int(self._only("index"))

    def __repr__(self) -> str:
        return printing.text(self)

    def __format__(self, format_spec: str) -> str:
        if not self.shape:
            return format(self.item(), format_spec)
        if format_spec:
            raise TypeError(
                errors.message(
                    "unsupported format string passed to Tensor.__format__",
                    "A format such as .4f needs a single number, a 0-d tensor.",
                    repair='f"{x[0]:.4f}", or tk.set_printoptions(precision=...)',
                )
            )
        return str(self)

    def __dir__(self) -> list[str]:
        own = vars(Tensor)
        return [x for x in object.__dir__(self) if not isinstance(own.get(x), absent.Attribute)]

    __hash__ = object.__hash__

    __deepcopy__ = pickling.deepcopy
    __reduce__ = pickling.reduce


_own = {*dir(Tensor)}
_public = {*absent.OF_TENSORS, *[name for name in _own if name[0] != "_"]}
for _name in (absent.OF_TENSORS | {f"{name}_" for name in _public if name[-1] != "_"}) - _own:
    setattr(Tensor, _name, absent.Attribute(_name))
base.bind(Tensor)
