"""Memory that is shared with other libraries, by DLPack and by CUDA's array interface."""

import operator

import numpy as np
import pytest

import tensorkit as tk

STRAY = {
    "an array beside an operator": lambda xp, x: x + np.ones(2),
    "an array before an operator": lambda xp, x: np.ones(2) * x,
    "an array": lambda xp, x: xp.add(x, np.ones(2)),
    "an array among others": lambda xp, x: xp.concatenate([x, np.ones(2)]),
    "an array to choose from": lambda xp, x: xp.where(x > 0, x, np.ones(2)),
    "an array that is written": lambda xp, x: operator.setitem(x, slice(None), np.ones(2)),
    "positions": lambda xp, x: x[np.array([0])],
    "a list": lambda xp, x: xp.add(x, [1.0, 2.0]),
    "a list that is written": lambda xp, x: operator.setitem(x, slice(None), [1.0, 2.0]),
    "a list of positions": lambda xp, x: x[[0, 1]],
    "a list of positions to take": lambda xp, x: x.take([0, 1]),
    "a list that is turned into an array": lambda xp, x: xp.asarray([1.0]),
}


@pytest.mark.parametrize("stray", STRAY)
def test_a_simulated_device_refuses_what_lies_on_the_host(stray):
    with tk.cuda.simulate():
        x = tk.ones(2, device="cuda")._array
        with pytest.raises(TypeError):
            STRAY[stray](tk.device("cuda:0").backend.xp, x)


def test_memory_is_shared_with_cupy_without_a_copy(gpu):
    if gpu == "simulated":
        pytest.skip("only a GPU has memory to share")
    cupy = pytest.importorskip("cupy", reason="needs CuPy: pip install cupy-cuda12x")

    x = tk.arange(6.0).cuda().view(2, 3).t()
    array = cupy.arange(4)
    back = tk.as_tensor(array)
    assert back.data_ptr() == array.data.ptr
    assert back.device == x.device
    back[0] = 7
    assert array.tolist() == [7, 1, 2, 3]
