"""The exercises of chapter 10, Build your own engine, a module each, in the order of its text.

The reference answers of the core are the parts of `course.engine`. Here stand what learners write
instead, and the definitions. A case is a short program on a class `Tensor` that has the learner's
part, and expressions whose values afterwards are compared.
"""

from course.exercises.ch10_engine import own_tensor
from course.exercises.ch10_engine import record_result
from course.exercises.ch10_engine import own_operations
from course.exercises.ch10_engine import what_is_remembered
from course.exercises.ch10_engine import walk_back
from course.exercises.ch10_engine import stale_value
from course.exercises.ch10_engine import nested_no_grad
from course.exercises.ch10_engine import sixth_operation
from course.exercises.ch10_engine import forward_slopes
