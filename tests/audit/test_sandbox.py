"""sampletool/audit/sandbox.py"""

import errno
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.audit import sandbox as module
from sampletool.audit.errors import FailsAlone
from sampletool.audit.sandbox import Sandbox
from sampletool.audit.trial import open_trial
from sampletool.kit.program import PACKAGE
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.failing import failure_of, outcome_of
from tests.audit.support import candidate_of, eventually, is_gone, processes_of

_WRONG_COMMANDS = (errno.ENOENT, errno.ENOEXEC, errno.EACCES)
_INHERITED = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "JAVA_HOME"),
)
_ENVIRONMENT = (
    f"{sys.executable} -I -S -c 'import os, sys; sys.stdout.write(repr(dict(os.environ)))' {{key}}"
)


def _scratch() -> list[str]:
    return os.listdir(tempfile.gettempdir())


@pytest.mark.parametrize("missing", [None, *_INHERITED])
def test_a_run_gets_few_variables_of_the_caller_and_directories_of_its_own(
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
    missing: str | None,
) -> None:
    inherited = {name: f"the {name} of the caller" for name in _INHERITED if name != missing}
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in {**inherited, "HOME": "/home/me", "OTHER": "x"}.items():
        monkeypatch.setenv(name, value)
    sandbox = Sandbox(signals)
    sandbox.directory = Path("/scratch")

    assert outcome_of(sandbox._create_environ) == {
        **inherited,
        "HOME": "/scratch/home",
        "XDG_RUNTIME_DIR": "/scratch/run",
        "TMPDIR": "/scratch/tmp",
        "GIT_CEILING_DIRECTORIES": "/scratch",
        "TOOL_CEILING_DIRECTORIES": "/scratch",
    }


