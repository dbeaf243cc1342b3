"""A learner's own file as a scenario: each call of its worker is a step, and its invariant judges.

All of its functions run in processes of their own, so that nothing in the file stops or changes
this one.
"""

import ast
import subprocess
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..kit.contract.errors import InvalidValues
from ..kit.contract.text import printable
from ..kit.stepping.fork_server import ForkServer
from .errors import CannotTry, UnexpectedOutcome
from .explore import every_class
from .learner import BROKEN, CANNOT_JUDGE, REFUSED
from .play import Course, choose_first, play
from .recording import Played
from .reduction import Choose, NotDeterministic
from .scenario import History, Scenario, Way
from .scratch import fork_server_for, private_environ

YOURS = "yours"
"""The name of the one variant of a learner's file."""
_PATIENCE_SECONDS = 10
_LONGEST_LOOK = 40


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How far the schedules of a file are explored."""

    workers: int = 2
    rounds: int = 1
    """How often each worker calls worker()."""
    kill: bool = False
    """Whether A is also killed, after each of its steps."""

    def options(self) -> str:
        """Return the options of `lab try` for this bound, each with a space before it."""
        options = ""
        if self.workers != Bound.workers:
            options += f" --workers {self.workers}"
        if self.rounds != Bound.rounds:
            options += f" --rounds {self.rounds}"
        if self.kill:
            options += " --kill"
        return options

    def __str__(self) -> str:
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        kills = "A killed after each of its steps" if self.kill else "no kills"
        return f"{self.workers} workers, {rounds} each, {kills}"


class TriedFile:
    """A learner's file that is run. Get one from `trying`."""

    def __init__(
        self,
        file: Path,
        bound: Bound,
        fork_server: ForkServer,
        check: Callable[[], None],
    ) -> None:
        self.file = file
        self.bound = bound
        self._fork_server = fork_server
        self._check = check
        self._has_always = "always" in _functions_of(file)
        self._takes_killed = _takes_argument(file, "invariant")
        self._scenario = self._describe_scenario()

    @property
    def judges_kills(self) -> bool:
        """Whether invariant() is judged after a kill: it has to be told who was killed."""
        return self._takes_killed

    def follow(
        self,
        schedule: str,
        choose: Choose = choose_first,
        kill_after: int | None = None,
    ) -> Played:
        """Follow a schedule, and then choose how to continue."""
        course = Course(schedule=schedule, choose=choose, kill_after=kill_after)
        return play(
            self._scenario,
            YOURS,
            fork_server=self._fork_server,
            workers=self.bound.workers,
            check=self._check,
            course=course,
        )

    def runs(self, report_progress: Callable[[str], None] = lambda line: None) -> Generator[Played, None, None]:
        """Yield a run of each class of schedules. Close the generator if you do not take all."""
        return every_class(
            self._follow_planned,
            kills=self.bound.kill,
            report_progress=report_progress,
        )

    def _follow_planned(self, schedule: str, choose: Choose, kill_after: int | None) -> Played:
        """Follow a schedule of the search. It was possible before, so it has to be possible now."""
        try:
            return self.follow(schedule, choose, kill_after)
        except InvalidValues:
            raise NotDeterministic(schedule, "all of its steps", "others") from None

    def _describe_scenario(self) -> Scenario:
        program = str(self.file.absolute())
        way = Way(
            "",
            "",
            "",
            worker=("sampletool.lab.learner", program, "worker", str(self.bound.rounds)),
            prepare=self._prepare,
            takes_every_step=True,
        )
        return Scenario(
            title="",
            rule="",
            happened=("", ""),
            question="",
            shared="files",
            ways={YOURS: way},
            mechanisms=(),
            symbol="",
            look=_Seen,
            invariant=self._judge,
            name=str(self.file),
        )

    def _prepare(self, directory: Path) -> None:
        self._run("prepare", directory)

    def _judge(self, history: History) -> Iterator[str]:
        """Yield what is broken: first what the workers' exit codes say, then what the file says."""
        if not history.is_over:
            if self._has_always:
                broken = self._run("always", history.directory)
                if broken:
                    yield broken
            return
        failures = list(self._failures(history))
        if failures:
            yield from failures
            return
        killed = [moment.worker for moment in history.moments if moment.is_struck]
        if killed and not self._takes_killed:
            return
        broken = self._run("invariant", history.directory, killed, _is_serial(history))
        if broken:
            yield broken

    def _failures(self, history: History) -> Iterator[str]:
        for letter, exit_code in history.statuses.items():
            if exit_code == 0:
                continue
            reason = history.answers.get(letter, f"exit code {exit_code}")
            if exit_code == REFUSED:
                raise CannotTry(file=str(self.file), problem=reason)
            was_killed = any(moment.is_struck for moment in history.moments)
            if _is_serial(history) and not was_killed:
                problem = f"{letter} fails although no other is at work, {reason}"
                raise CannotTry(file=str(self.file), problem=problem)
            yield f"{letter} failed, {reason}."

    def _run(
        self,
        part: str,
        directory: Path,
        killed: Sequence[str] = (),
        is_serial: bool = True,
    ) -> str | None:
        """Run this function of the file. Return what it says is broken."""
        path = str(self.file.absolute())
        program = ["-m", "sampletool.lab.learner", path, part, *killed]
        environ = private_environ(directory.parent / "home")
        process = self._fork_server.start(program, env=environ, cwd=directory)
        try:
            _, stderr = process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise CannotTry(file=str(self.file), problem=f"{part}() does not end") from None
        if process.returncode == 0:
            return None
        last_line = stderr.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
        reason = last_line or f"exit code {process.returncode}"
        if process.returncode == BROKEN:
            return reason
        if process.returncode == CANNOT_JUDGE and not is_serial:
            # It can judge what one worker after the other leaves. So the schedule is to blame.
            return f"{part}() failed, {reason}."
        raise CannotTry(file=str(self.file), problem=f"{part}() failed, {reason}")


