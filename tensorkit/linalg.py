"""Linear algebra, as ``tk.linalg``; the definitions stand in ``tensorkit.ops``."""

from tensorkit import absent
from tensorkit.ops.matmul import LinAlgError, solve

__all__ = ["LinAlgError", "solve"]
__getattr__ = absent.missing("torch.linalg")