def test_nothing_of_the_caller_gets_in_that_could_lead_to_files_of_the_caller(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/somewhere/important")
    monkeypatch.setenv("TOOL_CONFIG_DIR", "/somewhere/else")
    monkeypatch.setenv("SECRET", "hunter2")
    with open_trial(candidate_of(_ENVIRONMENT, "true"), signals) as trial:
        attempt = trial.start()
        trial.finish(attempt)

        seen = eval(attempt.run.stdout)  # noqa: S307

    assert seen.keys().isdisjoint({"GIT_CONFIG_GLOBAL", "TOOL_CONFIG_DIR", "SECRET"})
    places = {
        name: place
        for name, place in seen.items()
        if name in ("HOME", "TMPDIR") or name.startswith("XDG_")
    }
    assert places.keys() == {"HOME", "TMPDIR", "XDG_RUNTIME_DIR"}
    assert all(Path(place).is_relative_to(trial.sandbox.directory) for place in places.values())


def test_a_workspace_above_the_scratch_directory_is_not_found(signals: Signals) -> None:
    stranger = Path(tempfile.gettempdir()).with_name("tool.toml")
    stranger.write_text("[settings]\n")
    ours = shlex.join([sys.executable, "-m", PACKAGE, "config"])

    with open_trial(
        candidate_of(f"{ours} set {{key}} {{value}}", f"{ours} get {{key}}"), signals
    ) as trial:
        outcome = trial.finish(trial.start())

    assert outcome == "claimed"
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
    with open_trial(
        candidate_of(f'{sys.executable} -I -S -c "{detach}" {{key}} {{value}}', "true"), signals
    ) as trial:
        trial.finish(trial.start())
        assert eventually(lambda: len(processes_of(trial.sandbox.directory)) == 1)
        strays = processes_of(trial.sandbox.directory)

    assert all(is_gone(pid) for pid in strays)
    assert _scratch() == []


def test_before_it_is_removed_every_directory_is_made_writable_and_no_file_of_others_is(
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Only root can remove what is in a read-only directory."""
    of_others = tmp_path / "of others"
    of_others.mkdir(mode=0o500)
    with Sandbox(signals) as sandbox:
        work = sandbox.directory / "work"
        (work / "sealed" / "inner").mkdir(parents=True)
        (work / "sealed" / "file").touch(mode=0o400)
        (work / "link").symlink_to(of_others)
        for directory in (work / "sealed" / "inner", work / "sealed"):
            directory.chmod(0o500)
        with monkeypatch.context() as patches:
            patches.setattr(shutil, "rmtree", lambda *_arguments, **_options: None)
            sandbox._clear()
        paths = (work / "sealed", work / "sealed" / "inner", work / "sealed" / "file", of_others)
        modes = [path.stat().st_mode & 0o777 for path in paths]

    assert modes == [0o700, 0o700, 0o400, 0o500]
    assert not sandbox.directory.exists()


def test_a_program_that_cannot_be_loaded_cannot_be_audited(
    signals: Signals, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\0not a program")
    program.chmod(0o700)

    with (
        pytest.raises(FailsAlone, match="cannot be started"),
        open_trial(candidate_of(str(program), "true"), signals) as trial,
    ):
        trial.prepare()


def test_what_was_created_is_removed_if_the_rest_cannot_be_created(
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(path: Path, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(Path, "mkdir", fail)

    with pytest.raises(OSError, match="No space left"), Sandbox(signals):
        pass
    assert _scratch() == []


def test_a_change_of_a_file_is_seen_by_its_size_alone(signals: Signals) -> None:
    """Some file systems have times that are too coarse, and some programs set them."""
    with Sandbox(signals) as sandbox:
        file = sandbox.directory / "work" / "file"
        file.write_text("")
        status = file.stat()
        before = sandbox.file_states()

        file.write_text("x")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

        assert sandbox.file_states() != before


def test_every_file_and_directory_of_a_run_is_looked_at_but_not_its_output(
    tmp_path: Path,
) -> None:
    top = tmp_path / "top"
    (top / "work" / "inner").mkdir(parents=True)
    (top / "work" / "inner" / "file").touch()
    (top / "output").mkdir()
    (top / "output" / "file").touch()

    everything = [os.path.relpath(path, top) for path in module._walk(top)]
    without_output = [os.path.relpath(path, top) for path in module._walk(top, leave_out="output")]

    assert everything.index("work") < everything.index("work/inner")
    assert sorted(everything) == [
        *("output", "output/file", "work", "work/inner", "work/inner/file")
    ]
    assert without_output == ["work", "work/inner", "work/inner/file"]


def test_a_file_that_is_removed_meanwhile_has_no_state(
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states: list[module.FileStates] = []
    with Sandbox(signals) as sandbox:
        file, removed = (str(sandbox.directory / "work" / name) for name in ("file", "removed"))
        Path(file).write_text("text")
        with monkeypatch.context() as patches:
            patches.setattr(module, "_walk", lambda _top, leave_out: [removed, file])
            failure = failure_of(lambda: states.append(sandbox.file_states()))
        status = os.stat(file)

    assert failure is None
    assert states == [{file: (status.st_ino, status.st_mtime_ns, 4)}]


def test_nobody_else_can_read_what_a_run_stores(signals: Signals) -> None:
    with Sandbox(signals) as sandbox:
        modes = {path.stat().st_mode & 0o777 for path in sandbox.directory.iterdir()}

    assert modes == {0o700}


def test_the_output_of_a_run_is_not_a_change_of_a_file(signals: Signals) -> None:
    with Sandbox(signals) as sandbox:
        before = sandbox.file_states()

        run = sandbox.launch(["echo", "text"])
        sandbox.wait_for([run], 60)

        assert sandbox.file_states() == before


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo out; echo error >&2", "error"),
        ("echo out; echo >&2", "out"),
        ("echo $HOME", "SCRATCH/home"),
    ],
)
def test_stderr_is_shown_if_there_is_any_and_our_paths_never(
    signals: Signals,
    script: str,
    output: str,
) -> None:
    with Sandbox(signals) as sandbox:
        run = sandbox.launch(["sh", "-c", script])
        sandbox.wait_for([run], 60)

        assert outcome_of(lambda: sandbox.output_of(run)) == output


@pytest.mark.parametrize(
    "number", [*_WRONG_COMMANDS, errno.EMFILE], ids=lambda number: errno.errorcode[number]
)
def test_each_reason_why_a_command_cannot_be_started_is_told_apart_from_a_fault_of_the_machine(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, "Run", fail)
    kind = FailsAlone if number in _WRONG_COMMANDS else OSError

    with Sandbox(Signals()) as sandbox:
        failure = failure_of(lambda: sandbox.launch(["x"]))

    assert isinstance(failure, kind), repr(failure)


def test_a_sandbox_has_a_directory_for_each_purpose(signals: Signals) -> None:
    with Sandbox(signals) as sandbox:
        names = {path.name for path in sandbox.directory.iterdir()}

    assert names == {"work", "output", "home", "run", "tmp"}


@pytest.mark.parametrize(
    ("elapsed_seconds", "nap"),
    [(0, 0.0005), (0.1, 0.005), (1, 0.02), (9.999, 0.001), (10, None), (11, None)],
)
def test_the_longer_a_run_takes_the_less_often_it_is_polled_until_its_time_is_over(
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
    elapsed_seconds: float,
    nap: float | None,
) -> None:
    naps: list[float] = []
    checks: list[str] = []
    run: Any = SimpleNamespace(poll=lambda: naps != [])
    times = iter([100, 100 + elapsed_seconds])
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(signals, "wait", naps.append)
    monkeypatch.setattr(signals, "check", lambda: checks.append("signals are checked"))

    has_exited = Sandbox(signals).wait_for([run], 10)

    assert naps == ([] if nap is None else [pytest.approx(nap)])
    assert checks == ["signals are checked"]
    assert has_exited is (nap is not None)
