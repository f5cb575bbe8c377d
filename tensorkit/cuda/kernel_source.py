"""The source of a kernel: what may stand in it, and what each device is given instead.

A kernel is written once. ``Source`` refuses what cupyx.jit or the simulated device does not
understand, with the line and what to write instead. The simulated device runs the same function, in
which a barrier is a ``yield``; a GPU is given ``for_cupy``, which cupyx.jit.rawkernel compiles
(docs.cupy.dev, Custom kernels, JIT kernel definition).
"""

import ast
import builtins
import inspect
import math
import textwrap
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NoReturn

from tensorkit.dtypes import DType
from tensorkit.errors import KernelError

MOST_SHARED = 48 * 1024
_MATH = {getattr(math, name): name for name in ("exp", "log", "sqrt", "sin", "cos", "tanh")}
_FUNCTIONS = {*_MATH, abs, max, min, int, float}
_KNOWN = f"max, min, abs, int, float, math.{', math.'.join(_MATH.values())}"
_UNDERSTOOD = """
    FunctionDef arg Assign AugAssign If For While Expr Pass Name BinOp UnaryOp BoolOp Compare IfExp
    Call Subscript Attribute Constant Tuple Add Sub Mult Div FloorDiv Mod Pow LShift RShift BitOr
    BitAnd BitXor USub Not Invert And Or Eq NotEq Lt LtE Gt GtE
"""
_SHARED = "tile = cuda.shared((16, 16), tk.float32)"
_INSTEAD = {  # what learners write, and what to write instead
    "Return": ("a kernel returns nothing and ends at its last line", "out[i] = value"),
    "Break": ("`break` is not understood", "while i < n and found == 0:"),
    "Continue": ("`continue` is not understood", "if around the rest of the loop"),
    "List": ("a thread has no lists", f"{_SHARED}, or a name for each value"),
    "ListComp": ("a thread has no lists", "for j in range(n):"),
    "JoinedStr": ("a thread has no texts", "out[i] = value, and look at out afterwards"),
    "Slice": ("a thread works on single elements", "for j in range(n):"),
    "Try": ("a thread catches no exceptions", "if i < n:"),
    "AnnAssign": ("a kernel has no annotations", "total = 0.0"),
    "MatMult": ("`@` is for tensors", "total += a[i, k] * b[k, j], in a loop"),
}


class Word:
    """One of CUDA's words. On the simulated device ``now`` is what it does for a thread."""

    x: int
    y: int

    def __init__(self, name: str, example: str) -> None:
        self.name, self.example, self.now = name, example, self._misplaced

    def __call__(self, *args: Any) -> Any:
        return self.now(*args)

    def __getattr__(self, name: str) -> Any:  # x and y are there while a kernel runs
        return self._misplaced() if name in ("x", "y") else object.__getattribute__(self, name)

    def _misplaced(self, *_: Any) -> Any:
        first = f"cuda.{self.name} has a meaning within a kernel only"
        raise KernelError(first, repair=f"@cuda.kernel above the function with {self.example}")


threadIdx, blockIdx, blockDim, gridDim = POSITIONS = tuple(
    Word(name, f"cuda.{name}.x") for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
)
grid = Word("grid", "i = cuda.grid(1), or i, j = cuda.grid(2)")
syncthreads = Word("syncthreads", "cuda.syncthreads()")
shared = Word("shared", _SHARED)
atomic_add = Word("atomic_add", "cuda.atomic_add(out, 0, value)")
WORDS = (*POSITIONS, grid, syncthreads, atomic_add)


_MEANINGFUL = (int, float, DType, Word, ModuleType, type, FunctionType, BuiltinFunctionType)


