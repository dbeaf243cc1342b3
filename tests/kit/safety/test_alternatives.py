"""Every member of an alternation has an effect of its own:

signals, modes, variables, members of records.
"""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.call_log import _LOGGED_META, _SUBJECT_MEMBERS, call_of
from sampletool.kit.contract.errors import LockNotFound
from sampletool.kit.contract.response import Response
from sampletool.kit.places import _TEMPORARY_DIRECTORY_VARIABLES, session_root
from sampletool.kit.program import PACKAGE
from sampletool.kit.safety import processes
from sampletool.kit.safety.errors import UnsafePath
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.lock_record import Record, describe_me, read_record, write_record
from sampletool.kit.safety.private_directory import private_directory
from sampletool.kit.safety.signals import HANDLED, Signals
from sampletool.kit.safety.toml_file import editing_toml
from sampletool.kit.testing.failing import failure_in

_DIE_BY_EACH = f"""
import os
from {PACKAGE}.kit.safety.signals import HANDLED, die_by
for number in HANDLED:
    if (pid := os.fork()) == 0:
        die_by(number)
    print(number, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

OTHERS_WRITE = (0o020, 0o002)
OTHERS_READ = (0o040, 0o010, 0o004, 0o001)

META = {
    "command": "config.set",
    "exit_code": 4,
    "duration_ms": 12,
    "request_id": "0123",
    "cwd": "/w",
    "session_id": "s-1",
    "trace_id": "t-1",
    "dry_run": True,
}

STATES = {"R": True, "S": True, "D": True, "T": True, "t": True, "I": True, "Z": False, "X": False}
"""The letters of /proc/PID/stat, and whether a process in this state counts as alive."""


def test_the_handled_signals_are_the_ones_that_are_tested() -> None:
    assert HANDLED == (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


@pytest.mark.parametrize("number", HANDLED, ids=lambda number: signal.Signals(number).name)
def test_each_handled_signal_is_recorded_and_given_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    signals = Signals()
    signals.install()
    try:
        signal.raise_signal(number)
    finally:
        signals.uninstall()

    assert signals.received == number
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", HANDLED, ids=lambda number: signal.Signals(number).name)
def test_each_signal_that_is_ignored_stays_ignored(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    signals = Signals()
    try:
        signals.install()
        signal.raise_signal(number)
        signals.uninstall()
        after = signal.getsignal(number)
    finally:
        signal.signal(number, before)

    assert signals.received is None
    assert after == signal.SIG_IGN


def test_a_call_dies_by_each_of_the_signals() -> None:
    # A fresh interpreter: it forks, and its children must have no fork server as their parent.
    ran = subprocess.run(
        [sys.executable, "-c", _DIE_BY_EACH], capture_output=True, text=True, check=True
    )

    assert ran.stdout.splitlines() == [f"{int(number)} {-number}" for number in HANDLED]


@pytest.mark.parametrize("bit", OTHERS_WRITE, ids=oct)
def test_each_bit_that_lets_others_write_makes_a_lock_file_unsafe(tmp_path: Path, bit: int) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "lock").chmod(0o600 | bit)

    assert isinstance(failure_in(Lock(tmp_path / "lock").exclusively(0)), UnsafePath)


@pytest.mark.parametrize("bit", OTHERS_READ, ids=oct)
def test_no_bit_that_lets_others_look_is_refused(tmp_path: Path, bit: int) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "lock").chmod(0o600 | bit)

    assert failure_in(Lock(tmp_path / "lock").exclusively(0)) is None


@pytest.mark.parametrize("bit", [0o200, 0o020, 0o002], ids=oct)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write where its own bit is missing")
def test_each_bit_that_lets_somebody_write_makes_a_file_changeable(
    tmp_path: Path, bit: int
) -> None:
    path = tmp_path / "file.toml"
    path.write_text("a = 1\n")
    path.chmod(0o444 | bit)

    with editing_toml(path) as file:
        file.text = "a = 2\n"
        file.write()

    assert path.read_text() == "a = 2\n"


def test_a_file_without_any_bit_to_write_is_read_only_also_for_root(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text("a = 1\n")
    path.chmod(0o444)

    with pytest.raises(PermissionError, match="read-only"), editing_toml(path) as file:
        file.text = "a = 2\n"
        file.write()


def test_the_variables_of_the_temporary_directory_are_the_ones_that_are_tested() -> None:
    assert _TEMPORARY_DIRECTORY_VARIABLES == ("TMPDIR", "TEMP", "TMP")


@pytest.mark.parametrize("name", _TEMPORARY_DIRECTORY_VARIABLES)
def test_each_variable_names_the_temporary_directory_where_none_before_it_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = _TEMPORARY_DIRECTORY_VARIABLES.index(name)
    for each in _TEMPORARY_DIRECTORY_VARIABLES:
        (tmp_path / each).mkdir()
        monkeypatch.setenv(each, str(tmp_path / each))
    for before in _TEMPORARY_DIRECTORY_VARIABLES[:position]:
        monkeypatch.setenv(before, str(tmp_path / "missing"))

    assert session_root().parent == tmp_path / name


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "record", os.O_RDWR | os.O_CREAT, 0o600)
    yield opened
    os.close(opened)


_MEMBERS = tuple(field.name for field in fields(Record))
_CHECKED_MEMBERS = [name for name in _MEMBERS if name not in ("started_at", "boot_seconds")]
"""The others are set by `write_record`."""


def test_a_record_has_the_members_that_other_versions_read() -> None:
    assert _MEMBERS == (
        "pid",
        "start",
        "host",
        "pid_namespace",
        "session_id",
        "command",
        "started_at",
        "boot_seconds",
        "state",
        "usual_ms",
        "v",
    )


@pytest.mark.parametrize("member", _CHECKED_MEMBERS)
def test_each_member_of_a_record_is_checked(descriptor: int, member: str) -> None:
    me = describe_me("s-1", "build")
    write_record(descriptor, me)
    assert read_record(descriptor) is not None

    wrong: Any = {"not": "a text or a number"}
    if member in ("state", "usual_ms"):
        write_record(descriptor, me, **{member: wrong})
    else:
        write_record(descriptor, replace(me, **{member: wrong}))

    assert read_record(descriptor) is None


def answer_about(data: Any = None, **meta: Any) -> Response:
    error = LockNotFound(**data) if data else None
    return Response(None, error, [], {**META, "timestamp": "2026-01-01T00:00:00Z", **meta})


def test_the_logged_members_are_the_ones_that_are_tested() -> None:
    assert set(_LOGGED_META) == set(META)
    assert _SUBJECT_MEMBERS == ("key", "name", "id", "queue", "lock", "path", "output")


@pytest.mark.parametrize("member", _LOGGED_META)
def test_each_member_of_meta_is_logged(member: str) -> None:
    assert call_of(answer_about(), {})[member] == META[member]


@pytest.mark.parametrize("subject", _SUBJECT_MEMBERS)
def test_each_subject_is_logged_and_no_other_member(subject: str) -> None:
    facts = {"lock": "build", "value": "never logged", subject: f"the {subject}"}

    assert f"the {subject}" in call_of(answer_about(facts), {})["about"]
    assert "never logged" not in call_of(answer_about(facts), {})["about"]


@pytest.mark.parametrize("state", STATES)
def test_each_state_of_a_process_counts_as_alive_or_not(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [state, "1", "77", *["0"] * 14, "1", "0", "4242"]
    monkeypatch.setattr(Path, "read_text", lambda _path: f"12 (a ) name) {' '.join(fields)}\n")

    stat = processes._Stat(parent=1, pid=12, group=77, start_ticks=4242) if STATES[state] else None
    assert processes._read_stat("12") == stat


@pytest.mark.parametrize("state", ["Z", "X"])
def test_a_process_whose_main_thread_has_ended_counts_as_alive_while_another_runs(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [state, "1", "77", *["0"] * 14, "2", "0", "4242"]
    monkeypatch.setattr(Path, "read_text", lambda _path: f"12 (name) {' '.join(fields)}\n")

    assert processes._read_stat("12") == processes._Stat(
        parent=1, pid=12, group=77, start_ticks=4242
    )


@pytest.mark.parametrize(
    ("kind", "locker"), [("FLOCK ", 4121), ("POSIX ", None), ("OFDLCK", None), ("LEASE ", None)]
)
def test_only_a_flock_names_who_took_the_lock(
    kind: str, locker: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tmp_path.stat()
    line = f"lock:\t1: {kind} ADVISORY  WRITE 4121 00:2f:123 0 EOF"
    monkeypatch.setattr(processes, "open_files", lambda _pid: [("3", found)])
    monkeypatch.setattr(Path, "read_text", lambda _path: f"pos:\t0\nflags:\t02\n{line}\n")

    assert processes.locker_of(1, found) == locker


def test_a_temporary_file_is_made_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_directory(tmp_path / "private")
        with Lock(tmp_path / "lock").exclusively(0), Lock(tmp_path / "shared").shared(0):
            modes = {
                path.name: stat.S_IMODE(path.stat().st_mode)
                for path in tmp_path.iterdir()
                if path.name != "home"
            }
    finally:
        os.umask(before)

    assert modes == {
        "private": 0o700,
        "lock": 0o600,
        "shared": 0o600,
        "shared.gate": 0o600,
        "shared.readers": 0o700,
    }
