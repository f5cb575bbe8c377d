"""``tk.backends``: what can be computed where, and how exactly."""

import warnings

from tensorkit.devices import cuda as _cuda


class _Mps:
    """Apple's GPUs."""

    @staticmethod
    def is_available() -> bool:
        """False: tensorkit does not know them."""
        return False

    @staticmethod
    def is_built() -> bool:
        """False: tensorkit does not know them."""
        return False


class _Cudnn:
    """NVIDIA's convolutions, which tensorkit does not have: these settings change nothing."""

    enabled = allow_tf32 = True
    benchmark = deterministic = False

    @staticmethod
    def is_available() -> bool:
        """False."""
        return False

    @staticmethod
    def version() -> None:
        """None."""


class _Matmul:
    """How matrix products are computed on CUDA devices."""

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 products may round their operands to 10 bits; off unless set."""
        return _cuda.matmul_precision != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allow: bool) -> None:
        if not isinstance(allow, bool):
            raise RuntimeError(
                f"set_allow_tf32_cublas expects a bool, but got {type(allow).__name__}"
            )
        set_float32_matmul_precision("high" if allow else "highest")


class _Cuda:
    """CUDA."""

    matmul = _Matmul()

    @staticmethod
    def is_built() -> bool:
        """Whether there is a CUDA device, real or simulated."""
        return bool(_cuda.backends())


mps, cudnn, cuda = _Mps(), _Cudnn(), _Cuda()


def get_float32_matmul_precision() -> str:
    """How exactly float32 products are computed on CUDA devices.

    >>> tk.get_float32_matmul_precision()
    'highest'
    """
    return _cuda.matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Let float32 products on CUDA devices round their operands: "high" and "medium" take TF32.

    >>> tk.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
            "setFloat32MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _cuda.matmul_precision = precision
    for each in _cuda.backends():
        each.use_tf32(precision != "highest")
