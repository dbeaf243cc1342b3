"""Processes for tests, forked from one server per worker of pytest that has every command loaded.

A started interpreter costs 60 to 150 ms of processor time, a forked process 5 to 10 ms. Use them like `subprocess`:

    process = start_python("-m", "acme", "config", "list", cwd=directory, stdin=subprocess.PIPE)
    ran = run_python("-c", "import sys; print(sys.argv[1])", "word")          # a subprocess.CompletedProcess[str]
    ran = run_python(*function_program("tests.state.support.jobs:count", url, 3))

The module of such a function is loaded in the server once, so keep it small and free of pytest. For a module that
commands import only when they need it: `fork_server().load("tomlkit")`.
stepping/fork_server.py lists in what a forked process differs from a fresh one. A test whose subject is one of these
starts `sys.executable` itself, and says why in a comment.
"""

import atexit
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO
from weakref import WeakSet

from ..app import root
from ..commands.manifest import find_commands
from ..program import PACKAGE
from ..stepping.fork_server import ForkServer
from ..stepping.forked_process import FILE, ForkedProcess

LONGEST_SECONDS = 45
"""How long a process may take that has every reason to end. A safety net, for a busy machine as well."""

_ROOT = Path(__file__).parents[3]
_PYTHON_S_OWN = ("LANG", "LC_", "PYTHON")
_processes: WeakSet[ForkedProcess] = WeakSet()


@cache
def fork_server() -> ForkServer:
    """Return the server of this worker. It has loaded every command: a call would spend half its time on that."""
    find_commands(root([]))
    is_command = re.compile(rf"{PACKAGE}\.\w+\.commands\.").match
    preload = [name for name in sys.modules if is_command(name)]
    preload.append(f"{__package__}.holding")
    # Python's own variables are those of every test, whatever the test changed that needs the server first.
    env = {name: value for name, value in os.environ.items() if not name.startswith(_PYTHON_S_OWN)}
    server = ForkServer(preload, {**env, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(_ROOT)})
    atexit.register(server.__exit__)
    return server


def running_fork_server() -> ForkServer | None:
    """Return the server of this worker, or None if no test has needed it yet."""
    is_running = fork_server.cache_info().currsize > 0
    return fork_server() if is_running else None


def is_forkable(env: Mapping[str, str]) -> bool:
    """Return whether the server read the same variables of Python's own when it started.

    A fresh interpreter has to be started where it did not.
    """
    read = fork_server().env
    names = [name for name in {*env, *read} if name.startswith(_PYTHON_S_OWN)]
    return all(env.get(name) == read.get(name) for name in names)


def start_python(
    *program: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    pass_fds: Sequence[int] = (),
    new_group: bool = False,
    new_session: bool = False,
    gate: int | None = None,
) -> ForkedProcess:
    """Start `python PROGRAM...`, forked. See `ForkServer.start`."""
    assert is_forkable(os.environ if env is None else env), "the fork server has read other variables of Python's own"
    process = fork_server().start(
        [str(word) for word in program],
        env=env,
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        new_group=new_group,
        new_session=new_session,
        gate=gate,
    )
    _processes.add(process)
    return process


def end_processes() -> None:
    """Kill what a failed test has left running."""
    for process in list(_processes):
        if process.returncode is None:
            process.kill()
            with suppress(BrokenPipeError), process:  # what was written may never have been read
                pass


def run_python(
    *program: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stdin: str | bytes = b"",
    pass_fds: Sequence[int] = (),
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run `python PROGRAM...`, forked, to its end. Raise CalledProcessError if it fails, unless `check` is False."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    process = start_python(
        *program,
        env=env,
        cwd=cwd,
        stdin=subprocess.PIPE if given else subprocess.DEVNULL,
        # A child that it leaves may keep these open.
        stdout=FILE,
        stderr=FILE,
        pass_fds=pass_fds,
    )
    try:
        stdout, stderr = process.communicate(given, LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode is not None
    ran = subprocess.CompletedProcess(list(program), process.returncode, stdout.decode(), stderr.decode())
    if check:
        ran.check_returncode()
    return ran


def function_program(function: str, *args: object) -> list[str]:
    """Return the words of a program that calls `module:name`. `repr` of an argument must be Python: no paths."""
    module, _, name = function.partition(":")
    fork_server().load(module)
    words = ", ".join(repr(argument) for argument in args)
    return ["-c", f"import {module}\n{module}.{name}({words})"]