@contextmanager
def trying(
    file: Path,
    bound: Bound | None = None,
    check: Callable[[], None] = lambda: None,
) -> Iterator[TriedFile]:
    """Yield the file, ready to be run. Raise CannotTry if the block shows that this is not possible.

    `check` raises an error when the whole command has to end.
    """
    with fork_server_for() as fork_server:
        try:
            yield TriedFile(file, bound or Bound(), fork_server, check)
        except UnexpectedOutcome as error:
            problem = error.context["surprises"][0].removeprefix(f"{file}, {YOURS}: ")
            raise CannotTry(file=str(file), problem=_explain(problem)) from None
        except NotDeterministic as error:
            problem = (
                "the program is not deterministic: on the same schedule, its steps differ "
                f"({error.schedule}: once {error.expected}, once {error.found})"
            )
            raise CannotTry(file=str(file), problem=problem) from None
        except (TimeoutError, subprocess.TimeoutExpired):
            problem = "worker() neither ends nor does anything that can be stepped"
            raise CannotTry(file=str(file), problem=problem) from None


def _explain(problem: str) -> str:
    if "came to none of its steps" not in problem:
        return problem
    return (
        "worker() does nothing with files. Workers are processes, which share files and no "
        "variables; threads, which share variables, cannot be tried"
    )


def _functions_of(file: Path) -> dict[str, ast.FunctionDef]:
    """Return the functions of a file, by name. Empty if it is not Python: running it says why."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _takes_argument(file: Path, name: str) -> bool:
    function = _functions_of(file).get(name)
    return function is not None and bool(function.args.args)


def _is_serial(history: History) -> bool:
    """Return whether each worker began when the one before it had ended."""
    letters = [moment.worker for moment in history.moments]
    return letters == sorted(letters)


@dataclass(frozen=True)
class _Seen:
    """The directory, and the files in it in a few characters."""

    directory: Path

    def __str__(self) -> str:
        descriptions = []
        for path in sorted(self.directory.iterdir()):
            if not path.is_file():
                continue
            content = " ".join(path.read_text(errors="backslashreplace").split())
            descriptions.append(f"{path.name}: {printable(content) or '(empty)'}")
        text = "  ".join(descriptions)
        if len(text) > _LONGEST_LOOK:
            return f"{text[: _LONGEST_LOOK - 1]}…"
        return text
