"""The exercises of chapter 05, Autograd, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together.
"""

from course.exercises.ch05_autograd import numeric_gradient
from course.exercises.ch05_autograd import linear_gradients
from course.exercises.ch05_autograd import which_leaf
from course.exercises.ch05_autograd import lost_gradient
from course.exercises.ch05_autograd import tanh_gradient
from course.exercises.ch05_autograd import sine_slope
from course.exercises.ch05_autograd import backward_order
from course.exercises.ch05_autograd import visits
from course.exercises.ch05_autograd import unbroadcast
