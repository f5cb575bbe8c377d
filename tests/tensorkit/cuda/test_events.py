"""Events measure the time of the simulated device's model."""

import pytest

import tensorkit as tk


def test_events_measure_the_time_of_the_model_which_is_the_same_each_time():
    found = []
    for _ in range(2):
        with tk.cuda.simulate():
            start, end = (tk.cuda.Event(enable_timing=True) for _ in range(2))
            x = tk.ones(1000, device="cuda")
            start.record()
            (x * 2).sum()
            end.record()
            assert not end.query()
            tk.cuda.synchronize()
            assert end.query()
            found.append(start.elapsed_time(end))
    assert found[0] == found[1] > 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        tk.cuda.Event().elapsed_time(end)


@pytest.fixture
def events():
    """Two events of a simulated device, before and after work that it has not done yet."""
    with tk.cuda.simulate():
        start, end = (tk.cuda.Event(enable_timing=True) for _ in range(2))
        x = tk.ones(10**6, device="cuda")
        start.record()
        x * 2
        end.record()
        yield start, end


def test_the_time_between_events_is_refused_while_the_device_is_at_work(events):
    start, end = events
    with pytest.raises(RuntimeError, match=r"^Both events must be completed before"):
        start.elapsed_time(end)


def test_who_asks_an_event_on_and_on_is_answered(events):
    assert any(events[1].query() for _ in range(1000))
