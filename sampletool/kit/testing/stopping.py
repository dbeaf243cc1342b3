"""Stop a command before each of its steps, and look at what it leaves behind.

A *step* is an operation on the directory of one file, such as opening, locking or renaming a file.
The command is run many times. The first run is stopped before the first step, the second run before
the second step, and so on. Each run begins with the same content of the file.
"""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..stepping.tracer import SteppedProcess
from .tool import Ran, Tool

_MAX_STEPS = 200
"""A command with more steps probably never ends, for example because it waits for a lock."""


@dataclass(frozen=True)
class Stopped:
    """What a command left behind when it was stopped before one of its steps."""

    step: str
    """What the command was about to do, such as `os.rename`."""
    text: str | None
    """The content of the file. It is None if there is no file."""
    next_run: Ran
    """The result of the same command, run again without waiting for a lock."""


def kill_at_each_step(tool: Tool, *args: str, file: Path) -> list[Stopped]:
    """Kill the command with `kill -9` before each of its steps, and return what each run leaves.

    Fail if the command writes into the file itself, because then it can leave half of it.

    A killed process cannot clean up. So mark the test with `@pytest.mark.leaves_litter`.
    """
    stopped = []
    for process in _runs(tool, args, file):
        step = _step_of(process)
        _refuse_writing_in_place(process, file)
        process.kill()
        stopped.append(_look(tool, args, file, step))
    return stopped


def interrupt_at_each_step(tool: Tool, *args: str, file: Path) -> list[Stopped]:
    """Press Ctrl-C before each step of the command, and return what each run leaves.

    Fail if the command does not end because of it.
    """
    stopped = []
    for process in _runs(tool, args, file):
        step = _step_of(process)
        process.signal(signal.SIGINT)
        ran = Ran(*process.finish())
        assert ran.status == -signal.SIGINT, f"Ctrl-C before {step} is ignored: {ran}"
        stopped.append(_look(tool, args, file, step))
    return stopped


def _runs(tool: Tool, args: tuple[str, ...], file: Path) -> Iterator[SteppedProcess]:
    """Yield the command before its first step, then before its second step, and so on."""
    text_before = _read(file)
    step_count = 0
    while True:
        _restore(file, text_before)
        with tool.stepped(*args, watch=file.parent) as process:
            for _ in range(step_count):
                process.step()
                if process.next_event is None:
                    break
            if process.next_event is None:
                # The command has no more steps: this run has come to its end.
                assert step_count > 0, f"{args} does nothing in {file.parent}"
                return
            yield process
        step_count += 1
        assert step_count <= _MAX_STEPS, f"{args} has more than {_MAX_STEPS} steps"


def _step_of(process: SteppedProcess) -> str:
    assert process.next_event is not None
    return process.next_event.name


def _refuse_writing_in_place(process: SteppedProcess, file: Path) -> None:
    """Fail if the next step opens the file for writing.

    Python's own file objects write without a step. So no run would be stopped before such a write,
    and the test could not see the file without the text.
    """
    event = process.next_event
    assert event is not None
    if event.name != "open" or event.path != os.path.realpath(file):
        return
    opens_for_writing = event.facts["flags"] & (os.O_WRONLY | os.O_RDWR)
    assert not opens_for_writing, (
        f"the command opens {file} for writing, so `kill -9` can leave half of the text: "
        "change it with context.editing or kit/safety/atomic_file.py, which replace the whole file"
    )


def _look(tool: Tool, args: tuple[str, ...], file: Path, step: str) -> Stopped:
    """Return what is left now. Look at the file before the next run changes it."""
    text = _read(file)
    next_run = tool(*args, "--lock-timeout", "0")
    return Stopped(step, text, next_run)


def _read(file: Path) -> str | None:
    if not file.exists():
        return None
    return file.read_text()


def _restore(file: Path, text: str | None) -> None:
    if text is None:
        file.unlink(missing_ok=True)
    else:
        file.write_text(text)
