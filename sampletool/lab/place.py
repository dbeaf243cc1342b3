"""The place of a worker: a short text for its position in the code and the values of its variables.

If a worker reaches the same place twice, and nothing has changed in between, it will do the same
again: it waits. The lab uses this to recognise loops that wait for a file, see stepped_worker.py.
"""

import sys
import threading
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from traceback import walk_stack
from types import FrameType

_PLAIN_TYPES = (bool, int, float, str, bytes, type(None))
_COLLECTIONS = (list, tuple, set, frozenset, dict)
_DIGEST_BYTES = 12


def place_of_this_process(own_directories: tuple[str, ...]) -> str:
    """Return the place of the main thread. `place_of` explains the argument."""
    main_thread = threading.main_thread().ident or 0
    return place_of(sys._current_frames()[main_thread], own_directories)


def place_of(innermost_frame: FrameType, own_directories: tuple[str, ...]) -> str:
    """Return the place of the thread with this innermost frame, as a short text.

    Two equal texts mean that the thread is at the same position with the same variables.

    The variables count only for code in `own_directories`. For other code, such as the standard
    library, only the position counts, because its variables may change without a reason.
    """
    description = []
    # Do not store the frames in a list. The list would contain the frame of this function, which
    # refers to the list. Such a cycle is released late, so files of the program would stay open.
    for frame, _ in walk_stack(innermost_frame):
        description.append(f"{frame.f_code.co_filename}:{frame.f_lasti}")
        if frame.f_code.co_filename.startswith(own_directories):
            description.extend(_variables_of(frame))
    text = "\n".join(description)
    return blake2b(text.encode(errors="replace"), digest_size=_DIGEST_BYTES).hexdigest()


def _variables_of(frame: FrameType) -> Iterator[str]:
    """Yield each variable with a simple value as text."""
    variables: Mapping[str, object] = frame.f_locals
    for name, value in variables.items():
        if isinstance(value, _PLAIN_TYPES):
            yield f"{name}={value!r}"
        elif isinstance(value, _COLLECTIONS):
            yield f"{name}={_text_of(value)}"


def _text_of(value: object) -> str:
    """Return a value as text. For an object, this is only its type.

    The usual text of an object contains its address, which may differ in each run.
    """
    if isinstance(value, dict):
        items = [f"{_text_of(key)}: {_text_of(item)}" for key, item in value.items()]
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ", ".join(_text_of(item) for item in value) + "]"
    if isinstance(value, _PLAIN_TYPES):
        return repr(value)
    return type(value).__name__
