"""Play one schedule for real: the workers are stepped processes that continue only in their turn.

A schedule consists of *tokens*: `A1` is the first step of worker A, and `A!` is a *strike*, such as
a kill, that hits A between two steps. recording.py describes all kinds of tokens.

A *step* of a worker lasts until the event that begins its next step, or until the worker exits.
Usually, only the events that the scenario names begin a step.

What happens when a worker waits for a lock depends on the kind of steps:

* With named steps, the worker is *blocked*. After every step of another worker, the lab tries
  whether the blocked worker can continue.
* If every call is a step, the lab does not choose the worker until the lock is free.

A run is stuck if all workers that have not exited are waiting.
"""

import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..kit.contract.errors import InvalidValues
from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.power_cut import NOT_MODELLED, Files, states_after
from ..kit.stepping.tracer import SteppedProcess
from .errors import UnexpectedOutcome
from .recording import (
    Event,
    EventOutcome,
    PlayedRun,
    Recording,
    Turn,
    Verdict,
    bad_schedule,
    parse_schedule,
    parts_of,
)
from .reduction import Choose
from .scenario import (
    INTERRUPT,
    KILL,
    LETTERS,
    POWER_CUT,
    STRIKES,
    History,
    Moment,
    Scenario,
    is_right,
)
from .scratch import scratch_directory
from .stepped_threads import CannotRun, ThreadedProcess, ThreadWorker, read_look
from .stepped_worker import EveryStepWorker, Worker

_BROKEN = "broken"
"""The note of the event that broke the invariant."""
_MOST_STEPS = 500
"""The limit for the steps of one run. A worker in an endless loop would reach it."""


def choose_first(possible: Sequence[str], _turns: Sequence[Turn]) -> str:
    """Return the first possible token."""
    return possible[0]


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """Instructions for a run: a schedule, and how the run continues after it."""

    schedule: str = ""
    choose: Choose = choose_first
    """The function that chooses each token after the end of the schedule."""
    kill_after: int | None = None
    """The number of steps after which the first worker is killed. None if it is not killed.

    This works only if every call is a step.
    """


def play(
    scenario: Scenario,
    variant_name: str,
    schedule: str = "",
    *,
    fork_server: ForkServer,
    workers: int | None = None,
    check: Callable[[], None] = lambda: None,
    plan: RunPlan | None = None,
) -> PlayedRun:
    """Run a variant along a schedule, and return the recorded run.

    After the schedule, the workers run to their ends one after the other. `plan` replaces
    `schedule`. The function `check` raises an error when the whole command has to end.
    """
    if plan is None:
        plan = RunPlan(schedule=schedule)
    variant = scenario.variants[variant_name]
    letters = LETTERS[: workers or scenario.workers]
    if scenario.threads:
        return _play_threads(scenario, variant_name, letters, plan, fork_server, check)
    if scenario.world is not None:
        return _play_coroutines(scenario, variant_name, letters, plan, fork_server)
    with scratch_directory(variant) as (directory, environ), ExitStack() as stack:
        worker_class = EveryStepWorker if variant.takes_every_step else Worker
        stepped_workers = []
        for letter in letters:
            stepped = SteppedProcess(
                ["-m", *variant.worker, letter],
                watch=directory.parent,
                env=environ,
                cwd=directory,
                fork_server=fork_server,
            )
            stack.enter_context(stepped)
            stepped_workers.append(worker_class(letter, variant, stepped, check))
        return Play(scenario, variant_name, stepped_workers, directory).follow(plan)


def _play_threads(
    scenario: Scenario,
    variant_name: str,
    letters: str,
    plan: RunPlan,
    fork_server: ForkServer,
    check: Callable[[], None],
) -> PlayedRun:
    """Run workers that are threads of one process, and return the recorded run."""
    # The process of the threads prepares the shared data itself.
    variant = replace(scenario.variants[variant_name], prepare=lambda _directory: None)
    module, *arguments = variant.worker
    with scratch_directory(variant) as (directory, environ):
        threaded_process = ThreadedProcess(
            module,
            [*arguments, letters],
            fork_server=fork_server,
            env=environ,
            cwd=directory,
        )
        try:
            with threaded_process as process:
                threaded_scenario = replace(
                    scenario, look=lambda _directory: read_look(process.shared)
                )
                worker_class = ThreadWorker if variant.takes_every_step else Worker
                workers = []
                for letter in letters:
                    thread = process.threads[letter]
                    workers.append(worker_class(letter, variant, thread, check))
                return Play(threaded_scenario, variant_name, workers, directory).follow(plan)
        except CannotRun as error:
            surprise = f"{scenario.name}, {variant_name}: {error}"
            raise UnexpectedOutcome(surprises=[surprise]) from None