class Source:
    """What is known of a kernel from its text; KernelError for what cannot be compiled.

    ``arrays`` are the parameters that are tensors, with the number of their dimensions; of them
    some are ``read``, ``written``, ``added`` to. ``shared`` holds shape and NumPy dtype of each
    shared array, and the line that makes it.
    """

    def __init__(self, function: FunctionType) -> None:
        self.name, self.file = function.__name__, function.__code__.co_filename
        self.known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        try:
            lines, self.first = inspect.getsourcelines(function)
            self.lines = textwrap.dedent("".join(lines)).splitlines()
            self.tree = self.parsed()
        except (OSError, TypeError, SyntaxError, IndexError):
            first = f"The text of kernel {self.name} is not found"
            repair = "def it in a cell of a notebook or in a file, with @cuda.kernel above"
            raise KernelError(first, repair=repair) from None
        found = self.tree.body[0]
        nodes: list[Any] = [it for it in ast.walk(self.tree) if hasattr(it, "lineno")]
        self.parameters = [each.arg for each in found.args.args]
        names = [it for it in nodes if isinstance(it, ast.Name)]
        self.used = {it.id for it in names}
        self.locals = {it.id for it in names if isinstance(it.ctx, ast.Store)}
        self.gaps = [it for it in nodes if isinstance(it, ast.Constant) and it.value is ...]
        self.shared: dict[str, tuple[tuple[int, ...], Any, int]] = {}
        self.arrays: dict[str, int] = {}
        self.read, self.written, self.added = set[str](), set[str](), set[str]()
        self.has_barriers = any(self.calls(it, syncthreads) for it in nodes)
        for node in nodes:
            self._note_element(node)
        fine: set[Any] = {*self.gaps}  # a program to be completed: refused when it is launched
        for node in nodes:  # those further inside come later
            if node not in fine:
                for what, repair in self._faults(node, fine):
                    self.refuse(node, what, repair)
        if sum(math.prod(it) * t.itemsize for it, t, _ in self.shared.values()) > MOST_SHARED:
            what = f"its shared arrays take more than the {MOST_SHARED:,} bytes of a block"
            self.refuse(found, what, "a smaller tile")
        self.thread = self._simulated(function)

    def parsed(self) -> Any:
        """The tree of the function, without decorators and docstring."""
        tree: Any = ast.increment_lineno(ast.parse("\n".join(self.lines)), self.first - 1)
        found = tree.body[0]
        if ast.get_docstring(found) is not None:
            found.body = found.body[1:] or [ast.copy_location(ast.Pass(), found)]
        found.decorator_list = []
        return tree

    def _simulated(self, function: FunctionType) -> Any:
        """What a thread runs: the function, or a generator that yields at barriers."""
        names = dict(self.known)
        if not self.has_barriers:
            return FunctionType(function.__code__, names, self.name, None, function.__closure__)
        exec(compile(_Barriers(self).changed(), self.file, "exec"), names)
        return names[self.name]

    def value(self, node: Any) -> Any:
        """A number, function, module or word that is meant outside of the kernel; else None."""
        found = None
        if isinstance(node, ast.Name) and node.id not in (*self.locals, *self.parameters):
            found = self.known.get(node.id, getattr(builtins, node.id, None))
        elif isinstance(node, ast.Attribute) and type(self.value(node.value)) is ModuleType:
            found = getattr(self.value(node.value), node.attr, None)
        return found if isinstance(found, _MEANINGFUL) else None

    def calls(self, node: Any, function: Any) -> bool:
        """Whether this is a call of a known function, such as a word of CUDA's."""
        return isinstance(node, ast.Call) and self.value(node.func) is function

    def at(self, line: int) -> str:
        """A line of the kernel in words: its number and its text."""
        return f"line {line}: {self.lines[line - self.first].strip()}"

    def refuse(self, node: Any, what: str, repair: str) -> NoReturn:
        """KernelError about a line that the two devices do not both understand."""
        first = f"Kernel {self.name} cannot be compiled: {what}"
        raise KernelError(first, self.at(node.lineno), repair=repair, line=node.lineno)

    def _note_element(self, node: Any) -> None:
        match node:
            case ast.Subscript(value=ast.Name(id=name)):
                used = [self.written if isinstance(node.ctx, ast.Store) else self.read]
                index = node.slice
            case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name), slice=index)):
                used = [self.read]
            case ast.Call(args=[ast.Name(id=name), index, _]) if self.calls(node, atomic_add):
                used = [self.read, self.written, self.added]
            case _:
                return
        if name in self.parameters:
            n_dims = len(index.elts) if isinstance(index, ast.Tuple) else 1
            if self.arrays.setdefault(name, n_dims) != n_dims or n_dims > 2:
                what = f"{name} is indexed in two ways" if n_dims < 3 else "an index has two parts"
                self.refuse(node, what, f"{name}[i], or {name}[i, j]")
            for each in used:
                each.add(name)

    def _faults(self, node: Any, fine: set[Any]) -> Iterator[tuple[str, str]]:  # noqa: C901
        """What is wrong with this node, and what to write instead; ``fine``: no need to look."""
        text = "" if hasattr(node, "body") else ast.unparse(node)
        arrays = {*self.arrays, *self.shared}
        for each in (node, getattr(node, "op", node), *getattr(node, "ops", ())):
            kind = type(each).__name__
            if kind not in _UNDERSTOOD.split():
                default = f"`{kind.lower()}` is not understood", "if, while, for j in range(n)"
                yield _INSTEAD.get(kind, default)
        match node:
            case ast.FunctionDef():
                if node is not self.tree.body[0]:
                    yield "there is no function within a kernel", "its lines in this place"
                if len(self.parameters) < len([*ast.iter_child_nodes(node.args)]):
                    yield "its parameters have no defaults and no *", f"def {self.name}(x, out, n):"
            case ast.Assign(targets=[ast.Name(id=name)], value=call) if self.calls(call, shared):
                if node not in self.tree.body[0].body or not self._makes_shared(name, call):
                    yield "shared() has constant sizes, a dtype, and no if or loop", _SHARED
                fine |= {*ast.walk(node)}
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(), ast.Name()])]) if self.calls(
                node.value, grid
            ) and text.endswith("(2)"):
                fine |= {*ast.walk(node)}
            case ast.Assign(targets=[ast.Tuple()] | [_, _, *_]):
                yield "one name is assigned at a time", "a line for each name"
            case ast.Name(ctx=ast.Store()) if node.id in (*self.parameters, *arrays):
                yield f"{text} keeps its value", f"another name: own_{text} = ..."
            case ast.Expr(value=ast.Call(args=args)):
                if self.calls(node.value, syncthreads) and not args:
                    fine |= {*ast.walk(node)}
            case ast.Expr() if node.value not in self.gaps:
                yield "this line computes a value and keeps it nowhere", f"out[i] = {text}"
            case ast.For(target=ast.Name(), iter=ast.Call(func=range_), orelse=[]) if (
                self.value(range_) is range
            ):
                fine |= {node.iter, range_}
            case ast.For() | ast.While(orelse=[_, *_]):
                yield "a loop goes over a range and has no else", "for j in range(n):"
            case ast.Subscript(value=ast.Name(id=name)) if name in arrays:
                fine |= {node.value, *_pair_of(node.slice)}
            case ast.Subscript():
                what = f"{ast.unparse(node.value)} is no tensor among the arguments"
                yield f"{what} and no shared array", "x[i] of an argument x"
            case ast.Compare(ops=[_, _, *_]):
                a, b, c = map(ast.unparse, (node.left, *node.comparators[:2]))
                yield "one comparison at a time", f"{a} <= {b} and {b} < {c}"
            case ast.Constant() if type(node.value) not in (int, float, bool):
                yield "a kernel computes with numbers", "out[i] = value"
            case ast.Tuple():
                yield "a thread has no tuples", "a name for each value"
            case ast.Attribute() if self.value(node.value) in POSITIONS and node.attr in ("x", "y"):
                fine |= {*ast.walk(node)}
            case ast.Call():
                yield from self._wrong_call(node, ast.unparse(node.func), fine)
            case ast.Name() | ast.Attribute():
                yield from self._wrong_name(node, text, arrays)
                fine |= {*ast.walk(node)}

    def _makes_shared(self, name: str, call: Any) -> bool:
        try:
            shape = eval(ast.unparse(call.args[0]), dict(self.known))
            shape, dtype = shape if type(shape) is tuple else (shape,), self.value(call.args[1])
            self.shared[name] = shape, dtype.numpy, call.lineno
        except Exception:
            return False
        is_shape = len(shape) in (1, 2) and all(type(it) is int and it > 0 for it in shape)
        return is_shape and isinstance(dtype, DType) and not (call.args[2:] or call.keywords)

    def _wrong_call(self, node: ast.Call, name: str, fine: set[Any]) -> Iterator[tuple[str, str]]:
        function = self.value(node.func)
        if function is atomic_add and len(node.args) == 3 and not node.keywords:
            index = node.args[1]
            fine |= {node.args[0], *_pair_of(index)}
            if ast.unparse(node.args[0]) not in (*self.arrays, *self.shared):
                yield f"{ast.unparse(node.args[0])} is no array", atomic_add.example
        elif isinstance(function, Word):
            if function is not grid or not ast.unparse(node).endswith("(1)"):
                yield f"cuda.{function.name} is not used like this", function.example
        elif name == self.name:
            yield "a kernel does not call itself", "while i < n:"
        elif function is print:
            yield "a thread cannot print", "out[i] = value, and print(out) after the launch"
        elif not callable(function) or function not in _FUNCTIONS or node.keywords:
            yield f"{name}() is no function that both devices have", _KNOWN
        fine |= {*ast.walk(node.func)}

    def _wrong_name(self, node: Any, text: str, arrays: set[str]) -> Iterator[tuple[str, str]]:
        value = self.value(node)
        if text in arrays:
            yield f"{text} is an array, and a thread works on its elements", f"{text}[i]"
        elif isinstance(value, Word):
            yield f"cuda.{value.name} stands here without its use", value.example
        elif text not in (*self.parameters, *self.locals) and type(value) not in (int, float, bool):
            what = f"{text} is no number and no argument"
            yield what, f"def {self.name}(..., {text.rpartition('.')[2]}):"

    def for_cupy(self) -> str:
        """The text of the function with the names ``jit``, ``cupy`` and ``numpy`` around it."""
        return ast.unparse(_ForCupy(self).changed()) + "\n"


