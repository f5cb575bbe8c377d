"""Linear algebra, as ``tk.linalg``; the definitions stand in ``tensorkit.ops``."""

from tensorkit import absent
from tensorkit.ops.matmul import LinAlgError, inv, solve

__all__ = ["LinAlgError", "inv", "solve"]

__getattr__ = absent.missing("torch.linalg")
