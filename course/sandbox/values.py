"""Values as they cross the wire: plain data, rebuilt on the other side.

Numbers, texts and containers are JSON. An array or a tensor is a block of memory and a description
of the view on it. Arrays that share memory share a block, and share memory again when they are
rebuilt. Any other object stays where it is and crosses as a *handle*: its number, its kind in
words, its text. Lists, dictionaries, arrays and tensors are numbered as they cross, so that what
comes back is the same object if it was the same on the other side.
"""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, EllipsisType, FunctionType, NoneType
from typing import Any

import numpy as np

import tensorkit as tk
from course.notebook.plain import MOST_BITS, MOST_ENTRIES, named, plain, repr_of
from course.sandbox.wire import MOST_BYTES, Message, WireError

DEEPEST = 12

# values, outgoing

_SCALARS = (bool, float, str, NoneType)
_LIBRARIES = {"builtins": builtins, "math": math, "numpy": np, "tensorkit": tk}


class Encoder:
    """Makes JSON of values, and collects the memory of their arrays.

    keep: stores an object that stays here and gives its number. objects: those that crossed before,
    in their order. is_checker: whether this is the checker's side. From there functions of the
    libraries cross by their names; from the learner's side results come with a handle of their
    history.
    """

    def __init__(
        self, keep: Callable[[Any], int], objects: Iterable[Any] = (), *, is_checker: bool = False
    ) -> None:
        self.keep = keep
        self.is_checker = is_checker
        self.names = (type, FunctionType, BuiltinFunctionType) if is_checker else (type,)
        self.memory: list[np.ndarray] = []
        """The blocks that came from the other side, in which an array may lie."""
        self.objects = list(objects)
        self._numbers = {id(known): n for n, known in enumerate(self.objects)}
        self.moved: list[tuple[tk.Tensor, tk.Tensor]] = []
        """Pairs: a copy on the CPU that crosses, and the tensor of a device that was copied."""
        self.owners: list[np.ndarray] = []
        """The arrays whose memory the blocks are."""
        self._owner_at: dict[tuple[int, int], int] = {}

    @property
    def blocks(self) -> list[Any]:
        return [bytes_of(owner).data if owner.size else b"" for owner in self.owners]

    def encode(self, value: Any, depth: int = DEEPEST) -> Any:
        """The value as JSON. What learners' classes define is not called, apart from `repr`."""
        kind = type(value)
        if kind in _SCALARS or (kind is int and value.bit_length() <= MOST_BITS):
            return value
        if kind is int:
            return _described(value)
        # not for a container in another: nested references could stand for more than any memory
        if id(value) in self._numbers and (depth == DEEPEST or kind not in (list, dict)):
            return {"k": "same", "i": self._numbers[id(value)]}
        if kind is np.ndarray:
            return self._number(value) | self._array(value)
        if kind is tk.Tensor:
            return self._number(value) | self._tensor(value)
        if issubclass(kind, np.generic) and kind.__module__ == "numpy":
            return self._array(np.asarray(value)) | {"k": "scalar"}
        if kind in _SIMPLE:
            return {"k": kind.__name__, "v": _SIMPLE[kind](value)}
        return self._of_a_subclass(value, kind, depth)

    def _number(self, value: Any) -> Message:
        """The number of an object that crosses for the first time; only the checker gives them."""
        if not self.is_checker:
            return {}
        self._numbers[id(value)] = number = len(self.objects)
        self.objects.append(value)
        return {"i": number}

    def _of_a_subclass(self, value: Any, kind: type, depth: int) -> Any:
        for base in (list, tuple, dict):
            if issubclass(kind, base):
                return self._container(base, value, depth)
        if issubclass(kind, int | float):  # an IntEnum, say
            return self.encode(plain(value))
        if self.is_checker and hasattr(kind, "number_there"):
            return {"k": "handle", "h": kind.number_there(value), "yours": True}
        named = _library_name(value) if isinstance(value, self.names) else None
        return {"k": "named", "v": named} if named else self._handle(value, kind)

    def _container(self, base: Any, value: Any, depth: int) -> Any:
        if base.__len__(value) > MOST_ENTRIES or depth == 0:
            return _described(value)
        if base is tuple:
            return {"t": [self.encode(item, depth - 1) for item in list(tuple.__iter__(value))]}
        return self._number(value) | self.contents(base, value, depth)

    def contents(self, base: Any, value: Any, depth: int = DEEPEST) -> Message:
        """What a list or a dictionary holds now."""
        if base is dict:
            items = list(dict.items(value))
            return {"d": [[self._key(key), self.encode(item, depth - 1)] for key, item in items]}
        return {"l": [self.encode(item, depth - 1) for item in list(list.__iter__(value))]}

    def _key(self, key: Any) -> Any:
        return key if type(key) in (*_SCALARS, int) else _without_address(repr_of(key))

    def _handle(self, value: Any, kind: type) -> Any:
        return {
            "k": "handle",
            "h": self.keep(value),
            "kind": named(kind)[:200],
            "callable": callable(value),
            "text": _without_address(repr_of(value)),
        }

    def _array(self, array: np.ndarray) -> Any:
        if array.dtype.hasobject or array.dtype.fields is not None:
            return {"k": "opaque", "kind": "a NumPy array of objects", "text": "<array of objects>"}
        owner = self._owner_of(array)
        if owner is None:
            owner = array = np.array(array, order="C")
        return {
            "k": "array",
            "b": self.share(owner),
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "strides": list(array.strides),
            "offset": address(array) - address(owner) if array.size else 0,
        }

    def _owner_of(self, array: np.ndarray) -> np.ndarray | None:
        """One piece of memory in which an array lies; None if there is none that can be sent."""
        first, last = np.lib.array_utils.byte_bounds(array)
        for owner in (*self.memory, *self.owners):
            if address(owner) <= first and last <= address(owner) + owner.nbytes:
                return owner
        owner = array
        while type(owner.base) is np.ndarray and owner.base.nbytes <= MOST_BYTES // 4:
            owner = owner.base
        # axes in the order of memory, so that a transposed owner is still one piece
        owner = owner.transpose(
            np.argsort([-abs(stride) for stride in owner.strides], kind="stable")
        )
        return owner if owner.flags.c_contiguous and not owner.dtype.hasobject else None

    def share(self, owner: np.ndarray) -> int:
        """The number of the block that this contiguous memory is sent as."""
        place = address(owner), owner.nbytes
        if place not in self._owner_at:
            self._owner_at[place] = len(self.owners)
            self.owners.append(owner)
        return self._owner_at[place]

    def _tensor(self, tensor: tk.Tensor) -> Any:
        on_cpu = tensor.detach().cpu()
        flat = on_cpu.untyped_storage().flat
        form = self._array(flat) | {
            "k": "tensor",
            "shape": list(on_cpu.shape),
            "stride": list(on_cpu.stride()),
        }
        form["strides"] = [step * flat.itemsize for step in form["stride"]]
        form["offset"] += on_cpu.storage_offset() * flat.itemsize if on_cpu.numel() else 0
        if tensor.device.type != "cpu":
            form["device"] = str(tensor.device)
            self.moved.append((on_cpu, tensor))
        if tensor.requires_grad:
            form["requires_grad"] = True
            grad = tensor.grad if tensor.is_leaf else None
            if grad is not None:
                form["grad"] = self.encode(grad)
            if not (tensor.is_leaf or self.is_checker):
                form["history"] = self.keep(tensor)
        return form


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array, byte by byte."""
    return array.reshape(-1).view(np.uint8)


def address(array: np.ndarray) -> int:
    """The address of its first element."""
    return int(array.__array_interface__["data"][0])


_SIMPLE: Mapping[type, Callable[[Any], Any]] = {
    bytes: lambda content: (
        content.hex() if len(content) <= MOST_ENTRIES else content[:MOST_ENTRIES].hex()
    ),
    complex: lambda number: [number.real, number.imag],
    range: lambda value: [value.start, value.stop, value.step],
    EllipsisType: lambda value: None,
    tk.Size: lambda sizes: [int(size) for size in sizes],
    tk.dtype: lambda dtype: str(dtype).removeprefix("torch."),
    tk.device: str,
}


def _library_name(value: Any) -> str | None:
    """The name by which both sides find a type or function of the libraries: `numpy.float32`."""
    name = getattr(value, "__name__", None)
    for module, library in _LIBRARIES.items():
        if type(name) is str and vars(library).get(name) is value:
            return f"{module}.{name}"
    return None


def _described(value: Any) -> Message:
    """What is too large to cross, as words."""
    opaque = plain(value, 0)
    return {"k": "opaque", "kind": opaque.kind, "text": opaque.text}


def _without_address(text: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


# values, incoming

_DTYPE = re.compile(r"[<>|=][biufcSUMm]\d{1,4}(\[[a-z]{1,2}\])?")


class Decoder:
    """Makes values of JSON and blocks; whatever is damaged raises WireError.

    blocks: memory, byte by byte. handle: makes what stands for an object of the other side.
    objects: those that crossed before, in their order. trusts: whether the other side may name any
    function of the libraries; the checker's may.
    """

    def __init__(
        self,
        blocks: list[np.ndarray],
        handle: Callable[[Message], Any],
        objects: Iterable[Any] = (),
        *,
        trusts: bool = False,
    ) -> None:
        self.blocks = blocks
        self.objects = list(objects)
        self.handle = handle
        self.trusts = trusts
        self._flat: dict[tuple[int, str], tk.Tensor] = {}
        self.moved: list[tuple[tk.Tensor, tk.Tensor]] = []
        """Tensors in the blocks, and the copies of them on a device."""
        self.shown = 0
        """Bytes of all arrays, if each were written out."""

    def decode(self, coded: Any) -> Any:
        """The value that `Encoder.encode` described."""
        try:
            return self._decode(coded, DEEPEST + 1)
        except WireError:
            raise
        except Exception as problem:
            raise WireError(f"A value is damaged ({type(problem).__name__}).") from problem

    def _decode(self, coded: Any, depth: int) -> Any:
        kind = type(coded)
        if kind in _SCALARS or (kind is int and coded.bit_length() <= MOST_BITS):
            return coded
        if kind is not dict or depth == 0:
            raise WireError("A value is damaged.")
        if "t" in coded:
            return tuple(self._decode(item, depth - 1) for item in coded["t"])
        if "l" in coded or "d" in coded:
            made: Any = [] if "l" in coded else {}
            self._numbered(coded, made)
            self.fill(made, coded, depth)
            return made
        if coded["k"] == "same":
            return self._object(_whole(coded["i"]), depth)
        if coded["k"] in ("array", "scalar", "tensor"):
            return self._array(coded, depth)
        if coded["k"] in ("handle", "opaque"):
            return self.handle(coded)
        if coded["k"] == "named":
            return _named(coded["v"], trusts=self.trusts)
        return _BUILD[coded["k"]](coded["v"])

    def _object(self, number: int, depth: int) -> Any:
        known = self.objects[number]
        if type(known) in (list, dict) and depth <= DEEPEST:
            raise WireError("A container stands in another by its number.")
        return known

    def _numbered(self, coded: Message, made: Any) -> int | None:
        if "i" not in coded:
            return None
        if coded["i"] != len(self.objects) or not self.trusts:
            raise WireError("An object has a wrong number.")
        self.objects.append(made)
        return len(self.objects) - 1

    def fill(self, made: Any, coded: Message, depth: int = DEEPEST) -> None:
        """Put into a list or a dictionary what it should hold."""
        if type(made) is list:
            made[:] = [self._decode(item, depth - 1) for item in coded["l"]]
        else:
            entries = {_sound_key(key): self._decode(item, depth - 1) for key, item in coded["d"]}
            made.clear()
            made.update(entries)

    def _array(self, coded: Message, depth: int) -> Any:
        if _DTYPE.fullmatch(coded["dtype"]) is None or len(coded["shape"]) > 32:
            raise WireError("An array is damaged.")
        block = self.blocks[_whole(coded["b"])]
        shape = tuple(_whole(size) for size in coded["shape"])
        strides = tuple(_whole(stride, negative=True) for stride in coded["strides"])
        dtype = np.dtype(coded["dtype"])
        # an expanded array takes no memory until it is used, and neither do a thousand
        self.shown += math.prod(shape) * max(dtype.itemsize, 1)
        if self.shown > 2 * MOST_BYTES:
            raise WireError("Arrays are too large.")
        offset = _whole(coded["offset"])
        # NumPy checks that all of it lies within the block
        array = np.ndarray(shape, dtype, block, offset, strides)
        if coded["k"] == "scalar":
            return array[()]
        number = self._numbered(coded, array)
        if coded["k"] == "array":
            return array
        tensor = self._tensor(coded, array, depth)
        if number is not None:
            self.objects[number] = tensor
        return tensor

    def _tensor(self, coded: Message, array: np.ndarray, depth: int) -> tk.Tensor:
        size = array.itemsize
        key = (coded["b"], coded["dtype"])
        if key not in self._flat:
            block = self.blocks[coded["b"]]
            flat = np.ndarray((len(block) // size,), array.dtype, block)
            self._flat[key] = tk.from_numpy(flat)
        if coded["offset"] % size:
            raise WireError("A tensor is damaged.")
        stride = [_whole(step) for step in coded["stride"]]
        tensor = self._flat[key].as_strided(array.shape, stride, coded["offset"] // size)
        if "device" in coded and tk.cuda.is_available():
            on_device = tensor.to(tk.device(coded["device"]))
            self.moved.append((tensor, on_device))
            tensor = on_device
        if coded.get("requires_grad") is True:
            tensor = tensor.detach().requires_grad_(True)
            if "grad" in coded:
                tensor.grad = self._decode(coded["grad"], depth - 1)
            if "history" in coded:
                tensor = self.handle({"k": "history", "h": coded["history"], "tensor": tensor})
        return tensor


def update_copy(into: tk.Tensor, tensor: tk.Tensor) -> None:
    """Write the numbers of a tensor into its copy on another device, if they have changed."""
    now = tensor.detach().cpu()
    if not np.array_equal(now.numpy(), into.detach().cpu().numpy()):
        into.detach().copy_(now)


def _whole(value: Any, *, negative: bool = False) -> int:
    if type(value) is not int or abs(value) > 1 << 40 or (value < 0 and not negative):
        raise WireError("A number is damaged.")
    return value


def _sound_key(key: Any) -> Any:
    if type(key) in (*_SCALARS, int):
        return key
    raise WireError("A key is damaged.")


def _named(name: Any, *, trusts: bool) -> Any:
    """The type of a library with this name; if the other side is trusted, a function, too."""
    module, _, attribute = name.partition(".")
    value = vars(_LIBRARIES[module])[attribute]
    if trusts or (isinstance(value, type) and issubclass(value, _TYPES)):
        return value
    raise WireError("A name is not known.")


_PYTHONS = (bool, int, float, complex, str, bytes, list, tuple, dict, set, BaseException, NoneType)
_TYPES = (*_PYTHONS, np.generic, np.ndarray, tk.Tensor, tk.Size, tk.dtype, tk.device)


_DTYPES: Mapping[str, Any] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(tk).values()
    if type(dtype) is tk.dtype
}
_BUILD: Mapping[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "complex": lambda parts: complex(float(parts[0]), float(parts[1])),
    "range": lambda limits: range(*(_whole(size, negative=True) for size in limits)),
    "ellipsis": lambda value: ...,
    "Size": lambda sizes: tk.Size(_whole(size) for size in sizes),
    "DType": lambda name: _DTYPES[name],
    "Device": tk.device,
}
