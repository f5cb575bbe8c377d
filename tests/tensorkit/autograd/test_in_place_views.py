"""In-place forms of operations are what they are in PyTorch."""

import re

import pytest
from tk_oracle import assert_same_outcome, strides_that_count, torch

import tensorkit as tk

FORMS = {
    "masked_fill_": "b.masked_fill_(tk.tensor([True, False, True]), 7.0)",
    "scatter_add_": "b.scatter_add_(1, tk.tensor([[0, 2]]), tk.ones(1, 2))",
    "index_add_": "b.index_add_(1, tk.tensor([0, 2]), tk.ones(1, 2).to(b.dtype))",
}
SITUATIONS = {
    "a plain tensor": "b = tk.ones(1, 3); same = FORM is b",
    "a leaf": "FORM",
    "a leaf under no_grad": "with tk.no_grad(): FORM",
    "a result": "b = x * 2; FORM; y = b * b",
    "a result under no_grad": "b = x * 2\nwith tk.no_grad(): FORM",
    "a tensor that was saved": "b = x * 2; y = b * b; FORM",
    "a result that its node keeps": "b = x.exp(); y = b * 1; FORM",
    "a part of a plain tensor": "c = tk.ones(2, 3); b = c[:1]; FORM",
    "a part of a leaf": "b = x[:]; FORM",
    "a part of a result": "c = x * 2; b = c[:, :3]; other = c[0, 1:]; FORM; y = b * c.sum()",
    "what a view was made from": "b = x * 2; other = b[:, 1:]; FORM; y = other * other",
    "written to after": "b = x * 2; other = b[:, 1:]; FORM; b.mul_(3); y = b * other.sum()",
    "a part written to after": "c = x * 2; b = c[:, :3]; FORM; b.mul_(3); y = c * c",
    "made in inference mode": "with tk.inference_mode(): b = tk.ones(1, 3)\nFORM",
    "integers": "b = tk.arange(3).view(1, 3); other = b[0]; FORM",
    "twice": "b = x * 2; FORM; FORM; y = b * 3",
    "a kept gradient": "b = x * 2; b.retain_grad(); FORM; y = b * 3; kept = b",
    "kept twice": "b = x * 2; b.retain_grad(); FORM; b.retain_grad(); y = b * 3; kept = b",
    "kept twice of a part": "c = x * 2; b = c[:]; b.retain_grad(); FORM; b.retain_grad(); "
    "y = b * 3; kept = b",
}


def _run(module, program):
    x = module.tensor([[1.0, 2.0, 4.0]], requires_grad=True)
    scope = {"tk": module, "x": x, "b": x}
    exec(program, scope)
    facts = [
        (
            name,
            re.sub(" object at 0x.*>", ">", repr(each.grad_fn)),
            strides_that_count(each),
            each.storage_offset(),
            each.tolist(),
            each._version if not each.is_inference() else None,
            each.is_leaf,
        )
        for name, each in scope.items()
        if isinstance(each, module.Tensor)
    ]
    if "y" in scope:
        scope["y"].sum().backward()
    kept = scope["b"].grad.tolist() if "kept" in scope else None
    return repr((facts, scope.get("same"), kept, x.grad is not None and x.grad.tolist()))


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("form", FORMS)
def test_an_in_place_form_does_what_it_does_in_pytorch(form, situation):
    program = SITUATIONS[situation].replace("FORM", FORMS[form])
    assert_same_outcome(lambda: _run(torch, program), lambda: _run(tk, program))


def _gradient_through_a_view(module):
    w = module.ones(4, requires_grad=True)
    whole = module.arange(4.0)
    view = whole[1:].requires_grad_(False)
    view.requires_grad = False
    view.mul_(w[1:])
    whole.mul_(w)
    ((view * view).sum() + whole.sum()).backward()
    return view._is_view(), w.grad.tolist()


def test_a_view_that_needs_no_gradient_stays_a_view():
    assert _gradient_through_a_view(tk) == _gradient_through_a_view(torch)


def test_a_recorded_write_to_what_a_leaf_looks_at_is_refused():
    w = tk.ones(4, requires_grad=True)
    whole = tk.arange(4.0)
    leaf = whole.view(2, 2).requires_grad_()
    whole += 1  # not recorded
    with pytest.raises(NotImplementedError, match="Try: x = x \\* y "):
        whole.mul_(w)
    leaf.requires_grad_(False)
    assert leaf._is_view()
    assert leaf.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_view_of_a_leaf_that_is_a_view_gets_what_it_gets_in_pytorch_after_a_write():
    def gradient(module):
        leaf = module.arange(6.0).reshape(2, 3).requires_grad_()
        row = leaf[0]
        with module.no_grad():
            leaf.sub_(0.1)
        ((row * row).sum() + (leaf * leaf).sum()).backward()
        return leaf.grad.tolist()

    assert gradient(tk) == gradient(torch)
