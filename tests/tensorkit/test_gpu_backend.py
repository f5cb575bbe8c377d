"""The backend of a GPU, line by line, on NumPy under CuPy's name; fake_cupy says what it shows."""

import numpy as np
import pytest
from fake_cupy import installed
from function_cases import CASES, leaves_of
from kernel_sources import COMPILER
from on_devices import agree, on_both, words

import tensorkit as tk
from tensorkit import devices, viz

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler: apt install g++")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(params=[0, 1], ids=["first", "second"])
def fake(folder, request):
    """One GPU, or the second of two, whose arrays are wrapped."""
    with installed(folder, 1 + request.param) as made:
        tk.cuda.set_device(request.param)
        yield made


@pytest.fixture
def two(folder):
    with installed(folder, 2) as made:
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


def test_classes_and_rows_are_normed_by_kernels(fake):
    x = tk.randn(4, 3, device="cuda", requires_grad=True)
    tk.nn.functional.cross_entropy(x, tk.tensor([0, 1, 2, 1], device="cuda")).backward()
    tk.nn.functional.layer_norm(x, (3,))
    assert {"nll_total", "nll_share", "nll_spread", "layer_norm"} < set(fake.launched)


LAID_OUT = {
    "as they are": lambda x: x,
    "turned": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "a part": lambda x: tk.cat([x, x], 2)[:, :, : x.shape[2]],
    "a turned part": lambda x: (
        tk.cat([x, x], 1).transpose(1, 2).contiguous().transpose(1, 2)[:, : x.shape[1]]
    ),
    "one for all": lambda x: x[:1].expand(x.shape),
    "heads": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "neither": lambda x: tk.stack([x, x], 3)[..., 0],
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shapes", [((3, 4, 5), (3, 5, 2)), ((2, 1, 4), (2, 4, 3)),
                                    ((1, 3, 1), (1, 1, 4)), ((2, 3, 0), (2, 0, 2))])  # fmt: skip
@pytest.mark.parametrize("right", LAID_OUT)
@pytest.mark.parametrize("left", LAID_OUT)
@pytest.mark.parametrize("fake", [0], ids=["first"], indirect=True)
def test_products_in_pairs_are_made_as_the_matrices_lie(
    fake, monkeypatch, left, right, shapes, dtype
):
    x, y = (
        LAID_OUT[lies](tk.randn(shape).mul(4).to(getattr(tk, dtype)).cuda())
        for lies, shape in zip((left, right), shapes, strict=True)
    )
    copied = []
    monkeypatch.setattr(fake, "ascontiguousarray", lambda z: copied.append(z) or z.copy("C"), False)
    found = tk.bmm(x, y)
    assert found.stride() == tk.bmm(x.cpu(), y.cpu()).stride()
    rtol = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    agree(found, tk.bmm(x.cpu(), y.cpu()), rtol)
    if 1 not in shapes[0] and "neither" not in (left, right):
        assert not copied


def test_matrices_that_are_parts_of_others_are_not_copied_and_tf32_reaches_them(fake):
    x, y = tk.randn(6, 8, device="cuda")[:, :4], tk.randn(4, 9, device="cuda")[:, 2:5]
    expected = x.cpu() @ y.cpu()
    agree(x @ y, expected, 1e-5)
    tk.backends.cuda.matmul.allow_tf32 = True
    agree(x @ y, expected, 1e-5)
    tk.bmm(x[None], y[None])
    tk.bmm(x[None].half(), y[None].half())
    tk.backends.cuda.matmul.allow_tf32 = False
    agree(x.mv(y[:, 0]), x.cpu().mv(y[:, 0].cpu()), 1e-5)
    assert fake.launched == [
        "gemm 32F", "gemm 32F_FAST_TF32", "gemm 32F_FAST_TF32", "gemm 32F", "gemm 32F",
    ]  # fmt: skip


def test_a_product_of_halves_that_is_one_number_is_added_in_float32(fake):
    x = tk.full((4000,), 16.0, dtype=tk.float16, device="cuda")
    y = tk.full((4000,), 1 / 128, dtype=tk.float16, device="cuda")
    assert (x @ y).item() == (x[None] @ y[:, None]).item() == (x[None] @ y).item() == 500


def test_a_class_that_does_not_exist_is_not_read(fake):
    x = tk.zeros(2, 3, device="cuda")
    loss = tk.nn.functional.nll_loss(x, tk.tensor([0, 3], device="cuda"), reduction="none")
    assert loss._array.tolist()[0] == 0
    assert loss._array[1] != loss._array[1]
    with pytest.raises(RuntimeError, match="device-side assert triggered"):
        tk.cuda.synchronize()


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
    assert {"gelu", "gelu_slope", "log_softmax"} < set(fake.launched)


