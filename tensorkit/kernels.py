"""Kernels for GPUs: what takes NumPy several functions, in one launch, written in CUDA C.

Each is defined beside its NumPy form, which all other devices use, and is compiled when a GPU first
needs it. ``T`` stands for float or double. A ``Kernel`` computes element by element; it also runs
over many lists of arrays at once, which is how one launch changes all parameters of a network. A
``Rows`` kernel makes sums along a dimension first.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, wraps
from math import prod
from typing import Any

import numpy as np

from tensorkit.devices import backend_of, is_array

ALL: list["Kernel | Rows"] = []


class Kernel:
    """A kernel for CuPy: parameters as ``"T x, T y"``, then the statements that compute.

    In the code ``i`` is the place of the element. ``before`` are functions that it calls.
    """

    def __init__(self, name: str, inputs: str, outputs: str, code: str, before: str = "") -> None:
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self.code, self.before = code, before
        # CUDA has an erf of its own; True: CuPy may join dimensions
        self._told = (inputs, outputs, code, f"tensorkit_{name}", True, before)
        ALL.append(self)

    def __call__(self, xp: Any, *arrays: Any) -> Any:
        """Launch it on arrays and numbers; arrays given for outputs are written to."""
        return _made(xp.ElementwiseKernel, *self._told)(*arrays)

    # Many arrays in one launch

    @property
    def n_arrays(self) -> int:
        """Of a kernel for many lists: its first input and its outputs are arrays."""
        return 1 + len(self.outputs.split(", "))

    @property
    def most(self) -> int:
        """How many lists of arrays one launch takes: their table is among its arguments."""
        return (_MOST_BYTES - _FOR_NUMBERS) // (8 * self.n_arrays + 12)

    def on_lists(self, xp: Any, numbers: Sequence[float], lists: Sequence[Sequence[Any]]) -> None:
        """Launch it once on ``[first input, *outputs]`` of each list, with the same numbers.

        The arrays of a list have one dtype and lie alike in memory, without gaps. There are at most
        ``most`` lists.
        """
        kind = lists[0][0].dtype
        table = np.zeros(1, self.table)
        row = table[0]
        row["at"][:, : len(lists)] = np.transpose([[a.data.ptr for a in each] for each in lists])
        sizes = np.array([each[0].size for each in lists])
        row["size"][: len(lists)], row["count"] = sizes, len(lists)
        row["first"][1 : len(lists) + 1] = np.cumsum(-(-sizes // _PART))
        n_blocks = int(row["first"][len(lists)])
        given = [kind.type(number) for number in numbers]
        program = _compiled(xp.RawKernel, self.source_on_lists, kind.char)
        program((n_blocks,), (_THREADS,), (*given, table))

    @cached_property
    def table(self) -> Any:
        """Where the arrays lie, how long they are, and the first block of each."""
        most = self.most
        fields = [("at", "u8", (self.n_arrays, most)), ("size", "i8", (most,))]
        return np.dtype([*fields, ("first", "i4", (most + 1,)), ("count", "i4")], align=True)

    def source_on_lists(self, kind: str) -> tuple[str, str]:
        """The program for many lists, in CUDA C, and the name of its entry."""
        first, *numbers = _names(self.inputs)
        arrays = [first, *_names(self.outputs)]
        name = f"tensorkit_{self.name}_all"
        elements = " ".join(
            f"T& {each} = table.at[{place}][which][i];" for place, each in enumerate(arrays)
        )
        program = _ON_LISTS.format(
            kind=kind,
            name=name,
            n_arrays=self.n_arrays,
            most=self.most,
            part=_PART,
            numbers="".join(f"T {each}, " for each in numbers),
            elements=elements,
            code=self.code,
        )
        return program, name


_MOST_BYTES, _FOR_NUMBERS = 4096, 160  # of the arguments of a launch, and those of its numbers
_PART, _THREADS = 4096, 256  # elements and threads of a block
_ON_LISTS = """
typedef {kind} T;
struct Table {{ T* at[{n_arrays}][{most}]; long long size[{most}]; int first[{most} + 1], count; }};
extern "C" __global__ void {name}({numbers}const Table table) {{
    int which = 0;  // the list of which this block has a part: the last that begins before it
    for (int step = 256; step; step /= 2)
        if (which + step < table.count && table.first[which + step] <= (int)blockIdx.x)
            which += step;
    long long i = (long long)((int)blockIdx.x - table.first[which]) * {part} + threadIdx.x;
    long long end = i - threadIdx.x + {part};
    if (end > table.size[which]) end = table.size[which];
    for (; i < end; i += blockDim.x) {{ {elements} {code} }}
}}
"""


def in_launches(kernel: Kernel, lists: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The lists that each launch takes."""
    return (lists[start : start + kernel.most] for start in range(0, len(lists), kernel.most))


