"""Actors that are forked behave as those that are started."""

import fcntl
import os
import signal
from pathlib import Path

import pytest

from sampletool.stage.director import Actor
from sampletool.stage.troupe import Troupe


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
    with Troupe(["json"]) as troupe:
        env = {**os.environ, "WHO": "me"}
        one = [str(program), "one"]
        with Actor(one, watch=tmp_path / "there", env=env, cwd=tmp_path, troupe=troupe if is_forked else None) as actor:
            stopped = actor.run_until("open")
            was_there = (tmp_path / "there").exists()
            ran = actor.finish()

    assert Path(stopped.path).name == "there"
    assert not was_there
    assert ran.status == 7
    assert ran.stdout == b"said\n"
    assert ran.stderr.decode() == f"me ['one'] {tmp_path}\n"


def test_a_forked_actor_can_be_killed_and_the_others_go_on(program: Path, tmp_path: Path) -> None:
    env = {**os.environ, "WHO": "me"}
    with (
        Troupe([]) as troupe,
        Actor([str(program)], watch=tmp_path, env=env, cwd=tmp_path, troupe=troupe) as one,
        Actor([str(program)], watch=tmp_path, env=env, cwd=tmp_path, troupe=troupe) as other,
    ):
        one.kill()

        assert one.process.returncode == -signal.SIGKILL
        assert other.finish().status == 7


def test_an_actor_that_waits_for_a_lock_says_that_it_is_blocked(tmp_path: Path) -> None:
    path = tmp_path / "waits.py"
    path.write_text("import fcntl\nlock = open('lock', 'w')\nfcntl.flock(lock, fcntl.LOCK_EX)\nopen('got', 'w')\n")
    with (tmp_path / "lock").open("w") as ours, Actor([str(path)], watch=tmp_path, cwd=tmp_path) as actor:
        fcntl.flock(ours, fcntl.LOCK_EX)
        actor.run_until("fcntl.flock")

        assert str(actor.step()) == "blocked lock"
        assert str(actor.step()) == "blocked lock"
        fcntl.flock(ours, fcntl.LOCK_UN)
        assert str(actor.step()) == "open got"


def test_a_signal_comes_at_the_point_where_the_actor_stands(tmp_path: Path) -> None:
    path = tmp_path / "handles.py"
    path.write_text(
        "import signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: open('handled', 'w').close())\n"
        "open('first', 'w').close()\n"
    )
    with Actor([str(path)], watch=tmp_path / "first", cwd=tmp_path) as actor:
        actor.run_until("open")

        again = actor.signal(signal.SIGTERM)

        assert str(again) == "open first"
        assert (tmp_path / "handled").exists()
        assert not (tmp_path / "first").exists()


def test_statements_to_sqlite_are_seen_before_they_run(tmp_path: Path) -> None:
    path = tmp_path / "asks.py"
    path.write_text("import sqlite3\ndb = sqlite3.connect('db')\ndb.execute('CREATE TABLE t (x)')\n")
    with Actor([str(path)], watch=tmp_path, cwd=tmp_path) as actor:
        event = actor.run_until("sql")

    assert event.facts == {"statement": "CREATE TABLE t (x)"}
    assert Path(event.path) == tmp_path / "db"
