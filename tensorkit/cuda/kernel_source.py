"""The source of a kernel: what may stand in it, and what each device is given instead.

A kernel is written once. ``_Walk`` goes over its tree and refuses what cupyx.jit or the simulated
device does not understand, with the line and what to write instead. On the way it makes what a
thread of the simulated device runs: a generator, in which a barrier is a ``yield``, and each access
to memory a call that says its *site*, the place in the text. ``_ForCupy`` makes of that what
cupyx.jit.rawkernel compiles (docs.cupy.dev, Custom kernels, JIT kernel definition).
"""

import ast
import builtins
import inspect
import math
import textwrap
from copy import deepcopy
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple, NoReturn

from tensorkit.dtypes import DType
from tensorkit.errors import KernelError

MOST_SHARED = 48 * 1024
LOAD, STORE, ATOMIC = 1, 2, 4
_MATH = {getattr(math, name): name for name in ("exp", "log", "sqrt", "sin", "cos", "tanh")}
_FUNCTIONS = {*_MATH, abs, max, min, int, float}
_KNOWN = f"max, min, abs, int, float, math.{', math.'.join(_MATH.values())}"
_UNDERSTOOD = """
    Assign AugAssign If For While Expr Pass Name BinOp UnaryOp BoolOp Compare IfExp
    Call Subscript Attribute Constant Add Sub Mult Div FloorDiv Mod Pow LShift RShift BitOr
    BitAnd BitXor USub Not Invert And Or Eq NotEq Lt LtE Gt GtE
"""
_SHARED = "tile = cuda.shared((16, 16), tk.float32)"
_INSTEAD = {  # what learners write, and what to write instead
    "Return": (
        "a kernel returns nothing and ends at its last line",
        "out[i] = value; or if i < n: around what the other threads do",
    ),
    "Break": ("`break` is not understood", "while i < n and found == 0:"),
    "Continue": ("`continue` is not understood", "if around the rest of the loop"),
    "List": ("a thread has no lists", f"{_SHARED}, or a name for each value"),
    "ListComp": ("a thread has no lists", "for j in range(n):"),
    "JoinedStr": ("a thread has no texts", "out[i] = value, and look at out afterwards"),
    "Slice": ("a thread works on single elements", "for j in range(n):"),
    "FunctionDef": ("there is no function within a kernel", "its lines in this place"),
    "Tuple": ("a thread has no tuples", "a name for each value"),
    "Try": ("a thread catches no exceptions", "if i < n:"),
    "AnnAssign": ("a kernel has no annotations", "total = 0.0"),
    "MatMult": ("`@` is for tensors", "total += a[i, k] * b[k, j], in a loop"),
}


class Word:
    """One of CUDA's words, which has a meaning within a kernel only."""

    def __init__(self, name: str, example: str) -> None:
        self.name, self.example = name, example

    def __call__(self, *_: Any) -> Any:
        first = f"cuda.{self.name} has a meaning within a kernel only"
        raise KernelError(first, repair=f"@cuda.kernel above the function with {self.example}")

    x = y = property(__call__)


threadIdx, blockIdx, blockDim, gridDim = POSITIONS = tuple(
    Word(name, f"cuda.{name}.x") for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
)
grid = Word("grid", "i = cuda.grid(1), or i, j = cuda.grid(2)")
syncthreads = Word("syncthreads", "cuda.syncthreads()")
shared = Word("shared", _SHARED)
atomic_add = Word("atomic_add", "cuda.atomic_add(out, 0, value)")
WORDS = (*POSITIONS, grid, syncthreads, atomic_add)

_MEANINGFUL = (int, float, DType, Word, ModuleType, type, FunctionType, BuiltinFunctionType)


class Site(NamedTuple):
    """A place in the text where memory is accessed: its line, the array, LOAD, STORE or ATOMIC."""

    line: int
    array: str
    kind: int


