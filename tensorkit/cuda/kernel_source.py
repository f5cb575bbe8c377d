"""The text of a kernel: what may stand in it, and what each device is given of it.

A kernel is written once. ``Source`` makes of it what cupyx.jit.rawkernel compiles (docs.cupy.dev,
Custom kernels, JIT kernel definition), and refuses what cupyx.jit or the simulated device does not
understand, with the line and what to write instead. The simulated device runs the text as it is,
but for the barriers and for what Python computes otherwise than the compiled text: there CUDA's
words ask the thread that runs, and floats are float32.

The *kind* of an expression is what its text shows of it: a truth value, an integer, a float, or an
element of an array. It is "" where only a launch knows, which has the types of the arguments.
"""

import ast
import builtins
import inspect
import linecache
import math
import textwrap
from copy import deepcopy
from functools import reduce
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

from tensorkit.dtypes import DType
from tensorkit.errors import KernelError
from tensorkit.thread_state import state

MOST_SHARED = 48 * 1024
WHOLE = "int(...), or //, not /; atomic_add(x, index, value)"
# others compute otherwise in cupyx.jit; atomic_add adds to the first two
DTYPES = "float32", "int32", "int64", "bool"
_MATH = math.exp, math.log, math.sqrt, math.sin, math.cos, math.tanh
_FUNCTIONS = {max: "max(%s)", min: "min(%s)", int: "int(%s)", abs: "cupy.abs(%s)"}
_FUNCTIONS[float] = "numpy.float32(%s)"
# of an integer CuPy would give a float16
_FUNCTIONS |= {each: f"cupy.{each.__name__}(numpy.float32(%s))" for each in _MATH}
_KNOWN = "max(a, b), min(a, b), abs(a), int(a), float(a), or math.exp(a), log, sqrt, sin, cos, tanh"
_NUMBERS = {int: "numpy.int64", float: "numpy.float32"}  # those of the text on a GPU
_KINDS = ("a truth value", "an integer", "an element of an array", "", "a float")
_TRUTH, _INTEGER, _ELEMENT, _UNKNOWN, _FLOAT = _KINDS  # of two operands the later one is the kind
# two kinds that are two types for CuPy; most elements are floats
_DIFFERENT = {_TRUTH, _INTEGER}, {_TRUTH, _FLOAT}, {_INTEGER, _FLOAT}, {_INTEGER, _ELEMENT}
_OF_INTEGERS = ast.LShift, ast.RShift, ast.BitOr, ast.BitAnd, ast.BitXor
_UNDERSTOOD = """Assign AugAssign If For While Expr Pass Name BinOp UnaryOp BoolOp Compare IfExp
    Call Subscript Attribute Constant Load Store Add Sub Mult Div FloorDiv Mod Pow LShift RShift
    BitOr BitAnd BitXor USub Not And Or Eq NotEq Lt LtE Gt GtE"""
_SHARED = "tile = cuda.shared((16, 16), tk.float32)"
_INSTEAD = {  # what learners write, and what to write instead
    "Return": ("a kernel returns nothing", "out[i] = value; or if i < n: around the other lines"),
    "List": ("a thread has no lists", f"{_SHARED}, a name for each value, or for j in range(n):"),
    "Tuple": ("a thread has no tuples", "a name for each value"),
    "Invert": ("`~` of a truth value is another number on a GPU", "not found, or -i - 1"),
    "MatMult": ("`@` is for tensors", "total += a[i, k] * b[k, j], in a loop"),
}
# of what is not understood
_REPAIRS = {"Break": "while i < n and go == 1:", "Continue": "if go == 1:", "UAdd": "no sign +"}
_REPAIRS |= {"Slice": "for j in range(n):", "Is": "==", "Import": "the line above the kernel"}


class Word:
    """One of CUDA's words, which has a meaning within a kernel only."""

    def __init__(self, name: str, example: str = "") -> None:
        self.name, self.example = name, example or f"i = cuda.{name}.x, or .y"

    def __call__(self, *args: Any) -> Any:
        if state.words is None:
            raise KernelError(f"cuda.{self.name} works within a kernel only", repair=self.example)
        return state.words[self.name](*args)

    x = property(lambda self: self().x)
    y = property(lambda self: self().y)


