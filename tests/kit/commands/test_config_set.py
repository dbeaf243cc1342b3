"""tool config set"""

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
from sampletool.kit.testing.scale import SOAK, scale
from sampletool.kit.testing.tool import Ran, Tool


def test_one_key_is_set_and_everything_else_stays(tool: Tool, workspace: Path) -> None:
    before = (workspace / "tool.toml").read_text()

    ran = tool("config", "set", "key1", "val1")

    assert ran.data["effect"] == "created"
    assert (workspace / "tool.toml").read_text() == before + 'key1 = "val1"\n'


@pytest.mark.parametrize("time_again", range(scale(1, 5)))
def test_many_processes_each_set_their_key_at_once_and_all_are_kept(
    tool: Tool, workspace: Path, time_again: int
) -> None:
    count = scale(24, 100)
    before = (workspace / "tool.toml").read_text()

    results = tool.together(["config", "set", f"k{n}", str(n), "--lock-timeout", "60s"] for n in range(count))

    assert [ran.status for ran in results] == [0] * count
    text = (workspace / "tool.toml").read_text()
    assert tomllib.loads(text)["settings"] == {"level": 1} | {f"k{n}": n for n in range(count)}
    assert text.startswith(before), "comments are gone"
    assert SOAK or time_again == 0


def test_several_keys_are_one_change(tool: Tool, workspace: Path) -> None:
    ran = tool("config", "set", "a=1", "b.c=x=y", "level=2")

    assert ran.data["effect"] == "updated"
    assert [change["effect"] for change in ran.data["changes"]] == ["created", "created", "updated"]
    settings = tomllib.loads((workspace / "tool.toml").read_text())["settings"]
    assert settings == {"level": 2, "a": 1, "b": {"c": "x=y"}}


def test_if_one_value_is_wrong_nothing_is_set_and_all_that_is_wrong_is_reported(
    tool: Tool,
    workspace: Path,
) -> None:
    before = (workspace / "tool.toml").read_text()

    ran = tool("config", "set", "good=1", "jobs=many", "a b=2", "lock_timeout=5")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert [error["param"] for error in ran.error["errors"]] == ["jobs", "KEY", "lock_timeout"]
    assert (workspace / "tool.toml").read_text() == before


def test_all_mistakes_are_reported_at_once_also_a_missing_value(
    tool: Tool,
    workspace: Path,
) -> None:
    before = (workspace / "tool.toml").read_text()

    ran = tool("config", "set", "jobs=0", "lock_timeout=x", "b")

    assert [(mistake["param"], mistake["code"]) for mistake in ran.error["errors"]] == [
        ("jobs", "INVALID_VALUE"),
        ("lock_timeout", "INVALID_VALUE"),
        ("VALUE", "MISSING"),
    ]
    for part in ("jobs: 0 ", "lock_timeout: 'x' ", "b has no value"):
        assert part in ran.error["message"]
    assert (workspace / "tool.toml").read_text() == before


def test_outside_a_workspace_it_is_the_user_s_file_with_a_warning(tool: Tool, home: Path) -> None:
    ran = tool("config", "set", "key1", "val1")

    assert [warning["code"] for warning in ran.answer["warnings"]] == ["USER_SETTINGS"]
    path = home / "xdg_config_home" / "sampletool" / "config.toml"
    assert ran.data["path"] == str(path)
    assert path.read_text() == 'key1 = "val1"\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_global_is_the_user_s_file_also_in_a_workspace(tool: Tool, workspace: Path) -> None:
    ran = tool("config", "set", "--global", "key1", "val1")

    assert (ran.data["scope"], ran.answer["warnings"]) == ("user", [])
    assert "key1" not in (workspace / "tool.toml").read_text()
    assert tool("config", "get", "key1").data["source"] == "user"


