"""``tk.backends``, settings that PyTorch has and that change nothing here; and ``tk.version``."""

from types import SimpleNamespace

from tensorkit.devices import find_backend

# NVIDIA's convolutions, which tensorkit does not have
cudnn = SimpleNamespace(
    enabled=True, benchmark=False, deterministic=False, is_available=lambda: False
)
# float32 products are computed in float32
cuda = SimpleNamespace(
    matmul=SimpleNamespace(allow_tf32=False), is_built=lambda: find_backend("cuda") is not None
)
# Apple's GPUs, which tensorkit does not know
mps = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)


class _Version:
    @property
    def cuda(self) -> str | None:
        """The version of CUDA, None without a device; looked up when asked: it may import CuPy."""
        backend = find_backend("cuda")
        return None if backend is None else backend.cuda_version


version = _Version()
