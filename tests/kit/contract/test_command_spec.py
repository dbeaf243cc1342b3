"""sampletool/kit/contract/command_spec.py: what a command promises, and what follows from it."""

import pytest

from sampletool.kit.contract.command_spec import CommandSpec, errors_of_every_command, written_out
from sampletool.kit.contract.errors import ExitStatus, KeyNotFound, VersionConflict
from sampletool.kit.program import PROGRAM
from sampletool.kit.testing.tool import Tool, declared_specs


def test_a_command_with_a_lock_can_end_with_the_errors_of_locks() -> None:
    without_lock = CommandSpec(effect="nothing")
    with_lock = CommandSpec(effect="files", locks=("build",))

    codes = {error.code for error in with_lock.own_errors()}

    assert codes == {"LOCK_HELD", "NESTED_CALL", "LOCKS_UNSUPPORTED"}
    assert ExitStatus.LOCK_HELD in with_lock.exit_statuses()
    assert ExitStatus.LOCK_HELD not in without_lock.exit_statuses()


def test_the_exit_code_of_an_error_is_one_of_the_command() -> None:
    plain = CommandSpec(effect="nothing")
    with_error = CommandSpec(effect="nothing", errors=(VersionConflict,))

    added = set(with_error.exit_statuses()) - set(plain.exit_statuses())

    assert added == {ExitStatus.CONFLICT}


def test_the_errors_of_every_command_are_no_errors_of_its_own() -> None:
    spec = CommandSpec(effect="nothing", errors=(KeyNotFound,))

    assert spec.own_errors() == [KeyNotFound.kind()]
    assert spec.all_errors() == [*errors_of_every_command(), KeyNotFound.kind()]


def test_an_error_that_is_not_declared_fails_the_test_that_meets_it(
    tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(declared_specs(), "config.get", CommandSpec(effect="nothing"))

    with pytest.raises(AssertionError, match=r"does not declare .*KEY_NOT_FOUND"):
        tool("config", "get", "nope")


@pytest.mark.parametrize(
    ("example", "written"),
    [
        ("config list", f"{PROGRAM} config list"),
        ("echo text | state set key -", f"echo text | {PROGRAM} state set key -"),
    ],
)
def test_an_example_is_written_with_the_name_of_the_program(example: str, written: str) -> None:
    assert written_out(example) == written


def test_every_command_can_end_with_the_errors_that_it_cannot_prevent() -> None:
    codes = [kind.code for kind in errors_of_every_command()]

    assert sorted(codes) == [
        "FILE_NOT_FOUND",
        "INTERNAL_ERROR",
        "INTERRUPTED",
        "INVALID_TOML",
        "IO_ERROR",
        "NOT_FLUSHED",
        "NO_SPACE",
        "PERMISSION_DENIED",
        "READ_ONLY",
        "TIMEOUT",
        "UNSAFE_DIRECTORY",
        "UNSAFE_PATH",
        "USAGE_ERROR",
        "VALIDATION_ERROR",
    ]


def test_the_exit_codes_of_a_plain_command_include_success_and_every_signal() -> None:
    exit_codes = CommandSpec(effect="nothing").exit_statuses()

    assert exit_codes == [0, 1, 2, 5, 7, 10, 129, 130, 131, 143]


def test_a_spec_promises_only_what_its_file_says() -> None:
    spec = CommandSpec(effect="nothing")

    promises = {name: value for name, value in spec._asdict().items() if value}
    assert promises == {"effect": "nothing", "idempotent": True}
    flags = {name for name, value in spec._asdict().items() if value is False}
    assert flags == {"runs_what_it_is_given", "takes_stdout", "prints_value", "needs_terminal"}


@pytest.mark.parametrize(
    ("spec", "scopes"),
    [
        (CommandSpec(effect="files", reads=("files",)), []),
        (CommandSpec(effect="nothing", reads=("store",)), ["store:read"]),
        (CommandSpec(effect="store", reads=("store",)), ["store:read", "store:write"]),
    ],
)
def test_only_a_command_that_uses_the_store_needs_an_account(
    spec: CommandSpec, scopes: list[str]
) -> None:
    assert spec.required_scopes() == scopes
