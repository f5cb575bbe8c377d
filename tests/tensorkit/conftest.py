"""Settings for the tests of tensorkit: the same examples on every run, and the shared helpers."""

import sys
from pathlib import Path

import hypothesis
import pytest

# The helpers beside this file can be imported whatever import mode pytest runs in.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "autograd")]

hypothesis.settings.register_profile(
    "tensorkit",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("tensorkit")


@pytest.fixture(autouse=True)
def _defaults():
    """Every test starts with float32, the standard print options and a known seed."""
    import tensorkit as tk

    tk.manual_seed(0)
    yield
    tk.set_default_dtype(tk.float32)
    tk.set_printoptions(profile="default")


def _devices():
    from tensorkit import gpu

    return ["simulated", "cuda"] if gpu.find() else ["simulated"]


@pytest.fixture(params=_devices())
def gpu(request):
    """A CUDA device for the test: simulated, and the real one where there is one."""
    import tensorkit as tk
    from tensorkit.devices import cuda

    if request.param == "simulated":
        with tk.cuda.simulate():
            yield request.param
        return
    before = cuda.use(None)
    yield request.param
    cuda.use(before)
