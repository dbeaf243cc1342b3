"""`tool config set`."""

import errno
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.commands.config.set import read_arguments
from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Ran, Tool, ended

_RENAMED = """
import sys
from sampletool.kit.settings.known import SETTINGS, all_settings
from sampletool.kit.start import main
SETTINGS["helpers"] = {
    "kind": "count",
    "default": "auto",
    "help": "How many help.",
    "former_names": ("workers",),
    "deprecated": "Use jobs.",
}
all_settings.cache_clear()
sys.argv = ["tool", *sys.argv[1:]]
sys.exit(main("sampletool"))
"""
"""The tool with a setting `helpers`, which is deprecated and was called `workers` before."""


@pytest.fixture
def file(workspace: Path) -> Path:
    """Return the settings file of the workspace."""
    return workspace / "tool.toml"


@pytest.fixture
def lock_path(tool: Tool, workspace: Path) -> Path:
    """Return the lock of the settings, which was used and is free."""
    tool("config", "set", "used", "1")
    return workspace / ".tool" / "locks" / "tool.toml.lock"


def settings_in(file: Path) -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads(file.read_text())["settings"]
    return settings


def warning_codes(ran: Ran) -> list[str]:
    return [warning["code"] for warning in ran.response["warnings"]]


def test_one_key_is_set_and_everything_else_stays(tool: Tool, file: Path) -> None:
    before = file.read_text()

    ran = tool("config", "set", "key1", "val1")

    assert ran.data["effect"] == "created"
    assert file.read_text() == before + 'key1 = "val1"\n'


@pytest.mark.parametrize("_attempt", range(scale(1, 5)))
def test_many_processes_set_a_key_each_and_all_are_kept(
    tool: Tool,
    file: Path,
    _attempt: int,
) -> None:
    count = scale(24, 100)
    before = file.read_text()
    calls = []
    for number in range(count):
        calls.append(["config", "set", f"k{number}", str(number), "--lock-timeout", "60s"])

    results = tool.together(calls)

    assert [ran.status for ran in results] == [0] * count
    assert settings_in(file) == {"level": 1} | {f"k{number}": number for number in range(count)}
    assert file.read_text().startswith(before), "comments are lost"


def test_several_keys_are_set_in_one_change(tool: Tool, file: Path) -> None:
    ran = tool("config", "set", "a=1", "b.c=x=y", "level=2")

    effects = [change["effect"] for change in ran.data["changes"]]
    assert effects == ["created", "created", "updated"]
    assert ran.data["effect"] == "updated"
    assert settings_in(file) == {"level": 2, "a": 1, "b": {"c": "x=y"}}


@pytest.mark.parametrize(
    ("arguments", "params", "messages"),
    [
        (
            ["good=1", "jobs=many", "a b=2", "lock_timeout=5"],
            ["jobs", "KEY", "lock_timeout"],
            ["jobs: 'many' ", "'a b' is not a valid key", "lock_timeout: 5 "],
        ),
        (
            ["jobs=0", "lock_timeout=x", "b"],
            ["jobs", "lock_timeout", "VALUE"],
            ["jobs: 0 ", "lock_timeout: 'x' ", "b has no value"],
        ),
    ],
)
def test_if_one_argument_is_wrong_nothing_is_set_and_all_mistakes_are_reported(
    tool: Tool,
    file: Path,
    arguments: list[str],
    params: list[str],
    messages: list[str],
) -> None:
    before = file.read_text()

    ran = tool("config", "set", *arguments)

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert [mistake["param"] for mistake in ran.error["errors"]] == params
    for mistake, message in zip(ran.error["errors"], messages, strict=True):
        assert message in mistake["message"] + " "
    assert file.read_text() == before


def test_outside_a_workspace_the_user_s_file_is_changed_with_a_warning(
    tool: Tool,
    home: Path,
) -> None:
    ran = tool("config", "set", "key1", "val1")

    path = home / "xdg_config_home" / "sampletool" / "config.toml"
    assert warning_codes(ran) == ["USER_SETTINGS"]
    assert ran.data["path"] == str(path)
    assert path.read_text() == 'key1 = "val1"\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_global_changes_the_user_s_file_even_in_a_workspace(tool: Tool, file: Path) -> None:
    ran = tool("config", "set", "--global", "key1", "val1")

    assert (ran.data["scope"], ran.response["warnings"]) == ("user", [])
    assert "key1" not in file.read_text()
    assert tool("config", "get", "key1").data["source"] == "user"


