"""The exercises of chapter 08, Devices, a module each, in the order of its text.

Of each exercise first the function that is asked for, then what learners write instead of it, then
the definition that ties them together. Where there is no GPU the checks simulate one, so arguments
are drawn on the CPU and moved by `run`.
"""

from course.exercises.ch08_devices import as_array
from course.exercises.ch08_devices import which_device
from course.exercises.ch08_devices import any_device
from course.exercises.ch08_devices import to_device
from course.exercises.ch08_devices import fewer_waits
from course.exercises.ch08_devices import largest_batch
from course.exercises.ch08_devices import break_even
from course.exercises.ch08_devices import unscaled
