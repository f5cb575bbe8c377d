"""``tk.accelerator``: the names of ``tk.cuda`` for programs that do not name CUDA."""

from tensorkit.cuda import (
    current_device,
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
    set_device,
    synchronize,
)
from tensorkit.devices import Device

current_device_index, set_device_index = current_device, set_device

__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device_index",
    "synchronize",
]


def current_accelerator(check_available: bool = False) -> Device | None:
    """The device that is faster than the CPU, without a number; None if there is none.

    >>> with tk.cuda.simulate():
    ...     tk.accelerator.current_accelerator()
    device(type='cuda')
    """
    return Device("cuda") if is_available() else None
