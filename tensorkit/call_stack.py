"""Which frames of the call stack run code of this library, and which code of its user."""

from types import FrameType

HOME = __file__.removesuffix("call_stack.py")


def is_library_code(frame: FrameType) -> bool:
    """Whether a frame runs code of this library."""
    return frame.f_code.co_filename.startswith(HOME)


def of_user(frame: FrameType) -> FrameType:
    """The first frame, from ``frame`` outwards, that runs code of the user."""
    while frame.f_back is not None and is_library_code(frame):
        frame = frame.f_back
    return frame
