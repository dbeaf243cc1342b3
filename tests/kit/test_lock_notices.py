"""sampletool/kit/lock_notices.py: users see what happens to locks, as much of it as they want."""

import logging
import os
from collections.abc import Iterator

import pytest

from sampletool.kit.lock_notices import show_lock_notices
from sampletool.kit.safety.lock import log


@pytest.fixture(autouse=True)
def restored_log() -> Iterator[None]:
    """Restore the logger of the library after the test."""
    handlers = list(log.handlers)
    level = log.level
    yield
    log.handlers[:] = handlers
    log.setLevel(level)


def _notices_of(*, verbose: bool) -> list[str]:
    """Return the notices that are shown of a message of each level."""
    notices: list[str] = []
    show_lock_notices(notices.append, verbose=verbose)
    for level in ("debug", "info", "warning"):
        log.log(logging.getLevelNamesMapping()[level.upper()], "a %s message", level)
    return notices


def test_with_verbose_everything_is_shown() -> None:
    notices = _notices_of(verbose=True)

    assert notices == ["a debug message", "a info message", "a warning message"]


@pytest.mark.parametrize(
    ("is_terminal", "expected"),
    [
        (True, ["a info message", "a warning message"]),
        (False, ["a warning message"]),
    ],
)
def test_without_verbose_a_terminal_shows_more_than_a_file(
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
    expected: list[str],
) -> None:
    asked_about: list[int] = []

    def isatty(descriptor: int) -> bool:
        asked_about.append(descriptor)
        return is_terminal

    monkeypatch.setattr(os, "isatty", isatty)

    notices = _notices_of(verbose=False)

    assert notices == expected
    stderr = 2
    assert asked_about == [stderr]


def test_the_notices_of_a_command_do_not_go_to_an_earlier_one() -> None:
    """In `tool mcp`, one process runs many commands."""
    earlier: list[str] = []
    show_lock_notices(earlier.append, verbose=True)

    later = _notices_of(verbose=True)

    assert earlier == []
    assert len(later) == 3
