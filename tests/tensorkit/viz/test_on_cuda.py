"""Pictures and explanations of tensors on a CUDA device, and the timeline of its ledger."""

import re

import pytest
from test_kinds import KINDS
from test_pictures import EXPLAIN, VIZ

import tensorkit as tk
from tensorkit import explain, viz
from tensorkit.viz import words

OF_TENSORS = {**VIZ, **EXPLAIN}


@pytest.fixture
def cuda():
    with tk.cuda.simulate(), tk.device("cuda"):
        yield


def _on_cpu(text):
    return re.sub(r",? on cuda:0", "", re.sub(" +", " ", text))


@pytest.mark.parametrize(
    "name", [name for name in OF_TENSORS if name != "dispatch"]
)  # which names it
def test_what_is_told_is_what_it_is_on_the_cpu(name, cuda):
    told = OF_TENSORS[name]().alt
    with tk.device("cpu"):
        assert _on_cpu(told) == _on_cpu(OF_TENSORS[name]().alt)


@pytest.mark.parametrize("name", KINDS)
def test_the_walk_gives_the_engines_gradient_there_too(name, cuda):
    x = tk.arange(12.0).reshape(3, 4).div(12).requires_grad_()
    y = KINDS[name](x).sum()
    (wanted,) = tk.autograd.grad(y, x, retain_graph=True)
    shown = re.search(r"x.grad gets (.*) \(x: ", viz.backward(y, naive=True).alt)[1]
    assert shown == words.values(wanted)
    for look in (viz.graph, viz.saved, viz.memory, explain.no_grad, explain.inplace):
        assert look(y).svg


def test_pictures_say_on_which_device_a_tensor_is(cuda):
    x = tk.ones(2, requires_grad=True)
    assert "x: leaf, (2,) float32 on cuda:0; [1., 1.]" in viz.graph(x * 2).alt
    assert "8 bytes, on cuda:0" in viz.memory(x).alt
    apart = viz.memory(x=x, moved=x.cpu()).alt
    assert "storage 2: 2 elements, float32, 8 bytes\n" in apart


def test_a_transfer_for_a_picture_is_noted_with_its_line(cuda):
    t = tk.arange(600).reshape(20, 30)
    with tk.cuda.record() as ledger:
        viz.memory(t)
    assert [(event.kind, event.direction) for event in ledger] == [("transfer", "device to host")]
    assert words.source(*ledger.records[0].line) == "viz.memory(t)"


@pytest.mark.parametrize("index", [[2, 0], [[True, False, True, False]] * 3])
def test_an_index_on_the_device_is_drawn(index, cuda):
    t = tk.arange(12).reshape(3, 4)
    text = viz.indexing(t, tk.tensor(index)).alt
    with tk.device("cpu"):
        there = viz.indexing(t.cpu(), tk.tensor(index)).alt
    assert _on_cpu(text) == _on_cpu(there)


def test_a_landscape_is_computed_where_its_path_is(cuda):
    scale = tk.tensor(2.0)
    path = [tk.tensor([1.0, 1.0]), tk.tensor([0.5, 0.5])]
    with tk.cuda.record() as ledger:
        viz.landscape(lambda x, y: scale * x * x + y * y, path)
    assert len(ledger.launches) > 1000


# The timeline


def _naive_and_right():
    batches = tk.ones(3, 4, 8)
    weight = tk.ones(8, 2, device="cuda")
    with tk.cuda.record() as naive:
        for batch in batches:
            (batch.cuda() @ weight).sum().item()
    with tk.cuda.record() as right:
        sums = [(batch @ weight).sum() for batch in batches.cuda()]
        tk.stack(sums).tolist()
    return naive, right


@pytest.fixture
def ledgers():
    with tk.cuda.simulate():
        yield _naive_and_right()


def test_the_timeline_counts_and_tells_where(ledgers):
    naive, all_at_once = ledgers
    text = viz.timeline(naive, all_at_once).alt
    assert text.startswith("Timeline of the device: naive and all at once\n")
    assert "naive: 6 transfers (396 bytes in all), 6 launches, 3 synchronisations, over " in text
    assert (
        "all at once: 2 transfers (396 bytes in all), 7 launches, 1 synchronisation, over " in text
    )
    line = next(
        each for each in text.splitlines() if "(batch.cuda() @ weight).sum().item()" in each
    )
    assert re.search(r"6, 396 bytes in all +6 +3$", line)
    assert re.search(r"at 0 ns: transfer to, host to device, 128 bytes \(.*, line \d+: ", text)


def test_the_timeline_says_that_a_launchs_bar_is_the_device_running(ledgers):
    picture = viz.timeline(*ledgers)
    assert "A bar of a launch is the device running it" in picture.alt
    assert ">launch: running<" in picture.svg


def test_the_timeline_is_the_same_on_every_run(ledgers):
    once = viz.timeline(*ledgers).svg
    assert viz.timeline(*_naive_and_right()).svg == once  # later on the same device's clock
    with tk.cuda.simulate():
        assert viz.timeline(*_naive_and_right()).svg == once


def test_a_timeline_of_many_records_stays_small():
    with tk.cuda.simulate(), tk.cuda.record() as ledger:
        x = tk.ones(3, device="cuda")
        for _ in range(3000):
            x = x + 1
    picture = viz.timeline(ledger)
    assert len(picture.svg) < 500_000
    assert "3,000 times add" in picture.alt


def test_an_empty_ledger_and_what_is_none_get_a_sentence():
    with tk.cuda.record() as ledger:
        pass
    assert viz.timeline(ledger).title == "Nothing happened"
    with pytest.raises(TypeError, match=r"Try: with tk\.cuda\.record\(\) as ledger"):
        viz.timeline([])
