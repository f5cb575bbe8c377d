"""explain.no_grad and explain.inplace: each cause is named, and each repair is true."""

import linecache

import pytest

import tensorkit as tk
from tensorkit import explain


def _leaf():
    return tk.tensor([1.0, 2.0], requires_grad=True)


def test_a_gradient_that_is_there_is_said():
    w = _leaf()
    (w * 3.0).sum().backward()
    assert explain.no_grad(w).alt == "w.grad is not None\nIt is [3., 3.], (2,) float32."


def test_no_leaf_is_offered_retain_grad():
    h = _leaf() * 2.0
    explanation = explain.no_grad(h)
    assert "h is the result of MulBackward0" in explanation.alt
    exec(explanation.repairs[-1], {"h": h})
    h.sum().backward()
    assert h.grad is not None


def test_a_leaf_without_backward_is_told_which_result_to_use():
    w = _leaf()
    loss = (w * w).sum()
    explanation = explain.no_grad(w)
    assert explanation.repairs == ["loss.backward()"]
    exec(explanation.repairs[0], {"loss": loss})
    assert w.grad is not None


def test_an_integer_dtype_is_named():
    t = tk.arange(3)
    explanation = explain.no_grad(t)
    assert "t has dtype tk.int64" in explanation.alt
    names = {"t": t}
    exec(explanation.repairs[0], names)
    (names["t"] * 2).sum().backward()
    assert names["t"].grad is not None


def test_without_a_recording_it_says_what_it_cannot_know():
    d = (_leaf() * 2).detach()
    assert "history was cut off" in explain.no_grad(d).alt
    assert "inside `with tk.autograd.recording():` the line is named" in explain.no_grad(d).alt


def test_a_result_of_unknown_origin_is_told_what_its_inputs_must_do():
    loss = (tk.ones(2) * 2).sum()
    explanation = explain.no_grad(loss)
    assert "what it was computed from must require grad" in explanation.alt
    assert "if loss is a tensor that you made" in explanation.alt


@pytest.mark.parametrize(
    ("given", "repair"),
    [
        pytest.param(None, "w, not w.grad", id="the gradient instead of its tensor"),
        pytest.param(3.0, r"or w\.item", id="a number instead of its tensor"),
        pytest.param([1.0], "tk.tensor", id="a list"),
    ],
)
def test_what_is_no_tensor_gets_the_repair_for_its_kind(given, repair):
    with pytest.raises(TypeError, match=repair):
        explain.no_grad(given)


def test_broadcast_asks_for_the_tensors_instead_of_an_error():
    with pytest.raises(TypeError, match="the two that did not fit"):
        explain.broadcast(RuntimeError("sizes"))


def test_detach_is_found_through_later_operations():
    with tk.autograd.recording():
        h = _leaf() * 2
        d = h.detach()
        e = d + 1
    explanation = explain.no_grad(e)
    assert "took h, which requires grad; its result does not: detach leaves" in explanation.alt
    assert explanation.repairs == ["d = h"]


def test_a_no_grad_block_is_found():
    w = _leaf()
    with tk.autograd.recording(), tk.no_grad():
        y = w * 2
    explanation = explain.no_grad(y)
    assert "made inside no_grad" in explanation.alt
    names = {"w": w}
    exec(explanation.repairs[0], names)
    assert names["y"].requires_grad


def test_data_is_found():
    w = _leaf()
    with tk.autograd.recording():
        y = w.data * 2
    explanation = explain.no_grad(y)
    assert "data leaves the history behind" in explanation.alt
    assert explanation.repairs == ["y = w * 2"]


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_a_tensor_made_of_a_tensor_is_found():
    w = _leaf()
    with tk.autograd.recording():
        y = tk.tensor(w * 2)
    explanation = explain.no_grad(y)
    assert "tensor copies values and leaves the history behind" in explanation.alt
    assert explanation.repairs == ["y = (w * 2)"]


def test_a_module_under_no_grad_is_found_by_its_parameters():
    layer = tk.nn.Linear(2, 1)
    with tk.autograd.recording(), tk.no_grad():
        y = layer(tk.ones(1, 2)).relu()
    text = explain.no_grad(y).alt
    assert "took layer.weight and layer.bias, which require grad; its result does not" in text


