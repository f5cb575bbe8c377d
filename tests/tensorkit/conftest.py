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


IN_MAKE_TEST = {"test_package.py", "test_size.py", "test_missing_packages.py"}
"""What `make test` runs of this folder. `make test-all` runs the rest: every value, dtype,
gradient, picture and printed text, beside PyTorch's where that is installed."""


def _is_left_out(path):
    names = path.relative_to(Path(__file__).parent).parts
    return bool(names) and names[0] not in IN_MAKE_TEST


def pytest_ignore_collect(collection_path, config):
    """A run without the tests marked `rest` does not read their files, which import PyTorch."""
    return ("not rest" in config.option.markexpr and _is_left_out(collection_path)) or None


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents and _is_left_out(item.path):
            item.add_marker(pytest.mark.rest)


@pytest.fixture(autouse=True)
def _defaults():
    """Every test starts with float32, the standard print options and a known seed."""
    import tensorkit as tk

    tk.manual_seed(0)
    yield
    tk.set_default_dtype(tk.float32)
    tk.set_printoptions(profile="default")


@pytest.fixture
def device():
    """A simulated device of the test's own, the seed of the threads' order included."""
    import tensorkit as tk

    tk.manual_seed(0)
    with tk.cuda.simulate():
        yield "cuda"


def _devices():
    from tensorkit.cuda.cupy_backend import missing

    return ["simulated", "stand-in", *([] if missing() else ["cuda"])]


@pytest.fixture(params=_devices())
def gpu(request):
    """The CUDA device of the test: simulated, CuPy's stand-in, and the real one if there is one."""
    import tensorkit as tk

    if request.param == "simulated":
        with tk.cuda.simulate():
            yield request.param
    elif request.param == "stand-in":
        from fake_cupy import installed

        with installed():
            yield request.param
    else:
        yield request.param
