"""``explain.dispatch``: which layers a call passes, and why it skips the others."""

from typing import Any

from tensorkit.viz._dispatch import Route, routes_of, sentences
from tensorkit.viz.picture import Explanation


class Dispatch(Explanation):
    """The explanation of a call; ``routes`` has the same as plain data, one route an operation."""

    routes: list[Route]


def dispatch(operation: Any, *args: Any, **options: Any) -> Dispatch:
    """Which layers a call passes, why it skips the others, and the kernel that it ends in.

    The call is made, once, and its layers say what they did; a mode that is on sees it. Of a
    function or a module that is made of several operations each is explained. ``viz.dispatch``
    draws the same. Raises what the call raises, and NotSupportedError for what calls no operation
    with a table of kernels.

    >>> from tensorkit import explain
    >>> a = tk.ones(2, requires_grad=True)
    >>> with tk.no_grad():
    ...     explain.dispatch(tk.add, a, 1).routes[0].layers[0].reason
    'made inside no_grad'
    """
    routes = routes_of(operation, args, options)
    found = Dispatch(*sentences(routes))
    found.routes = routes
    return found
