"""sampletool/audit/store.py"""

import os
import shlex
import sys
import tempfile
from pathlib import Path

import pytest

from sampletool.audit.command_line import CommandLine
from sampletool.audit.errors import FailsAlone
from sampletool.audit.failure import Failure
from sampletool.audit.store import Candidate, Store
from sampletool.kit.program import PACKAGE
from sampletool.kit.safety.signals import Signals
from tests.audit.support import candidate, eventually, is_gone, processes_of

_ENVIRONMENT = (
    f"{sys.executable} -I -S -c 'import os, sys; sys.stdout.write(repr(dict(os.environ)))' {{key}}"
)


def _made_of(set_text: str, get_text: str, deadline_seconds: float = 10.0) -> Candidate:
    return Candidate(
        CommandLine.read(set_text, ()), CommandLine.read(get_text, ()), deadline_seconds
    )


def _scratch() -> list[str]:
    return os.listdir(tempfile.gettempdir())


def test_nothing_of_the_caller_gets_in_that_could_lead_to_files_of_the_caller(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/somewhere/important")
    monkeypatch.setenv("TOOL_CONFIG_DIR", "/somewhere/else")
    monkeypatch.setenv("SECRET", "hunter2")
    with Store(_made_of(_ENVIRONMENT, "true"), signals) as store:
        attempt = store.start()
        store.finish(attempt)

        seen = eval(attempt.run.stdout)  # noqa: S307

    assert seen.keys().isdisjoint({"GIT_CONFIG_GLOBAL", "TOOL_CONFIG_DIR", "SECRET"})
    places = {
        name: place
        for name, place in seen.items()
        if name in ("HOME", "TMPDIR") or name.startswith("XDG_")
    }
    assert places.keys() == {"HOME", "TMPDIR", "XDG_RUNTIME_DIR"}
    assert all(Path(place).is_relative_to(store.directory) for place in places.values())


def test_a_workspace_above_the_scratch_directory_is_not_found(signals: Signals) -> None:
    stranger = Path(tempfile.gettempdir()).with_name("tool.toml")
    stranger.write_text("[settings]\n")
    ours = shlex.join([sys.executable, "-m", PACKAGE, "config"])

    with Store(_made_of(f"{ours} set {{key}} {{value}}", f"{ours} get {{key}}"), signals) as store:
        outcomes = store.finish(store.start())

    assert outcomes == ["claimed"]
    assert stranger.read_text() == "[settings]\n"


def test_leaving_it_removes_the_files_read_only_directories_and_every_process(
    signals: Signals,
) -> None:
    detach = (
        "import os, sys, time; os.chdir(os.environ['HOME']);"
        "os.mkdir('sealed'); open('sealed/file', 'w').close();"
        "os.chmod('sealed', 0o500); child = os.fork();"
        "child or (os.setsid(), os.fork() and os._exit(0), time.sleep(600));"
    )
    with Store(
        _made_of(f'{sys.executable} -I -S -c "{detach}" {{key}} {{value}}', "true"), signals
    ) as store:
        store.finish(store.start())
        assert eventually(lambda: len(processes_of(store.directory)) == 1)
        strays = processes_of(store.directory)

    assert all(is_gone(pid) for pid in strays)
    assert _scratch() == []


def test_who_does_not_end_in_time_is_ended_and_has_hung(signals: Signals) -> None:
    with Store(candidate("endless", deadline_seconds=2.0), signals) as store:
        before = store.prepare()

        outcomes = store.finish(store.start(), store.start())

        tally = store.tally(before)
        assert outcomes == ["hung", "hung"]
        assert (tally.claimed, tally.hung, tally.still_readable) == (0, 2, True)
        assert eventually(lambda: processes_of(store.directory) == [])


def test_a_loss_is_seen_and_so_is_a_failure(signals: Signals) -> None:
    script = 'import os, sys; sys.exit(os.path.exists("full"))'
    text = f"{sys.executable} -I -S -c '{script}' {{key}} {{value}}"
    with Store(_made_of(text, "cat absent"), signals) as store:
        lost = store.start()
        store.finish(lost)
        (store.directory / "work" / "full").touch()

        (failure,) = store.finish(store.start())

        tally = store.tally(lost)
        assert isinstance(failure, Failure)
        assert (tally.claimed, tally.survived, tally.silently_lost, tally.failed_loudly) == (
            1,
            0,
            1,
            1,
        )
        assert not tally.still_readable


def test_a_value_in_the_output_of_a_reader_that_failed_does_not_count(signals: Signals) -> None:
    with Store(
        _made_of("sh -c 'echo $1 >> all' sh {key}{value}", "sh -c 'cat all; exit 1'"), signals
    ) as store:
        attempt = store.start()
        store.finish(attempt)

        assert store.tally(attempt).silently_lost == 1


def test_a_reader_may_show_everything_at_once(signals: Signals) -> None:
    with Store(_made_of("sh -c 'echo $1 >> all' sh {key}={value}", "cat all"), signals) as store:
        before = store.prepare()
        store.finish(store.start(), store.start())

        assert store.tally(before).survived == 2


@pytest.mark.parametrize(
    ("set_text", "get_text", "deadline_seconds", "complaint"),
    [
        (
            "sh -c 'echo no such table >&2; exit 3' {key} {value}",
            "true",
            60,
            "failed with exit code 3. Its output: no such table",
        ),
        ("true {key} {value}", "echo {key}", 60, "did not show the value that had just been set"),
        ("sh -c 'sleep 600' {key} {value}", "true", 0.2, "did not exit within 200ms"),
        ("true {key} {value}", "sleep 600", 0.2, "did not exit within 200ms"),
    ],
)
def test_a_command_that_does_not_work_alone_cannot_be_audited(
    set_text: str, get_text: str, deadline_seconds: float, complaint: str, signals: Signals
) -> None:
    with (
        pytest.raises(FailsAlone) as refused,
        Store(_made_of(set_text, get_text, deadline_seconds), signals) as store,
    ):
        store.prepare()

    assert complaint in refused.value.message
    assert _scratch() == []


def test_a_program_that_cannot_be_loaded_cannot_be_audited(
    signals: Signals, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\0not a program")
    program.chmod(0o700)

    with (
        pytest.raises(FailsAlone, match="cannot be started"),
        Store(_made_of(str(program), "true"), signals) as store,
    ):
        store.prepare()


def test_a_value_that_another_run_has_overwritten_is_lost(signals: Signals) -> None:
    """The reader succeeds, and shows a value. Only comparing it reveals that it is another one."""
    with Store(_made_of("sh -c 'echo $0 > last' {value}", "cat last"), signals) as store:
        before = store.prepare()
        for _ in range(3):
            store.finish(store.start())

        tally = store.tally(before)

    assert (tally.claimed, tally.survived, tally.silently_lost) == (3, 1, 2)
    assert not tally.still_readable


def test_a_reader_that_shows_another_value_cannot_be_audited(signals: Signals) -> None:
    candidate = _made_of("true {key} {value}", "echo another")
    with Store(candidate, signals) as store, pytest.raises(FailsAlone, match="did not show"):
        store.prepare()
