"""tool doctor"""

import errno
import os
import shutil
from pathlib import Path

import pytest

from sampletool.kit.commands import doctor
from sampletool.kit.commands.doctor import probe_directories, probe_directory, probe_lock_files
from sampletool.kit.testing.tool import Ran, Tool


def test_a_healthy_machine_is_called_so_and_nothing_stays(tool: Tool, workspace: Path, home: Path) -> None:
    tool("config", "list")  # from now on there is a log of calls
    before = {*workspace.rglob("*"), *home.rglob("*")}

    data = tool("doctor").data

    assert data["healthy"] is True
    assert all(probe["ok"] for probe in data["probes"])
    assert {"python", "system", "typer"} <= data["versions"].keys()
    assert {*workspace.rglob("*"), *home.rglob("*")} == before


@pytest.mark.parametrize("step", ["workspace", ".tool"])
def test_a_workspace_that_cannot_be_written_is_found_although_its_disk_was_tried(
    tool: Tool, workspace: Path, step: str
) -> None:
    """The other places lie on the same disk, and can be written."""
    place = workspace if step == "workspace" else workspace / ".tool"
    place.mkdir(exist_ok=True)
    with tool.stepped("doctor", watch=workspace) as stepped:
        stepped.run_until(lambda event: event.name == "os.mkdir" and Path(event.path).parent == place)
        stepped.fail(errno.EACCES)
        ended = stepped.finish()

    ran = Ran(ended.status, ended.stdout, ended.stderr)
    assert (ran.code, ran.error["context"]["failed"]) == ("CHECKS_FAILED", ["writable"])
    (failed,) = [probe for probe in ran.answer["data"]["probes"] if not probe["ok"]]
    assert failed["where"] == str(place)
    assert f"nothing can be written in {place}: permission denied" in failed["detail"]


def test_lock_files_that_a_copy_shares_are_reported_until_they_are_used(tool: Tool, workspace: Path) -> None:
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
    tool: Tool, workspace: Path, place: str, kind: str
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
    (failed,) = [probe for probe in ran.answer["data"]["probes"] if not probe["ok"]]
    assert failed["where"] == str(path)
    assert failed["detail"].startswith(str(path))


def test_what_is_not_there_is_tried_where_it_would_be_made() -> None:
    (probe,) = probe_directories([Path("/proc/self/nowhere/at all")])

    assert (probe.where, probe.ok) == ("/proc/self/nowhere/at all", False)
    assert (probe.detail or "").startswith("nothing can be written in /proc/self: ")


def test_what_is_wrong_is_named_and_the_status_says_so(tool: Tool) -> None:
    planted = Path(tool.environ["TMPDIR"]) / f"tool-{os.geteuid()}"
    planted.symlink_to("/")

    assert tool("doctor").code == "UNSAFE_DIRECTORY"


def failed(directory: Path) -> set[str]:
    return {probe.name for probe in probe_directory(directory) if not probe.ok}


def test_this_machine_keeps_the_promises(tmp_path: Path) -> None:
    assert failed(tmp_path) == set()


def test_locks_that_do_not_exclude_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_TAKE", doctor._TAKE.replace("LOCK_EX", "LOCK_SH"))

    assert "lock excludes another process" in failed(tmp_path)


def test_a_rename_that_is_seen_by_an_open_reader_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "replace", lambda path, content: path.write_bytes(content))

    assert "rename over an open file" in failed(tmp_path)


def test_an_fsync_that_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)

    assert {"fsync of a directory"} <= failed(tmp_path)
