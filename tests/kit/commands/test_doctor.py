"""`tool doctor`."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sampletool.kit.commands import _probes, doctor
from sampletool.kit.commands._bug_report import write_report
from sampletool.kit.commands._probes import (
    Probe,
    missing_guarantees,
    probe_directories,
    probe_directory,
    probe_lock_files,
)
from sampletool.kit.commands._used_paths import UsedPath, find_used_paths
from sampletool.kit.commands.doctor import Health
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.contract.text import GREEN, RED
from sampletool.kit.program import PACKAGE, PROGRAM, __version__
from sampletool.kit.safety.errors import Interrupted
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.tool import Ran, Tool


def test_a_healthy_machine_is_reported_as_healthy_and_nothing_is_left(
    tool: Tool,
    workspace: Path,
    home: Path,
) -> None:
    # It creates the log of commands.
    tool("config", "list")
    before = {*workspace.rglob("*"), *home.rglob("*")}

    data = tool("doctor").data

    assert data["healthy"] is True
    assert all(probe["ok"] for probe in data["probes"])
    assert {"python", "system", "typer"} <= data["versions"].keys()
    assert next(iter(data["versions"].items())) == (PROGRAM, __version__)
    assert {*workspace.rglob("*"), *home.rglob("*")} == before


@pytest.mark.parametrize("step", ["workspace", ".tool"])
def test_a_workspace_that_cannot_be_written_to_is_found_although_its_disk_was_probed(
    tool: Tool,
    workspace: Path,
    step: str,
) -> None:
    """Refuse to write in one of several directories on the same disk."""
    place = workspace if step == "workspace" else workspace / ".tool"
    place.mkdir(exist_ok=True)
    with tool.stepped("doctor", watch=workspace) as stepped:
        stepped.run_until(
            lambda event: event.name == "os.mkdir" and Path(event.path).parent == place,
        )
        stepped.fail(errno.EACCES)
        ended = stepped.finish()

    ran = Ran(ended.status, ended.stdout, ended.stderr)
    assert (ran.code, ran.error["context"]["failed"]) == ("CHECKS_FAILED", ["writable"])
    (failed,) = [probe for probe in ran.response["data"]["probes"] if not probe["ok"]]
    assert failed["where"] == str(place)
    assert f"nothing can be written in {place}: permission denied" in failed["detail"]


def test_lock_files_that_a_copy_shares_are_reported_until_they_are_used(
    tool: Tool,
    workspace: Path,
) -> None:
    tool("config", "set", "a", "1")
    locks = workspace / ".tool" / "locks"
    shutil.copytree(locks, workspace / "copy", copy_function=os.link)

    data = tool("doctor").data

    (probe,) = [probe for probe in data["probes"] if probe["where"] == str(locks)]
    assert (probe["name"], probe["ok"]) == ("lock files with several names", True)
    assert probe["detail"].startswith("tool.toml.lock: ")
    assert data["healthy"] is True

    tool("config", "set", "a", "2")
    assert [probe for probe in tool("doctor").data["probes"] if probe["where"] == str(locks)] == []


def test_lock_files_that_share_a_directory_are_reported_together(tmp_path: Path) -> None:
    names = ("a.lock", "b.lock", "single.lock", "removed.lock")
    for name in names[:3]:
        (tmp_path / name).touch()
    for name in names[:2]:
        (tmp_path / f"{name}.copy").hardlink_to(tmp_path / name)

    (probe,) = probe_lock_files([tmp_path / name for name in names])

    assert probe.where == str(tmp_path)
    assert (probe.detail or "").startswith("a.lock, b.lock: ")


@pytest.mark.parametrize("kind", ["link", "FIFO", "directory"])
@pytest.mark.parametrize("place", [".tool", ".tool/locks", ".tool/locks/tool.toml.lock"])
def test_what_is_in_the_place_of_a_lock_is_reported_if_no_command_can_write(
    tool: Tool,
    workspace: Path,
    place: str,
    kind: str,
) -> None:
    tool("config", "set", "a", "1")
    path = workspace / place
    kept = path.rename(workspace / "kept")
    if kind == "link":
        path.symlink_to(kept)
    elif kind == "FIFO":
        os.mkfifo(path)
    else:
        path.mkdir()
        path.chmod(0o777)

    written = tool("config", "set", "a", "2")
    ran = tool("doctor")

    assert written.code in ("UNSAFE_DIRECTORY", "UNSAFE_PATH")
    assert ran.code == "CHECKS_FAILED"
    assert ran.error["context"]["failed"] == ["locks can be used"]
    (failed,) = [probe for probe in ran.response["data"]["probes"] if not probe["ok"]]
    assert failed["where"] == str(path)
    assert str(path) in failed["detail"]


def test_what_is_not_there_is_tried_where_it_would_be_made() -> None:
    (probe,) = probe_directories([Path("/proc/self/nowhere/at all")])

    assert (probe.where, probe.ok) == ("/proc/self/nowhere/at all", False)
    assert (probe.detail or "").startswith("nothing can be written in /proc/self: ")


def test_a_directory_that_another_user_planted_is_a_failed_check(tool: Tool) -> None:
    planted = Path(tool.environ["TMPDIR"]) / f"tool-{os.geteuid()}"
    planted.symlink_to("/")

    ran = tool("doctor")

    assert ran.code == "CHECKS_FAILED"
    (probe,) = ran.response["data"]["probes"]
    assert (probe["name"], probe["ok"]) == ("all checks", False)
    assert str(planted) in probe["detail"]
    assert ran.response["data"]["paths"], "the paths could be determined"


def test_a_relative_directory_is_a_failed_check_that_says_what_to_do(tool: Tool) -> None:
    ran = tool("doctor", TOOL_CONFIG_DIR="relative")

    assert ran.code == "CHECKS_FAILED"
    (probe,) = ran.response["data"]["probes"]
    assert (probe["name"], probe["ok"]) == ("all checks", False)
    assert "TOOL_CONFIG_DIR is not an absolute path" in probe["detail"]
    assert probe["detail"].endswith("Set the variable TOOL_CONFIG_DIR to an absolute path.")


@pytest.mark.usefixtures("home")
def test_a_signal_is_no_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()

    def fail(_workspace: Path | None) -> list[UsedPath]:
        signals.receive(signal.SIGTERM)
        raise OSError(errno.EINTR, "interrupted")

    monkeypatch.setattr(doctor, "find_used_paths", fail)

    error = failure_of(lambda: doctor._write_bug_report(Context(signals)))

    assert isinstance(error, Interrupted)


def failed(directory: Path) -> set[str]:
    return {probe.name for probe in probe_directory(directory) if not probe.ok}


def test_this_machine_keeps_the_promises(tmp_path: Path) -> None:
    assert failed(tmp_path) == set()


def test_locks_that_do_not_exclude_are_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = _probes._TAKE_LOCK.replace("LOCK_EX", "LOCK_SH")
    monkeypatch.setattr(_probes, "_TAKE_LOCK", shared)

    assert "lock excludes another process" in failed(tmp_path)


def test_a_rename_that_is_seen_by_an_open_reader_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_probes, "replace", lambda path, content: path.write_bytes(content))

    assert "rename over an open file" in failed(tmp_path)


def test_an_fsync_that_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)

    assert {"fsync of a directory"} <= failed(tmp_path)


def test_the_paths_in_use_are_listed(tool: Tool, workspace: Path, home: Path) -> None:
    paths = {used["name"]: used for used in tool("doctor").data["paths"]}
    text = tool("doctor", "--format", "text").text

    assert paths["settings of the workspace"]["path"] == str(workspace / "tool.toml")
    assert paths["settings of the workspace"]["exists"] is True
    assert paths["locks of the workspace"] == {
        "name": "locks of the workspace",
        "path": str(workspace / ".tool" / "locks"),
        "exists": False,
    }
    assert {"personal settings", "state", "locks of outputs", "sessions"} < set(paths)
    assert all(path["path"].startswith(str(home.parent)) for path in paths.values())
    assert re.search(r"^locks of the workspace +/.+/locks +does not exist$", text, re.MULTILINE)


def test_outside_a_workspace_only_the_paths_of_the_user_are_listed(tool: Tool) -> None:
    names = {used["name"] for used in tool("doctor").data["paths"]}

    assert names == {
        "personal settings",
        "state",
        "log of commands",
        "locks of outputs",
        "sessions",
    }


def test_a_report_is_one_text_to_paste(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "level", "a-value-of-a-setting")

    ran = tool("doctor", "--report")

    assert ran.status == 0
    assert ran.text.startswith(f"Versions\n  {PROGRAM} {__version__}\n  python 3.")
    assert f"  settings of the workspace: {workspace}/tool.toml\n" in ran.text
    assert f"  ok   writable: {workspace}\n" in ran.text
    assert "a-value-of-a-setting" not in ran.text
    assert tool("doctor", "--report", "--json").data.keys() == {"value"}


def test_a_report_has_the_variables_that_matter_without_secrets(tool: Tool) -> None:
    variables = {
        "TERM": "du\x1b[31m" + "x" * 1000,
        "LC_ALL": "C.UTF-8",
        "CLICOLOR_FORCE": "1",
        "XDG_DATA_HOME": "https://ann:hunter2@localhost/",
        "XDG_OTHER": "not-relevant",
        "TOOL_JOBS": "3",
        "TOOL_PROXY": "hunter2",
        "TOOL_TRACE_ID": "hunter2",
        "OTHER": "not-relevant",
    }

    text = tool("doctor", "--report", stdin=b"", **variables).text

    lines = text.splitlines()
    assert "  TERM=du\\x1b[31m" + "x" * 193 in lines
    assert "  LC_ALL=C.UTF-8" in lines
    assert "  CLICOLOR_FORCE=1" in lines
    assert "  XDG_DATA_HOME=https://ann:***@localhost/" in lines
    assert "  TOOL_JOBS=3" in lines
    assert "  TOOL_PROXY is set" in lines
    assert "  TOOL_TRACE_ID is set" in lines
    assert "hunter2" not in text
    assert "not-relevant" not in text


def test_a_report_leaves_out_what_a_part_says_because_it_may_quote_a_setting(
    tool: Tool,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def probe(_context: Context) -> list[Probe]:
        return [
            Probe("server is there", "at hunter2", False, "no server at hunter2"),
            Probe("clock is right", "at hunter2", True),
        ]

    monkeypatch.setattr(doctor, "offered", lambda _kind: [SimpleNamespace(probe=probe)])

    report = doctor._write_bug_report(Context(Signals())).value

    lines = report.splitlines()
    assert "  ok   clock is right" in lines
    assert any(line.startswith("  FAIL server is there: the reason may quote") for line in lines)
    assert "hunter2" not in report


def test_a_report_names_an_invalid_setting_without_its_value(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_workspace: Path | None) -> list[UsedPath]:
        mistake = Mistake("lock_timeout", "INVALID_VALUE", "wrong: hunter2", "hunter2")
        raise InvalidValues(mistake)

    monkeypatch.setattr(doctor, "find_used_paths", fail)

    report = doctor._write_bug_report(Context(Signals())).value

    assert "  FAIL all checks: this machine: invalid value for lock_timeout\n" in report
    assert "hunter2" not in report


def test_a_report_names_the_last_crash_reports(tool: Tool) -> None:
    directory = Path(tool.environ["TMPDIR"]) / f"{PROGRAM}-{os.geteuid()}" / "s1"
    directory.mkdir(parents=True, mode=0o700)
    directory.parent.chmod(0o700)
    for number in range(7):
        crash_report = directory / f"crash-{number}.txt"
        crash_report.touch()
        os.utime(crash_report, (number, number))

    text = tool("doctor", "--report").text

    shown = [f"crash-{number}.txt" in text for number in range(7)]
    assert shown == [False, False, True, True, True, True, True]
    assert text.index("crash-6.txt") < text.index("crash-5.txt")


def test_a_report_has_no_path_of_the_home_directory(tool: Tool, home: Path) -> None:
    text = tool("doctor", "--report", HOME=str(home)).text

    assert f"{home}/" not in text
    assert "  personal settings: ~/" in text


def test_a_report_is_written_even_if_the_checks_cannot_run(tool: Tool) -> None:
    planted = Path(tool.environ["TMPDIR"]) / f"{PROGRAM}-{os.geteuid()}"
    planted.symlink_to("/")

    ran = tool("doctor", "--report")

    assert ran.status == 0
    assert "  FAIL all checks: this machine: " in ran.text
    assert "  cannot be read: " in ran.text


@pytest.mark.usefixtures("home")
def test_a_report_ends_with_the_address_of_the_tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    package = sys.modules[PACKAGE]
    monkeypatch.setattr(package, "REPOSITORY", "https://example.org/code", raising=False)

    report = write_report({}, [], [])

    assert report.endswith("paste this text at https://example.org/code/issues")


@pytest.mark.usefixtures("home")
def test_without_a_repository_a_report_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules[PACKAGE], "REPOSITORY", raising=False)

    report = write_report({}, [], [])

    assert "Last crash reports\n  none" in report
    assert "To report a bug" not in report


def _used(name: str, *, exists: bool) -> UsedPath:
    return UsedPath(name=name, path=f"/w/{name}", exists=exists)


@pytest.mark.usefixtures("home")
def test_a_report_has_a_line_for_each_version_path_and_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(sys.modules[PACKAGE], "REPOSITORY", raising=False)
    places = {name: os.environ[name] for name in ("HOME", "TMPDIR")}
    shown = {"TERM": "dumb", "LANG": "C", "CI": "1"}
    monkeypatch.setattr(os, "environ", {**places, **shown, "OTHER": "x"})
    paths = [_used("state", exists=True), _used("log", exists=False)]
    probes = [
        Probe("locks", "/w", True, "a remark"),
        Probe("store", "redis://ann:hunter2@h", False, "it is unreachable"),
        Probe("rename", "/w", False),
    ]

    report = write_report({"tool": "1.2", "python": "3.14"}, paths, probes)

    lines = report.split("\n")
    assert lines[:3] == ["Versions", "  tool 1.2", "  python 3.14"]
    assert lines[3].endswith(f", {sys.executable}")
    assert lines[4:] == [
        "",
        "Paths",
        "  state: /w/state",
        "  log: /w/log (does not exist)",
        "",
        "Checks",
        "  ok   locks: /w",
        "  FAIL store: redis://ann:***@h: it is unreachable",
        "  FAIL rename: /w",
        "",
        "Environment",
        "  CI=1",
        "  LANG=C",
        "  TERM=dumb",
        f"  TMPDIR={places['TMPDIR']}",
        "",
        "Last crash reports",
        "  none",
    ]


@pytest.mark.homeless
@pytest.mark.parametrize(
    ("home_directory", "shown"),
    [("/home/ann", "~/x"), ("/", "/home/ann/x"), ("/home/an", "/home/ann/x")],
)
def test_only_the_home_directory_itself_is_shown_as_a_tilde(
    monkeypatch: pytest.MonkeyPatch,
    home_directory: str,
    shown: str,
) -> None:
    monkeypatch.setenv("HOME", home_directory)

    report = write_report({}, [UsedPath("state", "/home/ann/x", exists=True)], [])

    assert f"  state: {shown}\n" in report


def test_the_paths_of_a_workspace_are_in_it(tmp_path: Path) -> None:
    (tmp_path / "tool.toml").touch()

    paths = {used.name: (used.path, used.exists) for used in find_used_paths(tmp_path)}

    assert paths["workspace"] == (str(tmp_path), True)
    assert paths["settings of the workspace"] == (f"{tmp_path}/tool.toml", True)
    assert paths["files of the workspace"] == (f"{tmp_path}/.tool", False)
    assert paths["locks of the workspace"] == (f"{tmp_path}/.tool/locks", False)
    state, _ = paths["state"]
    assert paths["log of commands"][0] == f"{state}/calls.jsonl"
    assert paths["locks of outputs"][0] == f"{state}/locks"


# What the text shows


def _health(*probes: Probe) -> Health:
    return Health(
        healthy=False,
        versions={"tool": "1.2"},
        paths=[_used("state", exists=True), _used("log", exists=False)],
        probes=list(probes),
        not_promised=["to fly"],
    )


def test_the_text_shows_the_probes_of_each_place_together() -> None:
    health = _health(
        Probe("writable", "/a", True),
        Probe("locks", "/a", False, "they do not exclude"),
        Probe("writable", "/b", True, "a remark"),
    )

    assert health.lines() == [
        ("tool", "1.2"),
        "",
        ("state", "/w/state", ""),
        ("log", "/w/log", "does not exist"),
        "",
        "/a",
        ("", "ok  ", "writable"),
        ("", "FAIL", "locks"),
        "        they do not exclude",
        "/b",
        ("", "ok  ", "writable"),
        "        a remark",
        "",
        "Not guaranteed on this system:",
        ("", "to fly"),
    ]


def test_a_failure_is_red_and_a_success_is_green() -> None:
    lines = _health(Probe("writable", "/a", True), Probe("locks", "/a", False)).lines()

    colours = {line[1]: getattr(line[1], "colour", None) for line in lines if len(line) == 3}
    assert (colours["ok  "], colours["FAIL"]) == (GREEN, RED)


def test_what_a_system_does_not_offer_is_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    on_linux = missing_guarantees()
    monkeypatch.setattr(_probes, "can_see_processes", lambda: False)
    monkeypatch.delattr(os, "listxattr")
    monkeypatch.setattr(sys, "platform", "darwin")
    elsewhere = missing_guarantees()
    monkeypatch.undo()

    assert on_linux == []
    assert [sentence.partition(" ")[0] for sentence in elsewhere] == ["to", "to", "anything:"]


def test_each_directory_is_probed_and_each_disk_only_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second" / "missing"
    first.mkdir()

    probes = probe_directories([first, second])

    assert [(probe.name, probe.where) for probe in probes] == [
        ("writable", str(first)),
        ("lock excludes another process", str(first)),
        ("lock is freed by kill -9", str(first)),
        ("rename over an open file", str(first)),
        ("link never replaces", str(first)),
        ("fsync of a directory", str(first)),
        ("private directories", str(first)),
        ("writable", str(second)),
    ]
    assert [probe for probe in probes if not probe.ok or probe.detail is not None] == []


def test_a_probe_that_cannot_run_has_failed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_directory: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "/d")

    def end(_directory: Path) -> None:
        raise subprocess.TimeoutExpired("python", 5)

    monkeypatch.setattr(_probes, "_PROBES", {"refused": refuse, "ended": end})

    refused, ended = probe_directory(tmp_path / "scratch")

    assert (refused.name, refused.ok, refused.where) == ("refused", False, str(tmp_path))
    assert "/d" in str(refused.detail)
    assert (ended.name, ended.ok) == ("ended", False)
    assert "timed out" in str(ended.detail)


def test_of_many_locks_with_the_same_problem_ten_are_listed(tool: Tool, workspace: Path) -> None:
    locks = workspace / ".tool" / "locks"
    locks.mkdir(parents=True, mode=0o700)
    for number in range(12):
        (locks / f"{number:02}.lock").symlink_to("/dev/null")

    probes = tool("doctor").response["data"]["probes"]

    places = [probe["where"] for probe in probes if probe["name"] == "locks can be used"]
    assert len(places) == 11
    assert places[-1] == "2 other places"


def test_of_many_linked_locks_ten_are_named(tool: Tool, workspace: Path) -> None:
    locks = workspace / ".tool" / "locks"
    locks.mkdir(parents=True, mode=0o700)
    for number in range(12):
        lock = locks / f"{number:02}.lock"
        lock.touch()
        (workspace / f"copy-{number}").hardlink_to(lock)

    probes = tool("doctor").data["probes"]

    (detail,) = [p["detail"] for p in probes if p["name"] == "lock files with several names"]
    assert "09.lock and 2 more: the file" in detail


def test_every_place_in_which_commands_write_is_probed(tool: Tool, workspace: Path) -> None:
    data = tool("doctor").data

    paths = {used["name"]: used["path"] for used in data["paths"]}
    probed = [probe["where"] for probe in data["probes"] if probe["name"] == "writable"]
    assert probed[:5] == [
        str(Path(paths["sessions"]).parent),
        str(Path(paths["personal settings"]).parent),
        paths["state"],
        str(workspace),
        f"{workspace}/.tool",
    ]


def test_each_probe_says_whether_it_is_required_and_how_to_fix_a_failure(
    tool: Tool,
) -> None:
    for probe in tool("doctor").data["probes"]:
        assert isinstance(probe["required"], bool)
        assert probe["ok"] == ("fix" not in probe)


def test_only_a_required_probe_that_fails_makes_a_machine_unhealthy() -> None:
    failed = Probe("x", "/", ok=False, detail="d", required=False, fix="Do this.")

    assert [str(line) for line in doctor._probe_lines(failed)][1:] == [
        "        d",
        "        Do this.",
    ]
