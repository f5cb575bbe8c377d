"""What the host waits for and what crosses between host and device, as the ledger notes it."""

import sys

import pytest

import tensorkit as tk
from tensorkit import nn


@pytest.mark.parametrize(
    "use",
    [
        lambda x, mask: x[mask],
        lambda x, mask: x[:, mask[0]],
    ],
)
def test_no_kernel_looks_whether_the_positions_of_a_mask_lie_inside(use):
    with tk.cuda.simulate():
        x = tk.arange(6.0, device="cuda").reshape(2, 3)
        mask = x > 1
        with tk.cuda.record() as ledger:
            use(x, mask)
        assert not {"greater_equal", "ge", "lt", "le", "less", "and", "all"} & {*ledger.counts()}
        assert ledger.counts("synchronise") in ({}, {"mask": 1})


def test_one_number_of_the_host_is_written_through_a_mask_without_waiting():
    with tk.cuda.simulate():
        x = tk.arange(4.0, device="cuda")
        with tk.cuda.record() as ledger:
            x[x > 1] = tk.tensor(9.0)
        assert ledger.counts("synchronise") == {}
        assert x.tolist() == [0.0, 1.0, 9.0, 9.0]


FOUND_LATER = {
    "index": lambda x: x[tk.tensor([5], device="cuda")],
    "index_select": lambda x: x.index_select(0, tk.tensor([9], device="cuda")),
    "write": lambda x: x.index_add_(0, tk.tensor([3], device="cuda"), x[:1] + 1),
    "gather": lambda x: x.gather(0, tk.tensor([7], device="cuda")),
    "class": lambda x: nn.functional.cross_entropy(x[None], tk.tensor([3], device="cuda")),
    "divisor": lambda x: x.long() // tk.zeros(3, dtype=tk.int64, device="cuda"),
    "one hot": lambda x: nn.functional.one_hot(x.long() + 4, 3),
}


@pytest.mark.parametrize("name", FOUND_LATER)
def test_a_kernel_that_finds_a_mistake_is_heard_at_the_next_wait(gpu, name):
    x = tk.ones(3, device="cuda")
    FOUND_LATER[name](x)
    with pytest.raises(RuntimeError, match=r"^CUDA error: device-side assert triggered\n"):
        tk.cuda.synchronize()
    tk.cuda.synchronize()  # once


def test_a_transfer_has_direction_bytes_and_the_line_that_asked_for_it(gpu):
    x = tk.ones(3, 4)
    with tk.cuda.record() as ledger:
        line = sys._getframe().f_lineno + 1
        y = x.cuda()
        y.double().cpu()
    there, back = ledger.transfers
    assert (there.name, there.direction, there.bytes) == ("to", "host to device", 48)
    assert there.line == (__file__, line)
    assert (back.name, back.direction, back.bytes) == ("to", "device to host", 96)
    assert back.line == (__file__, line + 1)


WAITS = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "print": lambda x: str(x),
    "if": lambda x: bool(x[0]),
    "int": lambda x: int(x[0]),
    "float": lambda x: float(x[0]),
    "index": lambda x: [7, 8][x[0].long()],
    "in": lambda x: 1 in x,
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero(),
    "equal": lambda x: tk.equal(x, x),
    "allclose": lambda x: tk.allclose(x, x),
    "one_hot": lambda x: nn.functional.one_hot(x.long()),
    "synchronize": lambda x: tk.cuda.synchronize(),
}


@pytest.mark.parametrize("name", WAITS)
def test_whoever_makes_the_host_wait_is_named(gpu, name):
    if gpu != "simulated" and name in ("mask", "nonzero"):
        pytest.skip("CuPy waits inside of these, which the library does not see")
    x = tk.ones(2, device="cuda")
    with tk.cuda.record() as ledger:
        WAITS[name](x)
    assert {each.name for each in ledger.synchronisations} == {name}
    assert {each.line[0] for each in ledger} == {__file__}


def test_what_waits_for_nothing_is_not_noted_as_waiting():
    with tk.cuda.simulate():
        x = tk.ones(2, 3, device="cuda")
        with tk.cuda.record() as ledger:
            y = (x @ x.t() + 1).relu()[:, 0].sum()
            assert y.shape == ()
            assert y.device.type == "cuda"
            assert ((x**y) ** (y / y)).shape == x.shape
        assert ledger.launches
        assert not ledger.synchronisations
        assert not ledger.transfers


def test_ledgers_nest_and_note_only_their_block():
    with tk.cuda.simulate():
        with tk.cuda.record() as outer:
            tk.ones(1).cuda()
            with tk.cuda.record() as inner:
                tk.ones(1).cuda()
        tk.ones(1).cuda()
    assert (len(outer.transfers), len(inner.transfers)) == (2, 1)