def test_asking_too_late_is_found():
    w = tk.ones(2)
    with tk.autograd.recording():
        loss = (w * 2).sum()
    w.requires_grad_()
    assert "took w before it required grad" in explain.no_grad(loss).alt


def test_a_leaf_that_nothing_was_computed_from_is_told_so():
    w = _leaf()
    assert "No tensor with a name here has w in its graph" in explain.no_grad(w).alt


def test_an_integer_conversion_is_found():
    with tk.autograd.recording():
        whole = (_leaf() * 2).long()
    assert "only floating-point numbers have gradients" in explain.no_grad(whole).alt


def test_replacing_by_assignment_is_recognised_under_no_grad():
    w = _leaf()
    with tk.autograd.recording(), tk.no_grad():
        w = w - 0.5
    explanation = explain.no_grad(w)
    assert "w was replaced by assignment" in explanation.alt
    names = {"w": _leaf(), "tk": tk}
    exec(explanation.repairs[0], names)
    assert names["w"].is_leaf
    assert names["w"].tolist() == [0.5, 1.5]


def test_a_leaf_replaced_by_a_result_is_told_to_become_a_leaf_again():
    w = _leaf()
    w = w - 0.5 * w
    explanation = explain.no_grad(w)
    assert "If w was a leaf, it was replaced by assignment." in explanation.alt
    names = {"w": w}
    exec(explanation.repairs[0], names)
    assert names["w"].is_leaf


def _broken(recorded):
    x = _leaf()
    if not recorded:
        y = x.exp()
        loss = (y * y).sum()
        y += 1
        return loss
    with tk.autograd.recording():
        y = x.exp()
        loss = (y * y).sum()
        y += 1
    return loss


def test_who_saved_and_who_changed_are_named_with_their_lines():
    with pytest.raises(RuntimeError) as raised:
        _broken(True).backward()
    text = explain.inplace(raised.value).alt
    assert "MulBackward0 saved its input (" in text
    assert "loss = (y * y).sum()" in text
    assert "the last was add_ (test_explain.py, line" in text
    assert "y += 1" in text


def test_a_tensor_serves_as_well_as_the_error():
    assert explain.inplace(_broken(False)).repairs == explain.inplace(_broken(True)).repairs
    assert "at which line is not known, run it inside" in explain.inplace(_broken(False)).alt


def test_three_repairs_run():
    out_of_place, copy, afterwards = explain.inplace(_broken(False)).repairs
    for repair in (out_of_place, copy):
        x = _leaf()
        y = x.exp()
        names = {"y": y, "loss": (y * y).sum()}
        exec(repair, names)
        names["loss"].backward()
        assert x.grad is not None
    x = _leaf()
    y = x.exp()
    exec(afterwards, {"y": y, "loss": (y * y).sum()})
    assert x.grad is not None


def test_a_method_that_exists_only_in_place_changes_a_copy():
    x = _leaf()
    y = x.exp()
    loss = y.sum()
    y.zero_()
    assert explain.inplace(loss).repairs == [
        "y = y.clone()\ny.zero_()",
        "loss.backward()\ny.zero_()",
    ]


def test_a_second_backward_is_explained():
    loss = _leaf().exp().sum()
    loss.backward()
    with pytest.raises(RuntimeError) as error:
        loss.backward()
    for given in (error.value, loss):
        assert "Try: y.backward(retain_graph=True)" in explain.inplace(given).alt


def test_pairs_that_became_a_table_are_pointed_out():
    explanation = explain.broadcast(pred=tk.ones(3, 1), target=tk.ones(3))
    assert explanation.repairs == ["target.unsqueeze(1)", "pred.view(3)"]
    assert explain.broadcast((3, 1), (4,)).repairs == []


def test_nothing_changed_and_other_errors_get_a_sentence():
    assert explain.inplace((_leaf() * 2).sum()).title == "Nothing was changed"
    assert explain.inplace(tk.ones(2)).title == "Nothing was changed"
    assert explain.inplace(ValueError("no")).title == "Something else"
    with pytest.raises(TypeError, match=r"explain\.inplace\(\) wants a tensor"):
        explain.inplace(3)


