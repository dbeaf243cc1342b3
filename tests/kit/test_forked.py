"""sampletool/kit/testing/forked.py: a forked process runs a program as `python` would."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.testing import forked
from sampletool.kit.testing.forked import (
    fork_server,
    function_program,
    is_forkable,
    run_python,
    running_fork_server,
    start_python,
)

_ECHO = "import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write('to stderr')"


@pytest.mark.parametrize("stdin", ["text", b"text"])
def test_a_program_gets_its_stdin_and_both_outputs_are_returned(stdin: str | bytes) -> None:
    completed = run_python("-c", _ECHO, stdin=stdin)

    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "text", "to stderr")
    assert completed.args == ["-c", _ECHO]


def test_a_program_without_stdin_reads_nothing() -> None:
    assert run_python("-c", _ECHO).stdout == ""


def test_a_program_gets_its_arguments_environment_and_directory(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.argv[1:], os.environ.get('PROBE'), os.getcwd())"
    env = {**os.environ, "PROBE": "set"}

    completed = run_python("-c", code, "a b", Path("c"), env=env, cwd=tmp_path)

    assert completed.stdout == f"['a b', 'c'] set {tmp_path}\n"


def test_without_an_environment_a_program_has_that_of_the_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROBE", "of the test")

    completed = run_python("-c", "import os; print(os.environ.get('PROBE'))")

    assert completed.stdout == "of the test\n"


def test_a_failure_is_raised_unless_it_is_expected() -> None:
    code = "import sys; print('shown'); sys.exit(3)"

    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_python("-c", code)
    expected = run_python("-c", code, check=False)

    assert (caught.value.returncode, caught.value.output) == (3, "shown\n")
    assert (expected.returncode, expected.stdout) == (3, "shown\n")


def test_a_program_can_inherit_a_descriptor() -> None:
    reader, writer = os.pipe()

    code = f"import os; os.write({writer}, b'through the pipe')"
    run_python("-c", code, pass_fds=[writer])
    os.close(writer)
    received = os.read(reader, 100)
    os.close(reader)

    assert received == b"through the pipe"


def test_a_started_program_runs_until_it_is_waited_for() -> None:
    process = start_python("-c", _ECHO, stdin=subprocess.PIPE)

    was_running = process.poll() is None
    stdout, stderr = process.communicate(b"late", timeout=45)

    assert was_running
    assert (process.returncode, stdout, stderr) == (0, b"late", b"to stderr")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"PROBE": "x"}, True),
        ({"HOME": "/elsewhere"}, True),
        ({"PYTHONHASHSEED": "7"}, False),
        ({"PYTHONPATH": "/elsewhere"}, False),
        ({"LC_ALL": "C"}, False),
        ({"LC_ALL": None}, False),
        ({"LANG": "de_DE.UTF-8"}, False),
    ],
)
def test_what_the_interpreter_reads_at_its_start_must_be_that_of_the_server(
    change: dict[str, str | None],
    expected: bool,
) -> None:
    env = dict(fork_server().env)
    for name, value in change.items():
        if value is None:
            del env[name]
        else:
            env[name] = value

    assert is_forkable(env) is expected


def test_a_program_with_another_interpreter_environment_is_refused() -> None:
    env = {**fork_server().env, "PYTHONPATH": "/elsewhere"}

    with pytest.raises(AssertionError, match="started with other variables"):
        start_python("-c", "pass", env=env)


def test_the_server_has_imported_every_command_and_has_fixed_variables() -> None:
    server = fork_server()
    modules = "sampletool.kit.commands.doctor", "sampletool.kit.testing.holding"

    completed = run_python("-c", f"import sys; print([name in sys.modules for name in {modules}])")

    assert completed.stdout == "[True, True]\n"
    assert server.env["LC_ALL"] == "C.UTF-8"
    assert (Path(server.env["PYTHONPATH"]) / "sampletool").is_dir()
    assert running_fork_server() is server


class _RecordingServer:
    """A server that only remembers how it was started, and what it has imported."""

    def __init__(self, preload: list[str], env: dict[str, str]) -> None:
        self.preload = preload
        self.env = env
        self.loaded: list[str] = []

    def load(self, module: str) -> None:
        """Remember the module."""
        self.loaded.append(module)

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is no process."""


def test_a_server_does_not_depend_on_the_test_that_needs_it_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forked, "ForkServer", _RecordingServer)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("LC_TIME", "de_DE.UTF-8")
    monkeypatch.setenv("PROBE", "x")

    server: Any = fork_server.__wrapped__()

    assert server.env["PROBE"] == "x"
    names = [name for name in server.env if name.startswith(("LANG", "LC_", "PYTHON"))]
    assert sorted(names) == ["LC_ALL", "PYTHONPATH"]
    assert {"sampletool.kit.commands.config.set", "tomlkit"} <= set(server.preload)
    assert server.preload[-1] == "sampletool.kit.testing.holding"


def test_the_module_of_a_function_is_imported_in_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = _RecordingServer([], {})
    monkeypatch.setattr(forked, "fork_server", lambda: server)

    function_program("os.path:basename", "/a/b")

    assert server.loaded == ["os.path"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "False False"),
        ({"new_group": True}, "True False"),
        ({"new_session": True}, "True True"),
    ],
)
def test_a_program_can_have_a_process_group_or_a_session_of_its_own(
    options: dict[str, Any],
    expected: str,
) -> None:
    code = "import os; print(os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid())"

    stdout, _ = start_python("-c", code, **options).communicate(timeout=45)

    assert stdout.decode() == f"{expected}\n"


def test_a_function_is_called_with_its_arguments() -> None:
    program = function_program("os.path:basename", "/a/b")

    assert program == ["-c", "import os.path\nos.path.basename('/a/b')"]
    assert function_program("os:getpid") == ["-c", "import os\nos.getpid()"]
