"""Find out where a stopped worker stands: its line in the source, and its copies of shared data.

The source is the scenario's file if the variant is a function. For a command of the tool, it is the
production code that the scenario names.
"""

import sys
import threading
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from operator import attrgetter
from os.path import relpath
from traceback import walk_stack
from types import FrameType, SimpleNamespace
from typing import Any

from .scenario import PACKAGE, Scenario, Variant

_MAX_VALUE_CHARACTERS = 200


def source_of(scenario: Scenario, variant: Variant) -> str:
    """Return the path of the file whose lines are shown."""
    if callable(variant.program):
        return variant.program.__code__.co_filename
    module_name, _, _ = scenario.symbol.partition(":")
    spec = find_spec(module_name)
    assert spec is not None
    return str(spec.origin)


def of_this_process(source: str, private: Sequence[str]) -> dict[str, Any]:
    """Return where the current thread stands.

    If the source does not occur in it, return where the main thread stands, which waits for it.
    """
    main_frame = sys._current_frames()[threading.main_thread().ident or 0]
    frames = [frame for frame, _ in walk_stack(None)]
    frames += [frame for frame, _ in walk_stack(main_frame)]
    return _describe(_frames_in(source, frames), private)


def of_frame(frame: FrameType, source: str, private: Sequence[str]) -> dict[str, Any]:
    """Return where the thread of this frame stands."""
    frames = [each for each, _ in walk_stack(frame)]
    return _describe(_frames_in(source, frames), private)


def of_coroutine(
    coroutine: Coroutine[Any, Any, Any], source: str, private: Sequence[str]
) -> dict[str, Any]:
    """Return where a suspended coroutine stands."""
    frames: list[FrameType] = []
    awaited: Any = coroutine
    frame = getattr(awaited, "cr_frame", None)
    while frame is not None:
        frames.insert(0, frame)
        awaited = awaited.cr_await
        frame = getattr(awaited, "cr_frame", None)
    return _describe(_frames_in(source, frames), private)


def _frames_in(source: str, frames: Iterable[FrameType]) -> list[FrameType]:
    return [frame for frame in frames if frame.f_code.co_filename == source]


def _describe(frames: Sequence[FrameType], private: Sequence[str]) -> dict[str, Any]:
    """Return the position and the private values in these frames. The innermost one is first."""
    if not frames:
        return {"at": None, "private": None}
    innermost = frames[0]
    path = relpath(innermost.f_code.co_filename, PACKAGE)
    variables: dict[str, Any] = {}
    for frame in reversed(frames):
        # A variable of an inner frame hides one with the same name further out.
        variables.update(frame.f_locals)
    namespace = SimpleNamespace(**variables)
    values = {}
    for name in private:
        # It may not be assigned yet.
        with suppress(AttributeError):
            values[name] = str(attrgetter(name)(namespace))[:_MAX_VALUE_CHARACTERS]
    return {"at": f"{path}:{innermost.f_lineno}", "private": values or None}
