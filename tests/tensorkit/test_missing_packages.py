"""Without matplotlib, graphviz or safetensors: what needs one says so, the rest works."""

import io
import sys

import pytest

import tensorkit as tk
from tensorkit import viz


@pytest.fixture
def without(monkeypatch):
    """Take a package away: its modules are forgotten, and each new import of it fails."""

    def take_away(package):
        for name in [*sys.modules]:
            if name.partition(".")[0] == package:
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)

    return take_away


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("matplotlib", lambda: viz.training({"loss": [2.0, 1.0]})),
        ("safetensors", lambda: tk.save(tk.ones(2), io.BytesIO())),
        ("safetensors", lambda: tk.load(io.BytesIO(b""))),
    ],
    ids=["chart", "save", "load"],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(without, package, use):
    without(package)
    with pytest.raises(ImportError) as caught:
        use()
    assert caught.value.__cause__ is None
    assert package in str(caught.value)
    assert "pip install 'tensorkit-course[lab]'" in str(caught.value)


def test_pictures_are_shown_without_matplotlib_and_graphviz(without):
    without("matplotlib")
    without("graphviz")
    y = (tk.ones(2, requires_grad=True) * 2).sum()
    for picture in (viz.memory(x=tk.ones(2)), viz.graph(y), viz.broadcast((2, 1), (3,))):
        assert "<img" in picture.html


def test_another_missing_module_is_no_package_of_ours(monkeypatch):
    from tensorkit.errors import importing

    with pytest.raises(ZeroDivisionError), importing("This"):
        raise ZeroDivisionError