def test_a_workspace_without_a_table_of_settings_gets_one(tool: Tool) -> None:
    file = tool.cwd / "tool.toml"
    before = '[target.a]\nrun = ["true"]\n'
    file.write_text(before)

    ran = tool("config", "set", "a", "1")

    assert ran.status == 0
    assert file.read_text() == f"{before}\n[settings]\na = 1\n"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("lock_timeot", "lock_timeout"), ("jbos", "jobs"), ("jbs", "jobs")],
)
@pytest.mark.usefixtures("workspace")
def test_a_key_that_resembles_a_setting_is_set_with_a_warning(
    tool: Tool,
    written: str,
    meant: str,
) -> None:
    ran = tool("config", "set", written, "5s")

    assert ran.data["effect"] == "created"
    assert warning_codes(ran) == ["UNKNOWN_KEY"]
    assert f"'{meant}'" in ran.response["warnings"][0]["message"]


def test_a_former_name_writes_the_present_key_with_a_warning(tool: Tool, file: Path) -> None:
    process = tool.start("config", "set", "workers", "3", program=["-c", _RENAMED])

    ran = ended(process)

    messages = [warning["message"] for warning in ran.response["warnings"]]
    assert warning_codes(ran) == ["DEPRECATED", "DEPRECATED"]
    assert messages == [
        "workers is now called helpers. Use helpers instead.",
        "helpers is deprecated. Use jobs.",
    ]
    assert settings_in(file) == {"level": 1, "helpers": 3}


@pytest.mark.parametrize("arguments", [["workers=0"], ["workers=3", "helpers=4"]])
def test_a_former_name_is_checked_like_the_present_one(
    tool: Tool,
    file: Path,
    arguments: list[str],
) -> None:
    process = tool.start("config", "set", *arguments, program=["-c", _RENAMED])

    assert ended(process).code == "VALIDATION_ERROR"
    assert settings_in(file) == {"level": 1}


def test_get_and_list_know_a_former_name_in_a_file(tool: Tool, file: Path) -> None:
    file.write_text("[settings]\nworkers = 3\n")

    def run(*arguments: str) -> Ran:
        return ended(tool.start("config", *arguments, program=["-c", _RENAMED]))

    got = run("get", "workers")
    explained = run("explain", "helpers", "--format", "text")
    listed = run("list")

    assert (got.data["key"], got.data["value"], got.data["source"]) == ("helpers", 3, "project")
    assert "workers is now called helpers. Use helpers" in got.response["warnings"][0]["message"]
    assert f"-> project: 3  ({file}, as workers)" in explained.text
    assert "Deprecated. Use jobs." in explained.text
    values = {setting["key"]: setting["value"] for setting in listed.data["settings"]}
    assert values["helpers"] == 3
    assert "workers" not in values


def test_the_manifest_shows_former_names_of_settings(tool: Tool) -> None:
    process = tool.start("manifest", "--schema", program=["-c", _RENAMED])

    setting = ended(process).data["settings"]["helpers"]

    assert (setting["former_names"], setting["deprecated"]) == (["workers"], "Use jobs.")


@pytest.mark.usefixtures("workspace")
def test_a_value_of_another_type_is_a_change(tool: Tool) -> None:
    effects = []
    for text in ("1", "true", "1.0", "1"):
        effects.append(tool("config", "set", "level", text).data["effect"])

    assert effects == ["unchanged", "updated", "updated", "updated"]


@pytest.mark.usefixtures("workspace")
def test_text_that_looks_like_a_comment_is_kept(tool: Tool) -> None:
    tool("config", "set", "a", '"x" # c')

    assert tool("config", "get", "a").data["value"] == '"x" # c'


def test_string_stores_a_number_as_text(tool: Tool) -> None:
    tool("config", "set", "n", "5", "--string")

    assert tool("config", "get", "n").data["value"] == "5"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            ["set", "jobs=0"],
            "Invalid value for jobs: 0 (from the command line).",
            'Use a whole number of at least 1, or "auto".',
        ),
        (
            ["set", "lock_timeout", "3"],
            "Invalid value for lock_timeout: 3 (from the command line).",
            'Use a duration such as 30s, or 0, or "auto". Did you mean 3s?',
        ),
        (
            ["set", "a="],
            "a is a table, not a value",
            "Remove these keys first: a.b.c, a.d.",
        ),
        (
            ["set", "a.b.c.x=1"],
            "a.b.c.x cannot be changed: a.b.c is not a table",
            "Remove this key first: a.b.c.",
        ),
        (
            ["unset", "a"],
            "a is a table, not a value",
            "Remove these keys first: a.b.c, a.d.",
        ),
    ],
)
def test_a_refused_value_comes_with_a_hint(
    tool: Tool,
    file: Path,
    arguments: list[str],
    message: str,
    hint: str,
) -> None:
    file.write_text("[settings.a]\nb.c = 1\nd = 2\n")

    ran = tool("config", *arguments)

    assert (ran.status, ran.error["suggestion"]) == (2, hint)
    assert message in ran.error["message"]


