"""``tk.backends``: what can be computed where, and how exactly."""

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


class _Matmul:
    """How matrix products are computed on CUDA devices."""

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 products may round their operands to 10 bits; off unless set."""
        return _cuda.allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, allow: bool) -> None:
        if not isinstance(allow, bool):
            raise RuntimeError(
                f"set_allow_tf32_cublas expects a bool, but got {type(allow).__name__}"
            )
        _cuda.allow_tf32 = allow
        for each in _cuda.backends():
            each.use_tf32(allow)


class _Cuda:
    """CUDA."""

    matmul = _Matmul()

    @staticmethod
    def is_built() -> bool:
        """Whether there is a CUDA device, real or simulated."""
        return bool(_cuda.backends())


mps, cuda = _Mps(), _Cuda()