def _pair_of(index: ast.expr) -> list[ast.expr]:
    return [index] if isinstance(index, ast.Tuple) else []


class _Changed(ast.NodeTransformer):
    def __init__(self, source: Source) -> None:
        self.source = source

    def changed(self) -> Any:
        """The changed tree of the kernel."""
        return ast.fix_missing_locations(self.visit(self.source.parsed()))


class _Barriers(_Changed):
    """``cuda.syncthreads()`` becomes ``yield`` with the line."""

    def visit_Call(self, node: ast.Call) -> Any:
        is_barrier = self.source.calls(node, syncthreads)
        found = ast.Yield(ast.Constant(node.lineno)) if is_barrier else node
        return ast.copy_location(found, node)


class _ForCupy(_Changed):
    """What cupyx.jit understands: its threadIdx has no sign, its shared arrays one dimension."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple):
            column, row = target.elts
            return [ast.Assign([column], _index("x")), ast.Assign([row], _index("y"))]
        if self.source.calls(value, shared):
            shape, dtype, _ = self.source.shared[ast.unparse(target)]
            made = f"jit.shared_memory(numpy.{dtype.name}, {math.prod(shape)})"
            return ast.Assign(node.targets, _expression(made))
        if isinstance(value, ast.Constant) and type(value.value) is int:
            node.value = _expression(f"numpy.int64({value.value})")
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        shape = self.source.shared.get(ast.unparse(node.value), ((),))[0]
        if len(shape) == 2 and isinstance(node.slice, ast.Tuple):
            row, column = map(ast.unparse, node.slice.elts)
            node.slice = _expression(f"({row}) * {shape[1]} + ({column})")
        return node

    def visit_Attribute(self, node: Any) -> Any:
        word = self.source.value(node.value)
        if word in POSITIONS:
            return _expression(f"numpy.int64(jit.{word.name}.{node.attr})")
        return self.visit_Name(node)

    def visit_Name(self, node: Any) -> Any:
        value = self.source.value(node)
        if isinstance(value, Word):
            return _expression(f"jit.{value.name}")
        if type(value) in (int, float, bool):
            return ast.Constant(value)
        is_called = callable(value) and value in {*_MATH, abs}
        return _expression(f"cupy.{_MATH.get(value, 'abs')}") if is_called else node

    def visit_Call(self, node: ast.Call) -> Any:
        function = self.source.value(node.func)
        if function is grid:
            return _index("x")
        if function is atomic_add:
            place = self.visit(ast.Subscript(node.args[0], node.args[1], ast.Load()))
            node.args = [place.value, place.slice, node.args[2]]
        self.generic_visit(node)
        if function is range:
            node.args = [_expression(f"numpy.int64({ast.unparse(it)})") for it in node.args]
        return node


def _index(axis: str) -> ast.expr:
    block, size, thread = (
        f"numpy.int64(jit.{it}.{axis})" for it in ("blockIdx", "blockDim", "threadIdx")
    )
    return _expression(f"{block} * {size} + {thread}")


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
