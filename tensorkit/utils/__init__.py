"""What programs need beside the library: ``utils.data``, ``utils.DispatchMode``."""

from tensorkit.dispatch_mode import DispatchMode as DispatchMode
from tensorkit.utils import data as data
