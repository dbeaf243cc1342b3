"""Find the position of a stopped worker: its line in the source, and its private values.

The private values are the worker's own copies of shared data. The source is the scenario's file if
the variant is a function. If the variant is a command of the tool, the source is the production
code that the scenario names.

A position is a dictionary with two keys. `at` is the file and line, such as
`lab/scenarios/torn_write.py:40`, and `private` maps names to values. Both are None if the worker
runs no code of the source.
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
"""The number of characters after which a private value is cut."""


def source_of(scenario: Scenario, variant: Variant) -> str:
    """Return the path of the source file of a variant."""
    if callable(variant.program):
        return variant.program.__code__.co_filename
    module_name, _, _ = scenario.production_code.partition(":")
    spec = find_spec(module_name)
    assert spec is not None
    return str(spec.origin)


def position_in_this_process(source: str, private_variables: Sequence[str]) -> dict[str, Any]:
    """Return the position of the current thread.

    If this thread runs no code of the source, return the position of the main thread instead,
    which waits for this thread.
    """
    main_frame = sys._current_frames()[threading.main_thread().ident or 0]
    frames = [frame for frame, _ in walk_stack(None)]
    frames += [frame for frame, _ in walk_stack(main_frame)]
    return _position(_frames_of(source, frames), private_variables)


def position_of_frame(
    frame: FrameType, source: str, private_variables: Sequence[str]
) -> dict[str, Any]:
    """Return the position of the thread with this innermost frame."""
    frames = [each for each, _ in walk_stack(frame)]
    return _position(_frames_of(source, frames), private_variables)


def position_of_coroutine(
    coroutine: Coroutine[Any, Any, Any], source: str, private_variables: Sequence[str]
) -> dict[str, Any]:
    """Return the position of a suspended coroutine."""
    # The frames of the coroutine and of those that it awaits. The innermost one is first.
    frames: list[FrameType] = []
    awaited: Any = coroutine
    frame = getattr(awaited, "cr_frame", None)
    while frame is not None:
        frames.insert(0, frame)
        awaited = awaited.cr_await
        frame = getattr(awaited, "cr_frame", None)
    return _position(_frames_of(source, frames), private_variables)


def _frames_of(source: str, frames: Iterable[FrameType]) -> list[FrameType]:
    """Return the frames that run code of this file."""
    return [frame for frame in frames if frame.f_code.co_filename == source]


def _position(frames: Sequence[FrameType], private_variables: Sequence[str]) -> dict[str, Any]:
    """Return the position in these frames, of which the innermost one is first."""
    if not frames:
        return {"at": None, "private": None}
    innermost = frames[0]
    path = relpath(innermost.f_code.co_filename, PACKAGE)
    private_values = _private_values(frames, private_variables)
    return {"at": f"{path}:{innermost.f_lineno}", "private": private_values or None}


def _private_values(
    frames: Sequence[FrameType], private_variables: Sequence[str]
) -> dict[str, str]:
    """Return the values of these variables as text. Leave out variables without a value.

    The names may have dots: `request.body` is an attribute of the variable `request`.
    """
    variables: dict[str, Any] = {}
    for frame in reversed(frames):
        # A variable of an inner frame hides one with the same name further out.
        variables.update(frame.f_locals)
    # The attributes of this object are the variables, so that attrgetter() can follow the dots.
    namespace = SimpleNamespace(**variables)
    values = {}
    for name in private_variables:
        # The program may not have assigned the variable yet.
        with suppress(AttributeError):
            value = attrgetter(name)(namespace)
            values[name] = str(value)[:_MAX_VALUE_CHARACTERS]
    return values
