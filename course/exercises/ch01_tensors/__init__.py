"""The exercises of chapter 01, Tensors, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together. Data in words: a *reference* is written as a learner might
write it, with nothing but `tk`, `np` and Python; the private functions are usual mistakes, and
what makes their inputs.
"""

from course.exercises.ch01_tensors import what_shape
from course.exercises.ch01_tensors import linspace_by_hand
from course.exercises.ch01_tensors import checkerboard
from course.exercises.ch01_tensors import which_dtype
from course.exercises.ch01_tensors import pixels
from course.exercises.ch01_tensors import half_precision
from course.exercises.ch01_tensors import strides_of
from course.exercises.ch01_tensors import private_copy
