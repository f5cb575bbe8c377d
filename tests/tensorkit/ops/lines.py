"""One line of a program in PyTorch and in tensorkit: everything about its result is compared."""

import warnings

import numpy as np
from other_words import same_words
from tk_oracle import strides_that_count, torch

import tensorkit as tk


def _names(library):
    """What a line may use: the leaves ``x`` (2, 3, 4) and ``m`` (3, 4); ``T`` makes tensors."""
    x, m = (
        library.tensor(np.arange(float(np.prod(shape))).reshape(shape).tolist()).requires_grad_()
        for shape in ((2, 3, 4), (3, 4))
    )
    return {"torch": library, "T": library.tensor, "np": np, "x": x, "m": m}


def _chain(node, depth=3):
    if node is None:
        return None
    name = node.name().rsplit("::")[-1]
    below = [_chain(each, depth - 1) for each, _ in node.next_functions] if depth else []
    return [name, *below]


def _described(result, names):
    if type(result) in (tuple, list):
        return [_described(each, names) for each in result]
    if not hasattr(result, "storage_offset"):
        return repr(result)
    gradients = None
    if result.requires_grad:
        (result * result).sum().backward()
        gradients = [
            each.grad if each.grad is None else (_values(each.grad), strides_that_count(each.grad))
            for each in (names["x"], names["m"])
        ]
    return {
        "values": _values(result.detach()),
        "shape": tuple(result.shape),
        "strides": strides_that_count(result),
        "offset": result.storage_offset(),
        "dtype": repr(result.dtype),
        "nodes": _chain(result.grad_fn),
        "is a view": result._is_view(),
        "gradients": gradients,
    }


def _values(x):
    # float32 has seven digits, of which PyTorch's inverse of a matrix loses one on some processors
    return np.asarray(x.tolist(), np.float64).round(4).tolist()


def _outcome(library, line):
    names = _names(library)
    *before, last = line.split(";")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for statement in before:
                exec(statement, names)
            result = eval(last.strip(), names)
        except Exception as error:
            classes = [each.__name__ for each in type(error).__mro__]
            return classes, str(error).split("\n")[0]
        return None, _described(result, names)


def assert_line_agrees(line, but=()):
    """Value, dtype, shape, strides, offset, nodes, being a view, gradients; or the error.

    What ``but`` names is not compared.
    """
    expected_classes, expected = _outcome(torch, line)
    actual_classes, actual = _outcome(tk, line)
    if expected_classes is None or actual_classes is None:
        for each in but if expected_classes == actual_classes else ():
            del actual[each], expected[each]
        assert actual == expected
    else:
        assert same_words(actual, expected)
        assert expected_classes[0] in actual_classes
