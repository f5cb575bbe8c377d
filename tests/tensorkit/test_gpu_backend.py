"""The backend of a GPU, line by line, on NumPy under CuPy's name; fake_cupy says what it shows."""

import numpy as np
import pytest
from fake_cupy import installed
from function_cases import CASES, leaves_of
from on_devices import agree, on_both, words

import tensorkit as tk
from tensorkit import viz


@pytest.fixture
def fake():
    """The stand-in for CuPy as the CUDA device."""
    with installed() as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_a_layer_gives_there_what_it_gives_on_the_cpu(fake, name):
    shapes, run = CASES[name]

    def program(device):
        leaves = [x.detach().to(device).requires_grad_() for x in leaves_of(tk, shapes, "float64")]

        def compute():
            with tk.device(device):
                result = run(tk, *leaves)
                result.backward(tk.full_like(result, 0.5))
            return result, [leaf.grad for leaf in leaves]

        return compute

    expected, found, _ = on_both(program)
    agree(found, expected, 1e-10)
    assert words(repr(found[0])) == words(repr(expected[0]))  # gradients may be nearly 0


def test_a_product_of_halves_that_is_one_number_is_added_in_float32(fake):
    x = tk.full((4000,), 16.0, dtype=tk.float16, device="cuda")
    y = tk.full((4000,), 1 / 128, dtype=tk.float16, device="cuda")
    assert (x @ y).item() == (x[None] @ y[:, None]).item() == (x[None] @ y).item() == 500


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_a_network_trains_there_as_on_the_cpu(fake, optimizer):
    def program(device):
        net = tk.nn.Sequential(tk.nn.Linear(5, 4), tk.nn.GELU(), tk.nn.Linear(4, 3)).to(device)
        steps = getattr(tk.optim, optimizer)(net.parameters(), lr=0.1)
        x, y = tk.randn(6, 5).to(device), tk.arange(6).to(device) % 3

        def run():
            for _ in range(3):
                steps.zero_grad()
                loss = tk.nn.functional.cross_entropy(net(x), y)
                loss.backward()
                steps.step()
            return loss, net.state_dict()

        return run

    expected, found, _ = on_both(program)
    agree(found, expected, 2e-5)


def test_what_tk_cuda_asks_is_answered(fake):
    assert tk.cuda.get_device_name() == "A fake"
    assert not tk.cuda.is_simulated()
    assert tk.version.cuda == "12.9"
    properties = tk.cuda.get_device_properties(0)
    assert (properties.major, properties.minor, properties.multi_processor_count) == (9, 0, 132)
    assert properties.total_memory == 2**40
    tk.cuda.set_device(0)
    tk.cuda.empty_cache()
    start, end = tk.cuda.Event(enable_timing=True), tk.cuda.Event(enable_timing=True)
    start.record()
    tk.cuda.synchronize()
    end.record()
    assert start.elapsed_time(end) == 1
    assert end.query()


def test_memory_comes_from_the_pool_and_its_end_is_told_in_pytorchs_words(fake):
    tk.cuda.empty_cache()
    tk.cuda.reset_peak_memory_stats()
    assert (tk.cuda.memory_allocated(), tk.cuda.memory_reserved()) == (0, 0)
    x = tk.zeros(1000, device="cuda")
    y = x[::2]
    del x
    assert (tk.cuda.memory_allocated(), tk.cuda.max_memory_allocated()) == (4096, 4096)
    del y
    assert (tk.cuda.memory_allocated(), tk.cuda.memory_reserved()) == (0, 4096)
    assert tk.cuda.get_device_properties().total_memory == 2**40
    with pytest.raises(
        tk.cuda.OutOfMemoryError,
        match=r"Tried to allocate 1024.00 GiB\. GPU 0 has",
    ):
        tk.empty(2**38 + 1, device="cuda")


def test_a_ledger_does_not_say_that_a_gpu_launched_nothing(fake):
    with tk.cuda.record() as ledger:
        (tk.ones(3, device="cuda") + 1).sum().item()
    for told in (repr(ledger), viz.timeline(ledger).alt.splitlines()[1]):
        assert "launches not seen" in told


def test_the_ledger_notes_transfers_and_waits_with_their_lines(fake):
    with tk.cuda.record() as ledger:
        x = tk.ones(3).cuda()
        x.sum().item()
        str(x)
        x.cpu()
    assert [(each.kind, each.name, each.bytes) for each in ledger] == [
        ("transfer", "to", 12),
        ("synchronise", "item", 0),
        ("transfer", "item", 4),
        ("synchronise", "print", 0),
        ("transfer", "print", 12),
        ("transfer", "to", 12),
    ]
    assert {each.line[0] for each in ledger} == {__file__}


def test_a_mistake_that_a_kernel_found_is_heard_when_the_host_waits(fake):
    x = tk.ones(3, device="cuda")
    x.device.backend.device_assert(x._array > 1, "Something was wrong")
    with pytest.raises(RuntimeError, match="device-side assert triggered\n\nSomething was wrong"):
        x.sum().item()


def test_views_share_memory_and_repeated_places_add_up(fake):
    x = tk.zeros(4, 3, device="cuda")
    x[1:].t()[0] = 2.0
    assert x[:, 0].tolist() == [0, 2, 2, 2]
    for dtype in (tk.float32, tk.int64, tk.int8):
        total = tk.zeros(3, dtype=dtype, device="cuda")
        total.index_add_(
            0, tk.tensor([1, 1, 0], device="cuda"), tk.ones(3, device="cuda").to(dtype)
        )
        assert total.tolist() == [1, 2, 0]


def test_arrays_of_cupy_become_tensors_on_their_memory(fake):
    tk.cuda.is_available()  # since when CuPy's arrays are known
    array = fake.array(np.array([[1.0, 2.0], [3.0, 4.0]]))
    x = tk.as_tensor(array.T)
    assert (x.device.index, x.stride()) == (0, (1, 2))
    x[0, 1] = 9.0
    assert array[1, 0] == 9.0
    assert x.data_ptr() == array.data.ptr


def test_a_gradient_that_is_a_view_of_a_kept_tensor_is_copied(fake):
    """Views of CuPy's arrays share the pointer to the memory; only their owner is told."""
    x = tk.ones(2, 3, device="cuda", requires_grad=True)
    slope = tk.ones(6, device="cuda")
    x.view(6).backward(slope)
    x.grad.zero_()
    assert slope.tolist() == [1] * 6
    shared = slope.detach()
    (x.view(6) * 1).backward(shared)
    x.grad.zero_()
    assert slope.tolist() == [1] * 6
