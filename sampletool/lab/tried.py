"""Run a learner's own file as a scenario: each call of worker() that uses files is a step.

The functions of the file run in processes of their own, so that the file cannot stop or change this
process.
"""

import ast
import subprocess
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.contract.text import printable
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.power_cut import Files
from .errors import CannotTry, UnexpectedOutcome
from .explore import every_class
from .outcome import BAD_FILE, BROKEN, CANNOT_JUDGE, REFUSED, Outcome
from .play import Play, RunPlan, choose_first, play
from .recording import PlayedRun
from .reduction import Choose, NotDeterministic
from .scenario import LETTERS, History, Scenario, Variant
from .scratch import private_environ, scratch_directory
from .stepped_threads import CannotRun, ThreadedProcess, ThreadWorker

YOURS = "yours"
"""The name of the one variant of a learner's file."""
_PATIENCE_SECONDS = 10
"""The time limit of prepare(), always(), invariant() and after_power_cut()."""
_LONGEST_LOOK = 40
"""The maximum number of characters for the files in the last column of the picture."""

RunPart = Callable[[str, Path, Sequence[str]], Outcome]
"""A function that runs a function of the file: its name, the directory, the killed workers."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The bound within which the schedules of a file are explored."""

    workers: int = 2
    rounds: int = 1
    """The number of times that each worker calls worker()."""
    kill: bool = False
    """Whether A is also killed, after each of its steps."""
    power_cut: bool = False
    """Whether the power also fails, after each step of A."""
    threads: bool = False
    """Whether the workers are threads of one process."""

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
        if self.threads:
            return f"{self.workers} threads, {rounds} each"
        strikes = "A killed after each of its steps" if self.kill else "no kills"
        if self.power_cut:
            strikes += ", a power cut after each step of A"
        return f"{self.workers} workers, {rounds} each, {strikes}"


