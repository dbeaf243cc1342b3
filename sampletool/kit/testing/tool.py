"""The real tool, run as a user would run it, in a process of its own.

`Tool` starts the processes, and `Ran` is the result of one that has exited. Each response is
checked: it fits its schema, and its error is one that the command declares.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ..app import root_command
from ..commands.manifest import find_commands
from ..contract.command_spec import CommandSpec
from ..contract.errors import SIGNAL_BASE
from ..contract.manifest import describe_errors
from ..program import PACKAGE
from ..stepping.forked_process import FILE, ForkedProcess
from ..stepping.tracer import Ended, SteppedProcess
from .forked import LONGEST_SECONDS, fork_server, is_forkable, start_python
from .how_to import remedy
from .schema import problems_of

COMMAND = [sys.executable, "-m", PACKAGE]
"""The command line of the tool, without its arguments."""

_PROGRAM = COMMAND[1:]
"""The same for a forked process, which needs no interpreter."""

Process = subprocess.Popen[bytes] | ForkedProcess
"""A process that a test has started. Both types have the same methods."""

_RELATIVE_PATH = re.compile(r'"(?:path|directory|log|logs|report)":"[^/"][^"]*"')


class Ran(Ended):
    """The result of a command that has exited."""

    # Cached, because checking a response takes longer than anything else that a test does with it.
    @cached_property
    def response(self) -> dict[str, Any]:
        """The response. Fail if stdout is anything but one line of JSON that fits its schema."""
        lines = self.stdout.decode("ascii").split("\n")
        assert len(lines) == 2, f"not one line: {self.stdout!r}; stderr: {self.stderr!r}"
        assert lines[1] == "", f"the line has no end: {self.stdout!r}"
        response: dict[str, Any] = json.loads(lines[0])
        check_envelope(response)
        relative_paths = _RELATIVE_PATH.findall(lines[0])
        assert relative_paths == [], f"a path in a response must be absolute: {relative_paths}"
        return response

    @property
    def data(self) -> Any:
        """The data of a response. Fail if it is an error."""
        response = self.response
        assert response["ok"], response["error"]
        return response["data"]

    @property
    def error(self) -> dict[str, Any]:
        """The error of a response. Fail if the command succeeded."""
        response = self.response
        assert not response["ok"], response["data"]
        return dict(response["error"])

    @property
    def code(self) -> str:
        """The code of the error, such as `KEY_NOT_FOUND`."""
        return str(self.error["code"])

    @property
    def meta(self) -> dict[str, Any]:
        """The facts about the run, such as its command."""
        return dict(self.response["meta"])

    @property
    def text(self) -> str:
        """What the command has printed to stdout."""
        return self.stdout.decode()


class Tool:
    """The tool in a directory, with the environment of one test and nothing of the machine's."""

    def __init__(self, environ: dict[str, str], cwd: Path) -> None:
        self.environ = environ
        self.cwd = cwd
        self._started: list[Process] = []

    def __call__(self, *args: str | Path, stdin: bytes = b"", **environ: str) -> Ran:
        """Run the tool with these arguments, and return its result. `environ` adds variables."""
        env = {**self.environ, **environ}
        if not is_forkable(env):
            fresh_process = self.start_fresh(*args, environ=environ)
            return ended(fresh_process, stdin)
        stdin_target = subprocess.DEVNULL
        if stdin:
            stdin_target = subprocess.PIPE
        process = start_python(
            *_PROGRAM,
            *args,
            env=env,
            cwd=self.cwd,
            stdin=stdin_target,
            # Files, not pipes: the command may leave a child that keeps its outputs open. A pipe
            # has no end until that child exits.
            stdout=FILE,
            stderr=FILE,
        )
        return ended(process, stdin)

    def start(
        self,
        *args: str | Path,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = _PROGRAM,
        stdin: int = subprocess.PIPE,
        gate: int | None = None,
    ) -> ForkedProcess:
        """Start the tool, or another Python program, in a forked process. Return while it runs.

        `gate` is the read end of a pipe: the process starts its work when the write end is closed.
        So several processes can be prepared, and then start at the same moment.
        """
        process = start_python(
            *program,
            *args,
            env=self._environ_with(environ),
            cwd=self.cwd,
            stdin=stdin,
            gate=gate,
        )
        self._started.append(process)
        return process

    def start_fresh(
        self,
        *args: str | Path,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = COMMAND,
        stdin: int = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """Start the tool, or another program, in an interpreter of its own. Return while it runs.

        This costs ten times as much as `start`. It is for tests of the start itself.
        """
        arguments = [str(argument) for argument in args]
        process = subprocess.Popen(
            [*program, *arguments],
            cwd=self.cwd,
            env=self._environ_with(environ),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._started.append(process)
        return process

    def stepped(self, *args: str | Path, watch: Path) -> SteppedProcess:
        """Start the tool step by step: it stops before each event at or below `watch`."""
        arguments = [str(argument) for argument in args]
        return SteppedProcess(
            [*_PROGRAM, *arguments],
            watch=watch,
            env=self.environ,
            cwd=self.cwd,
            fork_server=fork_server(),
        )

    def together(self, calls: Iterable[Iterable[str | Path]]) -> list[Ran]:
        """Start a process for each list of arguments, and return the results of all.

        All of them begin at the same moment. Each waits until the gate opens, which happens when
        both ends of the pipe are closed here.
        """
        gate, opener = os.pipe()
        processes = []
        for args in calls:
            processes.append(self.start(*args, stdin=subprocess.DEVNULL, gate=gate))
        os.close(gate)
        os.close(opener)
        return [ended(process) for process in processes]

    def end(self) -> None:
        """Kill what a failed test has left running, and close its streams.

        Otherwise the next test would get a warning about open pipes.
        """
        for process in self._started:
            try:
                # Leaving the block closes the streams and waits for the process.
                with process:
                    process.kill()
            except BrokenPipeError:
                # The test had written to stdin, and the process did not read all of it.
                pass

    def _environ_with(self, environ: Mapping[str, str] | None) -> dict[str, str]:
        if environ is None:
            return dict(self.environ)
        return {**self.environ, **environ}


def ended(process: Process, stdin: bytes = b"") -> Ran:
    """Wait for a process that should exit soon, and return its result. Check its response."""
    try:
        stdout, stderr = process.communicate(stdin, LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"the process still runs after {LONGEST_SECONDS} s") from None
    assert process.returncode is not None
    ran = Ran(process.returncode, stdout, stderr)
    if ran.stdout.startswith(b'{"ok"'):
        _check_exit_code(ran)
        _check_error_is_declared(ran.response)
    return ran


def describe_option(tool: Tool, command: str, flag: str) -> dict[str, Any]:
    """Return the description of an option in the manifest."""
    (manifest,) = tool("manifest", *command.split()).data["commands"]
    (option,) = [option for option in manifest["options"] if flag in option["flags"]]
    return dict(option)


def check_envelope(response: dict[str, Any]) -> None:
    """Fail unless the response fits its schema, and its members agree with each other."""
    problems = problems_of(response)
    advice = remedy("Return what the annotations of the result say", "Results")
    assert problems == [], f"{problems}. {advice}"
    meta = response["meta"]
    assert None not in meta.values()
    assert response["ok"] == ("error" not in response)
    if response["ok"]:
        return
    error = response["error"]
    assert None not in error.values()
    assert error["message"].endswith((".", "?"))
    assert ("retry_after_ms" in error) == error["retryable"]
    assert error["exit_code"] == meta["exit_code"]


def _check_exit_code(ran: Ran) -> None:
    """Fail unless the process has exited as its response says."""
    reported = ran.meta["exit_code"]
    actual = ran.status
    # Popen reports -2 for a process that SIGINT has ended. A shell, and the response, reports 130.
    if actual < 0:
        actual = SIGNAL_BASE - actual
    assert actual == reported, f"the exit code is {actual}, and {reported} in the response"


def _check_error_is_declared(response: dict[str, Any]) -> None:
    """Fail if the command ends with an error that its spec does not declare, or not like this."""
    command = response["meta"]["command"]
    spec = declared_specs().get(command)
    if spec is None or "error" not in response:
        return
    declared = describe_errors(spec.all_errors())
    error = response["error"]
    code = error["code"]
    advice = remedy("Add the class of the error to `errors`", "The spec")
    assert code in declared, f"the spec of {command} does not declare {error}. {advice}"
    # A single failure need not be retryable, although others with its code are.
    is_declared_retryable = declared[code]["retryable"]
    advice = remedy("Give its class a retry_after_ms", "Errors")
    assert is_declared_retryable or not error["retryable"], (
        f"the manifest does not say that {code} is retryable. {advice}"
    )


@cache
def declared_specs() -> dict[str, CommandSpec]:
    """Return the spec of every command, by its name with dots, as its file declares it."""
    specs = {}
    for name, command in find_commands(root_command()):
        specs[name.replace(" ", ".")] = command.spec
    return specs
