"""The place of a worker: where its code stands, with the values of its variables, as a short text.

If a worker comes to the same place twice, and has changed nothing and found nothing changed in
between, it does the same again: it waits. The lab uses this to recognise loops that wait for a
file, see stepped_worker.py.
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
    """Return the place of the main thread, see `place_of`."""
    main_thread = threading.main_thread().ident or 0
    return place_of(sys._current_frames()[main_thread], own_directories)


def place_of(innermost_frame: FrameType, own_directories: tuple[str, ...]) -> str:
    """Return the place of a thread.

    `own_directories` contain the code whose variables count. Of other code, such as the standard
    library, only the position counts: its variables change without a meaning.
    """
    description = []
    # Keep no list of frames: it would contain the frame of this function, and nothing of that cycle
    # would be released at once. Then a file that the program drops would stay open.
    for frame, _ in walk_stack(innermost_frame):
        description.append(f"{frame.f_code.co_filename}:{frame.f_lasti}")
        if frame.f_code.co_filename.startswith(own_directories):
            description.extend(_variables_of(frame))
    text = "\n".join(description)
    return blake2b(text.encode(errors="replace"), digest_size=_DIGEST_BYTES).hexdigest()


def _variables_of(frame: FrameType) -> Iterator[str]:
    variables: Mapping[str, object] = frame.f_locals
    for name, value in variables.items():
        if isinstance(value, _PLAIN_TYPES):
            yield f"{name}={value!r}"
        elif isinstance(value, _COLLECTIONS):
            yield f"{name}={_show(value)}"


def _show(collection: object) -> str:
    """Return a collection as text. Objects in it count by their type: an address means nothing."""
    if isinstance(collection, dict):
        items = [f"{_show(key)}: {_show(value)}" for key, value in collection.items()]
        return "{" + ", ".join(items) + "}"
    if isinstance(collection, list | tuple | set | frozenset):
        return "[" + ", ".join(_show(item) for item in collection) + "]"
    if isinstance(collection, _PLAIN_TYPES):
        return repr(collection)
    return type(collection).__name__
