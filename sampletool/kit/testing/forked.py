"""Processes for tests, forked from a server that has imported every command.

Each worker of pytest has one server. A new interpreter costs 60 to 150 ms of processor time, a
forked process 5 to 10 ms. Use these functions like those of `subprocess`:

    process = start_python("-m", "acme", "config", "list", cwd=directory, stdin=subprocess.PIPE)
    completed = run_python("-c", "import sys; print(sys.argv[1])", "word")
    completed = run_python(*function_program("tests.state.support.jobs:count", url, 3))

`run_python` returns a `subprocess.CompletedProcess[str]`. `function_program` imports the module of
the function in the server, where it stays imported. So keep that module small, and do not import
pytest in it. If commands import a module only when they need it, import it in the server first:
`fork_server().load("redis")`.

The docstring of stepping/fork_server.py lists how a forked process differs from a fresh one. A test
of one of these differences starts `sys.executable` itself, and says why in a comment.
"""

import atexit
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO
from weakref import WeakSet

from ..app import root_command
from ..commands.manifest import find_commands
from ..program import KIT, PACKAGE
from ..project import ROOT
from ..stepping.fork_server import ForkServer
from ..stepping.forked_process import FILE, ForkedProcess

LONGEST_SECONDS = 45
"""The timeout for a process that should exit at once. It is long enough for a busy machine."""


_INTERPRETER_PREFIXES = ("LANG", "LC_", "PYTHON")
"""How the names of those environment variables begin that the interpreter reads when it starts."""

_IMPORTED_ON_DEMAND = (
    f"{KIT}.command_help",
    f"{KIT}.help_topics",
    f"{KIT}.lock_notices",
    "tomlkit",
)
"""Modules that many commands import only when they need them. Importing tomlkit takes 8 ms."""

_started_processes: WeakSet[ForkedProcess] = WeakSet()


@cache
def fork_server() -> ForkServer:
    """Return the fork server of this worker. Start it on the first call."""
    # Find and import all commands here, to learn the names of their modules. The server imports
    # the same modules: a process that imports them itself spends half of its time on that.
    # This is a generator, which imports a command only when it yields it.
    list(find_commands(root_command()))
    is_command_module = re.compile(rf"{PACKAGE}\.\w+\.commands\.").match
    preload = []
    for module in sys.modules:
        if is_command_module(module):
            preload.append(module)
    preload += _IMPORTED_ON_DEMAND
    preload.append(f"{__package__}.holding")

    # The first test that needs the server may have changed variables that the interpreter reads.
    # All tests of this worker share the server, so give it fixed values instead.
    env = {}
    for name, value in os.environ.items():
        if not name.startswith(_INTERPRETER_PREFIXES):
            env[name] = value
    env["LC_ALL"] = "C.UTF-8"
    env["PYTHONPATH"] = str(ROOT)

    server = ForkServer(preload, env)
    atexit.register(server.__exit__)
    return server


def running_fork_server() -> ForkServer | None:
    """Return the fork server of this worker, or None if no test has needed it yet."""
    # Calling fork_server() would start the server, so look into its cache first.
    if fork_server.cache_info().currsize == 0:
        return None
    return fork_server()


def is_forkable(env: Mapping[str, str]) -> bool:
    """Return whether the fork server can start a process with this environment.

    The interpreter reads some variables only when it starts, such as PYTHONPATH and LC_ALL. In a
    forked process, it keeps the values that the fork server had. So these variables must have the
    same values in `env`. If they differ, start a fresh interpreter with `subprocess`.
    """
    server_env = fork_server().env
    # Look at the names of both: a variable that is missing on one side is a difference as well.
    for name in {*env, *server_env}:
        if not name.startswith(_INTERPRETER_PREFIXES):
            continue
        if env.get(name) != server_env.get(name):
            return False
    return True


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
    """Start `python PROGRAM...` in a forked process, and return the process.

    The parameters are those of `ForkServer.start`, and so are the errors. `env` must be forkable
    (see `is_forkable`).
    """
    if env is None:
        env = os.environ
    assert is_forkable(env), "the interpreter of the fork server started with other variables"
    process = fork_server().start(
        [str(argument) for argument in program],
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
    _started_processes.add(process)
    return process


def end_processes() -> None:
    """Kill the processes that a failed test has left running, and close their streams."""
    # A list, because a process leaves the weak set when its last reference disappears.
    for process in list(_started_processes):
        if process.returncode is not None:
            continue
        process.kill()
        try:
            # Leaving the block closes the streams and waits for the process.
            with process:
                pass
        except BrokenPipeError:
            # The test had written to stdin, and the process was killed before it read all of it.
            pass


def run_python(
    *program: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stdin: str | bytes = b"",
    pass_fds: Sequence[int] = (),
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run `python PROGRAM...` in a forked process, wait for it, and return its outputs.

    Raise subprocess.CalledProcessError if the program fails, unless `check` is False. Raise
    subprocess.TimeoutExpired if it runs longer than LONGEST_SECONDS.
    """
    if isinstance(stdin, str):
        stdin = stdin.encode()
    stdin_target = subprocess.DEVNULL
    if stdin:
        stdin_target = subprocess.PIPE
    process = start_python(
        *program,
        env=env,
        cwd=cwd,
        stdin=stdin_target,
        # Files, not pipes: the program may leave a child that keeps its outputs open. A pipe has
        # no end until that child exits.
        stdout=FILE,
        stderr=FILE,
        pass_fds=pass_fds,
    )
    try:
        stdout, stderr = process.communicate(stdin, LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode is not None
    completed = subprocess.CompletedProcess(
        args=list(program),
        returncode=process.returncode,
        stdout=stdout.decode(),
        stderr=stderr.decode(),
    )
    if check:
        completed.check_returncode()
    return completed


def function_program(function: str, *args: object) -> list[str]:
    """Return the arguments of a `python` that calls a function, named as `module:function`.

    The `repr` of each argument must be valid Python. For example, pass a path as a string.
    """
    module, _, function_name = function.partition(":")
    fork_server().load(module)
    arguments = ", ".join(repr(argument) for argument in args)
    source = f"import {module}\n{module}.{function_name}({arguments})"
    return ["-c", source]