POSITIONS = tuple(map(Word, ("threadIdx", "blockIdx", "blockDim", "gridDim")))
grid = Word("grid", "i = cuda.grid(1), or i, j = cuda.grid(2)")
syncthreads = Word("syncthreads", "cuda.syncthreads()")
shared = Word("shared", _SHARED)
atomic_add = Word("atomic_add", "cuda.atomic_add(out, 0, value)")
WORDS = (*POSITIONS, grid, syncthreads, atomic_add, shared)
_CALLS: dict[Any, str] = {print: "print(out) after the launch", len: "def kernel(x, out, n):"}
_CALLS |= {each: word.example for word in WORDS for each in (word, word.name)}
# of calls, of numbers by their class, and of positions such as cuda.threadIdx.x
_KIND_OF: dict[Any, str] = dict.fromkeys((int, grid, *POSITIONS), _INTEGER)
_KIND_OF |= dict.fromkeys((float, *_MATH), _FLOAT)
_MEANINGFUL = (int, float, DType, Word, ModuleType, type, FunctionType, BuiltinFunctionType)


class Source(ast.NodeTransformer):
    """What is known of a kernel from its text; KernelError for what cannot be compiled.

    ``types``: of the arguments of a launch, which tell the kinds of those that are numbers.
    ``n_dims`` says in how many dimensions each array is indexed: parameters that are tensors, which
    are ``arrays``, and shared arrays. ``plain`` has the other names, with a line; ``written`` and
    ``added`` the arrays that the kernel changes, and adds to by atomic_add; ``shared`` an array
    like each shared one. ``thread`` is what a thread runs on the simulated device: it is called
    with the parameters, and gives the line of each barrier, and 0 at the end. ``for_cupy`` is a
    text with the names ``jit``, ``cupy`` and ``numpy`` around it.
    """

    def __init__(self, function: FunctionType, types: tuple[type, ...] = ()) -> None:
        self.name = getattr(function, "__name__", repr(function))
        try:
            # own: parameters, and names that are assigned
            self.file, self.own = function.__code__.co_filename, function.__code__.co_varnames
            lines, self.line = inspect.getsourcelines(function)
            module = ast.parse(textwrap.dedent("".join(lines)))
            [tree] = [each for each in module.body if isinstance(each, ast.FunctionDef)]
            ast.increment_lineno(tree, self.line - 1)
            self.parameters = [arg.arg for arg in tree.args.args]
        except (OSError, TypeError, SyntaxError, ValueError, AttributeError):
            repair = "@cuda.kernel without brackets, above a def in a cell or a file"
            raise KernelError(f"The text of {self.name} is not found", repair=repair) from None
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        # empty as long as nothing is assigned, such as the kernel's own within a function
        outer = {name: None if at == CellType() else at.cell_contents for name, at in cells}
        self.known = {**function.__globals__, **outer}
        if len(self.parameters) < len([*ast.iter_child_nodes(tree.args)]):
            self.refuse("its parameters have no defaults and no *", "def kernel(x, out, n):")
        self.n_dims, self.plain, self.shared = dict[str, int](), dict[str, int](), dict[str, Any]()
        kinds = [_KIND_OF.get(each, _UNKNOWN) for each in types or self.parameters]
        self.kinds = dict(zip(self.parameters, kinds, strict=True))
        self.written, self.added = set[str](), set[str]()
        # without decorators, docstring and annotations
        tree.decorator_list, tree.returns = [], None
        tree.args.args = [ast.arg(name) for name in self.parameters]
        self.body = tree.body = tree.body[ast.get_docstring(tree) is not None :] or [ast.Pass()]
        for node in ast.walk(tree):
            _spell_out(node)
        # of the first gap, which a launch refuses
        self.gap = min([x["lineno"] for x in map(vars, ast.walk(tree)) if ... in x.values()] or [0])
        self.thread = self._for_simulated(deepcopy(tree))
        tree.name = name_for_cupy(self.name)
        tree.args.args = [ast.arg(name_for_cupy(name)) for name in self.parameters]
        tree.body = [self.visit(each) for each in self.body]
        for name in self.n_dims.keys() & self.plain.keys():
            self.refuse(f"{name} is an array, not a number", f"{name}[i]", self.plain[name])
        self.arrays = [name for name in self.parameters if name in self.n_dims]
        self.for_cupy = ast.unparse(ast.fix_missing_locations(tree)) + "\n"

    def value(self, node: Any) -> Any:
        """A number, function, module or word that is meant outside of the kernel; else None."""
        found = None
        if isinstance(node, ast.Name) and node.id not in self.own:
            found = self.known.get(node.id, getattr(builtins, node.id, None))
        elif isinstance(node, ast.Attribute) and type(self.value(node.value)) is ModuleType:
            found = getattr(self.value(node.value), node.attr, None)
        return found if isinstance(found, _MEANINGFUL) else None

    def called(self, node: Any) -> Any:
        """The known function that a call is of, such as a word of CUDA's; else None."""
        return self.value(node.func) if isinstance(node, ast.Call) else None

    def at(self, line: int) -> str:
        """A line of the kernel in words: its number and its text."""
        return f"line {line}: {linecache.getline(self.file, line).strip()}"

    def refuse(self, what: str, repair: str, line: int = 0) -> NoReturn:
        """KernelError about a line, otherwise the one that is looked at."""
        first, line = f"Kernel {self.name} cannot be compiled: {what}", line or self.line
        raise KernelError(first, self.at(line), repair=repair, line=line)

    def kind(self, node: Any) -> str:
        """The kind of an expression, one of ``_KINDS``."""
        match node:
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(ast.Not()):
                return _TRUTH
            case ast.BinOp(op=ast.Div()):
                return _FLOAT
            case ast.BinOp(left, _, right):
                return max(self.kind(left), self.kind(right), key=_KINDS.index)
            case ast.UnaryOp(operand=operand) | ast.IfExp(body=operand):
                return self.kind(operand)
            case ast.Call(function, args) if self.value(function) in (max, min, abs):
                return max(map(self.kind, args), key=_KINDS.index, default=_UNKNOWN)
            case ast.Subscript():
                return _ELEMENT
            case ast.Name(name) if name in self.own:
                return self.kinds.get(name, _UNKNOWN)
        word = self.value(getattr(node, "func", getattr(node, "value", None)))
        number = node.value if isinstance(node, ast.Constant) else self.value(node)
        return _KIND_OF.get(word, _KIND_OF.get(type(number), _UNKNOWN))

    def _for_simulated(self, tree: Any) -> Any:
        """The function, a generator: a barrier is a yield, a shared array is asked for by name."""
        for node in ast.walk(tree):
            match node:
                case ast.Expr(call) if self.called(call) is syncthreads:
                    node.value = ast.Yield(ast.Constant(node.lineno))
                case ast.Assign([target], ast.Call() as call) if self.called(call) is shared:
                    call.args = [ast.Constant(ast.unparse(target))]
                case ast.Assign() | ast.AugAssign():
                    node.value = _on_gpu("number", node.value)
                case ast.BinOp(left, op, right):
                    node.left = _on_gpu("base" if isinstance(op, ast.Pow) else "number", left)
                    node.right = _on_gpu("number", right)
                case ast.Compare(left, _, others):
                    node.left, *node.comparators = (_on_gpu("number", x) for x in (left, *others))
                case ast.BoolOp():
                    node.values = [_on_gpu("bool", each) for each in node.values]
                case ast.Call(func) if self.value(func) in _FUNCTIONS:
                    node.func = _on_gpu(self.value(func).__name__)
        tree.body.append(ast.Expr(ast.Yield(ast.Constant(0))))
        module = ast.fix_missing_locations(ast.Module([tree], []))
        namespace = {name: as_single(value) for name, value in self.known.items()} | _ON_GPU
        exec(compile(module, self.file, "exec"), namespace)
        code = (thread := namespace[self.name]).__code__
        thread.__code__ = code.replace(co_consts=tuple(map(as_single, code.co_consts)))
        return thread

    # What cupyx.jit compiles: there threadIdx has no sign, and shared arrays have one dimension

    def visit(self, node: Any) -> Any:
        """What stands for this node; KernelError for one of an unknown kind."""
        self.line, kind = getattr(node, "lineno", self.line), type(node).__name__
        if kind not in _UNDERSTOOD.split():
            text = ast.unparse(node).partition("\n")[0] or kind.lower()
            default = f"`{text}` is not understood", _REPAIRS.get(kind, "y = 0.0, or if i < n:")
            self.refuse(*_INSTEAD.get(kind.removesuffix("Comp"), default))
        match node:
            case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]) | ast.While(ast.Constant(1)):
                self.refuse("a loop has a condition with a name, and no else", "while i < n:")
            case ast.Assign(targets=[_, _, *_]):
                self.refuse("one name is assigned at a time", "a line for each name")
            case ast.Compare(ops=[_, _, *_]):
                self.refuse("one comparison at a time", "0 <= i and i < n")
            case ast.Constant(value=value) if type(value) in _NUMBERS:
                return ast.Call(_expression(_NUMBERS[type(value)]), [node], [])
            case ast.Constant(value=value) if value is not ...:
                self.refuse("a kernel computes with numbers, not texts or True", "1, or math.inf")
            case ast.UnaryOp(ast.USub(), of) | ast.BinOp(of, ast.Sub()) if self.kind(of) == _TRUTH:
                self.refuse("`-` is for numbers, and this is a truth value", "int(...), or not")
            case ast.Expr(ast.Call(_, [], []) as call) if self.called(call) is syncthreads:
                return ast.Expr(_expression("jit.syncthreads()"))
            case ast.Attribute(of, "x" | "y" as axis) if (word := self.value(of)) in POSITIONS:
                return _expression(f"numpy.int64(jit.{word.name}.{axis})")
        return super().visit(node)

    # Statements

    def visit_Assign(self, node: Any) -> Any:
        target, value, kind = node.targets[0], node.value, self.kind(node.value)
        if self.called(value) is shared:
            return self._shared(node, target, value)
        is_pair = isinstance(target, ast.Tuple) and len(target.elts) == 2
        if is_pair and self.called(value) is grid and ast.unparse(value).endswith("(2)"):
            target.elts = [self._target(name, _INTEGER) for name in target.elts]
            pair = [_expression(f"numpy.int64(jit.grid(2)[{at}])") for at in (0, 1)]
            return ast.Assign([target], ast.Tuple(pair, ast.Load()))
        return ast.Assign(value=self.visit(value), targets=[self._target(target, kind)])

    def _target(self, target: Any, kind: str) -> Any:
        """What stands for a target; a name keeps the kind that it is given first."""
        first = self.kinds.setdefault(target.id, kind) if isinstance(target, ast.Name) else kind
        if {first, kind} in _DIFFERENT:
            what = f"{target.id} begins as {first}, which it stays on a GPU, and is given {kind}"
            self.refuse(what, "0.0 in place of 0, or int(...), or float(...)")
        return self.visit(target)

    def _shared(self, node: Any, target: Any, call: Any) -> Any:
        """The line that makes a shared array, whose sizes are constants."""
        try:
            [name], (sizes, dtype) = {target.id} - {*self.shared, *self.parameters}, call.args
            shape = [eval(ast.unparse(self.visit(each)), {"numpy": np}) for each in _parts(sizes)]
            array = np.broadcast_to(self.value(dtype).numpy.type(), shape)
            is_known = array.ndim in (1, 2) and array.size and array.dtype.name in DTYPES
        except (AttributeError, NameError, TypeError, ValueError):
            is_known = False
        if not is_known or node not in self.body or call.keywords:
            self.refuse("shared(): a new name, constant sizes, known dtype, no if or loop", _SHARED)
        self.shared[name], self.n_dims[name] = array, array.ndim
        if sum(each.nbytes for each in self.shared.values()) > MOST_SHARED:
            self.refuse(f"a block shares at most {MOST_SHARED:,} bytes", "a smaller tile")
        memory = f"jit.shared_memory(numpy.{array.dtype}, {array.size})"
        return ast.Assign([_expression(name_for_cupy(name))], _expression(memory))

    def visit_For(self, node: Any) -> Any:
        loop = node.iter
        is_plain = isinstance(node.target, ast.Name) and self.called(loop) is range
        if not is_plain or loop.keywords or len(loop.args) not in (1, 2, 3):
            self.refuse("a loop goes over a range", "for j in range(n):")
        self._check_whole(loop.args)
        loop.args = [self.visit(each) for each in loop.args]
        return ast.For(self._target(node.target, _INTEGER), loop, [*map(self.visit, node.body)], [])

    # Expressions

    def _check_whole(self, nodes: list[Any]) -> None:
        """KernelError for an index that is no integer, whatever the arguments are."""
        for kind in {*map(self.kind, nodes)} & {_TRUTH, _FLOAT}:
            self.refuse(f"an index is an integer, and this one is {kind}", WHOLE)

    def visit_BinOp(self, node: Any) -> Any:
        is_float = self.kind(node) == _FLOAT
        if is_float and isinstance(node.op, _OF_INTEGERS):
            self.refuse("`<<`, `>>`, `&`, `|`, `^` are for integers", "int(...), or and, or")
        node = self.generic_visit(node)
        # CuPy has float64 for a quotient of two integers, and for two constants
        return ast.Call(_expression("numpy.float32"), [node], []) if is_float else node

    def visit_BoolOp(self, node: Any) -> Any:  # CuPy has 3 for `2 and 3`
        return _expression(f"numpy.bool_({ast.unparse(self.generic_visit(node))})")

    def visit_IfExp(self, node: Any) -> Any:
        kinds = [self.kind(node.body), self.kind(node.orelse)]
        if {*kinds} in _DIFFERENT:
            self.refuse(f"`a if c else b` of {' and '.join(kinds)}", "0.0, or float(...), int(...)")
        names = [each for each in ast.walk(node.test) if isinstance(each, ast.Name)]
        if all(type(self.value(name)) in _NUMBERS for name in names) and not self.gap:
            self.refuse("in `a if c else b` the condition is a constant", "a, or b; or if c:")
        return self.generic_visit(node)

    def visit_Subscript(self, node: Any) -> Any:
        name = ast.unparse(node.value)
        self._check_whole(_parts(node.slice))
        if name not in (*self.parameters, *self.shared):
            repair = "x[i], of a parameter x; sizes are parameters too: n, not x.shape[0]"
            repair = ast.unparse(node).replace("][", ", ") if name[-1] == "]" else repair
            self.refuse(f"{name} is no argument and no shared array", repair)
        parts = [ast.unparse(self.visit(each)) for each in _parts(node.slice)]
        if (n := self.n_dims.setdefault(name, len(parts))) != len(parts):
            self.refuse(f"{name} has {n} dimensions elsewhere, and {len(parts)} here", "x[i, j]")
        if isinstance(node.ctx, ast.Store):
            self.written.add(name)
        if name in self.shared and len(parts) == 2:
            parts = [f"({parts[0]}) * {self.shared[name].shape[1]} + ({parts[1]})"]
        array, index = _expression(name_for_cupy(name)), _expression(", ".join(parts))
        return ast.Subscript(array, index, node.ctx)

    def visit_Name(self, node: Any) -> Any:
        text, value = ast.unparse(node), self.value(node)
        if type(value) in _NUMBERS and isinstance(node.ctx, ast.Load):
            return self.visit(ast.Constant(value))
        if text not in {*self.kinds, *self.shared}:  # of its own: those that a line above assigns
            word = value or self.value(getattr(node, "value", None))  # of cuda.threadIdx.z
            repair = _CALLS.get(word or text.split(".")[0], "a value above it, or a parameter")
            self.refuse(f"{text} is no number and no argument here", repair)
        self.plain.setdefault(text, self.line)
        return _expression(name_for_cupy(text))

    visit_Attribute = visit_Name

    def visit_Call(self, node: Any) -> Any:
        name, function, args = ast.unparse(node.func).split("[")[0], self.called(node), node.args
        is_array = len(args) == 3 and isinstance(args[0], ast.Name)
        if function is atomic_add and is_array and not node.keywords:
            element = self.visit(ast.Subscript(args[0], args[1], ast.Store()))
            self.added.add(name := ast.unparse(args[0]))
            if name in self.shared and self.shared[name].dtype.name not in DTYPES[:2]:
                self.refuse(f"atomic_add adds to {' and '.join(DTYPES[:2])}", _SHARED)
            args = [element.value, element.slice, self.visit(args[2])]
            return ast.Call(_expression("jit.atomic_add"), args, [])
        if function is grid and ast.unparse(node).endswith("(1)"):
            return _expression("numpy.int64(jit.grid(1))")
        given = [ast.unparse(self.visit(each)) for each in args if function in _FUNCTIONS]
        n = len(args) if function not in (max, min) else min(len(args) - 1, 1)
        if function not in _FUNCTIONS or node.keywords or n != 1:
            repair = "while i < n:" if name == self.name else _CALLS.get(function or name, _KNOWN)
            self.refuse(f"{ast.unparse(node)} is nothing that both devices understand", repair)
        return _expression(_FUNCTIONS[function] % ", ".join(given))