class Source:
    """What is known of a kernel from its text; KernelError for what cannot be compiled.

    ``arrays`` are the parameters that are tensors, with the number of their dimensions; ``shared``
    holds shape and NumPy dtype of each shared array; ``sites`` are all accesses. ``thread`` is what
    a thread runs on the simulated device: it is called with the parameters, the shared arrays and
    the four positions, and gives the line of each barrier, 0 at the end.
    """

    def __init__(self, function: FunctionType) -> None:
        self.name, self.file = function.__name__, function.__code__.co_filename
        self.known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        try:
            lines, self.first = inspect.getsourcelines(function)
            self.lines = textwrap.dedent("".join(lines)).splitlines()
            tree: Any = ast.parse("\n".join(self.lines))
        except (OSError, TypeError, SyntaxError, IndexError):
            first = f"The text of kernel {self.name} is not found"
            raise KernelError(
                first, repair="@cuda.kernel above a def in a cell or a file"
            ) from None
        self.tree: Any = ast.increment_lineno(tree, self.first - 1).body[0]
        nodes: list[Any] = [*ast.walk(self.tree)]
        names = [it for it in nodes if isinstance(it, ast.Name)]
        self.parameters = [it.arg for it in self.tree.args.args]
        self.used = {it.id for it in names}
        self.locals = {it.id for it in names if isinstance(it.ctx, ast.Store)}
        # a program to be completed is refused when it is launched
        self.gaps = [it for it in nodes if isinstance(it, ast.Constant) and it.value is ...]
        self.sites, self.arrays = list[Site](), dict[str, int]()
        self.shared: dict[str, tuple[tuple[int, ...], Any]] = {}
        for node in nodes:
            match node:
                case ast.Subscript(value=ast.Name(id=name), slice=index):
                    self._note_array(node, name, index)
                case ast.Call(args=[ast.Name(id=name), index, _]) if self.calls(node, atomic_add):
                    self._note_array(node, name, index)
        self.simulated = _Walk(self).changed(deepcopy(self.tree))
        namespace, module = dict(self.known), ast.Module([self.simulated], [])
        exec(compile(module, self.file, "exec"), namespace)
        self.thread = namespace[self.name]

    def _note_array(self, node: Any, name: str, index: ast.expr) -> None:
        n = len(_parts(index))
        is_other = name in self.parameters and self.arrays.setdefault(name, n) != n
        if is_other or n > 2:
            what = f"{name} is indexed in two ways" if n < 3 else "an index has two parts"
            self.refuse(node, what, f"{name}[i], or {name}[i, j]")

    def touched(self, kinds: int) -> set[str]:
        """The arrays with an access of one of these kinds."""
        return {it.array for it in self.sites if it.kind & kinds}

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

    def check_types(self, is_float: dict[str, bool]) -> None:
        """KernelError for a name or an element of integers that is given a float.

        ``is_float`` tells it of the arguments. A compiled name keeps the type that it begins with;
        here it would change.
        """
        known = is_float | {name: dtype.kind == "f" for name, (_, dtype) in self.shared.items()}

        def floats(node: Any) -> bool:
            if isinstance(node, (ast.Subscript, ast.Name, ast.Attribute)):
                name = ast.unparse(node).partition("[")[0]
                return known.get(name, type(self.value(node)) is float)
            if isinstance(node, ast.Compare) or self.calls(node, int):
                return False
            is_float = isinstance(node, ast.Div) or self.calls(node, float)
            is_float |= isinstance(node, ast.Constant) and type(node.value) is float
            return is_float or any(map(floats, ast.iter_child_nodes(node)))

        for node in ast.walk(self.tree):  # in the order of the text, but blocks after other lines
            if isinstance(node, (ast.Assign, ast.AugAssign)) and not self.calls(node.value, shared):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                name, value = ast.unparse(target).partition("[")[0], floats(node.value)
                value |= isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div)
                if known.setdefault(name, value) is False and value:
                    what = f"{name} holds integers, and this line gives it a float"
                    self.refuse(node, what, f"int(...); or begin with a float: {name} = 0.0")

    def for_cupy(self) -> str:
        """The text of the function with the names ``jit``, ``cupy`` and ``numpy`` around it."""
        tree = _ForCupy(self).visit(deepcopy(self.simulated))
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _expression(text: str) -> Any:
    """The tree of a text; it gets the place of what it stands for."""
    tree = ast.parse(text, mode="eval").body
    for node in ast.walk(tree):
        for name in node._attributes:
            del vars(node)[name]
    return tree


