"""The exercises of chapter 07, Higher order, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from course.exercises.ch07_higher_order import second_derivative
from course.exercises.ch07_higher_order import gradient_penalty
from course.exercises.ch07_higher_order import sigmoid_gradient
from course.exercises.ch07_higher_order import which_derivative
from course.exercises.ch07_higher_order import hessian_rows
from course.exercises.ch07_higher_order import hessian_vector
from course.exercises.ch07_higher_order import newton_step
