"""tool audit"""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sampletool.audit.commands import audit as module
from sampletool.kit.program import PACKAGE
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.tool import Process, Ran, Tool, describe_option
from tests.audit.support import candidate, eventually, is_gone, processes_of, script

_OURS = f"{shlex.quote(sys.executable)} -m sampletool"
_ENDLESS = (
    "--set",
    script("endless", "set"),
    "--get",
    script("endless", "get"),
    "--runs",
    "3",
    "--deadline",
    "10m",
)
_APPEND, _SHOW = "sh -c 'echo $1 >> all' sh {key}={value}", "cat all"
_SOON_SECONDS = 60
_SET, _GET = "true {key} {value}", "true {key}"


@pytest.fixture
def scratch(home: Path) -> Path:
    """Where the audit's scratch directories are made."""
    return home / "tmpdir"


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(scratch: Path) -> Iterator[None]:
    yield
    assert list(scratch.iterdir()) == []
    assert eventually(lambda: processes_of(scratch / "tool-audit-") == [])


def _audit(tool: Tool, set_text: str, get_text: str, *args: str) -> Ran:
    return tool("audit", "--set", set_text, "--get", get_text, "--runs", "4", *args)


def _audit_script(tool: Tool, name: str, *args: str) -> Ran:
    return _audit(tool, script(name, "set"), script(name, "get"), *args)


def test_our_own_config_gets_3(tool: Tool) -> None:
    """It makes about 30 changes, each in an interpreter of its own: 50 ms of a processor."""
    set_text = f"{_OURS} --lock-timeout 100ms config set {{key}} {{value}}"
    # `config get` would double the time, and loses nothing: it only reads this file.
    get_text = f"sh -c 'exec cat \"$HOME\"/.config/{PACKAGE}/config.toml # $1' sh {{key}}"

    ran = tool("audit", "--set", set_text, "--get", get_text, "--runs", "3")

    assert ran.data.get("score") == 3, ran.data
    assert ran.data["silently_lost"] == 0
    assert ran.data["claimed"] == ran.data["survived"] > 4
    told = ran.data["failures"]
    assert told["json_with_code"] == told["say_when_to_retry"] == ran.data["failed_loudly"]
    assert ran.data["inconclusive"] == []
    assert "advice" not in ran.data


def test_a_naive_script_gets_0_and_its_callers_learn_what_to_do(tool: Tool) -> None:
    ran = _audit_script(tool, "naive")

    assert ran.data.get("score") == 0, ran.data
    assert ran.data["silently_lost"] > 0
    assert ran.data["claimed"] == ran.data["survived"] + ran.data["silently_lost"]
    assert any("run-safely" in line for line in ran.data["advice"]["loop"])


def test_a_lock_file_with_a_failure_in_prose_gets_1(tool: Tool) -> None:
    ran = _audit_script(tool, "lockfile")

    assert ran.data.get("score") == 1, ran.data
    assert ran.data["silently_lost"] == 0
    assert ran.data["failures"] == {"json_with_code": 0, "say_when_to_retry": 0, "name_holder": 0}
    assert ran.data["probes"]["kill"]["blocked_afterwards"] is True


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_config_loses_nothing_and_gets_what_its_failures_deserve(tool: Tool) -> None:
    ran = _audit(tool, "git config --global x.{key} {value}", "git config --global x.{key}")

    assert ran.data["silently_lost"] == 0
    assert all(probe["tally"]["still_readable"] for probe in ran.data["probes"].values())
    if ran.data["because"]:
        assert ran.data["score"] == 1
    else:
        assert ran.data["score"] in (2, 3)
    assert ran.data["failures"]["json_with_code"] == 0


def test_a_file_that_the_environment_names_is_not_touched(tool: Tool, tmp_path: Path) -> None:
    words = shlex.join(["sh", "-c", 'echo "$1" >> "${STORE:-$HOME/store}"', "sh", "{key}={value}"])

    ran = _audit(tool, words, "sh -c 'cat \"$HOME/store\"'", "--dry-run")
    real = tool(
        "audit",
        "--set",
        words,
        "--get",
        "sh -c 'cat \"$HOME/store\"'",
        "--runs",
        "2",
        STORE=str(tmp_path / "s"),
    )

    assert ran.data["set_words"][-1] == "{key}={value}"
    assert real.data["silently_lost"] == 0
    assert not (tmp_path / "s").exists()


def test_a_dry_run_shows_the_words_and_runs_nothing(tool: Tool, tmp_path: Path) -> None:
    ran = _audit(tool, f"touch '{tmp_path}/ran now' {{key}} {{value}}", "cat {key}", "--dry-run")

    assert ran.data["set_words"] == ["touch", f"{tmp_path}/ran now", "{key}", "{value}"]
    assert ran.data["get_words"] == ["cat", "{key}"]
    assert ran.meta["dry_run"] is True
    assert not (tmp_path / "ran now").exists()


