"""Anomaly mode names the line of the forward that backward fails on."""

import warnings

import pytest

import tensorkit as tk


def _warning_of(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError):
            function()
    return str(caught[-1].message)


def test_the_line_that_gave_nan_is_named():
    x = tk.zeros(2, requires_grad=True)
    with tk.autograd.set_detect_anomaly(True):
        y = x / x  # this line
        text = _warning_of(lambda: y.sum().backward())
    assert text.startswith("Error detected in DivBackward0. Traceback of forward call")
    assert "y = x / x  # this line" in text


def test_without_lines_of_the_forward_it_says_so():
    x = tk.zeros(2, requires_grad=True)
    y = x / x
    with tk.autograd.set_detect_anomaly(True):
        text = _warning_of(lambda: y.sum().backward())
    assert text.startswith("Error detected in DivBackward0. No forward pass information available.")


def test_entering_detect_anomaly_warns():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = tk.autograd.detect_anomaly()
    with mode:
        assert tk.is_anomaly_enabled()
    assert not tk.is_anomaly_enabled()


def test_as_a_function_it_stays_on():
    tk.autograd.set_detect_anomaly(True, check_nan=False)
    try:
        assert tk.is_anomaly_enabled()
        assert not tk.is_anomaly_check_nan_enabled()
    finally:
        tk.autograd.set_detect_anomaly(False)
    assert not tk.is_anomaly_enabled()
