"""Kernels as programs of their own, in C++ for the host or in CUDA C.

Of an element-by-element kernel CuPy writes the loop; here it stands around the code. The others are
whole programs already: for the host they are compiled as they are, with threads for CUDA's.
"""

import ctypes
import shutil
import subprocess

KINDS = {"bool": "bool", "T": "{kind}", "int64": "long", "uint64": "unsigned long"}
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
CODES = {"f": "float", "d": "double"}


def _pairs(text):
    return [tuple(each.split()[-2:]) for each in text.split(", ")]


def raw(kernel):
    """The names of the arrays that the code indexes itself."""
    told = f"{kernel.inputs}, {kernel.outputs}".split(", ")
    return [each.split()[2] for each in told if each.startswith("raw ")]


def parameters(kernel):
    """(kind, name, whether it is written to) of each array."""
    found = [(kind, name, False) for kind, name in _pairs(kernel.inputs)]
    return found + [(kind, name, True) for kind, name in _pairs(kernel.outputs)]


def source(kernel, kind, before=""):
    """A function ``run(length, ...)`` over arrays."""
    arrays, elements = [], []
    for word, name, written in parameters(kernel):
        const, inner = "" if written else "const ", KINDS[word].format(kind=kind)
        arrays.append(f"{const}{inner}* {name}_")
        if name in raw(kernel):
            elements.append(f"{const}{inner}* {name} = {name}_;")
        else:
            elements.append(f"{const}{inner}& {name} = {name}_[i];")
    body = f"for (long i = 0; i < length_; ++i) {{ {' '.join(elements)} {kernel.code} }}"
    return (
        f'{before}\n{kernel.before}\ntypedef {kind} T;\nextern "C" __global__ void run'
        f"(long length_, {', '.join(arrays)}) {{ {body} }}\n"
    )


_HOST = """
#include <cmath>
#define __global__
#define __device__
#define __forceinline__ inline
using namespace std;
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
"""
_THREADS = """
#include <pthread.h>
#include <sched.h>
#define __shared__ static
struct Place { unsigned x; };
static Place blockDim;
static thread_local Place threadIdx, blockIdx;
static unsigned arrived, round_;
static void __syncthreads() {  // by hand: the headers for it take longest to compile
    unsigned own = __atomic_load_n(&round_, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == blockDim.x) {
        __atomic_store_n(&arrived, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&round_, own + 1, __ATOMIC_RELEASE);
    } else while (__atomic_load_n(&round_, __ATOMIC_ACQUIRE) == own) sched_yield();
}
template <class T> T __shfl_xor_sync(unsigned, T value, int step) {
    static T lanes[1024];
    lanes[threadIdx.x] = value;
    __syncthreads();
    T other = lanes[threadIdx.x ^ step];
    __syncthreads();
    return other;
}
"""
_RUN = """
static unsigned n_blocks_;
static void** given;
static void* one_thread(void* number) {{
    threadIdx.x = (unsigned long)number;
    for (unsigned block = 0; block < n_blocks_; ++block) {{
        blockIdx.x = block;
        {name}({arguments});
        __syncthreads();
    }}
    return 0;
}}
extern "C" void start(unsigned n_blocks, unsigned n_threads, void** told) {{
    pthread_t threads[1024];
    blockDim.x = n_threads, n_blocks_ = n_blocks, given = told;
    for (unsigned long number = 0; number < n_threads; ++number)
        pthread_create(&threads[number], 0, one_thread, (void*)number);
    for (unsigned number = 0; number < n_threads; ++number) pthread_join(threads[number], 0);
}}
"""


def for_host(code, name=None):
    """A program in C++: ``run`` for elements, or ``start`` for a whole program called ``name``."""
    if name is None:
        return _HOST + code
    told = code[code.index(f"{name}(") + len(name) + 1 :]
    kinds = [each.rpartition(" ")[0] for each in told[: told.index(")")].split(", ")]
    given = ", ".join(f"*({kind}*)given[{place}]" for place, kind in enumerate(kinds))
    return _HOST + _THREADS + code + _RUN.format(name=name, arguments=given)


def compiled(folder, name, code):
    """The library made of a program, compiled once."""
    path = folder / name
    if not path.with_suffix(".so").exists():
        path.with_suffix(".cpp").write_text(code)
        arguments = ["-std=c++17", "-shared", "-fPIC", "-O0", "-o", f"{path}.so", f"{path}.cpp"]
        subprocess.run([COMPILER, *arguments, "-pthread"], check=True)
    return ctypes.CDLL(f"{path}.so")
