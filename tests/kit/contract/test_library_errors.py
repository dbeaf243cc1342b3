"""sampletool/kit/contract/library_errors.py: how the tool reports exceptions of the library."""

import inspect
import signal
from typing import Any

import pytest

from sampletool.kit.contract.errors import ErrorKind, ExitStatus, KeyNotFound, ToolError
from sampletool.kit.contract.library_errors import (
    TABLE,
    from_library_error,
    interrupted_when_done,
    kind_of,
)
from sampletool.kit.program import PROGRAM
from sampletool.kit.safety import errors as library
from sampletool.kit.safety.holder import Holder, Owners
from sampletool.kit.safety.signals import HANDLED

ABSTRACT = {library.SafetyError, library.PathFailure}
"""Base classes, which are never raised themselves."""

KINDS = {
    library.LockTimeout: ("LOCK_HELD", 75),
    library.Deadlock: ("NESTED_CALL", 4),
    library.DeadlineExceeded: ("TIMEOUT", 10),
    library.Interrupted: ("INTERRUPTED", 130),
    library.UnsafePath: ("UNSAFE_PATH", 2),
    library.UnsafeDirectory: ("UNSAFE_DIRECTORY", 7),
    library.InvalidToml: ("INVALID_TOML", 2),
    library.NotFlushed: ("NOT_FLUSHED", 1),
    library.LocksUnsupported: ("LOCKS_UNSUPPORTED", 4),
}
"""The code and the exit code of each exception."""

PATH_TEXTS = {
    library.UnsafePath: (
        "Cannot use /w/x: it is a link.",
        "Use another path, or move what is there out of the way.",
    ),
    library.UnsafeDirectory: (
        "/w/x is not safe to use: it is a link.",
        "Fix the owner and the permissions of the directory, or use another directory.",
    ),
    library.InvalidToml: (
        "Cannot use /w/x as a TOML file: it is a link.",
        "Fix the file in a text editor. It was not changed.",
    ),
    library.NotFlushed: (
        "/w/x was saved, but a power failure could undo the change: it is a link.",
        "Check the disk for errors. You do not need to run the command again.",
    ),
    library.LocksUnsupported: (
        "Cannot lock /w/x: it is a link.",
        f"Use a local file system. To check this machine, run `{PROGRAM} doctor`.",
    ),
}
"""The message and the hint of each exception that concerns a path."""


def texts(error: ToolError) -> tuple[str, str]:
    """Return the message and the hint."""
    return error.message, error.suggestion


def report(exception: library.SafetyError) -> ToolError:
    """Return the error that the tool reports. A mistake in the row must not end in a crash."""
    try:
        return from_library_error(exception)
    except Exception as problem:
        raise AssertionError(f"the row of {exception!r} cannot be filled in") from problem


def lock_timeout(*holders: Holder, usual_ms: int | None = None) -> library.LockTimeout:
    """Return the exception of a wait of 1.5 s for a lock that these processes hold."""
    owners = Owners(list(holders), usual_ms=usual_ms)
    return library.LockTimeout("build", owners, waited_seconds=1.5, timeout_seconds=2.5)


def test_the_table_has_a_row_for_each_exception_of_the_library() -> None:
    classes = set()
    for _, member in inspect.getmembers(library, inspect.isclass):
        if issubclass(member, library.SafetyError) and member not in ABSTRACT:
            classes.add(member)

    assert classes == TABLE.keys() == KINDS.keys()


@pytest.mark.parametrize("error_class", TABLE)
def test_each_row_has_its_code_and_its_exit_code(error_class: type[Exception]) -> None:
    kind = kind_of(error_class)

    assert (kind.code, kind.exit_status) == KINDS[error_class]
    assert kind.meaning.endswith(".")


