"""``save`` and ``load``: tensors and nested containers of them in one safetensors file.

The arrays are the file's tensors; the structure around them, with each tensor's shape, strides and
device, is JSON in its metadata. Memory that tensors share is written once and shared again. There
is no pickle: a file can hold data, never code.

In the JSON a list is {"list": [...]}, likewise "tuple"; a dict is {"dict": [[key, value], ...]}
(keys may be numbers), a tensor {"tensor": name of its array, ...}; all else stands for itself.
"""

import json
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from tensorkit import base
from tensorkit._tensor import Tensor
from tensorkit.autograd.grad_mode import no_grad
from tensorkit.creation import from_numpy
from tensorkit.devices import Device, as_device, find_backend
from tensorkit.errors import TensorkitError, importing, message
from tensorkit.nn.module import Parameter

_FORMAT = "tensorkit"
_PLAIN = (bool, int, float, str, type(None))
_CONTAINERS = {"list": list, "tuple": tuple, "dict": dict, "OrderedDict": OrderedDict}


class MissingDeviceError(TensorkitError, RuntimeError):
    """A file whose tensors were on a device that this process lacks."""


class FileFormatError(TensorkitError, RuntimeError):
    """A file that ``save`` did not write, or of which a part is missing."""


# Writing


def save(obj: Any, f: Any) -> None:
    """Write tensors, numbers, strings, None, and lists, tuples and dicts of them to ``f``.

    ``f`` is a path or a file opened for writing bytes. A path is written whole or not at all. A
    tensor's history is not saved. Raises TypeError for everything else.

    >>> import io
    >>> file = io.BytesIO()
    >>> tk.save({"weight": tk.ones(2), "epoch": 3}, file)
    >>> tk.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    with importing("tk.save"):
        from safetensors.numpy import save as to_bytes

    arrays: dict[str, Any] = {}
    structure = _described(obj, "", arrays, {})
    header = {_FORMAT: json.dumps({"version": 1, "structure": structure})}
    content = to_bytes(arrays, metadata=header)
    if hasattr(f, "write"):
        f.write(content)
        return
    path = Path(f)
    unfinished = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _described(value: Any, path: str, arrays: dict[str, Any], names: dict[Any, str]) -> Any:
    """``value`` as JSON; the memory of its tensors goes to ``arrays``, ``names`` by storage."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Tensor):
        return _described_tensor(value, path.strip("."), arrays, names)
    if kind in (list, tuple):
        parts = enumerate(value)
        return {kind.__name__: [_described(x, f"{path}.{at}", arrays, names) for at, x in parts]}
    if kind in (dict, OrderedDict) and {*map(type, value)} <= {*_PLAIN}:
        pairs = [[key, _described(x, f"{path}.{key}", arrays, names)] for key, x in value.items()]
        return {kind.__name__: pairs}
    keys = [type(key) for key in value if type(key) not in _PLAIN] if kind is dict else []
    raise TypeError(
        message(
            "tensorkit saves tensors, numbers, strings, None, lists, tuples and dicts whose keys "
            f"are numbers or strings, not {[*keys, kind][0].__name__}",
            f"{path.strip('.') or 'the object'} {'has such a key' if keys else 'is one'}.",
            repair="tk.save(model.state_dict(), path)" if hasattr(value, "state_dict") else None,
        )
    )


def _described_tensor(x: Tensor, path: str, arrays: dict[str, Any], names: dict[Any, str]) -> Any:
    storage = base.storage_of(x)
    if storage not in names:
        name = path or "tensor"
        while name in arrays:
            name += "'"
        # alone and in order, other programs shall find it in its shape; else the memory as it is
        whole = x.is_contiguous() and x.numel() == storage.flat.size
        array = x.device.backend.to_host(x._array if whole else storage.flat, "save")
        arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
        names[storage] = name
    return {
        "tensor": names[storage],
        "shape": tuple(x.shape),
        "strides": x.stride(),
        "offset": x.storage_offset(),
        "device": str(x.device),
        "requires_grad": bool(x.requires_grad and x.is_leaf),
        "parameter": isinstance(x, Parameter),
    }


# Reading


def load(f: Any, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """What ``save`` wrote to ``f``: a path, or a file opened for reading bytes.

    Tensors return to the device they were on, or go to the device ``map_location``. A safetensors
    file of other origin gives a dict of its tensors.
    Raises RuntimeError if the file is of another kind or cut off, or that device is not here.

    >>> tk.load("missing.tk")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'missing.tk'
    """
    with importing("tk.load"):
        from safetensors import SafetensorError
        from safetensors.numpy import load as from_bytes

    where = None if map_location is None else Device(map_location)
    content = f.read() if hasattr(f, "read") else Path(f).read_bytes()
    name = getattr(f, "name", "the file") if hasattr(f, "read") else str(f)
    if content[:4] == b"PK\x03\x04":
        raise FileFormatError(
            f"{name} is a PyTorch file, which is pickled",
            "A pickle can run any code when it is read; tensorkit does not read it.",
            repair="safetensors.torch.save_file(torch.load(path), ...)    # with PyTorch",
        )
    placed: dict[str, Tensor] = {}
    try:
        arrays = {key: from_numpy(array) for key, array in from_bytes(content).items()}
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        structure = header.get("__metadata__", {}).get(_FORMAT)
        if structure is None:
            return arrays
        return json.loads(
            structure, object_hook=lambda part: _restored(part, arrays, placed, where)
        )
    except (SafetensorError, KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise FileFormatError(
            f"{name} is no file that tk.save wrote, or it is cut off",
            f"It has {len(content)} bytes. {error}",
        ) from None


def _on_device(whole: Tensor, wanted: Device) -> Tensor:
    """What was read, where it shall be."""
    if wanted.type == "cuda" and find_backend("cuda") is None:
        raise MissingDeviceError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU.",
            "Nothing was loaded.",
            repair="tk.load(path, map_location='cpu')",
        )
    return whole.to(device=as_device(wanted))


def _restored(
    entry: dict[str, Any], arrays: dict[str, Tensor], placed: dict[str, Tensor], where: Any
) -> Any:
    """What an object of the JSON stands for; those within it are restored already."""
    if "structure" in entry:
        return entry["structure"]
    if "tensor" not in entry:
        ((kind, parts),) = entry.items()
        return _CONTAINERS[kind](parts)
    key = entry["tensor"]
    if key not in placed:
        placed[key] = _on_device(arrays[key], where or Device(entry["device"]))
    with no_grad():
        x = placed[key].as_strided(entry["shape"], entry["strides"], entry["offset"]).detach()
    return (Parameter if entry["parameter"] else Tensor.requires_grad_)(x, entry["requires_grad"])
