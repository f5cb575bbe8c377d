"""The exception tree, and the one way to word an error.

Most errors of tensorkit are a ``TensorkitError`` and, at the same time, of the class that
PyTorch raises in the same place, so ``except RuntimeError`` means what it means there. Three
have attributes, where they are known:

    TensorkitError
        ShapeError          RuntimeError          sizes that do not fit
        DTypeError          RuntimeError          a dtype that an operation refuses
        OverlapError        RuntimeError          writing where several elements share memory
        AutogradError       RuntimeError          a graph that cannot be walked [1]
        ConversionError     RuntimeError          a value that a dtype cannot hold
        IndexRangeError     IndexError            a position outside of its dimension
        NotSupportedError   NotImplementedError   not implemented here; often PyTorch has it
        DeviceError         AssertionError        a device that this process cannot reach
        DeviceNameError     RuntimeError          a string that names no device
        DeviceMismatchError RuntimeError          operands on different devices
        AcceleratorError    RuntimeError          what the CUDA runtime refuses
        OutOfMemoryError    RuntimeError          more memory than a device has
        KernelError         RuntimeError          a kernel that goes wrong [2]
        MissingPackageError ImportError           a package that one function needs [3]

    [1] node, version, expected, saved, writer: of a saved tensor that was written to
    [2] line, block, threads, element
    [3] name: of the package

Mistakes in the kind of an argument, and a few that Python or NumPy find, are plain ``TypeError``,
``ValueError``, ``IndexError`` or ``OverflowError``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class TensorkitError(Exception):
    """Base of all errors that tensorkit defines, worded by ``message``."""

    def __init__(
        self, first: str, *details: str, repair: str | None = None, **attributes: Any
    ) -> None:
        super().__init__(message(first, *details, repair=repair))
        vars(self).update(attributes)


class ShapeError(TensorkitError, RuntimeError):
    """Sizes that do not fit together."""


class DTypeError(TensorkitError, RuntimeError):
    """A dtype that an operation does not accept or cannot store."""


class OverlapError(TensorkitError, RuntimeError):
    """A write to memory that is seen more than once by the operands."""


class ConversionError(TensorkitError, RuntimeError):
    """A value that the wanted type cannot hold."""


class IndexRangeError(TensorkitError, IndexError):
    """An index outside its dimension."""


class AutogradError(TensorkitError, RuntimeError):
    """A graph that cannot be walked, or a write that would spoil one."""


class NotSupportedError(TensorkitError, NotImplementedError):
    """What is not implemented here; often PyTorch has it."""


class DeviceError(TensorkitError, AssertionError):
    """A device that this process cannot reach."""


class DeviceNameError(TensorkitError, RuntimeError):
    """A string that names no device."""


class DeviceMismatchError(TensorkitError, RuntimeError):
    """Operands on different devices."""


class AcceleratorError(TensorkitError, RuntimeError):
    """What the CUDA runtime refuses."""


class OutOfMemoryError(TensorkitError, RuntimeError):
    """More memory than a device has."""


class KernelError(TensorkitError, RuntimeError):
    """A kernel that cannot be compiled, or that does what a GPU would not notice.

    ``line`` says where; of a launch also ``block``, ``threads`` and ``element``.
    """


class MissingPackageError(TensorkitError, ImportError):
    """A package that one function needs is not installed; ``name`` is the package's."""


@contextmanager
def importing(user: str) -> Iterator[None]:
    """Within it a failing ``import`` says who needs the package and how it is installed.

    tensorkit itself needs NumPy alone; everything else is imported where it is used.

    >>> from tensorkit.errors import importing
    >>> with importing("This example"):
    ...     import a_package_that_nobody_has
    Traceback (most recent call last):
    tensorkit.errors.MissingPackageError: This example needs the package ...
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        raise MissingPackageError(
            f"{user} needs the package {package}, which is not installed.",
            repair=f"pip install {package}    # pip install 'tensorkit-course[lab]' brings it too",
            name=package,
        ) from None


def message(first: str, *details: str, repair: str | None = None) -> str:
    """An error text: PyTorch's own first line, then the numbers, then a repair as code.

    >>> from tensorkit.errors import message
    >>> print(message("sizes differ", "a has 3.", repair="b[:3]"))
    sizes differ
    <BLANKLINE>
    a has 3.
    Try: b[:3]
    """
    lines = [*details, *([f"Try: {repair}"] if repair else [])]
    return "\n".join([first, "", *lines]) if lines else first


def sizes(shape: Sequence[int]) -> str:
    """A shape the way PyTorch's error messages print it: ``[2, 3]``."""
    return f"[{', '.join(map(str, shape))}]"


def type_name(value: object) -> str:
    """The name of a value's class as PyTorch prints it (``numpy.ndarray``, ``torch.dtype``)."""
    kind = type(value)
    if kind.__module__ == "numpy":
        return f"numpy.{kind.__name__}"
    return _PYTORCHS.get(kind.__name__, kind.__name__)


_PYTORCHS = {"DType": "torch.dtype", "Device": "torch.device", "Size": "torch.Size"}


def must_be(function: str, argument: str, position: int, wanted: str, got: object) -> TypeError:
    """PyTorch's sentence for an argument of the wrong kind."""
    first = (
        f"{function}(): argument '{argument}' (position {position}) "
        f"must be {wanted}, not {type_name(got)}"
    )
    if type_name(got) == "numpy.ndarray":
        return TypeError(message(first, repair=f"tk.from_numpy({argument})"))
    if wanted == "Tensor" and isinstance(got, (list, tuple)):
        return TypeError(message(first, repair=f"tk.tensor({argument})"))
    return TypeError(first)
