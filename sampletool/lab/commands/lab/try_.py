"""Step a learner's own function through all schedules that make a difference."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.text import between_words, counted
from ....kit.program import PROGRAM
from ....kit.safety.atomic_file import read_regular
from ...draw import legend, terminal_width, timeline
from ...errors import CannotTry, InvariantCannotFail, RaceFound, TooManySchedules
from ...explore import count_problems
from ...fewest_switches import count_switches, with_fewest_switches
from ...invariant import can_never_fail
from ...recording import PlayedRun, Recording
from ...scratch import fork_server_for
from ...starter_files import exercise_after
from ...tried import Bound, TriedFile, trying

spec = CommandSpec(
    effect="scratch",
    errors=(CannotTry, InvariantCannotFail, RaceFound, TooManySchedules),
    runs_what_it_is_given=True,
    examples=(
        "lab try counter.py",
        'lab try counter.py --schedule "A1 B1 A2 B2"',
        "lab try counter.py --kill --workers 3",
    ),
)
MOST_SCHEDULES = 1000
"""The number of schedules after which the search ends without a verdict."""
MOST_BROKEN = 50
"""The number of broken schedules after which the search ends. More would show nothing new."""
_LARGEST_BYTES = 2**20
"""The size of the largest file that is tried."""
_CANDIDATES = 5
"""The number of broken schedules that are run again to find one with few switches."""


@dataclass(frozen=True)
class TryResult:
    """The verdict about a file, and the bound within which it was explored."""

    file: str
    schedules: int
    """The number of schedules that were run: one of each class that makes a difference."""
    broken: int
    is_complete: bool
    """Whether all classes of schedules within the bound were run."""
    workers: int
    workers_are: Literal["processes", "threads"]
    rounds: int
    kill: bool
    power_cut: bool
    not_explored: list[str]
    reasons: dict[str, int]
    run: Recording | None
    """The run to draw: the requested schedule, or else a broken run with few switches.

    None if no run is drawn.
    """
    next_exercise: str | None
    """The exercise after this one, or "" if this is the last one.

    None if the file is not an exercise, or not solved.
    """

    def lines(self) -> list[str]:
        """Return the timeline of the run and the verdict as text."""
        lines = []
        width = terminal_width()
        if self.run is not None:
            lines += [*timeline(self.run, width), "", *legend([self.run], width), ""]
            lines.append(f"schedule {self.run.schedule}")
            reason = self.run.reason or "Nothing was broken on this schedule."
            lines += [*between_words(reason, width), ""]
        lines += between_words(self.verdict(), width)
        for reason, number in self.reasons.items():
            lines += between_words(f"{number} x {reason}", width, "  ", "    ")
        not_explored = f"Not explored: {'; '.join(self.not_explored)}."
        lines += between_words(not_explored, width)
        if self.is_complete and self.broken == 0:
            lines += between_words(self._success(), width)
        return lines

    def _success(self) -> str:
        """Return the sentences for a file without a broken schedule, with the next command."""
        sentence = "Within this bound, no schedule breaks your rule."
        if self.next_exercise is None:
            return sentence
        if self.next_exercise == "":
            return f"{sentence} You have solved the last exercise."
        command = f"{PROGRAM} lab exercise {self.next_exercise}"
        return f"{sentence} You have solved this exercise. The next one: {command}"

    def verdict(self) -> str:
        """Return a sentence with the numbers of explored and of broken schedules."""
        bound = Bound(
            workers=self.workers,
            rounds=self.rounds,
            kill=self.kill,
            power_cut=self.power_cut,
            threads=self.workers_are == "threads",
        )
        sentence = f"{counted(self.schedules, 'schedule')} of {bound}: {self.broken} broken."
        if self.is_complete:
            return f"{sentence} Those left out end like one of these."
        return f"{sentence} There are more schedules, which were not run."


def try_schedule(tried_file: TriedFile, schedule: str) -> TryResult:
    """Run one schedule, and return the verdict about it."""
    played = tried_file.follow(schedule)
    return _verdict(tried_file, [played.recording], played.recording, is_complete=False)


def try_all(context: Context, tried_file: TriedFile) -> TryResult:
    """Run one schedule of each class, until a limit is reached. Return the verdict."""
    all_runs: list[PlayedRun] = []
    broken_runs: list[PlayedRun] = []
    is_complete = True
    # Close the generator here. Otherwise its threads would still run when the file is closed.
    with closing(tried_file.runs(context.progress)) as runs:
        for played in runs:
            if len(all_runs) == MOST_SCHEDULES or len(broken_runs) == MOST_BROKEN:
                is_complete = False
                break
            all_runs.append(played)
            if played.recording.is_broken:
                broken_runs.append(played)
    drawn = None
    if broken_runs:
        drawn = find_easiest_run(tried_file, broken_runs)
    recordings = [played.recording for played in all_runs]
    return _verdict(tried_file, recordings, drawn, is_complete)


@dataclass(frozen=True, order=True)
class _Difficulty:
    """The difficulty of a broken run for a reader. Fewer problems matter most, then switches."""

    other_problems: int
    switches: int
    """The number of times that a worker continues after a step of another one."""
    steps: int
    schedule: str
    """The order of two runs that are equally difficult."""


def find_easiest_run(tried_file: TriedFile, broken_runs: Sequence[PlayedRun]) -> Recording:
    """Return the broken run that is easiest to understand."""
    reasons = [played.recording.reason for played in broken_runs]
    # A rare problem, such as a crash, explains less than the most common one.
    most_common = max(reasons, key=reasons.count)
    typical_runs = [played for played in broken_runs if played.recording.reason == most_common]
    candidates = []
    for played in sorted(typical_runs, key=_difficulty_with_fewest_switches)[:_CANDIDATES]:
        recording = played.recording
        if not recording.has_fault:
            # Run it again on a schedule with the same result and fewer switches.
            schedule = " ".join(with_fewest_switches(played.turns))
            recording = tried_file.follow(schedule).recording
        candidates.append(recording)
    return min(candidates, key=_difficulty)


def _difficulty_with_fewest_switches(played: PlayedRun) -> _Difficulty:
    """Return the difficulty of a run if it is drawn with the fewest possible switches."""
    tokens = with_fewest_switches(played.turns)
    return replace(_difficulty(played.recording), switches=count_switches(tokens))


def _difficulty(recording: Recording) -> _Difficulty:
    """Return the difficulty of a run if it is drawn as it was recorded."""
    tokens = recording.schedule.split()
    return _Difficulty(
        other_problems=len(recording.also),
        switches=count_switches(tokens),
        steps=len(tokens),
        schedule=recording.schedule,
    )


def _verdict(
    tried_file: TriedFile,
    recordings: list[Recording],
    drawn: Recording | None,
    is_complete: bool,
) -> TryResult:
    """Return the verdict about these runs. `drawn` is the run to draw, or None."""
    bound = tried_file.bound
    broken_runs = [recording for recording in recordings if recording.is_broken]
    has_passed = is_complete and not broken_runs
    return TryResult(
        file=str(tried_file.file),
        schedules=len(recordings),
        broken=len(broken_runs),
        is_complete=is_complete,
        workers=bound.workers,
        workers_are="threads" if bound.threads else "processes",
        rounds=bound.rounds,
        kill=bound.kill,
        power_cut=bound.power_cut,
        not_explored=_not_explored(tried_file),
        reasons=count_problems(broken_runs),
        run=drawn,
        next_exercise=exercise_after(tried_file.file) if has_passed else None,
    )


def _not_explored(tried_file: TriedFile) -> list[str]:
    """Return the kinds of schedules that this bound leaves out, and those that no bound has."""
    if tried_file.bound.threads:
        return [
            "more threads (--workers)",
            "more rounds (--rounds)",
            "switches inside library functions and C code",
        ]
    left_out = ["more workers (--workers)", "more rounds (--rounds)"]
    if not tried_file.bound.kill:
        left_out.append("kills (--kill)")
    elif not tried_file.judges_kills:
        left_out.append("what invariant() says after a kill (write invariant(killed) for that)")
    if not tried_file.bound.power_cut:
        left_out.append("power cuts")
    return [*left_out, "threads and shared memory"]


def judge(tried_file: TriedFile, tried: TryResult) -> TryResult:
    """Return the verdict. Raise RaceFound or TooManySchedules if the file has not passed."""
    run = tried.run
    if run is not None and run.is_broken:
        raise RaceFound(
            data=tried,
            file=tried.file,
            schedule=run.schedule,
            reason=_as_sentence(run.reason),
            options=tried_file.bound.options(),
        )
    # A run that holds is drawn only if the command line has a schedule.
    has_schedule = run is not None
    if not tried.is_complete and not has_schedule:
        raise TooManySchedules(data=tried, file=tried.file, schedules=tried.schedules)
    return tried


def _as_sentence(reason: str | None) -> str:
    """Return the reason with a full stop. The text of an assertion often has none."""
    text = reason or "Something is broken"
    if text.endswith((".", "?", "!")):
        return text
    return f"{text}."


def command(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="A file with worker(name), invariant(), and perhaps prepare().")
    ],
    schedule: Annotated[
        str | None, typer.Option(help='Run only this order of steps, for example "A1 B1 A2 B2".')
    ] = None,
    workers: Annotated[int, typer.Option(min=2, max=4, help="Run this many workers.")] = 2,
    rounds: Annotated[
        int, typer.Option(min=1, max=3, help="Call worker() this many times in each worker.")
    ] = 1,
    kill: Annotated[
        bool,
        typer.Option(
            "--kill", help="Also try what happens if A is killed after each of its steps."
        ),
    ] = False,
) -> TryResult:
    """Look for race conditions in a function of your own.

    This runs worker("A") and worker("B") of FILE in two processes, in those orders of their steps
    that can make a difference. A step is a call that does something with files. After each run,
    invariant() looks at the result. If it is wrong, invariant() fails an assertion, or returns a
    sentence that says what is broken.

    Each run starts in an empty directory, which prepare() can fill. If FILE has a function
    always(), it is called after each step. If it says WORKERS = "threads", the workers are threads
    of one process, and each use of a shared variable is a step.

    Your code is run as it is, so only try files that you trust.
    """
    read_regular(file.absolute(), _LARGEST_BYTES)
    context: Context = ctx.obj
    bound = Bound(workers=workers, rounds=rounds, kill=kill)
    with (
        fork_server_for() as fork_server,
        trying(file, fork_server, bound, context.signals.check) as tried_file,
    ):
        if can_never_fail(file):
            raise InvariantCannotFail(file=str(file))
        if schedule is None:
            tried = try_all(context, tried_file)
        else:
            tried = try_schedule(tried_file, schedule)
    return judge(tried_file, tried)
