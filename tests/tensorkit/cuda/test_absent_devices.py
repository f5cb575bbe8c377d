"""Devices that are not there are refused, in PyTorch's words where it has them."""

import pytest
from tk_oracle import first_line, torch

import tensorkit as tk
from tensorkit import nn


@pytest.mark.parametrize(
    "name", ["gpu", "cuda:x", "cuda:-1", "cuda:01", "CUDA", "cuda:", ":0", "cuda0", "0"]
)
def test_a_string_that_names_no_device_is_refused_as_in_pytorch(gpu, name):
    kind, line = first_line(lambda: torch.zeros(1).to(name))
    for run in (lambda: tk.zeros(1).to(name), lambda: tk.zeros(1, device=name)):
        error, sentence = first_line(run)
        assert issubclass(error, kind)
        assert sentence == line


def test_a_second_device_is_refused_with_the_one_there_is(gpu):
    for run in (
        lambda: tk.zeros(1, device="cuda:1"),
        lambda: tk.zeros(1).cuda(1),
        lambda: nn.Linear(2, 2).to("cuda:1"),
        lambda: tk.cuda.set_device(1),
    ):
        with pytest.raises(RuntimeError, match=r"^CUDA error: invalid device ordinal\n") as e:
            run()
        assert str(e.value).endswith("tensorkit computes on one CUDA device.\nTry: .to('cuda')")
    assert tk.cuda.current_device() == 0


@pytest.mark.skipif(tk.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize(
    "run",
    [
        lambda m: m.zeros(1, device="cuda"),
        lambda m: m.zeros(1).cuda(),
        lambda m: m.zeros(1).to("cuda:0"),
        lambda m: m.nn.Linear(1, 1).cuda(),
        lambda m: m.cuda.current_device(),
        lambda m: m.cuda.synchronize(),
    ],
)
def test_without_a_device_the_sentence_is_pytorchs_and_the_repair_works(run):
    kind, line = first_line(lambda: run(torch))
    error, sentence = first_line(lambda: run(tk))
    assert issubclass(error, kind)
    assert sentence == line
    with pytest.raises(kind, match=r"Try: device=\"cpu\", or tk.cuda.simulate\(\) before"):
        run(tk)
    with tk.cuda.simulate():
        run(tk)


@pytest.mark.skipif(tk.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_the_questions_have_answers():
    for m in (tk, torch):
        assert not m.cuda.is_available()
        assert m.cuda.device_count() == 0
        assert m.cuda.memory_allocated() == 0
    assert tk.version.cuda is None
    assert not tk.backends.mps.is_available()


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (lambda: tk.ones(1).cuda("cpu"), RuntimeError),
        (lambda: tk.ones(1).cuda(1.5), TypeError),
        (lambda: tk.ones(1).cuda(-1), RuntimeError),
        (lambda: tk.ones(1).cuda("gpu"), RuntimeError),
        (lambda: tk.device("cuda", 1.0), RuntimeError),
        (lambda: tk.device("cuda:0", 0), RuntimeError),
        (lambda: tk.Generator("gpu"), RuntimeError),
        (lambda: tk.cuda.set_device("cpu"), ValueError),
    ],
)
def test_what_is_no_cuda_device_is_refused(gpu, run, kind):
    with pytest.raises(kind):
        run()
