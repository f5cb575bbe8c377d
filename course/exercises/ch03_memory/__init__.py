"""The exercises of chapter 03, Memory, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from course.exercises.ch03_memory import position_of
from course.exercises.ch03_memory import transposed_layout
from course.exercises.ch03_memory import which_layout
from course.exercises.ch03_memory import contiguous_by_hand
from course.exercises.ch03_memory import stereo
from course.exercises.ch03_memory import channels_first
from course.exercises.ch03_memory import without_batch
from course.exercises.ch03_memory import sliding_windows
from course.exercises.ch03_memory import product_chain
