"""Actors that are forked behave as those that are started."""

import fcntl
import os
import signal
from pathlib import Path

import pytest

from sampletool.kit.stepping import tracee
from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.kit.stepping.tracer import Event, SteppedProcess


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(
        "import os, sys\n"
        "open('there', 'w').close()\n"
        "print(os.environ['WHO'], sys.argv[1:], os.getcwd(), file=sys.stderr)\n"
        "print('said')\n"
        "sys.exit(7)\n"
    )
    return path


@pytest.mark.parametrize("is_forked", [True, False])
def test_an_actor_has_its_own_arguments_environment_directory_and_end(
    program: Path, tmp_path: Path, is_forked: bool
) -> None:
    with ForkServer(["json"]) as fork_server:
        env = {**os.environ, "WHO": "me"}
        one = [str(program), "one"]
        with SteppedProcess(
            one,
            watch=tmp_path / "there",
            env=env,
            cwd=tmp_path,
            fork_server=fork_server if is_forked else None,
        ) as stepped:
            stopped = stepped.run_until("open")
            was_there = (tmp_path / "there").exists()
            ran = stepped.finish()

    assert Path(stopped.path).name == "there"
    assert not was_there
    assert ran.status == 7
    assert ran.stdout == b"said\n"
    assert ran.stderr.decode() == f"me ['one'] {tmp_path}\n"


def test_a_request_may_be_larger_than_what_a_socket_takes_at_once(
    program: Path, tmp_path: Path
) -> None:
    env = {**os.environ, "WHO": "me", **{f"LONG_{number}": "x" * 100_000 for number in range(20)}}

    with ForkServer([]) as fork_server:
        forked = fork_server.start([str(program)], env=env, cwd=tmp_path)
        forked.communicate()

    assert forked.returncode == 7


def test_a_forked_actor_can_be_killed_and_the_others_go_on(program: Path, tmp_path: Path) -> None:
    env = {**os.environ, "WHO": "me"}
    with (
        ForkServer([]) as fork_server,
        SteppedProcess(
            [str(program)], watch=tmp_path, env=env, cwd=tmp_path, fork_server=fork_server
        ) as one,
        SteppedProcess(
            [str(program)], watch=tmp_path, env=env, cwd=tmp_path, fork_server=fork_server
        ) as other,
    ):
        one.kill()

        assert one.process.returncode == -signal.SIGKILL
        assert other.finish().status == 7


def told(event: Event | None) -> tuple[str, str]:
    assert event is not None
    return event.name, Path(event.path).name


def test_an_actor_that_waits_for_a_lock_says_that_it_is_blocked(tmp_path: Path) -> None:
    path = tmp_path / "waits.py"
    path.write_text(
        "import fcntl\n"
        "lock = open('lock', 'w')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "open('got', 'w')\n"
    )
    with (
        (tmp_path / "lock").open("w") as ours,
        SteppedProcess([str(path)], watch=tmp_path, cwd=tmp_path) as stepped,
    ):
        fcntl.flock(ours, fcntl.LOCK_EX)
        stepped.run_until("fcntl.flock")

        assert told(stepped.step()) == ("blocked", "lock")
        assert told(stepped.step()) == ("blocked", "lock")
        fcntl.flock(ours, fcntl.LOCK_UN)
        assert told(stepped.step()) == ("open", "got")


def test_a_signal_comes_at_the_point_where_the_actor_stands(tmp_path: Path) -> None:
    path = tmp_path / "handles.py"
    path.write_text(
        "import signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: open('handled', 'w').close())\n"
        "open('first', 'w').close()\n"
    )
    with SteppedProcess([str(path)], watch=tmp_path / "first", cwd=tmp_path) as stepped:
        stepped.run_until("open")

        again = stepped.signal(signal.SIGTERM)

        assert told(again) == ("open", "first")
        assert (tmp_path / "handled").exists()
        assert not (tmp_path / "first").exists()


def test_statements_to_sqlite_are_seen_before_they_run(tmp_path: Path) -> None:
    path = tmp_path / "asks.py"
    path.write_text(
        "import sqlite3\ndb = sqlite3.connect('db')\ndb.execute('CREATE TABLE t (x)')\n"
    )
    with SteppedProcess([str(path)], watch=tmp_path, cwd=tmp_path) as stepped:
        event = stepped.run_until("sql")

    assert event.facts == {"statement": "CREATE TABLE t (x)"}
    assert Path(event.path) == tmp_path / "db"


def test_a_program_may_tell_more_with_each_event(tmp_path: Path) -> None:
    path = tmp_path / "tells.py"
    path.write_text(
        f"from {tracee.__name__} import __name__ as name\n"
        "import sys\n"
        "sys.modules[name].describe = lambda: {'count': count}\n"
        "for count in range(2):\n    open('there', 'w').close()\n"
    )
    with SteppedProcess([str(path)], watch=tmp_path / "there", cwd=tmp_path) as stepped:
        first, second = stepped.run_until("open"), stepped.step()

    assert second is not None
    assert [first.facts["count"], second.facts["count"]] == [0, 1]
