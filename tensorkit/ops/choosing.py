"""Functions that choose an operation, and what they chose: ``@planned`` and ``@composed``.

``x.sum(0)`` is one of several operations, depending on its arguments. A function looks at these,
once, and says which; the decorator keeps that, with what else is known of the result, by the forms
of the tensors and the other arguments, so that the next such call only computes and records.

    @planned(1)
    def sum(input, dim=None, keepdim=False):
        if dim is None and not keepdim:
            return _sum, (input,), {}
        return _sum_along, (input,), {"dim": dim, "keepdim": keepdim}
"""

from collections.abc import Callable
from functools import wraps
from operator import attrgetter, is_
from typing import Any, ParamSpec

from tensorkit import base
from tensorkit.autograd import history, recorders
from tensorkit.autograd.recorders import Recorder
from tensorkit.base import Form, Tensor
from tensorkit.devices import CPU
from tensorkit.ops import planning, results
from tensorkit.ops.arguments import renamed
from tensorkit.ops.planning import Definition, is_plain
from tensorkit.quiet import quiet

_xp = CPU.backend.xp
_new = object.__new__
_ndarray = _xp.ndarray
_P = ParamSpec("_P")


def planned(n_tensors: int) -> Callable[[Callable[_P, Any]], "Callable[_P, Tensor]"]:
    """Turn a function that chooses an operation into one that applies it.

    The function checks its arguments, of which the first ``n_tensors`` are tensors, and gives an
    operation of kind "function", its tensors and its options. What it chose is kept by the
    tensors' forms and the other arguments, if the form of the result depends on them alone. It
    may also give a finished result; that is kept nowhere.
    """

    def define(choose: Callable[..., Any]) -> Any:
        plans = planning.table()
        factory = _plan_one if n_tensors == 1 else _plan_several
        if n_tensors == choose.__code__.co_argcount == 2:
            factory = _plan_two
        return wraps(choose)(factory(choose, plans, n_tensors))

    return define


