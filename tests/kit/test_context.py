"""sampletool/kit/context.py: what a command can use, and how its options and settings decide."""

import fcntl
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.command_line import CommandLine, GlobalOptions
from sampletool.kit.context import PATIENT_WAIT_SECONDS, Context, in_ci
from sampletool.kit.contract.errors import InvalidValues, Mistake, NoWorkspace
from sampletool.kit.contract.file_errors import FileNotFound
from sampletool.kit.program import WORKSPACE_FILE
from sampletool.kit.safety.errors import LockTimeout
from sampletool.kit.safety.lock import Hold, log
from sampletool.kit.safety.lock_record import Record, describe_me
from sampletool.kit.safety.signals import Signals
from sampletool.kit.stdout import NoStdout
from sampletool.kit.testing.tool import Tool


class RecordingStdout(NoStdout):
    """A stdout that remembers the events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write_event(self, event: dict[str, Any]) -> None:
        """Remember the event."""
        self.events.append(event)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, which is restored after the test."""
    work = tmp_path / "here"
    work.mkdir()
    monkeypatch.chdir(work)
    # Without this, the tests would depend on a variable of the machine.
    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", str(tmp_path))
    return work


@pytest.fixture
def stopped_clock() -> Signals:
    """Return signals whose deadline never comes nearer."""
    return Signals(clock=lambda: 0.0)


def context_with(signals: Signals | None = None, **options: Any) -> Context:
    """Return the context of a command with these global options."""
    context = Context(Signals() if signals is None else signals)
    context.set_command_line(CommandLine("probe.run", options=GlobalOptions(**options)))
    return context


def mistake_in(context: Context) -> Mistake:
    """Return the only mistake that `begin` finds."""
    with pytest.raises(InvalidValues) as caught:
        context.begin()
    (mistake,) = caught.value.mistakes
    return mistake


def _settings(directory: Path, text: str) -> Path:
    """Write the settings of a workspace."""
    file = directory / WORKSPACE_FILE
    file.write_text(f"[settings]\n{text}\n")
    return file


# The command line


def test_before_anything_is_understood_there_is_no_command_and_no_option() -> None:
    context = Context(Signals())

    assert context.command == ""
    assert context.options == GlobalOptions()
    assert context.dry_run is False
    assert context.fields is None
    assert context.warnings == []
    assert context.uses_session is False


def test_each_context_has_a_request_id_of_its_own() -> None:
    first, second = Context(Signals()), Context(Signals())

    assert first.request_id != second.request_id
    assert len(first.request_id) == 16


def test_options_of_a_later_level_replace_those_that_they_name() -> None:
    line = CommandLine(options=GlobalOptions(quiet=True, cwd="/a"))

    changed = line.with_options({"cwd": "/b", "verbose": 2})

    assert changed.options == GlobalOptions(quiet=True, cwd="/b", verbose=2)


def test_only_options_that_override_a_setting_are_settings() -> None:
    options = GlobalOptions(format="text", lock_timeout="3s", timeout="5s", quiet=True)

    assert options.settings() == {"format": "text", "lock_timeout": "3s"}
    assert GlobalOptions().settings() == {}
    assert GlobalOptions(format="raw").settings() == {}


# Before the command runs


def _failure_of(context: Context) -> Exception | None:
    """Return the error that `begin` raises, or None."""
    try:
        context.begin()
    except Exception as error:
        return error
    return None


def test_a_plain_command_can_begin(directory: Path) -> None:
    assert _failure_of(context_with()) is None
    assert Path.cwd() == directory


@pytest.mark.parametrize("name", ["TOOL_FORMAT", "TOOL_TIMEOUT"])
def test_an_empty_variable_is_ignored(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "")

    assert _failure_of(context_with()) is None


def test_the_command_runs_in_the_directory_of_its_option(directory: Path) -> None:
    (directory / "inner").mkdir()

    context = context_with(cwd="inner")
    context.begin()

    assert Path.cwd() == directory / "inner"
    assert context.cwd == directory / "inner"


def test_an_empty_directory_is_refused(directory: Path) -> None:
    mistake = mistake_in(context_with(cwd=""))

    assert mistake.param == "--cwd"
    assert mistake.code == "INVALID_VALUE"
    assert mistake.message == "The value of --cwd is empty"
    assert mistake.value == ""
    assert mistake.suggestion == "Pass a directory, or leave out --cwd."
    assert Path.cwd() == directory


