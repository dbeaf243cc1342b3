"""The real tool, in a process of its own, as a user would run it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..app import root_command
from ..commands.manifest import find_commands
from ..contract.command_spec import CommandSpec
from ..program import PACKAGE
from ..stepping.forked_process import FILE, ForkedProcess
from ..stepping.tracer import Ended, SteppedProcess
from .forked import LONGEST_SECONDS, fork_server, is_forkable, start_python
from .schema import problems_of

COMMAND = [sys.executable, "-m", PACKAGE]
Process = subprocess.Popen[bytes] | ForkedProcess
"""What a test starts. Both have the same methods."""

_RELATIVE_PATH = re.compile(r'"(?:path|directory|log|logs|report)":"[^/"][^"]*"')


class Ran(Ended):
    """One finished call."""

    @property
    def answer(self) -> dict[str, Any]:
        """The one line of JSON, checked to be just that."""
        lines = self.stdout.decode("ascii").split("\n")
        assert len(lines) == 2, f"not one line: {self.stdout!r}; stderr: {self.stderr!r}"
        assert lines[1] == "", f"the line has no end: {self.stdout!r}"
        answer: dict[str, Any] = json.loads(lines[0])
        check_envelope(answer)
        assert (relative := _RELATIVE_PATH.findall(lines[0])) == [], f"make it absolute: {relative}"
        return answer

    @property
    def data(self) -> Any:
        answer = self.answer
        assert answer["ok"], answer["error"]
        return answer["data"]

    @property
    def error(self) -> dict[str, Any]:
        answer = self.answer
        assert not answer["ok"], answer["data"]
        return dict(answer["error"])

    @property
    def code(self) -> str:
        return str(self.error["code"])

    @property
    def meta(self) -> dict[str, Any]:
        return dict(self.answer["meta"])

    @property
    def text(self) -> str:
        return self.stdout.decode()


class Tool:
    """Runs the tool with the environment of one test and nothing of the machine's."""

    def __init__(self, environ: dict[str, str], cwd: Path) -> None:
        self.environ = environ
        self.cwd = cwd
        self._started: list[Process] = []

    def __call__(self, *args: str | Path, stdin: bytes = b"", **environ: str) -> Ran:
        """Run one call to its end."""
        env = {**self.environ, **environ}
        if not is_forkable(env):
            return ended(self.start_fresh(*args, environ=environ), stdin)
        call = [*COMMAND[1:], *args]
        given = subprocess.PIPE if stdin else subprocess.DEVNULL
        # Into files, not pipes: a child that the call leaves behind may keep them open.
        process = start_python(*call, env=env, cwd=self.cwd, stdin=given, stdout=FILE, stderr=FILE)
        return ended(process, stdin)

    def start(
        self,
        *args: str | Path,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = COMMAND[1:],
        stdin: int = subprocess.PIPE,
        gate: int | None = None,
    ) -> ForkedProcess:
        """Start a call, or another program of Python's, and return while it runs.

        The process is forked from one that has the app loaded. See kit/testing/forked.py, also for `gate`.
        """
        env = {**self.environ, **(environ or {})}
        process = start_python(*program, *args, env=env, cwd=self.cwd, stdin=stdin, gate=gate)
        self._started.append(process)
        return process

    def start_fresh(
        self,
        *args: str | Path,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = COMMAND,
        stdin: int = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """Start a call in an interpreter of its own, for a test of the start itself. It costs ten times as much."""
        process = subprocess.Popen(
            [*program, *map(str, args)],
            cwd=self.cwd,
            env={**self.environ, **(environ or {})},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._started.append(process)
        return process

    def stepped(self, *args: str | Path, watch: Path) -> SteppedProcess:
        """Stopped before every event at or below `watch`."""
        call = [*COMMAND[1:], *map(str, args)]
        return SteppedProcess(call, watch=watch, env=self.environ, cwd=self.cwd, fork_server=fork_server())

    def end(self) -> None:
        """End what a failed test has left running, or another test gets the warning about its open pipes."""
        for process in self._started:
            with suppress(BrokenPipeError), process:  # what was written may never have been read
                process.kill()

    def together(self, calls: Iterable[Iterable[str | Path]]) -> list[Ran]:
        """Start every call, let all of them begin at the same moment, and wait for them."""
        gate, opener = os.pipe()
        processes = [self.start(*call, stdin=subprocess.DEVNULL, gate=gate) for call in calls]
        os.close(gate)
        os.close(opener)
        return [ended(process) for process in processes]


def ended(process: Process, stdin: bytes = b"") -> Ran:
    """What a call says that has every reason to end. The limit is a safety net, for a busy machine as well."""
    try:
        stdout, stderr = process.communicate(stdin, LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError("the call does not end") from None
    assert process.returncode is not None
    ran = Ran(process.returncode, stdout, stderr)
    if ran.stdout.startswith(b'{"ok"'):
        check_spec(ran)
    return ran


def told_of(tool: Tool, command: str, flag: str) -> dict[str, Any]:
    """What the manifest tells of an option."""
    (entry,) = tool("manifest", *command.split()).data["commands"]
    (option,) = [option for option in entry["options"] if flag in option["flags"]]
    return dict(option)


def check_envelope(answer: dict[str, Any]) -> None:
    """What every answer of every command looks like, and what its own says besides."""
    assert not (problems := problems_of(answer)), problems
    assert answer["ok"] == ("error" not in answer)
    assert None not in answer["meta"].values()
    if not answer["ok"]:
        error = answer["error"]
        assert error["message"].endswith((".", "?"))
        assert ("retry_after_ms" in error) == error["retryable"]
        assert None not in error.values()
        assert error["exit_code"] == answer["meta"]["exit_code"]


def check_spec(ran: Ran) -> None:
    """The status is what the answer says, and the error is one that the command declares."""
    answer, meta = ran.answer, ran.meta
    assert ran.status == (expected := meta["exit_code"]) or ran.status == 128 - expected < 0
    spec = declared_specs().get(meta["command"])
    if spec is not None and "error" in answer:
        declared = {error.code for error in spec.all_errors()}
        assert answer["error"]["code"] in declared, f"the spec of {meta['command']} does not declare {answer['error']}"


@cache
def declared_specs() -> dict[str, CommandSpec]:
    """Of every command, by its name with dots, read from the command files."""
    return {name.replace(" ", "."): command.spec for name, command in find_commands(root_command([]))}
