"""Find the line of a file that a thread runs."""

from types import FrameType


def line_in_file(path: str, innermost_frame: FrameType | None) -> int | None:
    """Return the line of the file that a thread runs, or None if it runs no code of the file.

    `innermost_frame` is the innermost frame of the thread.
    """
    frame = innermost_frame
    while frame is not None:
        if frame.f_code.co_filename == path:
            return frame.f_lineno
        frame = frame.f_back
    return None