@pytest.mark.parametrize(
    "exception",
    [
        library.LockTimeout("build", Owners([]), waited_seconds=1.5, timeout_seconds=2.5),
        library.Deadlock("build"),
        library.DeadlineExceeded(1.5),
        library.Interrupted(signal.SIGINT),
        *(error_class("/w/x", "it is a link") for error_class in PATH_TEXTS),
    ],
    ids=lambda exception: type(exception).__name__,
)
def test_the_table_and_the_response_agree_whether_a_retry_can_succeed(
    exception: library.SafetyError,
) -> None:
    described = report(exception).describe()

    assert described["retryable"] == kind_of(type(exception)).retryable
    assert ("retry_after_ms" in described) == described["retryable"]


def test_the_meaning_of_a_code_is_in_the_table() -> None:
    assert kind_of(library.LocksUnsupported) == ErrorKind(
        code="LOCKS_UNSUPPORTED",
        exit_status=ExitStatus.PRECONDITION,
        meaning="The file system does not support locks.",
    )
    assert kind_of(KeyNotFound) == KeyNotFound.kind()


@pytest.mark.parametrize("error_class", PATH_TEXTS)
def test_a_failure_of_a_path_names_the_path_and_the_reason(error_class: Any) -> None:
    error = report(error_class("/w/x", "it is a link"))

    assert texts(error) == PATH_TEXTS[error_class]
    assert (error.code, error.exit_status) == KINDS[error_class]
    assert error.context == {"path": "/w/x", "reason": "it is a link"}
    assert error.describe()["retryable"] is False


def test_a_description_instead_of_a_path_is_left_out_of_the_context() -> None:
    error = report(library.UnsafePath("the current directory", "it was deleted"))

    assert error.message == "Cannot use the current directory: it was deleted."
    assert error.context == {"reason": "it was deleted"}


def test_braces_in_a_path_are_not_replaced() -> None:
    error = report(library.UnsafePath("/w/{reason}", "it is a link"))

    assert error.message == "Cannot use /w/{reason}: it is a link."


def test_a_held_lock_is_reported_with_its_holder_and_the_time_that_was_waited() -> None:
    holder = Holder(12, "running", verified=True, age_ms=5_000)

    error = report(lock_timeout(holder))

    assert texts(error) == (
        'The lock "build" is held by process 12, which started 5s ago.',
        "To wait for the lock, pass --lock-timeout 2m. Or try again later.",
    )
    assert error.context == {
        "lock": "build",
        "waited_ms": 1500,
        "timeout_ms": 2500,
        "holder": holder,
    }
    assert error.exit_status == 75


def test_a_held_lock_is_reported_with_all_of_several_holders() -> None:
    first = Holder(12, "running", verified=True)
    second = Holder(13, "running", verified=True)

    error = report(lock_timeout(first, second))

    assert error.context == {
        "lock": "build",
        "waited_ms": 1500,
        "timeout_ms": 2500,
        "holder": first,
        "holders": [first, second],
        "holder_count": 2,
    }


def test_of_very_many_holders_ten_are_in_the_context() -> None:
    holders = [Holder(pid, "running", verified=True) for pid in range(300)]

    error = report(lock_timeout(*holders))

    assert error.context["holders"] == holders[:10]
    assert error.context["holder_count"] == 300


def test_a_lock_without_a_known_holder_has_no_holder_in_the_context() -> None:
    error = report(lock_timeout())

    assert error.context == {"lock": "build", "waited_ms": 1500, "timeout_ms": 2500}
    assert error.retry_after_ms is not None
    assert error.retry_after_ms >= 4_000


def test_a_lock_that_was_not_waited_for_is_reported_with_no_time() -> None:
    error = report(library.LockTimeout("build", Owners([])))

    assert error.context == {"lock": "build", "waited_ms": 0, "timeout_ms": 0}


def test_the_age_of_the_holder_and_the_usual_duration_decide_when_to_retry() -> None:
    young = Holder(12, "running", verified=True, age_ms=0)
    old = Holder(12, "running", verified=True, age_ms=9_000)

    for_young = report(lock_timeout(young, usual_ms=10_000)).retry_after_ms
    for_old = report(lock_timeout(old, usual_ms=10_000)).retry_after_ms

    assert for_young is not None
    assert 12_000 <= for_young <= 15_000
    assert for_old is not None
    assert 1_200 <= for_old <= 1_500


