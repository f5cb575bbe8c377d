"""What a tensor is made of: an array, a form, and, once it is shared, a storage.

A *form* is everything that two tensors may have in common apart from their values: device, dtype,
shape and strides. Forms are interned, so ``a._form is b._form`` answers four questions at once.
Two forms may be equal without being identical (the table of forms is emptied when it grows too
large); then only time is lost.

``_storage`` is None until somebody needs it: before that the tensor is alone on its memory, which
it fills without gaps, and its offset is 0.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorkit.devices import Device
from tensorkit.dtypes import DType, of_numpy
from tensorkit.layout import Ints, Layout, Size, contiguous_strides, is_contiguous
from tensorkit.storage import Storage

_MOST_FORMS = 10_000
_MOST_KEPT = 100  # parts, or plans of views, of one form
_forms: dict[tuple[Device, DType, Ints, Ints], "Form"] = {}
_contiguous_forms: dict[tuple[Device, Any, Ints], "Form"] = {}


class Form:
    """Device, dtype, shape and strides of a tensor."""

    __slots__ = (
        "device",
        "dtype",
        "is_contiguous",
        "is_whole",
        "parts",
        "rows",
        "shape",
        "strides",
        "views",
        "whole",
        "xp",
    )

    parts: "dict[tuple[int, int] | None, Form]"  # those of x[i] and x[a:b:step]: see part_form
    rows: dict[Any, tuple[Any, ...]]  # the plans of some x[i], and of x[a:b:step] by (a, b, step)
    views: dict[Any, tuple[Any, ...]]  # those of other views, by operation and arguments
    whole: Layout  # of a contiguous tensor of this shape
    is_whole: bool  # these are its strides
    xp: Any  # the array library of the device

    def __init__(self, device: Device, dtype: DType, shape: Ints, strides: Ints) -> None:
        self.device = device
        self.dtype = dtype
        self.shape = Size(shape)
        self.strides = strides
        self.is_contiguous = is_contiguous(shape, strides)
        self.parts = {}
        self.rows = {}
        self.views = {}
        self.whole = Layout(shape, contiguous_strides(shape), 0)
        self.is_whole = strides == self.whole.strides
        self.xp = device.backend.xp


def form_of(device: Device, dtype: DType, shape: Ints, strides: Ints) -> Form:
    """The form with these properties, made on first use."""
    key = (device, dtype, shape, strides)
    form = _forms.get(key)
    if form is None:
        if len(_forms) >= _MOST_FORMS:
            _forms.clear()
        form = _forms[key] = Form(device, dtype, shape, strides)
    return form


def contiguous_form(device: Device, dtype: Any, shape: Ints) -> Form:
    """The contiguous form of an array of this NumPy dtype and shape."""
    key = (device, dtype, shape)
    form = _contiguous_forms.get(key)
    if form is None:
        if len(_contiguous_forms) >= _MOST_FORMS:
            _contiguous_forms.clear()
        form = form_of(device, of_numpy(dtype), shape, contiguous_strides(shape))
        _contiguous_forms[key] = form
    return form


def part_form(form: Form, length_and_step: tuple[int, int] | None) -> Form:
    """The form of ``x[i]`` (None) or of ``x[a:b:step]``, remembered by the form of ``x``."""
    part = form.parts.get(length_and_step)
    if part is None:
        shape, strides = tuple(form.shape[1:]), form.strides[1:]
        if length_and_step is not None:
            length, step = length_and_step
            shape, strides = (length, *shape), (form.strides[0] * step, *strides)
        if len(form.parts) >= _MOST_KEPT:
            form.parts.clear()
        part = form.parts[length_and_step] = form_of(form.device, form.dtype, shape, strides)
    return part


class TensorBase:
    """The slots of a tensor; the public class is ``tensorkit.Tensor``.

    ``_node`` is None for a tensor that autograd need not look at, which is most of them; what else
    it may be is told in ``autograd.marks``. The slots below it stay empty until they are needed.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_edge",
        "_form",
        "_grad",
        "_hooks",
        "_node",
        "_offset",
        "_origin",
        "_seen",
        "_storage",
        "_viewed",
    )

    _array: np.ndarray[Any, Any]
    _form: Form
    _offset: int  # only meaningful once there is a storage
    _storage: Storage | None
    _node: Any
    _viewed: "Tensor"  # of a view: the tensor it was made from, itself no view
    _edge: Any  # of a view: the node it came from, when the storage had version _seen
    _seen: int
    _grad: "Tensor | None"
    _hooks: Any  # of a leaf: what is attached to it; see autograd.hooks
    _origin: Any  # where it comes from; see autograd.origins