@pytest.mark.parametrize("arguments", [["set", "a.b=2", "x=1"], ["unset", "a.b"]])
def test_an_edit_that_is_not_safe_is_refused_with_the_file_the_key_and_the_reason(
    tool: Tool,
    file: Path,
    arguments: list[str],
) -> None:
    text = "[settings]\na = {b = 1, c = 1979-05-27 }\n"
    file.write_text(text)

    ran = tool("config", *arguments)

    reason = "the edit would change other parts of the file"
    assert (ran.status, ran.code) == (2, "INVALID_TOML")
    assert ran.error["message"] == f"Cannot change a.b in {file}: {reason}. Nothing was changed."
    assert ran.error["suggestion"] == "Edit the file in a text editor instead."
    assert file.read_text() == text


@pytest.mark.parametrize(
    "arguments",
    [["a"], ["a=1", "b"], ["a", "b", "c"], ["a=1", "a=2"], ["=1"], ["a b", "1"]],
)
def test_arguments_that_are_neither_a_pair_nor_pairs_are_refused(arguments: list[str]) -> None:
    with pytest.raises(InvalidValues):
        read_arguments(arguments, as_text=False)


def test_a_value_with_spaces_needs_quotes_and_the_hint_says_so() -> None:
    with pytest.raises(InvalidValues) as refused:
        read_arguments(["name", "Ada", "Lovelace"], as_text=False)

    message = "name has no value; Ada has no value; Lovelace has no value."
    assert refused.value.message == message
    assert "quotes" in refused.value.suggestion


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(InvalidValues, match="The value of a is not UTF-8 text"):
        read_arguments(["a", "\udcff"], as_text=False)


def test_a_secret_comes_from_stdin_and_no_response_repeats_it(tool: Tool) -> None:
    ran = tool("config", "set", "api.token", "-", stdin=b"hunter2\n")

    listed = tool("config", "list").stdout
    explained = tool("config", "explain", "api.token").stdout
    assert "SECRET_IN_ARGV" not in warning_codes(ran)
    assert b"hunter2" not in ran.stdout + listed + explained
    assert tool("config", "get", "api.token").data["value"] == "***"
    assert tool("config", "get", "api.token", "--reveal").data["value"] == "hunter2"


def test_a_secret_on_the_command_line_is_stored_with_a_warning(tool: Tool) -> None:
    ran = tool("config", "set", "api.token", "hunter2")

    assert "SECRET_IN_ARGV" in warning_codes(ran)


@pytest.mark.parametrize(
    "content",
    [b"x" * (1024 * 1024 + 1), b"\xff\xfe"],
    ids=["too large", "not UTF-8"],
)
def test_stdin_that_cannot_be_a_value_is_refused(tool: Tool, content: bytes) -> None:
    assert tool("config", "set", "k", "-", stdin=content).code == "VALIDATION_ERROR"


def test_a_value_on_stdin_can_be_as_large_as_a_settings_file(tool: Tool) -> None:
    accepted = tool("config", "set", "k", "-", stdin=b"x" * 255 * 1024)
    refused = tool("config", "set", "k", "-", stdin=b"x" * 1024 * 1024)

    assert accepted.status == 0
    assert refused.code == "INVALID_TOML"
    assert "larger than 256 KiB" in refused.error["message"]


def test_a_change_is_refused_if_the_version_is_another_one(tool: Tool, file: Path) -> None:
    version = tool("config", "get", "level").data["version"]

    first = tool("config", "set", "level", "2", "--if-version", version)
    second = tool("config", "set", "level", "3", "--if-version", version)

    assert first.status == 0
    assert (second.status, second.code) == (6, "VERSION_CONFLICT")
    assert second.error["context"]["actual"] == first.data["version"]
    assert "level = 2" in file.read_text()


def test_of_many_processes_with_the_same_version_exactly_one_writes(
    tool: Tool,
    file: Path,
) -> None:
    version = tool("config", "list").data["version"]
    calls = []
    for number in range(6):
        calls.append(["config", "set", f"w{number}", "1", "--if-version", version])

    results = tool.together(calls)

    assert sorted(ran.status for ran in results) == [0, 6, 6, 6, 6, 6]
    assert len(settings_in(file)) == 2


def test_a_dry_run_reports_the_changes_and_changes_nothing(tool: Tool, workspace: Path) -> None:
    def everything() -> dict[Path, bytes]:
        contents = {}
        for path in workspace.rglob("*"):
            contents[path] = path.read_bytes() if path.is_file() else b""
        return contents

    before = everything()

    ran = tool("config", "set", "a=1", "level=1", "--dry-run")

    assert ran.meta["dry_run"] is True
    assert [change["effect"] for change in ran.data["changes"]] == ["created", "unchanged"]
    assert everything() == before


