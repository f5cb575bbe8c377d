"""Old names, until all branches are merged."""

from tensorkit.autograd import node as _node
from tensorkit.autograd.inplace import *  # noqa
from tensorkit.autograd.node import *  # noqa


def is_short(rule):  # type: ignore[no-untyped-def]
    return _node.is_short(rule, {"alpha": 1})


def recorder(rule):  # type: ignore[no-untyped-def]
    if rule is None:
        return lambda result, *inputs: result
    if is_short(rule):
        return _node.recorder(rule, {"alpha": 1})
    return lambda result, *inputs: _node.record(
        rule, result, {"alpha": 1, **dict(zip(rule.inputs, inputs, strict=False))}
    )