class TriedFile:
    """A learner's file that is ready to be run. `trying` creates it."""

    def __init__(
        self,
        file: Path,
        bound: Bound,
        fork_server: ForkServer,
        check: Callable[[], None],
    ) -> None:
        self.file = file
        functions = _functions_of(file)
        has_threads = declares_threads(file)
        if bound.kill and has_threads:
            raise _refuse_kill()
        self.bound = replace(
            bound,
            threads=has_threads,
            kill=bound.kill or declares_kill(file),
            power_cut="after_power_cut" in functions and not has_threads,
        )
        self._fork_server = fork_server
        self._check = check
        self._has_always = "always" in functions
        self._judged_disks: dict[tuple[str, frozenset[tuple[str, bytes]]], str | None] = {}
        """The problem that after_power_cut() reports, by finished worker and files."""
        self._takes_killed = _takes_argument(file, "invariant")
        self._worker_program = (
            "sampletool.lab.learner",
            str(file.absolute()),
            "worker",
            str(bound.rounds),
        )

    @property
    def judges_kills(self) -> bool:
        """Whether invariant() judges runs with a kill. Then it takes the killed worker."""
        return self._takes_killed

    def follow(
        self,
        schedule: str,
        choose: Choose = choose_first,
        kill_after: int | None = None,
    ) -> PlayedRun:
        """Run the file along a schedule, and return the recorded run.

        After the schedule, `choose` chooses each token. A is killed after `kill_after` steps.
        """
        plan = RunPlan(schedule=schedule, choose=choose, kill_after=kill_after)
        if self.bound.threads:
            return self._follow_with_threads(plan)
        variant = self._describe_variant(prepare=self._prepare)
        return play(
            self._describe_scenario(variant, look=_ShownDirectory, run_part=self._run_in_process),
            YOURS,
            fork_server=self._fork_server,
            workers=self.bound.workers,
            check=self._check,
            plan=plan,
        )

    def runs(
        self, report_progress: Callable[[str], None] = lambda line: None
    ) -> Generator[PlayedRun, None, None]:
        """Yield one run of each class of schedules. Close the generator if you do not take all."""
        return every_class(
            self._follow_planned,
            kills=self.bound.kill,
            report_progress=report_progress,
        )

    def _follow_planned(self, schedule: str, choose: Choose, kill_after: int | None) -> PlayedRun:
        """Follow a schedule that was possible before. Raise NotDeterministic if it is not now."""
        try:
            return self.follow(schedule, choose, kill_after)
        except InvalidValues:
            raise NotDeterministic(schedule, "all of its steps", "others") from None

    def _follow_with_threads(self, plan: RunPlan) -> PlayedRun:
        """Run the file in one process whose threads are the workers. Return the recorded run.

        prepare(), always() and invariant() run in the same process, because they use its variables.
        """
        letters = LETTERS[: self.bound.workers]
        # The process of the threads calls prepare() itself.
        variant = self._describe_variant(prepare=lambda _directory: None)
        with scratch_directory(variant) as (directory, environ):
            threaded_process = ThreadedProcess(
                "sampletool.lab.learner_threads",
                [str(self.file.absolute()), str(self.bound.rounds), letters],
                fork_server=self._fork_server,
                env=environ,
                cwd=directory,
            )
            with threaded_process as process:
                scenario = self._describe_scenario(
                    variant,
                    look=lambda _directory: process.shared,
                    run_part=lambda part, _directory, _killed: process.run(part),
                )
                workers = []
                for letter in letters:
                    worker = ThreadWorker(letter, variant, process.threads[letter], self._check)
                    workers.append(worker)
                return Play(scenario, YOURS, workers, directory).follow(plan)

    def _describe_variant(self, prepare: Callable[[Path], None]) -> Variant:
        """Return the file as the only variant of a scenario."""
        return Variant(
            "",
            "",
            "",
            worker=self._worker_program,
            prepare=prepare,
            takes_every_step=True,
        )

    def _describe_scenario(
        self, variant: Variant, look: Callable[[Path], object], run_part: RunPart
    ) -> Scenario:
        """Return a scenario for the file, with empty texts."""
        return Scenario(
            title="",
            rule="",
            happened=("", ""),
            question="",
            shared="variables" if self.bound.threads else "files",
            variants={YOURS: variant},
            mechanisms=(),
            symbol="",
            look=look,
            invariant=lambda history: self._judge(history, run_part),
            name=str(self.file),
        )

    def _prepare(self, directory: Path) -> None:
        """Run prepare() of the file. Raise CannotTry if it fails."""
        outcome = self._run_in_process("prepare", directory, ())
        self._broken_part("prepare", outcome, is_serial=True)

    def _judge(self, history: History, run_part: RunPart) -> Iterator[str]:
        """Yield the problems of a run: failed workers, or else the problem that the file finds."""
        self._raise_if_refused(history)
        if not history.is_over:
            yield from self._judge_moment(history, run_part)
            return
        failures = list(self._failures(history))
        if failures:
            yield from failures
            return
        killed = [moment.worker for moment in history.moments if moment.is_struck]
        if killed and not self._takes_killed:
            return
        outcome = run_part("invariant", history.directory, killed)
        broken = self._broken_part("invariant", outcome, is_serial=_is_serial(history))
        if broken:
            yield broken

    def _judge_moment(self, history: History, run_part: RunPart) -> Iterator[str]:
        """Yield the problems after a step."""
        if self._has_always:
            outcome = run_part("always", history.directory, ())
            broken = self._broken_part("always", outcome, is_serial=True)
            if broken:
                yield broken
        if self.bound.power_cut and history.moments[-1].worker == LETTERS[0]:
            yield from self._judge_disks(history)

    def _judge_disks(self, history: History) -> Iterator[str]:
        """Yield the first problem of a power cut at this moment. Only changes by A may be lost."""
        finished = LETTERS[0] if history.exit_codes.get(LETTERS[0]) == 0 else ""
        for files in history.disks():
            state = (finished, frozenset(files.items()))
            if state not in self._judged_disks:
                self._judged_disks[state] = self._judge_disk(history.directory, files, finished)
            broken = self._judged_disks[state]
            if broken is not None:
                yield f"After a power cut: {broken}"
                return

    def _judge_disk(self, directory: Path, files: Files, finished: str) -> str | None:
        """Return the problem that after_power_cut() reports for these files, or None."""
        with TemporaryDirectory(dir=directory.parent) as disk:
            for name, content in files.items():
                Path(disk, name).write_bytes(content)
            arguments = [finished] if finished else []
            outcome = self._run_in_process("after_power_cut", Path(disk), arguments)
        return self._broken_part("after_power_cut", outcome, is_serial=True)

    def _raise_if_refused(self, history: History) -> None:
        """Raise CannotTry as soon as a worker has done something that cannot be stepped."""
        for letter, exit_code in history.exit_codes.items():
            if exit_code in (REFUSED, BAD_FILE):
                problem = history.responses.get(letter, f"exit code {exit_code}")
                raise CannotTry(file=str(self.file), problem=without_full_stop(problem))

    def _failures(self, history: History) -> Iterator[str]:
        """Yield a sentence for each worker that failed. Raise CannotTry if it failed alone."""
        for letter, exit_code in history.exit_codes.items():
            if exit_code == 0:
                continue
            reason = history.responses.get(letter, f"exit code {exit_code}")
            was_killed = any(moment.is_struck for moment in history.moments)
            if _is_serial(history) and not was_killed:
                problem = f"{letter} fails although no other is at work, {reason}"
                raise CannotTry(file=str(self.file), problem=without_full_stop(problem))
            yield f"{letter} failed, {without_full_stop(reason)}."

    def _run_in_process(self, part: str, directory: Path, arguments: Sequence[str]) -> Outcome:
        """Run a function of the file in a process of its own. Return how it ended.

        `arguments` are those of the function, for example the names of the killed workers.
        """
        path = str(self.file.absolute())
        program = ["-m", "sampletool.lab.learner", path, part, *arguments]
        environ = private_environ(directory.parent / "home")
        process = self._fork_server.start(program, env=environ, cwd=directory)
        try:
            _, stderr = process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise CannotTry(file=str(self.file), problem=f"{part}() does not end") from None
        assert process.returncode is not None
        last_line = stderr.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
        return Outcome(process.returncode, last_line or f"exit code {process.returncode}")

    def _broken_part(self, part: str, outcome: Outcome, *, is_serial: bool) -> str | None:
        """Return the problem that a function reports, or None. Raise CannotTry if it fails."""
        if outcome.exit_code == 0:
            return None
        if outcome.exit_code == BROKEN:
            return outcome.reason
        reason = without_full_stop(outcome.reason)
        if outcome.exit_code in (REFUSED, BAD_FILE):
            raise CannotTry(file=str(self.file), problem=reason)
        if outcome.exit_code == CANNOT_JUDGE and not is_serial:
            # The function has not failed after serial runs, so this schedule causes the failure.
            return f"{part}() failed, {reason}."
        raise CannotTry(file=str(self.file), problem=f"{part}() failed, {reason}")


