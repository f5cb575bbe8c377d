"""The exercises of chapter 11, Dispatch, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together. Kernels are drawn as their names, devices as texts: the
checks need no GPU, and simulate one where a question is about it.
"""

from course.exercises.ch11_dispatch import which_layers
from course.exercises.ch11_dispatch import find_kernel
from course.exercises.ch11_dispatch import promotion_layer
from course.exercises.ch11_dispatch import autograd_layer
from course.exercises.ch11_dispatch import logged_step
from course.exercises.ch11_dispatch import fused_chain
from course.exercises.ch11_dispatch import count_cost
from course.exercises.ch11_dispatch import custom_op
