"""The exercise find-kernel: the kernel of a device, from the table of an operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course.notebook.exercise import Case, Draw, Exercise, case, exercise
from course.notebook.plain import Seen


def find_kernel(kernels: dict[str, object], operation: str, device: str) -> object:
    """The kernel of an operation for a device: its own, otherwise the default."""
    if device in kernels:
        return kernels[device]
    if "default" in kernels:
        return kernels["default"]
    raise NotImplementedError(f"{operation} has no kernel for {device}")


def _default_first(kernels: dict[str, Any], operation: str, device: str) -> Any:
    if "default" in kernels:
        return kernels["default"]
    return find_kernel(kernels, operation, device)


def _begins_alike(kernels: dict[str, Any], operation: str, device: str) -> Any:
    kinds = [kind for kind in kernels if device.startswith(kind)]
    return find_kernel(kernels, operation, kinds[0] if kinds else device)


def _none_where_there_is_none(kernels: dict[str, Any], operation: str, device: str) -> Any:
    return kernels.get(device, kernels.get("default"))


def _both_looked_up(kernels: dict[str, Any], operation: str, device: str) -> Any:
    return kernels.get(device, kernels["default"])


def _key_error(kernels: dict[str, Any], operation: str, device: str) -> Any:
    return kernels[device] if device in kernels else kernels["default"]


def _no_default(kernels: dict[str, Any], operation: str, device: str) -> Any:
    if device in kernels:
        return kernels[device]
    raise NotImplementedError(f"{operation} has no kernel for {device}")


def _cpu_is_the_default(kernels: dict[str, Any], operation: str, device: str) -> Any:
    return find_kernel(kernels, operation, device if device in kernels else "cpu")


def _cpu_at_last(kernels: dict[str, Any], operation: str, device: str) -> Any:
    table = {"default": kernels["cpu"], **kernels} if "cpu" in kernels else kernels
    return find_kernel(table, operation, device)


def _without_names(kernels: dict[str, Any], operation: str, device: str) -> Any:
    if device in kernels or "default" in kernels:
        return find_kernel(kernels, operation, device)
    raise NotImplementedError("there is no kernel")


def _returns_the_error(kernels: dict[str, Any], operation: str, device: str) -> Any:
    try:
        return find_kernel(kernels, operation, device)
    except NotImplementedError as error:
        return str(error)


@exercise("find-kernel", answer=find_kernel, points=2, difficulty=2, minutes=7)
class FindKernel(Exercise):
    """The table and its look-up

    Every operation has a table of kernels: a dictionary from kinds of device to functions. It may
    have an entry `"default"`, for all devices without a kernel of their own.

    **Input:** `kernels`, the table of one operation; `operation`, its name; `device`, the kind of
    device of the operands.

    **Output:** the kernel for this device: its own if the table has one, otherwise the default. If
    there is neither, raise a `NotImplementedError` whose text has the name of the operation and
    that of the device. The table stays as it is.

    ```python
    kernels = {"cpu": np.add, "default": tk.add}
    find_kernel(kernels, "add", "cpu")       # np.add
    find_kernel(kernels, "add", "cuda")      # tk.add
    find_kernel({"cpu": np.add}, "add", "cuda")
    # NotImplementedError: add has no kernel for cuda
    ```

    In the check kernels are texts. Your function only hands them on.
    """

    hints = (
        "Two questions in their order: is the device in the table? Is there a default?",
        '`if device in kernels: return kernels[device]`, the same for `"default"`, and below both '
        'a `raise NotImplementedError(f"{operation} has no kernel for {device}")`.',
    )
    usual_mistakes = {
        "the default first": (
            _default_first,
            "A table with a default never gives you another kernel. The device's own comes first; "
            "the default is for devices that have none.",
        ),
        "a name that begins alike": (
            _begins_alike,
            "Names are compared as a whole: `cuda` is another device than `cuda2`. "
            "`if device in kernels:` asks for the name itself.",
        ),
        "None": (
            _none_where_there_is_none,
            "Where the table has neither, you return None, and the call fails later with an error "
            "that names no device. Raise NotImplementedError here.",
        ),
        "both looked up": (
            _both_looked_up,
            'Python works out both arguments of `get` before it calls it: `kernels["default"]` '
            "raises KeyError where there is no default, even if the device has a kernel.",
        ),
        "the dictionary's KeyError": (
            _key_error,
            "Where the table has neither, the dictionary raises KeyError: 'default', without the "
            'names of operation and device. Ask `if "default" in kernels:`, and raise '
            "NotImplementedError below.",
        ),
        "no default": (
            _no_default,
            "You look for the device only. A device without a kernel gets the default, if there "
            "is one.",
        ),
        "the CPU's kernel": (
            _cpu_is_the_default,
            "The CPU's kernel is no default: it cannot reach the memory of another device. Only "
            'the entry `"default"` is for all.',
        ),
        "the CPU's kernel at last": (
            _cpu_at_last,
            "Where the table has neither, the CPU's kernel cannot help: it does not reach the "
            "memory of another device. Raise NotImplementedError.",
        ),
        "without names": (
            _without_names,
            "Your error does not say which operation and which device it is about. Put both into "
            "its text.",
        ),
        "the error comes back": (
            _returns_the_error,
            "You return a text where a kernel is expected. `raise NotImplementedError(...)` stops "
            "the call.",
        ),
    }

    def cases(self, draw: Draw) -> Iterator[Case]:
        names = ("add", "mul", "relu", "mm", "exp", "softmax")
        device, unknown = (("cuda", "mps", "xla", "hpu")[at] for at in draw.distinct(2, 0, 3))
        first, second, third = (f"kernel {number}" for number in draw.distinct(3, 10, 999))
        operation = names[draw.integer(0, 5)]
        yield case(
            {device: first, unknown: second}, operation, device, label="a device in the table"
        )
        yield case({unknown: second, device: first}, operation, unknown, label="another device")
        table = {"default": third, device: first}
        yield case(table, operation, device, label="a kernel of its own, and a default")
        yield case(table, operation, unknown, label="no kernel of its own, and a default")
        yield case({"default": second}, operation, device, label="nothing but a default")
        yield case({device: first}, operation, device, label="a kernel of its own, no default")
        yield case({"cpu": first}, operation, device, label="neither, though the CPU has one")
        table = {"cpu": first, unknown: second}
        yield case(table, operation, device, label="neither, though two others have one")
        table = {"cpu": first, device: third, "default": second}
        yield case(table, operation, unknown, label="a default beside the CPU")
        yield case(table, operation, "cpu", label="the CPU's kernel, and a default")
        table = {device: second, f"{device}2": first, "default": third}
        yield case(table, operation, f"{device}2", label="a name that begins with another one")
        table = {device: second, "default": third}
        yield case(table, operation, f"{device}2", label="no kernel, though a shorter name has one")
        table = {f"{device}2": first, "default": third}
        yield case(table, operation, device, label="no kernel, though a longer name has one")
        yield case({}, operation, device, label="a table without kernels (empty)")

    def run(self, answer: Any, *args: Any) -> Any:
        """The kernel, or what the error says where there is none."""
        kernels, operation, device = args
        try:
            return answer(*args)
        except NotImplementedError as error:
            if device in kernels or "default" in kernels:
                raise
            said = str(error)
            return Seen(
                {
                    "raises": "NotImplementedError",
                    "with the operation's name": operation in said,
                    "with the device's name": device in said,
                }
            )
