"""sampletool/state/connect.py: a driver that is missing is named; how long a server may take."""

import sys
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.command_line import CommandLine, GlobalOptions
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import ExtraNotInstalled, InvalidValues
from sampletool.kit.safety.signals import Signals
from sampletool.state.connect import connect_for_command, file_of_store, open_store
from tests.state.support.outcomes import outcome, raises
from tests.state.support.store_client import make_policy


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "sampletool.state.redis", raising=False)

    with raises(ExtraNotInstalled) as missing:
        open_store("redis://127.0.0.1:1/0", None, make_policy())

    assert (
        missing.value.message
        == 'A Redis or Valkey store needs the extra "redis", which is not installed.'
    )


@pytest.mark.parametrize(("lock_timeout", "seconds"), [("0", 2.0), ("10s", 10.0)])
def test_a_server_has_two_seconds_to_answer_also_if_nobody_waits_for_locks(
    lock_timeout: str, seconds: float
) -> None:
    context = Context(Signals())
    context.set_command_line(CommandLine(options=GlobalOptions(lock_timeout=lock_timeout)))

    with context.exit_stack:
        store: Any = connect_for_command(context, "redis://127.0.0.1:1/0")
        limits = store._client.connection_pool.connection_kwargs

    assert limits["socket_connect_timeout"] == seconds


@pytest.mark.parametrize(
    ("url", "store"),
    [
        ("postgresql://h/d", "PostgresStore"),
        ("postgres://h/d", "PostgresStore"),
        ("redis://h", "RedisStore"),
        ("rediss://h", "RedisStore"),
        ("valkey://h", "RedisStore"),
        ("valkeys://h", "RedisStore"),
        ("unix:///run/r.sock", "RedisStore"),
        ("redis+unix:///run/r.sock", "RedisStore"),
        ("sqlite:///w/state.db", "SqliteStore"),
    ],
)
def test_each_scheme_names_a_kind_of_store(url: str, store: str) -> None:
    assert type(outcome(lambda: open_store(url, None, make_policy()))).__name__ == store


@pytest.mark.parametrize(
    "url", ["sqlite://state.db", "sqlite:///w/", "sqlite:///w/\0.db", "sqlite://"]
)
def test_a_url_that_does_not_name_a_file_is_refused(url: str) -> None:
    with raises(InvalidValues, match="does not name a file") as refused:
        open_store(url, None, make_policy())

    (mistake,) = refused.value.mistakes
    assert mistake.suggestion == "Write sqlite:///absolute/path/state.db."


@pytest.mark.parametrize(
    ("scheme", "known"), [("sqlit", "sqlite"), ("postgre", "postgres"), ("redi", "redis")]
)
def test_a_misspelled_scheme_is_refused_with_the_right_one(scheme: str, known: str) -> None:
    with raises(InvalidValues) as refused:
        open_store(f"{scheme}://h", None, make_policy())

    (mistake,) = refused.value.mistakes
    assert f"'{known}'" in str(mistake.suggestion)


@pytest.mark.parametrize("url", ["postgresql", "redis"])
def test_a_scheme_alone_is_refused(url: str) -> None:
    with raises(InvalidValues):
        open_store(url, None, make_policy())


def test_the_file_of_a_store_is_in_the_directory_that_its_path_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    file = outcome(lambda: file_of_store(f"sqlite://{tmp_path}/link/state.db", None))

    assert file == tmp_path.resolve() / "real" / "state.db"
