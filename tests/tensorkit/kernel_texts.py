"""Kernels as texts, for the tests of kernels."""

import itertools
import linecache
import math

import numpy as np

import tensorkit as tk
from tensorkit import cuda

_numbers = itertools.count()


def kernel_of(text):
    """The kernel that a text defines, as a cell of a notebook would."""
    file = f"<kernel {next(_numbers)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = {"cuda": cuda, "tk": tk, "math": math, "SIZE": 8}
    names |= {"OUTSIDE": tk.ones(2), "ARRAY": np.ones(2)}
    exec(compile(text, file, "exec"), names)
    return names["k"]


def body(*lines, parameters="x, out, n"):
    return kernel_of("\n    ".join([f"@cuda.kernel\ndef k({parameters}):", *lines]) + "\n")


GRID = "i = cuda.grid(1)"
SHARED = ("s = cuda.shared(SIZE, tk.float32)", "t = cuda.threadIdx.x")
BARRIER = (*SHARED, "s[t] = x[t]", "cuda.syncthreads()", "out[t] = s[7 - t]")