def test_a_deadlock_names_the_lock_and_the_reason() -> None:
    error = report(library.Deadlock("build"))

    assert error.message == (
        'Deadlock avoided: the process that started this command already holds the lock "build".'
    )
    assert error.suggestion == (
        "Run this command after the other one has finished, "
        "or have the other one do this work itself."
    )  # fmt: skip
    assert error.context == {"lock": "build"}


def test_a_timeout_names_the_limit() -> None:
    error = report(library.DeadlineExceeded(1.5))

    assert texts(error) == (
        "The command did not finish within --timeout 1.5s and was stopped.",
        "Pass a longer --timeout. The processes that the command started were terminated.",
    )
    assert error.context == {"timeout": "1.5s", "timeout_ms": 1500}
    assert error.exit_status == 10


def test_a_timeout_while_waiting_for_a_lock_names_the_holder_and_the_limit_of_the_command() -> None:
    holder = Holder(12, "running", verified=True)

    error = report(library.DeadlineExceeded(60, waiting_for=lock_timeout(holder)))

    assert error.message == (
        "The command did not finish within --timeout 1m and was stopped. "
        'The lock "build" is held by process 12.'
    )
    assert error.context == {
        "lock": "build",
        "waited_ms": 1500,
        "timeout_ms": 60_000,
        "holder": holder,
        "timeout": "1m",
    }
    assert error.describe()["retryable"] is False


@pytest.mark.parametrize("number", HANDLED, ids=lambda number: signal.Signals(number).name)
def test_an_interrupted_command_has_the_exit_code_of_its_signal(number: signal.Signals) -> None:
    error = report(library.Interrupted(number))

    assert error.exit_status == 128 + number
    assert error.context == {"signal": number.name}
    assert texts(error) == (
        f"Stopped by {number.name}.",
        "All locks were released. Each file was either changed completely or not at all.",
    )


ORDER = "the order at https://supplier.example"
UNCERTAIN = [
    library.Interrupted(signal.SIGINT, uncertain_change=ORDER),
    library.DeadlineExceeded(1.0, uncertain_change=ORDER),
]


@pytest.mark.parametrize("exception", UNCERTAIN, ids=["signal", "deadline"])
def test_a_change_that_may_have_been_made_has_an_unknown_outcome(
    exception: library.SafetyError,
) -> None:
    error = report(exception)

    assert error.context.items() >= {"outcome": "unknown", "change": ORDER}.items()
    assert error.message.endswith(f" This change may or may not have been made: {ORDER}.")
    assert error.suggestion == "Check whether the change was made before you run the command again."


@pytest.mark.parametrize(
    "exception",
    [library.Interrupted(signal.SIGINT), library.DeadlineExceeded(1.0)],
    ids=["signal", "deadline"],
)
def test_without_such_a_change_the_outcome_is_not_mentioned(exception: library.SafetyError) -> None:
    error = report(exception)

    assert not error.context.keys() & {"outcome", "change"}
    assert "not known" not in error.message


@pytest.mark.parametrize("exception_class", [library.Interrupted, library.DeadlineExceeded])
def test_the_name_of_the_change_has_no_password(exception_class: Any) -> None:
    change = "the order at https://ann:hunter2@supplier.example"

    error = report(exception_class(2, uncertain_change=change))

    assert "hunter2" not in str(error.describe())


def test_a_command_that_had_done_its_work_is_not_to_be_repeated() -> None:
    error = interrupted_when_done(signal.SIGTERM)

    assert texts(error) == (
        "Stopped by SIGTERM. The command had already finished its work.",
        "Check the result before you run the command again.",
    )
    assert (error.code, error.exit_status) == ("INTERRUPTED", 128 + signal.SIGTERM)
    assert error.context == {"signal": "SIGTERM"}


def test_an_exception_is_reported_like_the_class_that_it_is_derived_from() -> None:
    class PlantedLink(library.UnsafePath):
        """An exception that a part has derived from one of the library."""

    failure = from_library_error(PlantedLink("/w/x", "it is a link"))

    assert (failure.code, failure.message) == ("UNSAFE_PATH", "Cannot use /w/x: it is a link.")
