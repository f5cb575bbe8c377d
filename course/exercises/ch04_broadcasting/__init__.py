"""The exercises of chapter 04, Broadcasting and indexing, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from course.exercises.ch04_broadcasting import broadcast_shape
from course.exercises.ch04_broadcasting import multiplication_table
from course.exercises.ch04_broadcasting import nearest_centre
from course.exercises.ch04_broadcasting import top_scores
from course.exercises.ch04_broadcasting import which_index
from course.exercises.ch04_broadcasting import one_hot
from course.exercises.ch04_broadcasting import cleaned