def test_a_workspace_without_a_settings_table_gets_one(tool: Tool) -> None:
    (tool.cwd / "tool.toml").write_text('[target.a]\nrun = ["true"]\n')

    assert tool("config", "set", "a", "1").status == 0

    assert (tool.cwd / "tool.toml").read_text() == '[target.a]\nrun = ["true"]\n\n[settings]\na = 1\n'


@pytest.mark.parametrize(("written", "meant"), [("lock_timeot", "lock_timeout"), ("jbos", "jobs"), ("jbs", "jobs")])
def test_a_near_miss_of_a_known_key_is_set_with_a_warning(
    tool: Tool, workspace: Path, written: str, meant: str
) -> None:
    ran = tool("config", "set", written, "5s")

    assert ran.data["effect"] == "created"
    assert meant in ran.answer["warnings"][0]["message"]
    assert workspace


def test_a_value_of_another_type_is_a_change(tool: Tool, workspace: Path) -> None:
    effects = [tool("config", "set", "level", text).data["effect"] for text in ("1", "true", "1.0", "1")]

    assert effects == ["unchanged", "updated", "updated", "updated"]
    assert workspace


def test_what_is_behind_a_value_is_not_dropped(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", '"x" # c')

    assert tool("config", "get", "a").data["value"] == '"x" # c'
    assert workspace


def test_string_forces_text(tool: Tool) -> None:
    tool("config", "set", "n", "5", "--string")

    assert tool("config", "get", "n").data["value"] == "5"


@pytest.mark.parametrize(
    ("call", "said", "hint"),
    [
        (
            ["set", "jobs=0"],
            "Invalid value for jobs: 0 (command line).",
            'Use a whole number of at least 1, or "auto".',
        ),
        (
            ["set", "lock_timeout", "3"],
            "Invalid value for lock_timeout: 3 (command line).",
            'Use a duration such as 30s, or 0, or "auto". Did you mean 3s?',
        ),
        (["set", "a="], "a is a table, not a value", "Remove these keys first: a.b.c, a.d."),
        (["set", "a.b.c.x=1"], "a.b.c.x cannot be changed: a.b.c is not a table", "Remove this key first: a.b.c."),
        (["unset", "a"], "a is a table, not a value", "Remove these keys first: a.b.c, a.d."),
    ],
)
def test_a_value_that_cannot_be_set_comes_with_what_can(
    tool: Tool, workspace: Path, call: list[str], said: str, hint: str
) -> None:
    (workspace / "tool.toml").write_text("[settings.a]\nb.c = 1\nd = 2\n")

    ran = tool("config", *call)

    assert (ran.status, ran.error["suggestion"]) == (2, hint)
    assert said in ran.error["message"]


def test_an_edit_that_is_not_safe_is_refused_with_the_file_the_key_and_the_reason(
    tool: Tool,
    workspace: Path,
) -> None:
    text = "[settings]\na = {b = 1, c = 1979-05-27 }\n"
    (workspace / "tool.toml").write_text(text)

    for call in (["set", "a.b=2", "x=1"], ["unset", "a.b"]):
        ran = tool("config", *call)

        assert (ran.status, ran.code) == (2, "INVALID_TOML")
        reason = "the edit would change other parts of the file"
        file = workspace / "tool.toml"
        message = f"Cannot change a.b in {file}: {reason}. Nothing was changed."
        assert ran.error["message"] == message
        assert ran.error["suggestion"] == "Change the file in a text editor."
        assert (workspace / "tool.toml").read_text() == text


@pytest.mark.parametrize("words", [["a"], ["a=1", "b"], ["a", "b", "c"], ["a=1", "a=2"], ["=1"], ["a b", "1"]])
def test_what_is_neither_a_pair_nor_pairs_is_refused(words: list[str]) -> None:
    with pytest.raises(InvalidValues):
        read_arguments(words, as_text=False)


def test_a_value_of_several_words_is_not_taken_for_keys_without_a_value() -> None:
    with pytest.raises(InvalidValues) as refused:
        read_arguments(["name", "Ada", "Lovelace"], as_text=False)

    assert refused.value.message == "name has no value; Ada has no value; Lovelace has no value."
    assert "quotes" in refused.value.suggestion


def test_stdin_is_the_way_for_secrets_and_the_answer_does_not_repeat_them(tool: Tool) -> None:
    ran = tool("config", "set", "api.token", "-", stdin=b"hunter2\n")

    assert "SECRET_IN_ARGV" not in [warning["code"] for warning in ran.answer["warnings"]]
    assert b"hunter2" not in ran.stdout
    assert tool("config", "get", "api.token").data["value"] == "***"
    assert tool("config", "get", "api.token", "--reveal").data["value"] == "hunter2"
    assert b"hunter2" not in tool("config", "list").stdout + tool("config", "explain", "api.token").stdout


def test_a_secret_in_the_command_line_is_kept_with_a_warning(tool: Tool) -> None:
    warnings = tool("config", "set", "api.token", "hunter2").answer["warnings"]

    assert "SECRET_IN_ARGV" in [warning["code"] for warning in warnings]


@pytest.mark.parametrize("content", [b"x" * (1024 * 1024 + 1), b"\xff\xfe"], ids=["too large", "not UTF-8"])
def test_stdin_that_is_no_value_is_refused(tool: Tool, content: bytes) -> None:
    assert tool("config", "set", "k", "-", stdin=content).code == "VALIDATION_ERROR"


def test_a_value_on_stdin_may_be_as_large_as_a_file_of_settings(tool: Tool) -> None:
    assert tool("config", "set", "k", "-", stdin=b"x" * 255 * 1024).status == 0

    refused = tool("config", "set", "k", "-", stdin=b"x" * 1024 * 1024)

    assert refused.code == "INVALID_TOML"
    assert "larger than 256 KiB" in refused.error["message"]


def test_if_version_is_compare_and_set(tool: Tool, workspace: Path) -> None:
    version = tool("config", "get", "level").data["version"]

    first = tool("config", "set", "level", "2", "--if-version", version)
    second = tool("config", "set", "level", "3", "--if-version", version)

    assert first.status == 0
    assert (second.status, second.code) == (6, "VERSION_CONFLICT")
    assert second.error["context"]["actual"] == first.data["version"]
    assert "level = 2" in (workspace / "tool.toml").read_text()


def test_of_many_who_read_the_same_version_exactly_one_may_write(
    tool: Tool,
    workspace: Path,
) -> None:
    version = tool("config", "list").data["version"]

    results = tool.together(["config", "set", f"w{n}", "1", "--if-version", version] for n in range(6))

    assert sorted(ran.status for ran in results) == [0, 6, 6, 6, 6, 6]
    assert len(tomllib.loads((workspace / "tool.toml").read_text())["settings"]) == 2


def test_a_dry_run_says_what_would_be_and_touches_nothing(tool: Tool, workspace: Path) -> None:
    def everything() -> dict[Path, bytes]:
        return {path: path.read_bytes() if path.is_file() else b"" for path in workspace.rglob("*")}

    before = everything()

    ran = tool("config", "set", "a=1", "level=1", "--dry-run")

    assert ran.meta["dry_run"] is True
    assert [change["effect"] for change in ran.data["changes"]] == ["created", "unchanged"]
    assert everything() == before


def test_with_the_lock_held_the_answer_says_by_whom_and_when_to_come_back(
    tool: Tool,
    workspace: Path,
) -> None:
    tool("config", "set", "warm", "1")
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock") as other:
        ran = tool("config", "set", "a", "1", "--lock-timeout", "300ms")

    assert (ran.status, ran.code) == (75, "LOCK_HELD")
    context = ran.error["context"]
    assert context["holder"]["pid"] == other.pid
    assert context["holder"]["verified"] is True
    assert 300 <= context["waited_ms"] < 20_000
    assert context["timeout_ms"] == 300


def call_with_retries(tool: Tool, sleep: Callable[[float], None], *call: str) -> dict[str, Any]:
    """The loop that callers use."""
    parsed: dict[str, Any] = {}
    for _ in range(3):
        parsed = tool(*call).answer
        if parsed.get("error", {}).get("code") != "LOCK_HELD":
            break
        sleep(parsed["error"]["retry_after_ms"] / 1000)
    return parsed


def test_the_retry_loop_of_callers_works_unchanged(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", "1")
    call = ("config", "set", "a", "2", "--lock-timeout", "0")
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock") as other:
        pauses: list[float] = []
        assert call_with_retries(tool, pauses.append, *call)["error"]["code"] == "LOCK_HELD"

        assert call_with_retries(tool, lambda _seconds: other.leave(), *call)["ok"]

    assert len(pauses) == 3
    assert min(pauses) >= 0.25


def test_verbose_tells_the_story_of_the_lock_and_quiet_tells_nothing(
    tool: Tool,
    workspace: Path,
) -> None:
    assert workspace
    told = tool("config", "set", "a", "1", "--verbose").stderr.decode()
    assert [line.split(":")[1].split()[0] for line in told.splitlines()] == ["asked", "got", "released"]
    assert tool("config", "set", "a", "2", "--verbose", "--quiet").stderr == b""
    assert tool("config", "set", "a", "3").stderr == b""


def test_a_wrong_lock_timeout_in_the_file_does_not_keep_anybody_from_correcting_it(
    tool: Tool,
    workspace: Path,
) -> None:
    (workspace / "tool.toml").write_text("[settings]\nlock_timeout = 5\n")

    ran = tool("config", "set", "lock_timeout", "5s")

    assert ran.status == 0
    assert ran.answer["warnings"][0]["code"] == "VALIDATION_ERROR"


def test_a_read_only_file_is_refused_and_untouched(tool: Tool, workspace: Path) -> None:
    (workspace / "tool.toml").chmod(0o444)

    assert (tool("config", "set", "a", "1").status, tool("config", "set", "a", "1").code) == (7, "PERMISSION_DENIED")
    assert "a = 1" not in (workspace / "tool.toml").read_text()


@pytest.mark.parametrize(
    ("number", "code"), [(errno.EACCES, "PERMISSION_DENIED"), (errno.EROFS, "READ_ONLY"), (errno.ENOSPC, "NO_SPACE")]
)
@pytest.mark.parametrize("step", [".tool", ".lock", ".tmp"])
def test_a_disk_that_refuses_is_one_clear_answer_and_nothing_is_lost(
    tool: Tool, workspace: Path, step: str, number: int, code: str
) -> None:
    before = (workspace / "tool.toml").read_text()
    with tool.stepped("config", "set", "a", "1", watch=workspace) as stepped:
        stepped.run_until(lambda event: event.name in ("open", "os.mkdir") and event.path.endswith(step))
        stepped.fail(number)
        ended = stepped.finish()

    assert Ran(ended.status, ended.stdout, ended.stderr).code == code
    assert (workspace / "tool.toml").read_text() == before
    assert tool("config", "set", "a", "1").status == 0


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(tool: Tool, workspace: Path, number: int) -> None:
    with tool.stepped("config", "set", "a", "1", watch=workspace) as stepped:
        stepped.run_until("fcntl.flock")
        stepped.fail(number)
        ended = stepped.finish()

    assert (ended.status, Ran(ended.status, ended.stdout, b"").code) == (4, "LOCKS_UNSUPPORTED")


def test_two_writers_and_a_reader_at_random_never_meet_half_a_file(
    tool: Tool,
    workspace: Path,
) -> None:
    calls = [["config", "set", f"k{n}", str(random.random())] for n in range(6)]
    calls += [["config", "list"]] * 4
    random.shuffle(calls)

    results: list[Ran] = tool.together(calls)

    assert [ran.status for ran in results] == [0] * len(calls)
    assert len(tomllib.loads((workspace / "tool.toml").read_text())["settings"]) == 7
