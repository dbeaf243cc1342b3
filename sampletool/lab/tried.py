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
from .errors import CannotTry, UnexpectedOutcome
from .explore import ignore_progress, run_every_class
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
_MAX_CONTENT_CHARACTERS = 200
"""The number of characters after which the content of a file is cut in the picture."""

RunFunction = Callable[[str, Path, Sequence[str]], Outcome]
"""A function that runs a function of the file: its name, the directory, and its arguments."""


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
        faults = "A killed after each of its steps" if self.kill else "no kills"
        if self.power_cut:
            faults += ", a power cut after each step of A"
        return f"{self.workers} workers, {rounds} each, {faults}"


class TriedFile:
    """A learner's file that is ready to be run. `trying` creates it."""

    def __init__(
        self,
        file: Path,
        bound: Bound,
        fork_server: ForkServer,
        check_signals: Callable[[], None],
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
        self.judges_kills = _takes_argument(file, "invariant")
        """Whether invariant() judges runs with a kill. Then it takes the killed worker."""
        self._fork_server = fork_server
        self._check_signals = check_signals
        self._has_always = "always" in functions
        self._judged_disks: dict[_FinishedDisk, str | None] = {}
        """The problem that after_power_cut() reports about each state of the disk, or None."""
        self._worker_command = (
            "sampletool.lab.learner",
            str(file.absolute()),
            "worker",
            str(bound.rounds),
        )

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
        scenario = self._describe_scenario(
            variant, read_state=_ShownDirectory, run_function=self._run_in_process
        )
        return play(
            scenario,
            YOURS,
            fork_server=self._fork_server,
            worker_count=self.bound.workers,
            check_signals=self._check_signals,
            plan=plan,
        )

    def runs(
        self, report_progress: Callable[[str], None] = ignore_progress
    ) -> Generator[PlayedRun, None, None]:
        """Yield one run of each class of schedules. Close the generator if you do not take all."""
        return run_every_class(self._follow_planned, self.bound.kill, report_progress)

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
        worker_names = LETTERS[: self.bound.workers]
        # The process of the threads calls prepare() itself.
        variant = self._describe_variant(prepare=lambda _directory: None)
        with scratch_directory(variant) as (directory, environ):
            threaded_process = ThreadedProcess(
                "sampletool.lab.learner_threads",
                [str(self.file.absolute()), str(self.bound.rounds), worker_names],
                fork_server=self._fork_server,
                env=environ,
                cwd=directory,
            )
            with threaded_process as process:
                scenario = self._describe_scenario(
                    variant,
                    read_state=lambda _directory: process.shared_state,
                    run_function=lambda name, _directory, _arguments: process.run(name),
                )
                workers = []
                for name in worker_names:
                    thread = process.threads[name]
                    workers.append(ThreadWorker(name, variant, thread, self._check_signals))
                return Play(scenario, YOURS, workers, directory).follow(plan)

    def _describe_variant(self, prepare: Callable[[Path], None]) -> Variant:
        """Return the file as the only variant of a scenario."""
        return Variant(
            summary="",
            explanation="",
            schedule="",
            worker_command=self._worker_command,
            prepare=prepare,
            stops_at_every_call=True,
        )

    def _describe_scenario(
        self, variant: Variant, read_state: Callable[[Path], object], run_function: RunFunction
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
            production_code="",
            read_state=read_state,
            invariant=lambda history: self._judge(history, run_function),
            name=str(self.file),
        )

    def _prepare(self, directory: Path) -> None:
        """Run prepare() of the file. Raise CannotTry if it fails."""
        outcome = self._run_in_process("prepare", directory, ())
        self._problem_of("prepare", outcome, is_serial=True)

    def _judge(self, history: History, run_function: RunFunction) -> Iterator[str]:
        """Yield the problems of a run so far: this is the invariant of the scenario."""
        self._raise_if_refused(history)
        if history.is_finished:
            yield from self._judge_end(history, run_function)
        else:
            yield from self._judge_step(history, run_function)

    def _judge_end(self, history: History, run_function: RunFunction) -> Iterator[str]:
        """Yield the failures of the workers, or else the problem that invariant() reports."""
        failures = list(self._failures(history))
        if failures:
            yield from failures
            return
        killed_workers = [step.worker for step in history.taken_steps if step.is_fault]
        if killed_workers and not self.judges_kills:
            # This invariant() takes no killed worker, so it does not judge runs with a kill.
            return
        outcome = run_function("invariant", history.directory, killed_workers)
        problem = self._problem_of("invariant", outcome, is_serial=_is_serial(history))
        if problem is not None:
            yield problem

    def _judge_step(self, history: History, run_function: RunFunction) -> Iterator[str]:
        """Yield the problems after a step: of always(), and of a power cut at this moment."""
        if self._has_always:
            outcome = run_function("always", history.directory, ())
            problem = self._problem_of("always", outcome, is_serial=True)
            if problem is not None:
                yield problem
        # Only A changes what a power cut can lose. The steps of others add no states of the disk.
        last_worker = history.taken_steps[-1].worker
        if self.bound.power_cut and last_worker == "A":
            problem = self._judge_power_cut(history)
            if problem is not None:
                yield f"After a power cut: {problem}"

    def _judge_power_cut(self, history: History) -> str | None:
        """Return the first problem of a power cut at this moment, or None.

        Only changes by A may be lost.
        """
        finished_worker = "A" if "A" in history.successful_workers else ""
        for files in history.disks_after_power_cut():
            disk = _FinishedDisk(finished_worker, frozenset(files.items()))
            problem = self._judge_disk_once(history.directory, disk)
            if problem is not None:
                return problem
        return None

    def _judge_disk_once(self, directory: Path, disk: "_FinishedDisk") -> str | None:
        """Return the problem of this disk. Judge it only if no earlier step or run has had it."""
        if disk not in self._judged_disks:
            self._judged_disks[disk] = self._judge_disk(directory, disk)
        return self._judged_disks[disk]

    def _judge_disk(self, directory: Path, disk: "_FinishedDisk") -> str | None:
        """Return the problem that after_power_cut() reports about this disk, or None."""
        with TemporaryDirectory(dir=directory.parent) as disk_directory:
            for name, content in disk.files:
                Path(disk_directory, name).write_bytes(content)
            arguments = [disk.finished_worker] if disk.finished_worker else []
            outcome = self._run_in_process("after_power_cut", Path(disk_directory), arguments)
        return self._problem_of("after_power_cut", outcome, is_serial=True)

    def _raise_if_refused(self, history: History) -> None:
        """Raise CannotTry as soon as a worker has done something that cannot be stepped."""
        for worker, exit_code in history.exit_codes.items():
            if exit_code in (REFUSED, BAD_FILE):
                problem = history.responses.get(worker, f"exit code {exit_code}")
                raise CannotTry(file=str(self.file), problem=without_full_stop(problem))

    def _failures(self, history: History) -> Iterator[str]:
        """Yield a sentence for each worker that failed. Raise CannotTry if it failed alone."""
        was_killed = any(step.is_fault for step in history.taken_steps)
        runs_alone = _is_serial(history) and not was_killed
        for worker in history.failed_workers:
            exit_code = history.exit_codes[worker]
            reason = history.responses.get(worker, f"exit code {exit_code}")
            if runs_alone:
                problem = f"{worker} fails although no other is at work, {reason}"
                raise CannotTry(file=str(self.file), problem=without_full_stop(problem))
            yield f"{worker} failed, {without_full_stop(reason)}."

    def _run_in_process(
        self, function_name: str, directory: Path, arguments: Sequence[str]
    ) -> Outcome:
        """Run a function of the file in a process of its own. Return how it ended.

        `arguments` are those of the function, for example the names of the killed workers.
        """
        path = str(self.file.absolute())
        program = ["-m", "sampletool.lab.learner", path, function_name, *arguments]
        environ = private_environ(directory.parent / "home")
        process = self._fork_server.start(program, env=environ, cwd=directory)
        try:
            _, stderr = process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            problem = f"{function_name}() does not end"
            raise CannotTry(file=str(self.file), problem=problem) from None
        assert process.returncode is not None
        last_line = stderr.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
        return Outcome(process.returncode, last_line or f"exit code {process.returncode}")

    def _problem_of(self, function_name: str, outcome: Outcome, *, is_serial: bool) -> str | None:
        """Return the problem that a function of the file reports, or None.

        Raise CannotTry if the function has failed itself. `is_serial` says whether the workers ran
        one after the other.
        """
        if outcome.exit_code == 0:
            return None
        if outcome.exit_code == BROKEN:
            return outcome.reason
        reason = without_full_stop(outcome.reason)
        if outcome.exit_code in (REFUSED, BAD_FILE):
            raise CannotTry(file=str(self.file), problem=reason)
        if outcome.exit_code == CANNOT_JUDGE and not is_serial:
            # The function has not failed after serial runs, so this schedule causes the failure.
            return f"{function_name}() failed, {reason}."
        raise CannotTry(file=str(self.file), problem=f"{function_name}() failed, {reason}")


@dataclass(frozen=True)
class _FinishedDisk:
    """A possible state of the disk after a power cut."""

    finished_worker: str
    """The worker that had finished before the power cut, or "" if there was none."""
    files: frozenset[tuple[str, bytes]]
    """The name and the content of each file."""


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
    check_signals: Callable[[], None] = lambda: None,
) -> Iterator[TriedFile]:
    """Yield the file, ready to be run. Raise CannotTry if the block shows that it cannot be run.

    `check_signals` raises an error when the whole command has to end.
    """
    try:
        yield TriedFile(file, bound or Bound(), fork_server, check_signals)
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
    for assignment in _assignments_to(file, "WORKERS"):
        match assignment.value:
            case ast.Constant(value="threads"):
                return True
            case ast.Constant(value="processes"):
                return False
            case _:
                problem = f'line {assignment.lineno}: WORKERS must be "threads" or "processes"'
                raise CannotTry(file=str(file), problem=problem)
    return False


