"""save and load: what comes back, what is refused, what happens to broken files."""

import io
import json
import math
from collections import OrderedDict

import pytest
from safetensors.numpy import load as read_safetensors
from safetensors.numpy import save as write_safetensors

import tensorkit as tk


def _again(value, **options):
    file = io.BytesIO()
    tk.save(value, file)
    return tk.load(io.BytesIO(file.getvalue()), **options)


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        2**80,
        -1.5,
        math.inf,
        True,
        "text ä",
        [],
        (1, [2.5, (None,)], {}),
        {"a": 1, 2: "b", None: [], 1.5: (), True: {}},
        OrderedDict(b=1, a=2),
        [tk.arange(3), tk.tensor(2.5), tk.zeros(0, 3), tk.tensor([True, False])],
        {"x": {"y": (tk.ones(2, 3).t(), tk.ones(2, 3)[:, 1])}},
        [tk.ones(2, dtype=tk.float16), tk.ones(2, dtype=tk.uint8), tk.ones(2, dtype=tk.float64)],
        tk.ones(2, requires_grad=True),
        tk.nn.Parameter(tk.ones(2)),
    ],
    ids=str,
)
def test_what_is_saved_comes_back(value):
    found = _again(value)
    assert repr(found) == repr(value)
    assert type(found) is type(value)


def test_strides_and_offset_come_back():
    x = tk.arange(12).view(3, 4).t()[1:, ::2]
    found = _again(x)
    assert (found.stride(), found.storage_offset()) == (x.stride(), x.storage_offset())
    assert tk.equal(found, x)


def test_shared_memory_is_written_once_and_shared_again():
    x = tk.zeros(100_000)
    file = io.BytesIO()
    tk.save({"all": x, "part": x[2:4], "again": x.view(100, 1000)}, file)
    assert len(file.getvalue()) < 2 * x.nbytes
    found = tk.load(io.BytesIO(file.getvalue()))
    found["part"].fill_(7)
    assert found["all"][:5].tolist() == [0, 0, 7, 7, 0]
    assert found["again"][0, 2].item() == 7


def test_a_loaded_tensor_can_be_written():
    found = _again([tk.ones(2)])[0]
    found.add_(1)
    assert found.tolist() == [2, 2]


def test_models_and_optimizers_go_on_where_they_were_saved(tmp_path):
    net = tk.nn.Linear(2, 1)
    optimizer = tk.optim.Adam(net.parameters())
    net(tk.ones(1, 2)).sum().backward()
    optimizer.step()
    tk.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "m.tk")
    found = tk.load(tmp_path / "m.tk")
    other = tk.nn.Linear(2, 1)
    other.load_state_dict(found["net"])
    assert tk.equal(other.weight, net.weight)
    assert repr(found["optimizer"]) == repr(optimizer.state_dict())


def test_other_programs_find_the_tensors_by_their_path():
    file = io.BytesIO()
    tk.save({"net": {"weight": tk.ones(2, 3)}}, file)
    assert read_safetensors(file.getvalue())["net.weight"].shape == (2, 3)


def test_a_safetensors_file_of_other_origin_gives_its_tensors():
    content = write_safetensors({"a": tk.ones(2).numpy()})
    assert repr(tk.load(io.BytesIO(content))) == "{'a': tensor([1., 1.])}"


@pytest.mark.parametrize(
    ("value", "kind"),
    [({1, 2}, "set"), ([print], "builtin"), ({(1, 2): 3}, "tuple"), (tk.nn.ReLU(), "ReLU")],
)
def test_other_objects_are_refused(value, kind):
    with pytest.raises(TypeError, match=f"not {kind}"):
        tk.save(value, io.BytesIO())


def test_a_refused_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.tk"
    tk.save(1, path)
    with pytest.raises(TypeError):
        tk.save([tk.ones(2), object()], path)
    assert tk.load(path) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["x.tk"]


@pytest.mark.parametrize("keep", [0, 4, 20, 200, -1])
def test_a_file_that_was_cut_off_is_refused(tmp_path, keep):
    path = tmp_path / "x.tk"
    tk.save({"w": tk.ones(100)}, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RuntimeError, match=r"x\.tk is no file that tk\.save wrote"):
        tk.load(path)


def test_a_pytorch_file_is_named_as_such():
    with pytest.raises(RuntimeError, match="PyTorch file"):
        tk.load(io.BytesIO(b"PK\x03\x04 and so on"))


def test_a_layout_beyond_the_memory_is_refused():
    entry = {"tensor": "x", "shape": [9], "strides": [1], "offset": 0, "device": "cpu"}
    entry.update(requires_grad=False, parameter=False)
    described = {"tensorkit": json.dumps({"version": 1, "structure": entry})}
    content = write_safetensors({"x": tk.ones(2).numpy()}, metadata=described)
    with pytest.raises(RuntimeError, match="out of bounds"):
        tk.load(io.BytesIO(content))


def test_a_device_can_be_chosen():
    assert _again(tk.ones(2), map_location="cpu").device.type == "cpu"