def test_if_the_lock_is_held_the_error_names_the_holder(tool: Tool, lock_path: Path) -> None:
    with holding(lock_path) as other:
        ran = tool("config", "set", "a", "1", "--lock-timeout", "300ms")

    context = ran.error["context"]
    assert (ran.status, ran.code) == (75, "LOCK_HELD")
    assert context["holder"]["pid"] == other.pid
    assert context["holder"]["verified"] is True
    assert 300 <= context["waited_ms"] < 20_000
    assert context["timeout_ms"] == 300


def call_with_retries(
    tool: Tool,
    sleep: Callable[[float], None],
    *arguments: str,
) -> dict[str, Any]:
    """Run the loop that callers use."""
    parsed: dict[str, Any] = {}
    for _ in range(3):
        parsed = tool(*arguments).response
        if parsed.get("error", {}).get("code") != "LOCK_HELD":
            break
        sleep(parsed["error"]["retry_after_ms"] / 1000)
    return parsed


def test_the_retry_loop_of_callers_works(tool: Tool, lock_path: Path) -> None:
    call = ("config", "set", "a", "2", "--lock-timeout", "0")
    with holding(lock_path) as other:
        pauses: list[float] = []

        refused = call_with_retries(tool, pauses.append, *call)
        accepted = call_with_retries(tool, lambda _seconds: other.leave(), *call)

    assert refused["error"]["code"] == "LOCK_HELD"
    assert accepted["ok"]
    assert len(pauses) == 3
    assert min(pauses) >= 0.25


@pytest.mark.usefixtures("workspace")
def test_verbose_shows_what_happens_to_the_lock_and_quiet_hides_it(tool: Tool) -> None:
    verbose = tool("config", "set", "a", "1", "--verbose").stderr.decode()
    quiet = tool("config", "set", "a", "2", "--verbose", "--quiet").stderr
    usual = tool("config", "set", "a", "3").stderr

    events = [line.split(":")[1].split()[0] for line in verbose.splitlines()]
    assert events == ["asked", "got", "released"]
    assert (quiet, usual) == (b"", b"")


def test_an_invalid_lock_timeout_in_the_file_can_be_corrected(tool: Tool, file: Path) -> None:
    file.write_text("[settings]\nlock_timeout = 5\n")

    ran = tool("config", "set", "lock_timeout", "5s")

    assert ran.status == 0
    assert warning_codes(ran) == ["VALIDATION_ERROR"]


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["real", "dry run"])
def test_a_read_only_file_is_refused_and_stays_as_it_is(
    tool: Tool, file: Path, options: list[str]
) -> None:
    before = file.read_text()
    file.chmod(0o444)

    ran = tool("config", "set", "a", "1", *options)

    assert (ran.status, ran.code) == (7, "PERMISSION_DENIED")
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.EACCES, "PERMISSION_DENIED"),
        (errno.EROFS, "READ_ONLY"),
        (errno.ENOSPC, "NO_SPACE"),
    ],
)
@pytest.mark.parametrize("step", [".tool", ".lock", ".tmp"])
def test_a_disk_that_refuses_is_reported_and_nothing_is_lost(
    tool: Tool,
    file: Path,
    step: str,
    number: int,
    code: str,
) -> None:
    before = file.read_text()
    with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
        stepped.run_until(
            lambda event: event.name in ("open", "os.mkdir") and event.path.endswith(step),
        )
        stepped.fail(number)
        result = stepped.finish()

    assert Ran(result.status, result.stdout, result.stderr).code == code
    assert file.read_text() == before
    assert tool("config", "set", "a", "1").status == 0


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_reported(tool: Tool, workspace: Path, number: int) -> None:
    with tool.stepped("config", "set", "a", "1", watch=workspace) as stepped:
        stepped.run_until("fcntl.flock")
        stepped.fail(number)
        result = stepped.finish()

    code = Ran(result.status, result.stdout, b"").code
    assert (result.status, code) == (4, "LOCKS_UNSUPPORTED")


def test_writers_and_readers_at_random_never_meet_half_a_file(tool: Tool, file: Path) -> None:
    calls = [["config", "list"]] * 4
    for number in range(6):
        calls.append(["config", "set", f"k{number}", str(random.random())])
    random.shuffle(calls)

    results = tool.together(calls)

    assert [ran.status for ran in results] == [0] * len(calls)
    assert len(settings_in(file)) == 7


@pytest.mark.parametrize("command", [["get", "helpers"], ["list"], ["explain", "helpers"]])
def test_a_former_name_in_a_file_is_reported_with_the_file(
    tool: Tool,
    file: Path,
    command: list[str],
) -> None:
    file.write_text("[settings]\nworkers = 3\n")

    ran = ended(tool.start("config", *command, program=["-c", _RENAMED]))

    messages = [warning["message"] for warning in ran.response["warnings"]]
    assert messages == [f"workers in {file} is now called helpers. Rename it there."]
