"""The exercises of chapter 09, Training, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from course.exercises.ch09_training import trained_line
from course.exercises.ch09_training import how_many_parameters
from course.exercises.ch09_training import shuffled_apart
from course.exercises.ch09_training import cross_entropy_by_hand
from course.exercises.ch09_training import momentum_step
from course.exercises.ch09_training import mean_of_means
from course.exercises.ch09_training import confusion
from course.exercises.ch09_training import another_answer_each_time
