"""A learner's own file as a scenario: each event of its worker is a step, and its invariant is the judge.

All of its functions run in processes of their own, so that nothing in the file stops or changes this one.
"""

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..kit.contract.text import printable
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.tracer import Event
from .errors import CannotTry, UnexpectedOutcome
from .learner import BROKEN
from .play import play
from .recording import Played
from .scenario import History, Scenario, Step, Way
from .scratch import fork_server_for, private_environ

YOURS = "yours"
"""The name of its one way."""
_PATIENCE_SECONDS = 10
_LONGEST_LOOK = 40
_ONLY_ONCE = ("os.link", "os.mkdir", "os.symlink")
"""What fails if it is there already: doing it again at once is waiting."""
_VERBS = {"os.chmod": "chmod", "os.link": "link", "os.listdir": "list", "os.mkdir": "make", "os.pwrite": "write",
          "os.remove": "remove", "os.rename": "rename to", "os.rmdir": "remove", "os.symlink": "link",
          "os.truncate": "truncate", "os.write": "write"}  # fmt: skip


@contextmanager
def trying(file: Path, check: Callable[[], None] = lambda: None) -> Iterator[Callable[[str], Played]]:
    """What follows a schedule of the file."""
    with fork_server_for() as server:

        def invariant(history: History) -> Iterator[str]:
            if history.is_over and (broken := _run(server, file, "invariant", history.now.directory)):
                yield broken
            turns = [moment.worker for moment in history.moments]
            for letter, status in history.statuses.items() if history.is_over else ():
                if status:
                    said = history.answers.get(letter, f"status {status}")
                    if turns == sorted(turns):
                        problem = f"{letter} fails although no other is at work, {said}"
                        raise CannotTry(file=str(file), problem=problem)
                    yield f"{letter} failed, {said}."

        worker = ("sampletool.lab.learner", str(file.absolute()), "worker")
        yours = _EveryEvent("", "", "", worker=worker, prepare=partial(_run, server, file, "prepare"))
        said = ("", ("", ""), "", "files")
        scenario = Scenario("", *said, {YOURS: yours}, (), "", look=_Seen, invariant=invariant, name=str(file))
        try:
            yield partial(play, scenario, YOURS, fork_server=server, check=check)
        except UnexpectedOutcome as surprise:
            problem = surprise.context["surprises"][0].removeprefix(f"{file}, {YOURS}: ")
            raise CannotTry(file=str(file), problem=problem) from None
        except (TimeoutError, subprocess.TimeoutExpired):
            problem = "worker() neither ends nor does anything that can be stepped"
            raise CannotTry(file=str(file), problem=problem) from None


def _run(server: ForkServer, file: Path, part: str, directory: Path) -> str | None:
    """Run this function of the file; what it says is broken."""
    program = ["-m", "sampletool.lab.learner", str(file.absolute()), part]
    running = server.start(program, env=private_environ(directory.parent / "home"), cwd=directory)
    try:
        _, stderr = running.communicate(timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        raise CannotTry(file=str(file), problem=f"{part}() does not end") from None
    said = stderr.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
    if running.returncode not in (0, BROKEN):
        raise CannotTry(file=str(file), problem=said or f"{part}() ended with status {running.returncode}")
    return said if running.returncode else None


@dataclass(frozen=True)
class _Seen:
    """The directory, and the files in it in a few characters."""

    directory: Path

    def __str__(self) -> str:
        files = [path for path in sorted(self.directory.iterdir()) if path.is_file()]
        read = {file.name: " ".join(file.read_text(errors="backslashreplace").split()) for file in files}
        text = "  ".join(f"{name}: {printable(content) or '(empty)'}" for name, content in read.items())
        return text if len(text) <= _LONGEST_LOOK else f"{text[: _LONGEST_LOOK - 1]}…"


class _EveryEvent(Way):
    def step_at(self, event: Event, last: str) -> Step | None:
        """A step is what another worker may notice, or what notices another. Reading goes on with one's own step."""
        name, waits = _name_of(event)
        verb, _, file = name.partition(" ")
        goes_on = verb == "read" and last in (name, f"open {file}", f"create {file}")
        return Step(name, event.name, waits=waits) if name and not goes_on else None


def _name_of(event: Event) -> tuple[str, bool]:
    """And whether doing it again at once is waiting. No name for what nobody can notice."""
    file, flags, operation = os.path.basename(event.path), event.facts.get("flags", 0), event.facts.get("operation", 0)
    if event.name == "stepping.verb":
        return event.facts["statement"], False
    if event.name == "fcntl.flock":
        verb = "unlock" if operation & fcntl.LOCK_UN else "try to lock" if operation & fcntl.LOCK_NB else "lock"
        return f"{verb} {file}", verb == "try to lock"
    if event.name == "open":
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        verb = "create" if flags & os.O_EXCL else "empty" if flags & os.O_TRUNC else "open" if writes else "read"
        return f"{verb} {file}", verb == "create"
    verb = _VERBS.get(event.name, "")
    return verb and f"{verb} {file}", event.name in _ONLY_ONCE
