"""No kernels of our own any more: this goes with the last operation that still names one."""

from typing import Any


def _nothing(*_: Any, **__: Any) -> Any:
    return None


Kernel: Any = _nothing
Rows: Any = _nothing


def formula(launch: Any, plain: Any) -> Any:
    return plain


def are_for(xp: Any, *arrays: Any) -> bool:
    return False
