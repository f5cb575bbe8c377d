"""How the C library keeps memory that arrays have freed."""

import ctypes  # NumPy has imported it already


def keep_freed_memory() -> None:
    """Have glibc keep freed memory, up to 512 MB, for the next array instead of giving it back.

    Otherwise every large result is new to the process, and the system clears its pages one fault
    after the other: for arrays of some megabytes that takes as long as computing them. Elsewhere
    than under glibc this does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    # a glibc before 2.35 takes no more than 32 MB
    _ = mallopt(_M_MMAP_THRESHOLD, 2**30) or mallopt(_M_MMAP_THRESHOLD, 2**25)
    mallopt(_M_TRIM_THRESHOLD, 2**29)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
