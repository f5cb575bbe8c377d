"""No kernels of our own any more: this goes with the last operation that still names one."""

from typing import Any


class Kernel:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass


Rows: Any = Kernel


def formula(launch: Any, plain: Any) -> Any:
    return plain


def are_for(xp: Any, *arrays: Any) -> bool:
    return False