if TYPE_CHECKING:  # what annotations mean: the public class, which imports all that is below it
    from tensorkit._tensor import Tensor as Tensor
else:
    Tensor = TensorBase
public: Any = TensorBase


def bind(cls: type) -> None:
    """Tell the lower layers which class their results have."""
    global public
    public = cls


keeper: Any = ()  # the kind of node that keeps the array of its result and wants its storage
watch: Any = None  # while a recording is on: told of every tensor that `new` makes


def new(array: Any, form: Form) -> Tensor:
    """A tensor that is alone on its memory."""
    result = object.__new__(public)
    result._array = array
    result._form = form
    result._storage = None
    result._node = None
    if watch is not None:
        watch.made(result)
    return result


def storage_of(x: TensorBase) -> Storage:
    """The storage of ``x``, made now if nobody needed it before."""
    if x._storage is None:
        form, node = x._form, x._node
        keeps_result = isinstance(node, keeper)
        storage = node.storage if keeps_result else None
        if storage is None:
            storage = Storage(x._array, form.device, form.dtype, form.strides)
            if keeps_result:
                node.storage = storage
        x._storage = storage
        x._offset = 0
    return x._storage


def layout_of(x: TensorBase) -> Layout:
    """Shape, strides and offset of ``x`` as plain numbers."""
    offset = 0 if x._storage is None else x._offset
    return Layout(tuple(x._form.shape), x._form.strides, offset)


def view_of(x: TensorBase, layout: Layout) -> Tensor:
    """A tensor that looks at the storage of ``x`` through ``layout``. Copies nothing."""
    storage = storage_of(x)
    return on_storage(storage, layout)


def on_storage(storage: Storage, layout: Layout) -> Tensor:
    """A tensor that looks at ``storage`` through ``layout``."""
    shape, strides, offset = layout
    array = storage.device.backend.view(storage.flat, shape, strides, offset)
    result = new(array, form_of(storage.device, storage.dtype, shape, strides))
    result._storage = storage
    result._offset = offset
    return result


class ViewPlan(NamedTuple):
    """How to look at tensors of a certain form; ``Form.views`` remembers it as a plain tuple.

    ``take(array)`` gives the array; without it, byte strides and the offset do. ``steps`` are the
    records that autograd makes: rule, form of the result, what the formula needs.
    """

    form: Form
    offset: int  # in elements, from where the tensor begins
    take: Any
    byte_strides: Ints
    steps: tuple[tuple[Any, Form, dict[str, Any]], ...]


def remember_view(form: Form, key: Any, plan: Any) -> None:
    """Keep a plan with the form it is for."""
    if len(form.views) >= _MOST_KEPT:
        form.views.clear()
    form.views[key] = tuple(plan) if isinstance(plan, ViewPlan) else plan  # unpacked faster


def forget_views() -> None:
    """Find out anew what views look like."""
    for form in _forms.values():
        form.rows.clear()
        form.views.clear()
        form.parts.clear()


def plan_view(x: TensorBase, target: Layout, steps: tuple[Any, ...], take: Any = None) -> ViewPlan:
    """The plan of a view of ``x``, whose layout is ``target`` where that of ``x`` has offset 0.

    ``take(array)`` is used where it gives what PyTorch would see, not a copy.
    """
    form, array = x._form, x._array
    itemsize = form.dtype.itemsize
    byte_strides = tuple(stride * itemsize for stride in target.strides)
    if take is not None:
        try:
            found = take(array)
        except (TypeError, ValueError, IndexError):
            take = None
        else:
            same = found.shape == target.shape and all(
                own == wanted
                for own, wanted, size in zip(found.strides, byte_strides, found.shape, strict=True)
                if size > 1
            )
            if not (same and array.size and form.xp.may_share_memory(found, array)):
                take = None
    view_form = form_of(form.device, form.dtype, target.shape, target.strides)
    return ViewPlan(view_form, target.offset, take, byte_strides, steps)


def arranged(array: Any, device: Device, strides: Ints) -> Any:
    """``array`` if it lies in memory as ``strides`` say, else a copy that does."""
    itemsize = array.itemsize
    fits = all(
        own == stride * itemsize
        for own, stride, size in zip(array.strides, strides, array.shape, strict=True)
        if size > 1
    )
    if fits or not array.size:
        return array
    laid_out = device.backend.allocate(array.dtype, array.shape, strides)
    laid_out[...] = array
    return laid_out


def place(array: Any, device: Device, dtype: DType, strides: Ints) -> Tensor:
    """A tensor on ``array``, which must be fresh, or on a copy, laid out by ``strides``."""
    form = form_of(device, dtype, tuple(array.shape), strides)
    return new(arranged(array, device, strides), form)