def declares_kill(file: Path) -> bool:
    """Return whether the lab also kills A: the file has the line KILL = True."""
    for assignment in _assignments_to(file, "KILL"):
        match assignment.value:
            case ast.Constant(value=True):
                return True
    return False


def _assignments_to(file: Path, name: str) -> list[ast.Assign]:
    """Return the statements of a file, outside of functions, that assign to this variable only."""
    assignments = []
    for statement in _parse(file).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                assignments.append(statement)
    return assignments


def _takes_argument(file: Path, name: str) -> bool:
    """Return whether the file has a function with this name that takes an argument."""
    function = _functions_of(file).get(name)
    return function is not None and bool(function.args.args)


def _is_serial(history: History) -> bool:
    """Return whether the workers ran one after the other, in the order of their names."""
    workers = [step.worker for step in history.taken_steps]
    return workers == sorted(workers)


@dataclass(frozen=True)
class _ShownDirectory:
    """A directory. Its text form has the names of its files, and their content in one line."""

    directory: Path

    def __str__(self) -> str:
        descriptions = []
        for path in sorted(self.directory.iterdir()):
            if not path.is_file():
                continue
            content = " ".join(path.read_text(errors="backslashreplace").split())
            if len(content) > _MAX_CONTENT_CHARACTERS:
                content = f"{content[: _MAX_CONTENT_CHARACTERS - 1]}…"
            descriptions.append(f"{path.name}: {printable(content) or '(empty)'}")
        return "  ".join(descriptions)