def test_what_tk_cuda_asks_is_answered(fake):
    assert tk.cuda.get_device_name() == "A fake"
    assert not tk.cuda.is_simulated()
    assert tk.version.cuda == "12.9"
    properties = tk.cuda.get_device_properties(0)
    assert (properties.major, properties.minor, properties.multi_processor_count) == (9, 0, 132)
    assert properties.total_memory == 2**40
    tk.backends.cuda.matmul.allow_tf32 = True
    assert fake.tf32[1] == 1
    tk.backends.cuda.matmul.allow_tf32 = False
    assert fake.tf32[1] == 0
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
    assert tk.cuda.mem_get_info() == (2**40 - 4096, 2**40)
    with pytest.raises(
        tk.cuda.OutOfMemoryError,
        match=rf"Tried to allocate 1024.00 GiB\. GPU {tk.cuda.current_device()} has",
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
    devices.cuda.backend(None).expect(x._array > 1, "Something was wrong")
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


@pytest.mark.parametrize("dtype", [tk.int64, tk.int32], ids=str)
@pytest.mark.parametrize("repeats", [[2, 0, 3], [0, 0, 4], [1, 0, 0], [0, 0, 0]], ids=str)
def test_rows_repeat_by_a_tensor_though_cupy_cannot_repeat_by_an_array(fake, repeats, dtype):
    # CuPy 14.0 raises for an array; 14.1 takes one
    with pytest.raises(ValueError, match="cannot be specified as `repeats`"):
        fake.repeat(fake.array(np.arange(3)), fake.array(np.array(repeats)))

    def program(device):
        x = tk.arange(6.0).reshape(3, 2).to(device).requires_grad_()
        counts = tk.tensor(repeats, dtype=dtype).to(device)

        def compute():
            found = x.repeat_interleave(counts, 0)
            found.sum().backward()
            return found.detach(), x.grad

        return compute

    expected, found, _ = on_both(program)
    agree(found, expected, 0)
    assert found[0].shape == (sum(repeats), 2)


def test_no_row_repeats_by_an_empty_tensor(fake):
    x = tk.zeros(0, 2, device="cuda")
    assert x.repeat_interleave(tk.zeros(0, dtype=tk.int64, device="cuda"), 0).shape == (0, 2)


def test_a_generator_draws_there(fake):
    generator = tk.Generator("cuda").manual_seed(3)
    with tk.cuda.record() as ledger:
        x = tk.randn(4, 5, device="cuda", generator=generator)
        y = tk.randint(0, 9, (5,), device="cuda", generator=generator)
    assert not ledger.transfers
    assert x.device == y.device == tk.device("cuda", tk.cuda.current_device())


def test_arrays_of_cupy_become_tensors_on_their_memory(fake):
    with fake.cuda.Device(tk.cuda.current_device()) as here:
        array = fake.array(np.array([[1.0, 2.0], [3.0, 4.0]]))
        x = tk.as_tensor(array.T)
        assert (x.device.index, x.stride()) == (here.id, (1, 2))
        x[0, 1] = 9.0
        assert array[1, 0] == 9.0
    assert tk.from_dlpack(x).data_ptr() == x.data_ptr() == array.data.ptr
    assert x.__cuda_array_interface__["data"] == (x.data_ptr(), False)
    assert x.__dlpack_device__() == (2, here.id)


# Several GPUs


def _where(*tensors):
    """Where the memory of tensors lies, which their device must say."""
    for x in tensors:
        assert x._array.data.device_id == x.device.index
    return [x.device.index for x in tensors]


def test_operations_run_where_their_tensors_are_and_leave_the_current_device_as_it_was(two):
    with two.cuda.Device(0):
        for index in (0, 1, 0):
            x = tk.arange(6.0, device=f"cuda:{index}").view(2, 3).requires_grad_()
            y = tk.nn.functional.gelu(x.t() @ x) / 2
            y.square().mean().backward()
            assert _where(x, y, x.grad, x[0], x.sum(0), tk.zeros_like(x)) == [index] * 6
            assert two.current == 0


def test_where_a_program_made_another_device_current_no_array_relies_on_it(folder):
    with installed(folder, 2, current=1) as made:
        x, y = tk.ones(2, device="cuda:0") * 2, tk.ones(2, device="cuda:1") * 2
        assert _where(x, y) == [0, 1]
        made._local.current = 0
        assert _where(x + 1, y + 1, x.to("cuda:1")) == [0, 1, 1]


def test_tensors_of_two_gpus_do_not_mix(two):
    x, y = tk.ones(2, device="cuda:0"), tk.ones(2, device="cuda:1")
    for run in (lambda: x + y, lambda: y @ x, lambda: tk.cat([y, x]), lambda: y.add_(x)):
        with pytest.raises(RuntimeError, match=r"two devices, cuda:\d and cuda:\d!"):
            run()
    library = devices.cuda.backend(1).xp
    with pytest.raises(ValueError, match=r"resides \(0\) is different from the current device"):
        library.add(y._array, x._array)
    with installed(two.folder, 3):
        x, y = tk.ones(2, device="cuda:1"), tk.ones(2, device="cuda:2")
        with pytest.raises(ValueError, match="an array of GPU 2 is used on GPU 1"):
            x._array + y._array


@pytest.mark.parametrize("lies", LAID_OUT)
def test_a_copy_to_another_gpu_does_not_pass_through_the_host(two, lies):
    for one, other in (("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")):
        x = LAID_OUT[lies](tk.arange(24.0).view(2, 3, 4).to(one))
        with tk.cuda.record() as ledger:
            y = x.to(other)
            z = tk.zeros_like(x, device=other).copy_(x)
        assert {(each.name, each.direction, each.bytes) for each in ledger} == {
            ("to", "device to device", 96), ("copy_", "device to device", 96),
        }  # fmt: skip
        assert _where(y, z) == [int(other[-1])] * 2
        assert y.stride() == x.cpu().to("cpu", copy=True).stride()
        assert y.tolist() == z.tolist() == x.tolist()


def test_a_gradient_goes_back_to_its_gpu(two):
    x = tk.ones(2, device="cuda:1", requires_grad=True)
    y = (x * 2).to("cuda:0") * 3
    y.sum().backward()
    assert _where(x.grad, y) == [1, 0]
    assert x.grad.tolist() == [6, 6]


def test_each_gpu_has_its_books_its_events_and_its_generator(two):
    kept = [tk.zeros(1000, device="cuda:1"), tk.zeros(100, device="cuda:0")]
    assert [tk.cuda.memory_allocated(index) for index in (0, 1)] == [512, 4096]
    assert [tk.cuda.max_memory_allocated(index) for index in (0, 1)] == [512, 4096]
    del kept
    tk.cuda.empty_cache()
    assert [tk.cuda.memory_reserved(index) for index in (0, 1)] == [0, 0]
    with tk.cuda.device(1):
        event = tk.cuda.Event()
        event.record()
        assert event._mark.device == 1
    generators = [tk.Generator(f"cuda:{index}").manual_seed(3) for index in (0, 1)]
    numbers = [tk.randn(5, device=each.device, generator=each) for each in generators]
    assert _where(*numbers) == [0, 1]
    assert tk.equal(numbers[0], numbers[1].to("cuda:0"))
    assert tk.cuda.get_rng_state(1).tolist() == tk.cuda.get_rng_state(0).tolist()


def test_a_model_goes_to_another_gpu_with_its_optimizer(two):
    net = tk.nn.Sequential(tk.nn.Linear(3, 4), tk.nn.LayerNorm(4), tk.nn.Linear(4, 2))
    net.to("cuda:1")
    optimizer = tk.optim.Adam(net.parameters())
    for _ in range(2):
        tk.nn.functional.cross_entropy(
            net(tk.ones(5, 3, device="cuda:1")), tk.arange(5, device="cuda:1") % 2
        ).backward()
        optimizer.step()
    for x in net.parameters():
        state = optimizer.state[x]
        assert _where(x, x.grad, state["exp_avg"], state["exp_avg_sq"]) == [1] * 4
    assert two.launched[-1] == "adam_all"


def test_a_gradient_that_is_a_view_of_a_kept_tensor_is_copied(fake):
    """Views of CuPy's arrays share the pointer to the memory; only their owner is told."""
    x = tk.ones(2, 3, device="cuda", requires_grad=True)
    slope = tk.ones(6, device="cuda")
    x.view(6).backward(slope)
    x.grad.zero_()
    assert slope.tolist() == [1] * 6
    shared = tk.from_dlpack(slope)
    (x.view(6) * 1).backward(shared)
    x.grad.zero_()
    assert slope.tolist() == [1] * 6