class _Walk(ast.NodeTransformer):
    """What may stand in a kernel, and what a thread of the simulated device runs for it.

    There positions are parameters, and arrays have the methods of ``kernel_run.Memory``.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.refuse, self.value, self.calls = source.refuse, source.value, source.calls

    def visit(self, node: Any) -> Any:
        """What stands for this node; KernelError for one of an unknown kind."""
        is_code = isinstance(node, (ast.stmt, ast.expr))
        for each in (node, getattr(node, "op", node), *getattr(node, "ops", ())) * is_code:
            kind = type(each).__name__
            if kind not in _UNDERSTOOD.split():
                default = f"`{kind.lower()}` is not understood", "if, while, for j in range(n)"
                self.refuse(node, *_INSTEAD.get(kind, default))
        if isinstance(node, (ast.For, ast.While)) and node.orelse:
            self.refuse(node, "a loop has no else", "if below the loop")
        found = super().visit(node)
        return ast.copy_location(found, node) if is_code and isinstance(found, ast.AST) else found

    # Statements

    def changed(self, node: Any) -> Any:
        """The function, as a generator."""
        if len(node.args.args) < len([*ast.iter_child_nodes(node.args)]):
            self.refuse(node, "its parameters have no defaults and no *", "def kernel(x, out, n):")
        self.body, shared = node.body, self.source.shared
        begin = 0 if ast.get_docstring(node) is None else 1
        statements = [self.visit(it) for it in node.body[begin:]]
        if sum(math.prod(it) * dtype.itemsize for it, dtype in shared.values()) > MOST_SHARED:
            what = f"its shared arrays take more than the {MOST_SHARED:,} bytes of a block"
            self.refuse(node, what, "a smaller tile")
        names = *shared, *(f"_{it.name}" for it in POSITIONS)
        node.args.args = [ast.arg(it) for it in self.source.parameters]  # without annotations
        node.args.kwonlyargs = [ast.arg(it) for it in names]
        node.args.kw_defaults = [None] * len(names)
        node.body = [*statements, ast.Expr(ast.Yield(ast.Constant(0)))]
        node.decorator_list, node.returns = [], None
        return ast.fix_missing_locations(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        target, value = node.targets[0], node.value
        if self.calls(value, shared) and isinstance(value, ast.Call):
            return self._shared(node, value)
        is_pair = isinstance(target, ast.Tuple) and len(target.elts) == 2
        if is_pair and self.calls(value, grid) and ast.unparse(value).endswith("(2)"):
            names = ast.Tuple([self._target(it) for it in _parts(target)], ast.Store())
            return ast.Assign([names], ast.Tuple([_index("x"), _index("y")], ast.Load()))
        if len(node.targets) > 1 or isinstance(target, ast.Tuple):
            self.refuse(node, "one name is assigned at a time", "a line for each name")
        if isinstance(target, ast.Subscript):
            return self._store(target, self.visit(value))
        return ast.Assign([self._target(target)], self.visit(value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if isinstance(node.target, ast.Subscript):
            before = self._access("load", LOAD, deepcopy(node.target))
            return self._store(node.target, ast.BinOp(before, node.op, self.visit(node.value)))
        return ast.AugAssign(self._target(node.target), node.op, self.visit(node.value))

    def _target(self, node: Any) -> Any:
        """A name that may be assigned."""
        text = ast.unparse(node)
        if not isinstance(node, ast.Name):
            self.refuse(node, f"{text} is no name of this kernel's", "own = ...")
        if text in (*self.source.parameters, *self.source.shared):
            self.refuse(node, f"{text} keeps its value", f"another name: own_{text} = ...")
        return node

    def _store(self, target: Any, value: Any) -> Any:
        return ast.Expr(self._access("store", STORE, target, value))

    def _shared(self, node: ast.Assign, call: ast.Call) -> Any:
        try:
            found, dtype = call.args
            shape = eval(ast.unparse(found), dict(self.source.known))
            shape = shape if type(shape) is tuple else (shape,)
            is_fine = len(shape) in (1, 2) and all(type(it) is int and it > 0 for it in shape)
            (target,) = node.targets
            self.source.shared[self._target(target).id] = shape, self.value(dtype).numpy
        except (AttributeError, NameError, TypeError, ValueError):
            is_fine = False
        if not is_fine or node not in self.body or call.keywords:
            self.refuse(node, "shared() has constant sizes, a dtype, and no if or loop", _SHARED)
        return ast.Pass()

    def visit_Expr(self, node: ast.Expr) -> Any:
        text = ast.unparse(node)
        if text.endswith("()") and self.calls(node.value, syncthreads):
            return ast.Expr(ast.Yield(ast.Constant(node.lineno)))
        if not isinstance(node.value, ast.Call) and text != "...":
            self.refuse(node, "a value is computed and kept nowhere", f"out[i] = {text}")
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        loop: Any = node.iter
        if not self.calls(loop, range) or loop.keywords or not isinstance(node.target, ast.Name):
            self.refuse(node, "a loop goes over a range", "for j in range(n):")
        self._target(node.target)
        loop.args = [self.visit(it) for it in loop.args]
        node.body = [self.visit(it) for it in node.body]
        return node

    # Expressions

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self._access("load", LOAD, node)

    def _access(self, method: str, kind: int, node: Any, *value: Any) -> Any:
        name, index = ast.unparse(node.value), [self.visit(it) for it in _parts(node.slice)]
        if name not in (*self.source.arrays, *self.source.shared):
            self.refuse(
                node, f"{name} is no argument and no shared array", "x[i], of a parameter x"
            )
        self.source.sites.append(Site(node.lineno, name, kind))
        site = ast.Constant(len(self.source.sites) - 1)
        return ast.Call(_expression(f"{name}.{method}"), [site, *value, *index], [])

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1:
            self.refuse(node, "one comparison at a time", "0 <= i and i < n")
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if node.value is not ... and type(node.value) not in (int, float, bool):
            self.refuse(node, "a kernel computes with numbers, not texts", "0.0, or math.inf")
        return node

    def visit_Attribute(self, node: Any) -> Any:
        word = self.value(node.value)
        if word in POSITIONS and node.attr in ("x", "y"):
            return _expression(f"_{word.name}.{node.attr}")
        return self.visit_Name(node)

    def visit_Name(self, node: Any) -> Any:
        text, value = ast.unparse(node), self.value(node)
        if text in (*self.source.arrays, *self.source.shared):
            self.refuse(node, f"{text} is an array; a thread works on elements", f"{text}[i]")
        if isinstance(value, Word):
            self.refuse(node, f"cuda.{value.name} stands here without its use", value.example)
        if type(value) in (int, float, bool):
            return ast.Constant(value)
        if text not in (*self.source.parameters, *self.source.locals):
            repair = f"def {self.source.name}(..., {text.rpartition('.')[2]}):"
            self.refuse(node, f"{text} is no number and no argument", repair)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        name, function = ast.unparse(node.func), self.value(node.func)
        if function is atomic_add and len(node.args) == 3 and not node.keywords:
            array, index, value = node.args
            element = ast.copy_location(ast.Subscript(array, index, ast.Load()), node)
            return self._access("add", ATOMIC, element, self.visit(value))
        if function is grid and ast.unparse(node).endswith("(1)"):
            return _index("x")
        if isinstance(function, Word):
            self.refuse(node, f"cuda.{function.name} is not used like this", function.example)
        if name == self.source.name:
            self.refuse(node, "a kernel does not call itself", "while i < n:")
        if function is print:
            self.refuse(node, "a thread cannot print", "print(out) after the launch")
        if not callable(function) or function not in _FUNCTIONS or node.keywords:
            self.refuse(node, f"{name}() is no function that both devices have", _KNOWN)
        node.args = [self.visit(it) for it in node.args]
        return node


def _index(axis: str) -> Any:
    """The number of a thread among all along an axis."""
    return _expression(f"_blockIdx.{axis} * _blockDim.{axis} + _threadIdx.{axis}")


class _ForCupy(ast.NodeTransformer):
    """What cupyx.jit understands: its threadIdx has no sign, its shared arrays one dimension."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.args.kwonlyargs, node.args.kw_defaults, node.body = [], [], node.body[:-1]
        made = (
            f"{name} = jit.shared_memory(numpy.{dtype.name}, {math.prod(shape)})"
            for name, (shape, dtype) in self.source.shared.items()
        )
        body = [*ast.parse("\n".join(made)).body, *map(self.visit, node.body)]
        node.body = [part for it in body for part in (it if isinstance(it, list) else [it])]
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        target, value = node.targets[0], self.visit(node.value)
        if isinstance(target, ast.Tuple):
            pairs = zip(target.elts, value.elts, strict=True)
            return [ast.Assign([name], it) for name, it in pairs]
        is_whole = isinstance(value, ast.Constant) and type(value.value) is int
        return ast.Assign([target], _int64(value) if is_whole else value)

    def visit_Expr(self, node: ast.Expr) -> Any:
        found = self.visit(node.value)
        return found if isinstance(found, ast.Assign) else ast.Expr(found)

    def visit_Yield(self, node: ast.Yield) -> Any:
        return _expression("jit.syncthreads()")

    def visit_Attribute(self, node: Any) -> Any:
        is_position = isinstance(node.value, ast.Name) and node.value.id.startswith("_")
        return _expression(f"numpy.int64(jit.{ast.unparse(node)[1:]})") if is_position else node

    def visit_Call(self, node: Any) -> Any:
        function = self.source.value(node.func)
        node.args = [self.visit(it) for it in node.args]
        if function is range:
            node.args = [*map(_int64, node.args)]
        if function in (*_MATH, abs):
            node.func = _expression(f"cupy.{_MATH.get(function, 'abs')}")
        if function is not None:
            return node
        name, method, (_, *parts) = node.func.value.id, node.func.attr, node.args
        value: Any = None if method == "load" else parts.pop(0)
        texts, (shape, _) = [*map(ast.unparse, parts)], self.source.shared.get(name, ((), None))
        if len(shape) == len(texts) == 2:
            texts = [f"({texts[0]}) * {shape[1]} + ({texts[1]})"]
        place = _expression(f"{name}[{', '.join(texts)}]")
        if method == "add":
            return ast.Call(_expression("jit.atomic_add"), [place.value, place.slice, value], [])
        return ast.Assign([place], value) if method == "store" else place


def _int64(node: ast.expr) -> Any:
    return _expression(f"numpy.int64({ast.unparse(node)})")