def test_an_explanation_in_a_notebook_is_text():
    html = explain.no_grad(_leaf() * 2).html
    assert "<ol>" in html
    assert "<script" not in html


def test_a_frozen_parameter_is_named_as_code():
    model = tk.nn.Sequential(tk.nn.Linear(2, 2))
    model[0].weight.requires_grad_(False)
    explanation = explain.no_grad(model[0].weight)
    exec(explanation.repairs[0], {"model": model})
    assert model[0].weight.requires_grad


def test_a_conversion_after_requires_grad_is_no_update():
    with tk.autograd.recording():
        weights = tk.tensor([0.5, 1.5], requires_grad=True).double()
    explanation = explain.no_grad(weights)
    assert "weights is the result of ToCopyBackward0" in explanation.alt
    names = {"weights": weights}
    exec(explanation.repairs[0], names)
    assert names["weights"].is_leaf
    assert names["weights"].dtype is tk.float64


def test_inference_mode_is_named():
    with tk.inference_mode():
        y = tk.ones(2) * 2
    explanation = explain.no_grad(y)
    assert "inference_mode" in explanation.alt
    names = {"y": y}
    exec(explanation.repairs[0], names)
    assert names["y"].requires_grad


def test_a_write_to_a_part_is_changed_to_come_later():
    x = _leaf()
    y = x.exp()
    loss = y.sum()
    y[0].zero_()
    assert explain.inplace(loss).repairs == ["loss.backward()\ny[0].zero_()"]


@pytest.mark.parametrize(
    "write", ["y[0] = 5.0", "y[0] += 1", "y[y > 2] = x.detach()[1]", "y.normal_()", "y.zero_()"]
)
def test_every_write_to_a_name_has_repairs_that_run(write):
    x = _leaf()
    y = x.exp()
    loss = y.sum()
    linecache.cache["a cell"] = (0, None, [write], "a cell")
    exec(compile(write, "a cell", "exec"), {"x": x, "y": y})
    repairs = explain.inplace(loss).repairs
    assert len(repairs) == (1 if "[" in write else 2)
    for repair in repairs:
        names = {"x": x, "y": x.exp()}
        names["loss"] = names["y"].sum()
        exec(repair, names)
        if "backward" not in repair:
            names["loss"].backward()


def test_a_changed_parameter_stays_a_leaf():
    w, x = _leaf(), _leaf()
    loss = (w * x).sum()
    with tk.no_grad():
        w -= 0.5
    (afterwards,) = explain.inplace(loss).repairs
    names = {"tk": tk, "w": _leaf(), "x": x}
    names["loss"] = (names["w"] * x).sum()
    exec(afterwards, names)
    assert names["w"].is_leaf
    assert names["w"].tolist() == [0.5, 1.5]


def test_an_optimizers_step_is_no_write_to_a_name():
    layer = tk.nn.Sequential(tk.nn.Linear(2, 2), tk.nn.Linear(2, 1))
    optimizer = tk.optim.SGD(layer.parameters(), lr=0.1)
    loss = layer(tk.ones(1, 2)).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError) as raised:
        loss.backward()
    repairs = explain.inplace(raised.value).repairs
    assert repairs[0] == "loss.backward()\noptimizer.step()"
    assert all("clone" not in repair for repair in repairs)


def test_a_repair_is_offered_once():
    w = _leaf()
    with tk.autograd.recording():
        r = w.detach() + (w * 2).detach()
    assert len(explain.no_grad(r).repairs) == 1


def test_the_parameters_of_a_module_are_repaired_by_their_own_name():
    model = tk.nn.Sequential(tk.nn.Linear(4, 3))
    bias = tk.ones(3)
    repairs = explain.broadcast(model[0].weight, bias).repairs
    assert repairs == ["bias.unsqueeze(1)", "model[0].weight.T", "model[0].weight.unsqueeze(2)"]
    for repair in repairs[1:]:
        assert (eval(repair, {"model": model}) + bias).shape