def _refuse_kill() -> InvalidValues:
    """Return the error for --kill with workers that are threads."""
    problem = "--kill needs workers that are processes, but this file says that they are threads"
    hint = "A thread cannot be killed alone. Run the command without --kill."
    return InvalidValues(Mistake("--kill", "INVALID_VALUE", problem, suggestion=hint))


def without_full_stop(text: str) -> str:
    """Return the text without the full stop at its end, if it has one."""
    return text.removesuffix(".")


@contextmanager
def trying(
    file: Path,
    fork_server: ForkServer,
    bound: Bound | None = None,
    check: Callable[[], None] = lambda: None,
) -> Iterator[TriedFile]:
    """Yield the file, ready to be run. Raise CannotTry if the block shows that it cannot be run.

    `check` raises an error when the whole command has to end.
    """
    try:
        yield TriedFile(file, bound or Bound(), fork_server, check)
    except UnexpectedOutcome as error:
        problem = error.context["surprises"][0].removeprefix(f"{file}, {YOURS}: ")
        problem = _explain(problem, has_threads=declares_threads(file))
        raise CannotTry(file=str(file), problem=problem) from None
    except NotDeterministic as error:
        problem = (
            "the program is not deterministic: on the same schedule, its steps differ "
            f"({error.schedule}: once {error.expected}, once {error.found})"
        )
        raise CannotTry(file=str(file), problem=problem) from None
    except CannotRun as error:
        problem = without_full_stop(str(error))
        raise CannotTry(file=str(file), problem=problem) from None
    except (TimeoutError, subprocess.TimeoutExpired):
        problem = "worker() neither ends nor does anything that can be stepped"
        raise CannotTry(file=str(file), problem=problem) from None


def _explain(problem: str, *, has_threads: bool) -> str:
    """Return a problem of a run in words for the author of the file."""
    if "came to none of its steps" not in problem:
        return problem
    if has_threads:
        return "worker() uses no variable that another thread changes"
    return (
        "worker() does nothing with files. Workers are processes, which share files and no "
        'variables. To try threads, which share variables, write WORKERS = "threads" in the file'
    )


def _functions_of(file: Path) -> dict[str, ast.FunctionDef]:
    """Return the functions of a file by name. Return none if it is not valid Python."""
    tree = _parse(file)
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _parse(file: Path) -> ast.Module:
    """Return the syntax tree of a file. Return an empty one if it is not valid Python."""
    try:
        return ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        # Running the file reports the syntax error.
        return ast.Module([], [])


def declares_threads(file: Path) -> bool:
    """Return whether the workers are threads: the file has the line WORKERS = "threads".

    Raise CannotTry if it names anything else than threads or processes.
    """
    for statement in _parse(file).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="WORKERS")], value=ast.Constant(value="threads")):
                return True
            case ast.Assign(
                targets=[ast.Name(id="WORKERS")], value=ast.Constant(value="processes")
            ):
                return False
            case ast.Assign(targets=[ast.Name(id="WORKERS")]):
                problem = f'line {statement.lineno}: WORKERS must be "threads" or "processes"'
                raise CannotTry(file=str(file), problem=problem)
    return False


def declares_kill(file: Path) -> bool:
    """Return whether the lab also kills A: the file has the line KILL = True."""
    for statement in _parse(file).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="KILL")], value=ast.Constant(value=True)):
                return True
    return False


def _takes_argument(file: Path, name: str) -> bool:
    """Return whether the file has a function with this name that takes an argument."""
    function = _functions_of(file).get(name)
    return function is not None and bool(function.args.args)


def _is_serial(history: History) -> bool:
    """Return whether the workers ran one after the other, in the order of their letters."""
    letters = [moment.worker for moment in history.moments]
    return letters == sorted(letters)


@dataclass(frozen=True)
class _ShownDirectory:
    """A directory. Its text form shows the files in it in a few characters."""

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