def _play_coroutines(
    scenario: Scenario,
    variant_name: str,
    letters: str,
    plan: RunPlan,
    fork_server: ForkServer,
) -> PlayedRun:
    """Run workers that are coroutines of one process, and return the recorded run.

    The process runs coroutines.py. Raise InvalidValues if the schedule is not possible.
    """
    variant = scenario.variants[variant_name]
    with scratch_directory(variant) as (directory, environ):
        program = ["-m", *variant.worker, plan.schedule, letters]
        process = fork_server.start(program, env=environ, cwd=directory)
        stdout, stderr = process.communicate()
    if not stdout:
        last_line = stderr.decode().strip().rpartition("\n")[2]
        surprise = f"{scenario.name}, {variant_name}: {last_line}"
        raise UnexpectedOutcome(surprises=[surprise])
    response = pickle.loads(stdout)  # noqa: S301 - our own process wrote it
    if isinstance(response, PlayedRun):
        return response
    raise InvalidValues(*response)


class Play:
    """One run of a variant. Call `follow` once to run it."""

    def __init__(
        self,
        scenario: Scenario,
        variant_name: str,
        workers: Sequence[Worker],
        directory: Path,
    ) -> None:
        self.scenario = scenario
        self.variant_name = variant_name
        self.variant = scenario.variants[variant_name]
        self.workers = workers
        self.first_worker = workers[0]
        self.directory = directory
        self.initial_files = {
            path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()
        }
        """The files in the directory before the first step."""
        self.shared_state = self._read_state(directory)
        """The state of the shared data after the last step."""
        self.taken_tokens: list[str] = []
        """The tokens of the schedule so far."""
        self.turns: list[Turn] = []
        self.choices: list[list[str]] = []
        """The possible tokens for each of `taken_tokens`, including this token."""
        self.blocked_workers: list[Worker] = []
        """The blocked workers, in the order in which they were blocked."""
        self.events: list[Event] = []
        self.moments: list[Moment] = []
        self.problems: list[str] = []
        """Every sentence that the invariant has yielded, once each."""
        self.is_power_off = False
        self.kill_after: int | None = None
        """The number of steps after which the first worker is killed, or None."""

    def follow(self, plan: RunPlan) -> PlayedRun:
        """Follow the plan until all workers have exited or are stuck. Return the recorded run.

        Raise InvalidValues if the schedule of the plan is not possible.
        """
        self.kill_after = plan.kill_after
        scheduled_tokens = parse_schedule(plan.schedule)
        if scheduled_tokens:
            self._strike_before_first_step(scheduled_tokens[0])
        # If a strike was taken, A has already run. Then begin with the next worker.
        for worker in self.workers[len(self.taken_tokens) :]:
            worker.run_to_next_step()
            if worker.is_over:
                self._record(worker, worker.current_step_name, "done")
        early_strikes = self._strikes_before_first_step()
        while True:
            possible = self._possible_tokens()
            token: str | None = None
            is_complete = True
            if len(self.taken_tokens) < len(scheduled_tokens):
                token = scheduled_tokens[len(self.taken_tokens)]
            elif possible:
                token = plan.choose(possible, self.turns)
                is_complete = token is not None
            if token is None:
                return self._finish(is_complete)
            self._take(token, possible + early_strikes)
            early_strikes = []

    def _strike_before_first_step(self, token: str) -> None:
        """Take the token if it strikes A before its first step, such as `A0!3`."""
        step, strike, _ = parts_of(token)
        if step == "A0" and strike:
            strikes = [f"A{kind}" for kind in self._possible_strikes()]
            self._take(token, ["A0", *strikes])

    def _strikes_before_first_step(self) -> list[str]:
        """Return the tokens that would strike A at an event before its first step."""
        tokens = []
        for strike in self._possible_strikes():
            for number in range(len(self.first_worker.stepped.past_events)):
                tokens.append(f"A0{strike}{number}")
        return tokens

    def _possible_tokens(self) -> list[str]:
        """Return the tokens that can be taken now."""
        remaining = self._remaining_workers()
        if self.kill_after is not None:
            return self._possible_tokens_with_kill(remaining)
        tokens = [_next_token(worker) for worker in remaining if worker.can_continue()]
        if self.first_worker in remaining:
            tokens += [f"A{strike}" for strike in self._possible_strikes()]
        elif not remaining and POWER_CUT in self._possible_strikes():
            tokens.append(f"A{POWER_CUT}")
        return tokens

    def _remaining_workers(self) -> list[Worker]:
        """Return the workers that have not ended. If they run in turn, return only the next."""
        remaining = [worker for worker in self.workers if not worker.is_over]
        if self.variant.in_turn:
            return remaining[:1]
        return remaining

    def _possible_tokens_with_kill(self, remaining: Sequence[Worker]) -> list[str]:
        """Return the tokens that can be taken now, if the plan kills A.

        After `kill_after` steps of A, the only possible token of A is its kill.
        """
        tokens = []
        for worker in remaining:
            if worker is self.first_worker and worker.steps_begun == self.kill_after:
                tokens.append(f"A{KILL}")
            elif worker.can_continue():
                tokens.append(_next_token(worker))
        return tokens

    def _possible_strikes(self) -> str:
        """Return the strikes that can still hit the first worker. At most one occurs in a run."""
        if any(event.outcome == "struck" for event in self.events):
            return ""
        return self.variant.strikes or ""

    def _take(self, token: str, possible: Sequence[str]) -> None:
        """Take one token: let its worker take a step, or strike it.

        Raise InvalidValues if the token is not possible now. Raise UnexpectedOutcome if the run
        has too many steps.
        """
        self._check_possible(token, possible)
        if len(self.taken_tokens) == _MOST_STEPS:
            problem = (
                f"{token[0]} does not end: {_MOST_STEPS} steps were taken. Let worker() do less: "
                "2 rounds of a loop show the same mistakes as 1,000"
            )
            raise UnexpectedOutcome(surprises=[problem])
        self.taken_tokens.append(token)
        worker = next(worker for worker in self.workers if worker.letter == token[0])
        events_before = len(worker.stepped.past_events)
        _, strike, events = parts_of(token)
        if events:
            position = self._run_part_of_step(worker, token, int(events))
            self._strike(worker, strike, position)
        elif strike:
            self._strike(worker, strike, _describe_position(worker))
        else:
            self._take_step(worker)
        events_done = len(worker.stepped.past_events) - events_before
        self.choices.append([*possible, *self._strikes_within(worker, token, events_done)])
        if isinstance(worker, EveryStepWorker):
            self._add_turn(worker, token, possible)
        else:
            self._resume_blocked_workers()

    def _check_possible(self, token: str, possible: Sequence[str]) -> None:
        """Raise InvalidValues if the token cannot be taken now."""
        step, strike, events = parts_of(token)
        needed = {token}
        if events:
            # The token strikes A within a step. So the step and the strike must be possible.
            needed = {step, f"A{strike}"}
        if needed <= set(possible):
            return
        is_kill = token == f"A{KILL}"
        if is_kill and self.variant.takes_every_step and not self.first_worker.is_over:
            return
        alternatives = ", ".join(possible) or "no more steps"
        raise bad_schedule(token, f"{token} is not possible there; possible are {alternatives}")

    def _strikes_within(self, worker: Worker, token: str, events: int) -> list[str]:
        """Return the tokens that would have struck A within its last step.

        `events` is the number of events in that step.
        """
        if worker is not self.first_worker:
            return []
        tokens = []
        for strike in self._possible_strikes():
            for number in range(1, events):
                tokens.append(f"{token}{strike}{number}")
        return tokens

    def _add_turn(self, worker: EveryStepWorker, token: str, possible: Sequence[str]) -> None:
        """Add the last step to `turns`, and report its effects to the other workers."""
        turn = Turn(
            worker=worker.letter,
            token=token,
            step=self.events[-1].step,
            effects=worker.effects,
            possible=tuple(possible),
        )
        self.turns.append(turn)
        for other in self.workers:
            if other is not worker and isinstance(other, EveryStepWorker):
                other.notice_changes(worker.effects)

    def _take_step(self, worker: Worker) -> None:
        """Let the worker take its next step, and record it."""
        step = worker.begin_step()
        assert step is not None
        worker.take_step()
        if not worker.is_blocked and (step.holds or step.frees):
            next_step = worker.next_step
            is_about_to_wait = next_step is not None and next_step.waits and not next_step.holds
            worker.holds = step.holds and worker.has_succeeded() and not is_about_to_wait
        self._record(worker, step.name, "blocked" if worker.is_blocked else "done")

    def _run_part_of_step(self, worker: Worker, token: str, events: int) -> str:
        """Run the first events of the worker's next step. Return its position, for the picture.

        Before the first step, run events of the program's start. `events` is the number of events.
        """
        step = worker.begin_step()
        if step is not None:
            worker.holds = step.holds or (worker.holds and not step.frees)
        worker.record_position()
        if not worker.do_events(events) or worker.stepped.next_event is None:
            raise bad_schedule(token, f"{token}: there are not so many events in that step")
        event = worker.stepped.next_event
        statement = event.facts.get("statement", "").partition(" ")[0]
        next_call = statement or event.name.rpartition(".")[2]
        if step is None:
            return f"before {next_call}"
        return f"in {step.name}, before {next_call}"

    def _strike(self, worker: Worker, strike: str, position: str) -> None:
        """Interrupt or kill the worker, or kill all workers with a power cut. Record it."""
        worker.record_position()
        if strike == INTERRUPT:
            worker.signal(signal.SIGTERM)
        elif strike == POWER_CUT:
            self.is_power_off = True
            for each in self.workers:
                each.kill()
        else:
            worker.kill()
        self._record(worker, f"{STRIKES[strike]} {position}", "struck")

    def _resume_blocked_workers(self) -> None:
        """Let blocked workers try to continue, in the order in which they were blocked."""
        candidates = (*self.blocked_workers, *self.workers)
        blocked = [worker for worker in candidates if worker.is_blocked]
        self.blocked_workers = list(dict.fromkeys(blocked))
        for worker in self.blocked_workers:
            worker.take_step()
            if not worker.is_blocked:
                name = worker.current_step_name
                current_steps = [step for step in self.variant.steps if step.name == name]
                worker.holds = any(step.holds for step in current_steps)
                self._record(worker, name, "resumed")
                # The step of this worker may let other workers continue.
                self._resume_blocked_workers()
                return

    def _record(self, worker: Worker, step: str, outcome: EventOutcome) -> None:
        """Record a step or a strike, with the shared state after it. Judge this state."""
        worker.holds = worker.holds and not worker.is_over
        holders = tuple(each.letter for each in self.workers if each.holds)
        waiting = tuple(each.letter for each in self.workers if each.is_blocked)
        state_before = self.shared_state
        if self.is_power_off:
            self.shared_state = "(the power is off)"
        else:
            self.shared_state = self._read_state(self.directory)
        moment = Moment(
            worker=worker.letter,
            before=state_before,
            after=self.shared_state,
            holders=holders,
            is_blocked=worker.is_blocked,
            is_struck=outcome == "struck",
            ended=worker.ended,
        )
        self.moments.append(moment)
        has_broken = self._judge(self.shared_state, is_over=False)
        disk_states = {str(state) for state in self._states_after_power_cut()}
        event = Event(
            seq=len(self.events) + 1,
            worker=worker.letter,
            number=worker.steps_begun,
            step=step,
            outcome=outcome,
            state=str(self.shared_state),
            holds=holders,
            waiting=waiting,
            over=worker.is_over,
            note=_BROKEN if has_broken else worker.failure(),
            at=worker.position.get("at"),
            private=worker.position.get("private"),
            on_disk=tuple(sorted(disk_states)) or None,
        )
        self.events.append(event)

    def _read_state(self, directory: Path) -> Any:
        """Return the state of the shared data, or the reason why it cannot be read."""
        try:
            return self.scenario.look(directory)
        except EXPECTED as error:
            reason = getattr(error, "strerror", None)
            if reason is None:
                reason = to_tool_error(error).message
            return f"({reason.lower().rstrip('.')})"

    def _states_after_power_cut(self) -> Iterator[Any]:
        """Yield the state of the shared data for each state of the disk after a power cut now."""
        if POWER_CUT not in (self.variant.strikes or ""):
            return
        different_states = {frozenset(files.items()) for files in self._disks()}
        for files in sorted(different_states, key=sorted):
            with TemporaryDirectory(dir=self.directory.parent) as disk:
                for name, content in files:
                    Path(disk, name).write_bytes(content)
                yield self._read_state(Path(disk))

    def _disks(self) -> Iterator[Files]:
        """Yield each possible state of the disk after a power cut now.

        Raise UnexpectedOutcome if A has made a call that the model of the disk does not know.
        """
        for event in self.first_worker.stepped.past_events:
            is_inside = os.path.dirname(event.path) == str(self.directory)
            if is_inside and event.name in NOT_MODELLED:
                problem = f"what {event.name} leaves after a power cut is not known"
                surprise = f"{self.scenario.name}, {self.variant_name}: {problem}"
                raise UnexpectedOutcome(surprises=[surprise])
        yield from states_after(
            self.initial_files, self.first_worker.stepped.past_events, str(self.directory)
        )

    def _judge(self, state: Any, *, is_over: bool, prefix: str = "") -> bool:
        """Add the problems that the invariant finds in this state. Return whether one is new."""
        known = len(self.problems)
        history = History(
            letters=[worker.letter for worker in self.workers],
            moments=self.moments,
            now=state,
            is_over=is_over,
            directory=self.directory,
            disks=self._disks,
        )
        for sentence in self.scenario.invariant(history):
            problem = f"{prefix}{sentence}"
            if problem not in self.problems:
                self.problems.append(problem)
        return len(self.problems) > known

    def _finish(self, is_complete: bool) -> PlayedRun:
        """Return the recorded run. Judge its end only if the run is complete."""
        reasons = self._reasons() if is_complete else []
        if reasons:
            self._mark_last_event()
        verdict: Verdict = "broken" if reasons else "holds"
        recording = Recording(
            scenario=self.scenario.name,
            variant=self.variant_name,
            workers=tuple(worker.letter for worker in self.workers),
            shared=self.scenario.shared,
            schedule=" ".join(self.taken_tokens),
            verdict=verdict,
            reason=reasons[0] if reasons else None,
            also=tuple(reasons[1:]),
            events=tuple(self.events),
        )
        return PlayedRun(recording, self.choices, tuple(self.turns), is_complete)

    def _mark_last_event(self) -> None:
        """Put a note on the last event, unless an event already has the note that it broke the run.

        The note means that this event broke the run, or that all remaining workers are stuck.
        """
        if not self.events or any(event.note == _BROKEN for event in self.events):
            return
        note = _BROKEN
        if any(not worker.is_over for worker in self.workers):
            note = "nobody can go on"
        self.events[-1] = replace(self.events[-1], note=note)

    def _reasons(self) -> list[str]:
        """Return a sentence for each problem. The problem that the variant explains comes first."""
        stuck = [worker.letter for worker in self.workers if not worker.is_over]
        if self.is_power_off:
            prefix = "After the power cut it is possible that "
            for state in self._states_after_power_cut():
                self._judge(state, is_over=True, prefix=prefix)
        elif not stuck:
            self._judge(self.shared_state, is_over=True)
        self._refuse_idle_workers()
        reasons = [*self._crashes(), *self.problems]
        if stuck:
            verb = "wait" if len(stuck) > 1 else "waits"
            reasons.insert(0, f"{' and '.join(stuck)} {verb} for ever.")
        # False sorts before True, so a reason that contains `breaks` comes first.
        return sorted(reasons, key=lambda reason: self.variant.breaks not in reason)

    def _crashes(self) -> list[str]:
        """Return a sentence for each crash of a worker, in a right variant.

        A crash is a failure other than an error response of the tool, such as a traceback.
        """
        if not is_right(self.variant_name):
            # A wrong variant is expected to fail. Only its invariant decides whether a run broke.
            return []
        crashes = []
        for worker in self.workers:
            failure = worker.failure() or ""
            # An error response begins with "got " instead, see Worker.failure().
            if failure.startswith("failed: "):
                crashes.append(f"{worker.letter} {failure}.")
        return crashes

    def _refuse_idle_workers(self) -> None:
        """Raise UnexpectedOutcome if a worker has exited without a step.

        No schedule controls such a worker, so its scenario names the wrong steps. This does not
        hold for a worker that was struck, or that the tool has refused with an error response.
        """
        struck = {event.worker for event in self.events if event.outcome == "struck"}
        for worker in self.workers:
            if worker.steps_begun > 0 or not worker.is_over or worker.letter in struck:
                continue
            failure = worker.failure() or "it succeeded"
            if not failure.startswith("got "):
                problem = f"{worker.letter} came to none of its steps ({failure})"
                surprise = f"{self.scenario.name}, {self.variant_name}: {problem}"
                raise UnexpectedOutcome(surprises=[surprise])


def _next_token(worker: Worker) -> str:
    """Return the token of the worker's next step, such as `A2`."""
    return f"{worker.letter}{worker.steps_begun + 1}"


def _describe_position(worker: Worker) -> str:
    """Return the position at which a worker is struck, such as `before rename`."""
    if worker.is_blocked:
        return "while it waits"
    if worker.next_step is not None:
        return f"before {worker.next_step.name}"
    return "after the end"
