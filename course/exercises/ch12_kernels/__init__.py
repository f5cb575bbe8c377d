"""The exercises of chapter 12, Kernels, a module each, in the order of its text.

The answers are kernels, or functions that launch one. A case holds the two sizes of a launch and
its arguments; what a check sees is the tensor that the kernel fills. The device is always the
simulated one, also where there is a GPU: only that one notices a race. Numbers are small and whole
where they are added, so that the order of additions does not show.
"""

from course.exercises.ch12_kernels import one_thread_each
from course.exercises.ch12_kernels import grid_stride
from course.exercises.ch12_kernels import how_many_transactions
from course.exercises.ch12_kernels import add_bias
from course.exercises.ch12_kernels import racing_sum
from course.exercises.ch12_kernels import tree_sum
from course.exercises.ch12_kernels import tiled_matmul
from course.exercises.ch12_kernels import softmax_rows
from course.exercises.ch12_kernels import exclusive_scan
from course.exercises.ch12_kernels import bank_conflict
from course.exercises.ch12_kernels import own_relu
