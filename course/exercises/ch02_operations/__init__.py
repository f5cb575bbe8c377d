"""The exercises of chapter 02, Operations, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from course.exercises.ch02_operations import softplus
from course.exercises.ch02_operations import brighter
from course.exercises.ch02_operations import dense
from course.exercises.ch02_operations import batch_product
from course.exercises.ch02_operations import which_result
from course.exercises.ch02_operations import standard_rows
from course.exercises.ch02_operations import block_means
from course.exercises.ch02_operations import ensemble
