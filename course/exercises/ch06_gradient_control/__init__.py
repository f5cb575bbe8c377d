"""The exercises of chapter 06, Gradient control, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from course.exercises.ch06_gradient_control import forgotten_zero
from course.exercises.ch06_gradient_control import sgd_step
from course.exercises.ch06_gradient_control import straight_through
from course.exercises.ch06_gradient_control import which_grad
from course.exercises.ch06_gradient_control import train_only
from course.exercises.ch06_gradient_control import saved_and_changed
from course.exercises.ch06_gradient_control import micro_batches
