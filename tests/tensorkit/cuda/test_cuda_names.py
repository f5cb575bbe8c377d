"""The names of ``tk.cuda``, ``tk.backends`` and ``tk.accelerator`` are PyTorch's."""

import pytest
from tk_oracle import torch, without_cuda

import tensorkit as tk

NAMES = (
    "is_available device_count current_device set_device get_device_name get_device_properties "
    "memory_allocated max_memory_allocated reset_peak_memory_stats memory_reserved empty_cache "
    "synchronize Event manual_seed OutOfMemoryError"
)


def test_the_names_are_pytorchs():
    assert not [name for name in NAMES.split() if not hasattr(tk.cuda, name)]
    assert not [name for name in NAMES.split() if not hasattr(torch.cuda, name)]
    with tk.cuda.simulate():
        for name in ("name", "total_memory", "multi_processor_count", "major", "minor"):
            assert hasattr(tk.cuda.get_device_properties(0), name)


def test_what_of_cuda_is_missing_is_refused_with_what_there_is():
    for run, advice in (
        (lambda: tk.cuda.memory_stats, "use memory_allocated and memory_reserved instead"),
        (lambda: tk.cuda.Stream, "leave it out: one CUDA device has one stream"),
        (lambda: tk.set_float32_matmul_precision, "leave it out: float32 stays float32"),
        (lambda: tk.cuda.amp, "there is no autocast"),
        (lambda: tk.ones(1).pin_memory(), "leave it out: all CPU memory is alike"),
    ):
        with pytest.raises(AttributeError, match=advice):
            run()


def test_settings_of_other_libraries_can_be_made_and_change_nothing():
    for m in (torch, tk):
        assert m.backends.cudnn.enabled
        assert not m.backends.cudnn.deterministic
        assert not m.backends.cuda.matmul.allow_tf32
    tk.backends.cudnn.benchmark = tk.backends.cuda.matmul.allow_tf32 = True
    tk.backends.cudnn.benchmark = tk.backends.cuda.matmul.allow_tf32 = False
    assert not tk.backends.cudnn.is_available()
    assert not tk.backends.mps.is_available()


def test_programs_that_name_no_cuda_find_it_as_the_accelerator():
    with without_cuda():
        assert not tk.accelerator.is_available()
    with tk.cuda.simulate():
        assert tk.accelerator.is_available()
        for name in ("device_count", "synchronize", "empty_cache", "memory_allocated"):
            assert hasattr(torch.accelerator, name)
            assert hasattr(tk.accelerator, name)