class Rows:
    """A kernel that gives each row of an array, along any dimension, to one block of threads.

    ``inputs`` are, arrays first, the one that tells what ``T`` is before the others: ``T x`` or
    ``int64 x``, elements of arrays of one shape; ``raw T x``, an array that the code indexes;
    ``number x`` and ``integer x``, given by value. ``j`` is the place in the row, ``i`` that in the
    array. Of each row first ``sums`` are made, in order, each a name and a term to be added up; a
    term ``max x`` gives the largest. Then ``each`` computes ``y``, of every element, or of every
    row where ``of_rows``.
    """

    def __init__(
        self, name: str, inputs: str, sums: dict[str, str], each: str, of_rows: bool = False
    ) -> None:
        self.name, self.sums, self.each, self.of_rows = name, sums, each, of_rows
        self.parameters = [tuple(one.rpartition(" ")[::2]) for one in inputs.split(", ")]
        words = [word for word, _ in self.parameters]
        self.like = next(place for place, word in enumerate(words) if word in _TYPES)
        self.n_arrays = sum(word not in ("number", "integer") for word in words)
        ALL.append(self)

    def __call__(self, xp: Any, dim: int, *given: Any) -> Any:
        """Launch it along dimension ``dim`` of the arrays; an array that is None is null."""
        arrays: list[Any] = [
            x if x is None else xp.ascontiguousarray(x) for x in given[: self.n_arrays]
        ]
        like, dtype = arrays[self.like], arrays[0].dtype
        length, inner = like.shape[dim], prod(like.shape[dim + 1 :])
        rows = (*like.shape[:dim], *like.shape[dim + 1 :])
        y = xp.empty(rows if self.of_rows else like.shape, dtype)
        if y.size:
            numbers = [
                np.int64(each) if kind == "integer" else dtype.type(each)
                for (kind, _), each in zip(
                    self.parameters[self.n_arrays :], given[self.n_arrays :], strict=True
                )
            ]
            program = _compiled(xp.RawKernel, self.source, dtype.char)
            threads = min(max(32, 1 << (length // 4).bit_length()), 512)
            given = (*arrays, *numbers, y, np.int64(length), np.int64(inner))
            program((prod(rows),), (threads,), given)
        return y

    def source(self, kind: str) -> tuple[str, str]:
        """The program, in CUDA C, and the name of its entry."""
        elements = " ".join(
            f"const {_TYPES[word]} {name} = {name}_[i];"
            for word, name in self.parameters
            if word in _TYPES
        )
        steps = []
        for name, term in self.sums.items():
            is_max, term = term.startswith("max "), term.removeprefix("max ")
            start, both = ("-T(1) / T(0)", "a < b ? b : a") if is_max else ("T(0)", "a + b")
            steps.append(_SUM.format(name=name, start=start, both=both, each=elements, term=term))
        last = f"if (!threadIdx.x) {{ T& y = y_[blockIdx.x]; {self.each} }}"
        if not self.of_rows:
            last = f"{_EACH} {{ {_PLACE} {elements} T& y = y_[i]; {self.each} }}"
        name = f"tensorkit_{self.name}"
        arguments = "".join(_ARGUMENTS[word].format(name) + ", " for word, name in self.parameters)
        parts = {"kind": kind, "name": name, "arguments": arguments, "sums": "".join(steps)}
        return _ROWS.format(**parts, last=last), name


_TYPES = {"T": "T", "int64": "long long"}
_ARGUMENTS = {
    "T": "const T* {}_",
    "int64": "const long long* {}_",
    "raw T": "const T* {}",
    "number": "T {}",
    "integer": "long long {}",
}
_EACH = "for (long long j = threadIdx.x; j < length; j += blockDim.x)"
_PLACE = "const long long i = first + j * inner;"
_SUM = (
    "\n    T {name} = {start};\n    "
    + _EACH
    + " {{ "
    + _PLACE
    + " {each} const T a = {name}, b = {term}; {name} = {both}; }}\n"
    "    {name} = of_block({name}, [](T a, T b) {{ return {both}; }});"
)
_ROWS = """
typedef {kind} T;
// What the threads of a block have, made one by ``both``; each of them gets it.
template <class Both> __device__ T of_block(T value, Both both) {{
    __shared__ T parts[32];
    for (int step = 16; step; step /= 2)
        value = both(value, __shfl_xor_sync(0xffffffff, value, step));
    __syncthreads();  // all have read what the call before left
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) value = both(value, parts[warp]);
    return value;
}}
extern "C" __global__ void {name}({arguments}T* y_, long long length, long long inner) {{
    const long long first = blockIdx.x / inner * length * inner + blockIdx.x % inner;{sums}
    {last}
}}
"""


def _names(parameters: str) -> list[str]:
    return [each.split()[-1] for each in parameters.split(", ")]


def formula(launch: Callable[..., Any], plain: Any) -> Any:
    """A gradient formula that on arrays of a GPU is ``launch(xp, g, ...)``, one kernel.

    ``plain`` is the formula, in operations; it computes everywhere else.
    """

    @wraps(plain)
    def chosen(g: Any, *saved: Any) -> Any:
        if g.__class__ is not np.ndarray and is_array(g):
            xp = backend_of(g).xp
            if are_for(xp, g, *[each for each in saved if is_array(each)]):
                return launch(xp, g, *saved)
        return plain(g, *saved)

    return chosen


@cache
def _made(make: Callable[..., Any], *told: Any) -> Any:
    return make(*told)


@cache
def _compiled(make: Callable[..., Any], source: Callable[..., tuple[str, str]], char: str) -> Any:
    """A whole program for arrays of this dtype; CuPy compiles it when it is first launched."""
    return make(*source({"f": "float", "d": "double"}[char]))


def are_for(xp: Any, *arrays: Any) -> bool:
    """Whether kernels run on these arrays: on a GPU, of one dtype, float32 or float64."""
    if xp.__name__ != "cupy":
        return False
    kinds = {x.dtype.char if hasattr(x, "dtype") else "" for x in arrays}
    return kinds in ({"f"}, {"d"})
