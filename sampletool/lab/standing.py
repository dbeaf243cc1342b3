"""Where a worker stands while it is stopped: the line of its way's source, and what its own copies hold there.

The source is the scenario's file for a way that is a function, and for a command of the tool the production code that
the scenario names.
"""

import sys
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from importlib.util import find_spec
from operator import attrgetter
from os.path import relpath
from traceback import walk_stack
from types import FrameType, SimpleNamespace
from typing import Any

from .scenario import PACKAGE, Scenario, Way

_LONGEST = 200


def source_of(scenario: Scenario, way: Way) -> str:
    """The path of the file whose lines are shown."""
    if callable(way.program):
        return way.program.__code__.co_filename
    spec = find_spec(scenario.symbol.partition(":")[0])
    assert spec is not None
    return str(spec.origin)


def of_this_process(source: str, private: Sequence[str]) -> dict[str, Any]:
    """Of the thread that asks; or, if the source does not come up in it, of the main thread, which waits for it."""
    main = sys._current_frames()[threading.main_thread().ident or 0]
    frames = [*walk_stack(None), *walk_stack(main)]
    return _standing([frame for frame, _ in frames if frame.f_code.co_filename == source], private)


def of_frame(frame: FrameType, source: str, private: Sequence[str]) -> dict[str, Any]:
    """Return where the thread of this frame stands."""
    frames = [each for each, _ in walk_stack(frame)]
    return _standing([each for each in frames if each.f_code.co_filename == source], private)


def of_coroutine(
    coroutine: Coroutine[Any, Any, Any], source: str, private: Sequence[str]
) -> dict[str, Any]:
    frames: list[FrameType] = []
    awaits: Any = coroutine
    while frame := getattr(awaits, "cr_frame", None):
        frames.insert(0, frame)
        awaits = awaits.cr_await
    return _standing([frame for frame in frames if frame.f_code.co_filename == source], private)


def _standing(frames: Sequence[FrameType], private: Sequence[str]) -> dict[str, Any]:
    """`frames` from the innermost on."""
    at = (
        f"{relpath(frames[0].f_code.co_filename, PACKAGE)}:{frames[0].f_lineno}" if frames else None
    )
    known = SimpleNamespace(
        **{name: value for frame in reversed(frames) for name, value in frame.f_locals.items()}
    )
    held = {}
    for name in private:
        with suppress(AttributeError):
            held[name] = str(attrgetter(name)(known))[:_LONGEST]
    return {"at": at, "private": held or None}
