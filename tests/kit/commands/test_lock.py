"""`tool lock list` and `tool lock release`."""

import fcntl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sampletool.kit.commands.lock.list import HeldLock, Listing
from sampletool.kit.commands.lock.release import Released
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import LockNotFound
from sampletool.kit.contract.table import laid_out
from sampletool.kit.safety.errors import LockTimeout
from sampletool.kit.safety.holder import Holder
from sampletool.kit.safety.lock_record import describe_me, write_record
from sampletool.kit.testing.holding import Holding, holding
from sampletool.kit.testing.tool import Tool, declared_specs


@pytest.fixture
def lock_path(tool: Tool, workspace: Path) -> Path:
    """Return the lock of the settings of a workspace, which was used and is free."""
    tool("config", "set", "a", "1")
    return workspace / ".tool" / "locks" / "tool.toml.lock"


@pytest.fixture
def holder(lock_path: Path) -> Iterator[Holding]:
    """Return a process that holds the lock."""
    with holding(lock_path) as holder:
        yield holder


@pytest.mark.usefixtures("lock_path")
def test_a_free_lock_is_not_listed(tool: Tool) -> None:
    data = tool("lock", "list").data
    text = tool("lock", "list", "--format", "text").text

    assert data == {"locks": []}
    assert text == "No lock is held.\n"


def test_a_held_lock_is_listed_with_its_holder(tool: Tool, holder: Holding) -> None:
    (held,) = tool("lock", "list").data["locks"]

    assert (held["lock"], held["shared"], held["holder_count"]) == ("tool.toml", False, 1)
    assert held["holders"][0]["pid"] == holder.pid
    assert held["holders"][0]["verified"] is True


def test_a_holder_that_is_running_keeps_its_lock(tool: Tool, holder: Holding) -> None:
    ran = tool("lock", "release", "tool.toml")

    assert (ran.status, ran.code) == (75, "LOCK_HELD")
    assert holder.process.poll() is None


@pytest.mark.usefixtures("lock_path")
def test_the_release_of_a_free_lock_changes_nothing(tool: Tool) -> None:
    data = tool("lock", "release", "tool.toml").data

    assert data == {"effect": "unchanged", "lock": "tool.toml", "ended": []}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("tool.toml.lock", "'tool.toml'"), ("nope", "`tool lock list`")],
)
@pytest.mark.usefixtures("lock_path")
def test_an_unknown_lock_is_not_found_with_a_hint(tool: Tool, name: str, hint: str) -> None:
    ran = tool("lock", "release", name)

    assert (ran.status, ran.code) == (5, "LOCK_NOT_FOUND")
    assert hint in ran.error["suggestion"]


def test_a_holder_that_cannot_be_seen_is_listed_and_keeps_its_lock(
    tool: Tool,
    lock_path: Path,
) -> None:
    """Hold a lock as a process in another container would.

    A naive command lists no lock, and releases it.
    """
    with lock_path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        record = replace(describe_me("s-1", "build"), pid_namespace="pid:[1]")
        write_record(file.fileno(), record)

        (held,) = tool("lock", "list").data["locks"]
        release = tool("lock", "release", "tool.toml")

    holder = held["holders"][0]
    assert (held["lock"], holder["state"], holder["verified"]) == ("tool.toml", "unknown", False)
    assert (release.status, release.code) == (75, "LOCK_HELD")


def test_the_child_of_an_exited_holder_is_forecast_and_then_terminated(
    tool: Tool,
    lock_path: Path,
) -> None:
    holder = Holding(lock_path, child="sleep")
    child_pid = holder.hear()["child"]
    holder.kill()

    forecast = tool("lock", "release", "tool.toml", "--dry-run").data
    released = tool("lock", "release", "tool.toml").data
    again = tool("lock", "release", "tool.toml").data

    assert forecast == released
    assert released == {"effect": "deleted", "lock": "tool.toml", "ended": [child_pid]}
    assert again["effect"] == "unchanged"


def test_a_command_reports_its_wait_and_a_holder_that_was_killed(
    tool: Tool,
    holder: Holding,
) -> None:
    refused = tool("config", "set", "a", "2", "--lock-timeout", "0")
    holder.kill()

    ran = tool("config", "set", "a", "3", "--verbose")

    assert refused.error["context"]["timeout_ms"] == 0
    assert ran.meta.get("recovered_from", {}).get("pid") == holder.pid
    assert ran.meta["waited_ms"] >= 0
    assert b"lock tool.toml: got by pid" in ran.stderr


def _held(holder_count: int) -> HeldLock:
    holders = []
    if holder_count:
        holders.append(
            Holder(7, "running", True, command="build", started_at="2026-01-01T00:00:00Z")
        )
    return HeldLock(
        lock="build",
        path="/l",
        shared=True,
        holders=holders,
        holder_count=holder_count,
    )


def _table(held: HeldLock) -> list[str]:
    return laid_out(Listing([held], next_cursor=None).lines(), None, colour=False)


def test_the_text_is_a_table_with_a_row_for_each_holder() -> None:
    assert _table(_held(1)) == [
        "LOCK   STATE    COMMAND  HELD BY",
        "build  running  build    process 7, since 2026-01-01T00:00:00Z",
    ]


def test_the_text_counts_the_holders_that_are_not_listed() -> None:
    assert _table(_held(3))[2].split() == ["build", "and", "2", "more"]


def test_one_holder_that_is_not_listed_is_counted_too() -> None:
    (first,) = _held(1).holders
    two_holders = replace(_held(1), holder_count=2)

    assert two_holders.rows()[1:] == [("build", "", "", "and 1 more")]
    assert replace(two_holders, holders=[first, first]).rows()[2:] == []


def test_a_lock_that_is_just_being_taken_has_a_row_too() -> None:
    row = ("build", "unknown", "unknown", "a process that has just taken it")

    rows = replace(_held(1), holders=[]).rows()

    assert rows == [row]
    assert _table(_held(0))[1].split()[:3] == ["build", "unknown", "unknown"]


def test_a_holder_without_a_command_is_unknown() -> None:
    (holder,) = _held(1).holders

    (row,) = replace(_held(1), holders=[holder._replace(command="")]).rows()

    assert row[2] == "unknown"


@pytest.mark.parametrize(
    ("pids", "line"),
    [
        ([], "build: nothing to release"),
        ([7], "build: released, terminated process 7"),
        ([7, 8], "build: released, terminated processes 7, 8"),
    ],
)
def test_the_text_of_a_release_names_the_processes(pids: list[int], line: str) -> None:
    released = Released(effect="unchanged", lock="build", ended=pids)

    assert released.lines() == [line]


# What the commands promise


@pytest.mark.parametrize(
    ("name", "promised"),
    [
        ("lock.list", CommandSpec(effect="nothing", reads=("locks",))),
        (
            "lock.release",
            CommandSpec(effect="locks", errors=(LockNotFound, LockTimeout), reads=("locks",)),
        ),
    ],
)
def test_each_command_promises_what_it_changes_and_needs(
    name: str,
    promised: CommandSpec,
) -> None:
    spec = declared_specs()[name]

    # The other members are texts for people.
    assert spec._replace(destroys="", before=(), examples=()) == promised
    assert spec.examples != ()
    assert (spec.destroys != "") == (spec.effect != "nothing")