def composed(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function that chooses a view operation and its arguments into one that applies it.

    Given a list of such pairs it gives a tuple of views. The plans of the views are kept by the
    arguments; anything else that the function gives is a finished result and is kept nowhere.
    """

    @wraps(choose)
    def view(input: Tensor, *args: Any, **options: Any) -> Any:
        try:
            key: Any = choose if options else (choose, args, *map(type, args))
            known: Any = input._form.views[key]
            if known.__class__ is tuple:
                return history.view(input, known)
            return tuple([history.view(input, plan) for plan in known.plans])
        except (AttributeError, KeyError, TypeError):
            pass  # no tensor, no plan, a list
        chosen = choose(input, *args, **renamed(options))
        is_one = chosen.__class__ is tuple
        if not is_one and chosen.__class__ is not list:
            return chosen
        pairs = [chosen] if is_one else chosen
        found, plans, views = [], [], input._form.views
        for operation, own in pairs:
            found.append(operation(input, *own))
            plans.append(views.get((operation.definition.forward, own)))
        plain = not options and all(map(is_plain, args)) and None not in plans
        if plain and len(found) <= _MOST_PARTS:
            base.remember_view(input._form, key, plans[0] if is_one else _Several(plans))
        return found[0] if is_one else tuple(found)

    return view


_MOST_PARTS = 1000


class _Several:
    """The plans of several views."""

    def __init__(self, plans: list[Any]) -> None:
        self.plans = plans


# Three times the same way, for one, two and more tensors: a call more, or a list of the tensors,
# takes longer than an operation on small ones may.


def _plan_one(choose: Callable[..., Any], plans: dict[Any, Any], n_tensors: int) -> Any:
    def of_one(input: Tensor, *args: Any, **options: Any) -> Any:
        try:
            key: Any = input._form
            if args or options:
                key = _key(key, args, options)
            form, compute, record = plans[key]
            array = quiet.run(compute, input._array)
            if array.__class__ is not _ndarray or not array.flags.c_contiguous:
                array = _as_array(array, form)
            result = _new(base.public)
            result._array = array
            result._form = form
            result._storage = result._node = None
            if input._node is not None:
                record(result, input)
            return result
        except (AttributeError, KeyError, RuntimeError, TypeError):
            pass  # no tensor, no plan, fast paths closed, a list
        return _chosen(choose, plans, n_tensors, (input, *args), options)

    return of_one


def _plan_two(choose: Callable[..., Any], plans: dict[Any, Any], n_tensors: int) -> Any:
    with_options = _plan_several(choose, plans, n_tensors)

    def plain(input: Any, other: Any) -> Any:
        try:
            form, compute, record = plans[input._form, other._form]
            array = quiet.run(compute, input._array, other._array)
            if array.__class__ is not _ndarray or not array.flags.c_contiguous:
                array = _as_array(array, form)
            result = _new(base.public)
            result._array = array
            result._form = form
            result._storage = result._node = None
            if input._node is not None or other._node is not None:
                record(result, input, other)
            return result
        except (AttributeError, KeyError, RuntimeError):
            pass
        return _chosen(choose, plans, n_tensors, (input, other), {})

    def of_two(*args: Any, **options: Any) -> Any:
        if options or len(args) != n_tensors:
            return with_options(*args, **options)
        return plain(*args)

    of_two.plain = plain  # type: ignore[attr-defined]
    return of_two


def _plan_several(choose: Callable[..., Any], plans: dict[Any, Any], n_tensors: int) -> Any:
    def of_several(*args: Any, **options: Any) -> Any:
        try:
            inputs, others = args[:n_tensors], args[n_tensors:]
            key: Any = tuple(map(_form_of, inputs))
            if others or options:
                key = _key(key, others, options)
            form, compute, record = plans[key]
            array = quiet.run(compute, *map(_array_of, inputs))
            if array.__class__ is not _ndarray or not array.flags.c_contiguous:
                array = _as_array(array, form)
            result = _new(base.public)
            result._array = array
            result._form = form
            result._storage = result._node = None
            if any(map(_node_of, inputs)):
                record(result, *inputs)
            return result
        except (AttributeError, KeyError, RuntimeError, TypeError):
            pass
        return _chosen(choose, plans, n_tensors, args, options)

    return of_several


def _as_array(result: Any, form: Form) -> Any:
    """A result that is a number, or lies otherwise in memory, as the array it should be."""
    if isinstance(result, _xp.generic):
        return _xp.asarray(result)
    return form.xp.asarray(result, order="C")


_form_of, _array_of, _node_of = map(attrgetter, ("_form", "_array", "_node"))


def _chosen(
    choose: Callable[..., Any],
    plans: dict[Any, Any],
    n_tensors: int,
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Apply what ``choose`` chooses, and keep a plan for the next time."""
    chosen = choose(*args, **renamed(options))
    if chosen.__class__ is not tuple:
        return chosen
    operation, tensors, known = chosen
    inputs, others = args[:n_tensors], args[n_tensors:]
    taken = len(tensors) == len(inputs) and all(map(is_, tensors, inputs))
    taken = taken and len({x._form.device for x in tensors}) == 1
    if not (taken and all(map(is_plain, (*others, *options.values())))):
        return operation(*tensors, **known)
    forms, definition = tuple([each._form for each in inputs]), operation.definition
    device = forms[0].device
    compute = definition.compute_for(device, *forms, **known)
    try:
        array = results.run(compute, *[each._array for each in inputs])
    except RuntimeError:  # values that the shortcut leaves to the forward
        array = None
    if array is None:  # not above: an error would be shown with that one
        return operation(*tensors, **known)
    result = results.contiguous_result(array, device)
    key: Any = forms[0] if n_tensors == 1 else forms
    if others or options:
        key = _key(key, others, options)
    plan = result._form, compute, _recorder(definition, tensors, known)
    planning.remember(plans, key, plan)
    values = dict(zip(definition.inputs, tensors, strict=False), **known)
    return results.recorded(definition, result, {"shape": tuple(forms[0].shape), **values})


def _recorder(definition: Definition, tensors: tuple[Any, ...], known: dict[str, Any]) -> Recorder:
    """How results are recorded of an operation of kind "function" with these options."""
    rule = definition.rules.get(None)
    if rule is None:
        return recorders.no_record
    if rule.is_pair and not known:
        return recorders.pair_recorder(rule)
    names, missing = definition.inputs[: len(tensors)], definition.inputs[len(tensors) :]
    known = {"shape": tuple(tensors[0]._form.shape), **dict.fromkeys(missing), **known}
    return recorders.known_recorder(rule, names, known)


def _key(forms: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    # the types, too: 1 and True are equal
    if not options:
        return (forms, args, args[0].__class__ if len(args) == 1 else tuple(map(type, args)))
    return (forms, args, *map(type, args), *options.items(), *map(type, options.values()))