def _spell_out(node: Any) -> None:
    """``x += y`` of a name becomes ``x = x + y``."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        computed = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        vars(node).update(targets=[node.target], value=computed)
        node.__class__ = ast.Assign  # type: ignore[assignment]


# What the simulated device computes otherwise than Python, as a GPU does


def as_single(value: Any) -> Any:
    """A float as float32; other values as they are."""
    return np.float32(value) if isinstance(value, float) else value


def number(value: Any) -> Any:
    """The value of an expression: a comparison is a truth value, and integers have 64 bits.

    NumPy gives float64 for a float32 and an integer of an array; the compiled text float32. It
    gives an int64 for an integer and a truth value, which would lose its first digits unseen.
    """
    value = int(value) if isinstance(value, np.integer) else value
    if type(value) is int and value.bit_length() > 63:
        raise OverflowError(f"{value} is outside of int64, and a GPU loses its first digits")
    return np.bool_(value) if type(value) is bool else as_single(value)


def _single(function: Any) -> Any:
    return lambda x: np.float32(function(float(np.float32(x))))


def _on_gpu(name: str, *arguments: Any) -> Any:
    """A name of ``_ON_GPU``, which no text can have; with arguments a call."""
    found = ast.Name(f"gpu {name}", ast.Load())
    return ast.Call(found, [*arguments], []) if arguments else found


_ON_GPU: dict[str, Any] = {"gpu number": number, "gpu bool": np.bool_, "gpu int": int}
# of a float and an integer they give a float, and nan of nan
_ON_GPU |= {"gpu max": lambda *values: number(reduce(np.maximum, values))}
_ON_GPU |= {"gpu min": lambda *values: number(reduce(np.minimum, values))}
# an integer has no power of -1, and abs of a truth value is one
_ON_GPU |= {"gpu float": np.float32, "gpu base": np.asarray, "gpu abs": lambda x: abs(number(x))}
_ON_GPU |= {f"gpu {each.__name__}": _single(getattr(np, each.__name__)) for each in _MATH}


def name_for_cupy(name: str) -> str:
    """A kernel's, or a name in it, as CuPy gets it: no word of C++, such as double."""
    return f"{name}_"


def _parts(index: Any) -> Any:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _expression(text: str) -> Any:
    return ast.parse(text, mode="eval").body
