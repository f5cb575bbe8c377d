"""A short program in PyTorch and in tensorkit: what its last line prints, or its error.

Each program has ``tk`` (either library), a leaf ``x`` of shape (2, 3) and ``b = x * 2``. Addresses
are taken out of what is printed; of an error the class and the first line are compared.
"""

import ast
import re
import textwrap
import warnings

from other_words import same_words
from tk_oracle import torch

import tensorkit


def programs_in(text):
    """The programs of a text, one a line; ``\\n`` stands for a new line of the program."""
    for line in textwrap.dedent(text).strip().split("\n"):
        yield line.replace("\\n", "\n")


def _run(module, program):
    x = module.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    scope = {"tk": module, "x": x, "b": x * 2}
    body = ast.parse(program.strip()).body
    last = body[-1]
    if isinstance(last, ast.With):
        body += ast.parse("None").body
        inner = last.body[-1]
        if isinstance(inner, ast.Expr):
            last.body[-1] = ast.parse(f"result = {ast.unparse(inner)}").body[0]
            body[-1] = ast.parse("result").body[0]
    last = body[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if isinstance(last, ast.Expr):
                exec(compile(ast.Module(body[:-1], []), "program", "exec"), scope)
                value = eval(compile(ast.Expression(last.value), "program", "eval"), scope)
            else:
                exec(compile(ast.Module(body, []), "program", "exec"), scope)
                value = None
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0].strip()
        finally:
            module.set_grad_enabled(True)
    return "value", re.sub(r" object at 0x[0-9a-f]+", "", repr(value)).replace("-0.", "0.")


def assert_program_agrees(program):
    """The same printed value in both libraries, or the same error."""
    expected, actual = _run(torch, program), _run(tensorkit, program)
    if expected[0] != "value":
        assert same_words(actual[1], expected[1]), actual
        names = [kind.__name__ for kind in _kinds(actual[0])]
        assert expected[0] in names
    else:
        assert actual == expected


def _kinds(name):
    modules = (tensorkit.errors, tensorkit.autograd.node, __builtins__)
    for module in modules:
        found = module.get(name) if isinstance(module, dict) else getattr(module, name, None)
        if found is not None:
            return found.__mro__
    return ()