def test_a_directory_that_cannot_be_entered_is_named_by_its_absolute_path(directory: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        context_with(cwd="missing").begin()

    assert caught.value.filename == str(directory / "missing")


def test_without_a_time_limit_the_command_has_no_deadline(stopped_clock: Signals) -> None:
    context_with(stopped_clock).begin()

    assert stopped_clock.seconds_left is None


def test_the_time_limit_of_the_option_wins_over_that_of_the_variable(
    stopped_clock: Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_TIMEOUT", "nonsense")

    context_with(stopped_clock, timeout="7s").begin()

    assert stopped_clock.seconds_left == 7


def test_the_variable_sets_the_time_limit(
    stopped_clock: Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_TIMEOUT", "2m")

    context_with(stopped_clock).begin()

    assert stopped_clock.seconds_left == 120


def test_a_wrong_time_limit_in_the_variable_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_TIMEOUT", "soon")

    mistake = mistake_in(context_with())

    assert (mistake.param, mistake.code) == ("TOOL_TIMEOUT", "INVALID_VALUE")
    assert mistake.value == "soon"
    assert mistake.message.startswith("Invalid value for TOOL_TIMEOUT: ")
    assert "soon" in mistake.message


def test_a_wrong_format_in_the_variable_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_FORMAT", "yaml")

    mistake = mistake_in(context_with())

    assert (mistake.param, mistake.value) == ("format", "yaml")
    assert "(from TOOL_FORMAT)" in mistake.message


# Settings and places


def test_a_current_directory_that_was_removed_is_an_error(directory: Path) -> None:
    directory.rmdir()

    with pytest.raises(FileNotFound, match="the current directory does not exist"):
        _ = context_with().cwd


def test_outside_of_a_workspace_the_error_names_the_directory(directory: Path) -> None:
    context = context_with()

    with pytest.raises(NoWorkspace) as caught:
        _ = context.workspace

    assert context.workspace_or_none is None
    assert caught.value.context["directory"] == str(directory)


def test_the_workspace_is_found_from_a_directory_in_it(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _settings(directory, "jobs = 3")
    (directory / "inner").mkdir()
    monkeypatch.chdir(directory / "inner")

    context = context_with()

    assert context.workspace == directory
    assert context.jobs() == 3


@pytest.mark.parametrize(("processors", "jobs"), [(6, 6), (None, 1)])
def test_the_number_of_jobs_is_by_default_that_of_the_processors(
    monkeypatch: pytest.MonkeyPatch,
    processors: int | None,
    jobs: int,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)

    assert context_with().jobs() == jobs


# The session


def test_a_session_without_a_given_id_is_named_after_the_request() -> None:
    context = context_with()

    assert context.given_session_id is None
    assert context.session_id == f"run-{context.request_id}"


def test_the_id_of_the_option_wins_over_that_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_SESSION_ID", "from-variable")

    assert context_with().session_id == "from-variable"
    assert context_with(session_id="from-option").session_id == "from-option"


def test_a_wrong_id_is_a_mistake_in_the_place_where_it_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_SESSION_ID", "../variable")

    from_variable = mistake_in(context_with())
    from_option = mistake_in(context_with(session_id="../option"))

    assert (from_variable.param, from_variable.value) == ("TOOL_SESSION_ID", "../variable")
    assert (from_option.param, from_option.value) == ("--session-id", "../option")


def test_a_session_is_locked_until_the_command_ends() -> None:
    context = context_with(session_id="s-1")

    directory = context.session_directory
    (lock_file,) = directory.glob("*.lock")
    is_free_during = _is_free(lock_file)
    context.exit_stack.close()

    assert directory.name == "s-1"
    assert context.uses_session is True
    assert is_free_during is False
    assert _is_free(lock_file)


def _is_free(lock_file: Path) -> bool:
    """Return whether no process has locked the file."""
    descriptor = os.open(lock_file, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


# Locks


def test_the_record_of_a_lock_names_the_command_and_its_session() -> None:
    record = context_with(session_id="s-1").lock_record

    assert (record.command, record.session_id) == ("probe.run", "s-1")
    assert record.pid == os.getpid()


@pytest.mark.parametrize(("option", "seconds"), [(None, 4.5), ("auto", 4.5), ("0", 0), ("2s", 2)])
def test_the_wait_for_a_lock_is_the_usual_one_unless_a_setting_says_it(
    option: str | None,
    seconds: float,
) -> None:
    assert context_with(lock_timeout=option).patience(4.5) == seconds


def test_two_commands_can_share_a_lock(directory: Path) -> None:
    lock = directory / "x.lock"

    with (
        context_with().hold(lock, "x", "shared", 0),
        context_with().hold(lock, "x", "shared", 0) as second,
    ):
        has_both = second.waited_ms >= 0

    assert has_both


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
def test_an_exclusive_lock_is_refused_at_once_to_a_command_without_patience(
    directory: Path,
    mode: Any,
) -> None:
    lock = directory / "x.lock"

    with (
        context_with().hold(lock, "the x", "exclusive", 0),
        pytest.raises(LockTimeout) as caught,
        context_with(lock_timeout="0").hold(lock, "the x", mode, 60),
    ):
        raise AssertionError("two commands hold the lock")

    assert caught.value.name == "the x"


@pytest.mark.parametrize(("verbose", "level"), [(0, "WARNING"), (1, "DEBUG"), (2, "DEBUG")])
def test_a_verbose_command_shows_each_step_of_a_lock(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    verbose: int,
    level: str,
) -> None:
    monkeypatch.setattr(log, "handlers", list(log.handlers))
    monkeypatch.setattr(log, "level", log.level)
    monkeypatch.setattr(os, "isatty", lambda _descriptor: False)

    context_with(verbose=verbose).make_lock(directory / "x.lock", "x")

    assert logging.getLevelName(log.level) == level


def _hold(waited_ms: int, previous: Record | None = None) -> Hold:
    return Hold((), waited_ms, Signals(), previous_record=previous)


def test_the_waits_for_several_locks_are_added() -> None:
    context = context_with()
    waited_before = context.waited_ms

    context.record_hold(_hold(30))
    context.record_hold(_hold(12))

    assert waited_before is None
    assert context.waited_ms == 42


def test_a_holder_that_crashed_is_remembered_after_another_lock_too() -> None:
    context = context_with()
    crashed = describe_me(command="crashed")

    context.record_hold(_hold(0, crashed))
    context.record_hold(_hold(0))

    assert context.crashed_holder == crashed


def test_a_lock_counts_in_what_the_response_says(directory: Path) -> None:
    context = context_with()

    with context.hold(directory / "x.lock", "x", "exclusive", 1):
        # Also while it is held: the command may fail before it releases the lock.
        waited_ms = context.waited_ms

    assert waited_ms is not None
    assert context.waited_ms == waited_ms


# Editing settings


def test_a_settings_file_is_locked_and_read_for_an_edit(directory: Path) -> None:
    file = _settings(directory, "jobs = 3")
    context = context_with()

    with context.editing(file) as edit:
        edit.text = edit.before.text.replace("3", "4")
        edit.write()

    assert file.read_text() == "[settings]\njobs = 4\n"
    assert context.waited_ms is not None
    assert context.warnings == []


def test_a_dry_run_neither_locks_nor_writes(directory: Path) -> None:
    file = _settings(directory, "jobs = 3")
    context = context_with()

    with context.editing(file, dry_run=True) as edit:
        edit.text = ""
        edit.write()

    assert file.read_text() == "[settings]\njobs = 3\n"
    assert context.waited_ms is None
    assert sorted(path.name for path in directory.iterdir()) == [WORKSPACE_FILE]


@pytest.mark.parametrize(("new_jobs", "warns"), [("4", True), ("3", False)])
def test_a_change_warns_if_the_file_has_another_name(
    directory: Path,
    new_jobs: str,
    warns: bool,
) -> None:
    file = _settings(directory, "jobs = 3")
    os.link(file, directory / "other-name")
    context = context_with()

    with context.editing(file) as edit:
        edit.text = edit.before.text.replace("3", new_jobs)
        edit.write()

    message = (
        f"{file} had 2 names (hard links). Only this one has the change. "
        "The others keep the old content."
    )
    assert context.warnings == ([{"code": "HARD_LINK", "message": message}] if warns else [])


def test_a_wrong_lock_timeout_in_the_file_does_not_prevent_its_correction(
    directory: Path,
) -> None:
    _settings(directory, 'lock_timeout = "soon"')
    context = context_with()

    assert context._patience_for_settings() == PATIENT_WAIT_SECONDS
    (warning,) = context.warnings
    assert warning["code"] == "VALIDATION_ERROR"
    assert "soon" in warning["message"]


def test_a_wrong_lock_timeout_of_the_user_does_not_prevent_a_correction_either(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config.toml").write_text('lock_timeout = "soon"\n')
    context = context_with()

    assert context._patience_for_settings() == PATIENT_WAIT_SECONDS
    assert len(context.warnings) == 1


def test_a_wrong_lock_timeout_that_the_caller_gave_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_LOCK_TIMEOUT", "soon")

    with pytest.raises(InvalidValues):
        context_with()._patience_for_settings()


def test_a_lock_timeout_applies_to_the_lock_of_the_settings() -> None:
    assert context_with(lock_timeout="3s")._patience_for_settings() == 3


# Output


def test_the_option_for_the_format_wins_over_fields_and_settings(directory: Path) -> None:
    _settings(directory, 'format = "text"')

    assert context_with(format="jsonl", fields="a").chosen_format == "jsonl"
    assert context_with(fields="a").chosen_format == "json"
    assert context_with().chosen_format == "text"


def test_without_an_option_or_a_setting_no_format_is_chosen() -> None:
    assert context_with().chosen_format is None


def test_a_wrong_format_in_a_file_chooses_none(directory: Path) -> None:
    _settings(directory, 'format = "yaml"')

    assert context_with().chosen_format is None


@pytest.mark.parametrize(("chosen", "count"), [("jsonl", 1), ("json", 0), ("text", 0), (None, 0)])
def test_events_are_for_jsonl_only(chosen: str | None, count: int) -> None:
    stdout = RecordingStdout()
    context = Context(Signals(), stdout)
    options = GlobalOptions(format=chosen)  # type: ignore[arg-type]
    context.set_command_line(CommandLine(options=options))

    context.emit({"event": "step"})

    assert stdout.events == [{"event": "step"}] * count


def test_a_command_without_a_stdout_takes_descriptor_1() -> None:
    taken = Context(Signals()).take_stdout()

    is_same_file = os.path.sameopenfile(taken, 1)
    os.close(taken)

    assert is_same_file


def test_notices_are_lines_on_stderr_unless_the_command_is_quiet(
    capfd: pytest.CaptureFixture[str],
) -> None:
    context_with().notice("one")
    context_with(quiet=True).notice("two")

    assert capfd.readouterr() == ("", "one\n")


@pytest.mark.parametrize(
    ("verbose", "is_terminal", "is_shown"),
    [(0, False, False), (1, False, True), (0, True, True), (2, True, True)],
)
def test_progress_is_for_people_who_watch(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    verbose: int,
    is_terminal: bool,
    is_shown: bool,
) -> None:
    stderr = 2
    monkeypatch.setattr(os, "isatty", lambda descriptor: descriptor == stderr and is_terminal)

    context_with(verbose=verbose).progress("halfway")

    assert capfd.readouterr().err == ("halfway\n" if is_shown else "")


def test_progress_is_quiet_too(capfd: pytest.CaptureFixture[str]) -> None:
    context_with(verbose=1, quiet=True).progress("halfway")

    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", True),
        ("1", True),
        ("yes", True),
        ("", False),
        ("0", False),
        ("false", False),
        ("FALSE", False),
        (None, False),
    ],
)
def test_a_service_for_continuous_integration_sets_a_variable(
    monkeypatch: pytest.MonkeyPatch,
    value: str | None,
    expected: bool,
) -> None:
    if value is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", value)

    assert in_ci() is expected


# As a user sees it


@pytest.mark.parametrize("option", ["--cwd=", "-C"])
def test_an_empty_variable_in_a_script_does_not_mean_the_current_directory(
    tool: Tool,
    option: str,
) -> None:
    words = [option] if option.endswith("=") else [option, ""]

    ran = tool("config", "set", "a", "1", *words)

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert ran.error["errors"][0]["param"] == "--cwd"
    assert not (tool.cwd / WORKSPACE_FILE).exists()


def test_a_wrong_lock_timeout_in_a_file_can_be_corrected(tool: Tool, workspace: Path) -> None:
    (workspace / WORKSPACE_FILE).write_text('[settings]\nlock_timeout = "soon"\n')

    ran = tool("config", "set", "lock_timeout", "2s")

    assert ran.data["effect"] == "updated"
    assert [warning["code"] for warning in ran.response["warnings"]] == ["VALIDATION_ERROR"]