def test_every_mistake_is_reported_at_once(tool: Tool) -> None:
    ran = tool("audit", "--set", "mytool set {value}", "--get", "mytool 'get", "--deadline", "soon")

    assert ran.code == "USAGE_ERROR"
    assert [mistake["param"] for mistake in ran.error["errors"]] == ["--set", "--get", "--deadline"]
    assert "has no {key}" in ran.error["message"]
    assert "no closing quotation" in ran.error["message"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tool set {key} {value}", ""),
        ("tool set {key}", "'tool set {key}' has no {value}"),
        ("tool set {value}", "'tool set {value}' has no {key}"),
    ],
)
def test_the_command_that_sets_needs_both_places(text: str, problem: str) -> None:
    failure = failure_of(lambda: module._parse_set(text))

    assert str(failure or "") == problem
    assert module._parse_get("tool list").words == ("tool", "list")


@pytest.mark.parametrize("runs", ["0", "1", "257"])
def test_that_many_runs_cannot_meet(tool: Tool, runs: str) -> None:
    assert tool("audit", "--set", _SET, "--get", _GET, "--runs", runs).code == "USAGE_ERROR"
    assert (
        describe_option(tool, "audit", "--runs").items()
        >= {"minimum": 2, "maximum": 256, "default": 32}.items()
    )


def test_a_command_that_is_not_there_is_named(tool: Tool) -> None:
    ran = _audit(tool, "no-such-tool {key} {value}", _GET)

    assert (ran.status, ran.code) == (5, "COMMAND_NOT_FOUND")
    assert '"no-such-tool"' in ran.error["message"]


def test_a_command_that_fails_alone_is_not_audited_and_its_words_are_shown(tool: Tool) -> None:
    ran = _audit(tool, "sh -c 'echo no database >&2; exit 3' sh {key} {value}", _GET)

    assert (ran.status, ran.code) == (4, "FAILS_ALONE")
    assert "failed with exit code 3. Its output: no database." in ran.error["message"]
    assert ran.error["context"]["output"] == "no database"


def test_the_report_to_paste_is_markdown_also_when_piped_and_progress_is_on_stderr(
    tool: Tool,
) -> None:
    ran = _audit(tool, _APPEND, _SHOW, "--format", "text")

    assert ran.text.startswith(f"## `{_APPEND}`: ")
    assert "| burst | " in ran.text
    assert [line.split(b":")[0] for line in ran.stderr.splitlines()] == [
        b"burst",
        b"stall",
        b"kill",
    ]


@pytest.fixture
def endless_audit(tool: Tool, scratch: Path) -> Iterator[Process]:
    """Yield an audit of a command that does not end, in the middle of its burst."""
    audit = tool.start("audit", *_ENDLESS)
    try:
        assert eventually(lambda: len(list(scratch.glob("*/tmp/began-*"))) == 3)
        yield audit
    finally:
        audit.kill()
        for pid in processes_of(scratch / "tool-audit-"):
            os.kill(pid, signal.SIGKILL)


def test_an_interrupted_audit_ends_everything_that_it_started(
    endless_audit: Process, scratch: Path
) -> None:
    pids = processes_of(scratch / "tool-audit-")

    endless_audit.send_signal(signal.SIGTERM)

    stdout, _ = endless_audit.communicate(timeout=_SOON_SECONDS)
    assert endless_audit.returncode == -signal.SIGTERM
    assert b'"code":"INTERRUPTED"' in stdout
    assert len(pids) == 3
    assert all(is_gone(pid) for pid in pids)


def test_a_second_signal_ends_it_at_once_and_still_leaves_nothing(endless_audit: Process) -> None:
    for _ in range(2):
        endless_audit.send_signal(signal.SIGINT)

    endless_audit.communicate(timeout=_SOON_SECONDS)
    assert endless_audit.returncode == -signal.SIGINT


def test_timeout_ends_the_audit_and_everything_that_it_started(tool: Tool) -> None:
    ran = tool("audit", *_ENDLESS, "--timeout", "1s")

    assert (ran.status, ran.code) == (10, "TIMEOUT")


def test_quiet_silences_progress(tool: Tool) -> None:
    ran = _audit(tool, _APPEND, _SHOW, "--quiet")

    assert ran.stderr == b""
    assert ran.data["silently_lost"] == 0


def test_the_audited_command_is_never_given_to_a_shell(tool: Tool, tmp_path: Path) -> None:
    ran = _audit(
        tool, f"echo {{key}} {{value}} ; touch {tmp_path}/pwned $(touch {tmp_path}/pwned)", _GET
    )

    assert ran.code == "FAILS_ALONE"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(("runs", "spread_count"), [(2, 2), (11, 2), (12, 3), (32, 8)])
def test_the_more_runs_the_more_are_stopped_and_killed(
    monkeypatch: pytest.MonkeyPatch,
    runs: int,
    spread_count: int,
) -> None:
    calls: dict[str, int] = {}
    notices: list[str] = []

    def note(name: str) -> Callable[[object, object, int], str]:
        def probe(_candidate: object, _signals: object, count: int) -> str:
            calls[name] = count
            return name

        return probe

    for name in ("probe_burst", "probe_stall", "probe_kill"):
        monkeypatch.setattr(module, name, note(name))
    monkeypatch.setattr(module, "judge", lambda _candidate, findings: findings)

    findings: Any = module.audit(candidate("naive"), Signals(), runs, notices.append)

    assert calls == {"probe_burst": runs, "probe_stall": spread_count, "probe_kill": spread_count}
    assert (findings.burst, findings.stall, findings.kill) == tuple(calls)
    assert [notice.split(":")[0] for notice in notices] == ["burst", "stall", "kill"]
