"""Play one schedule for real: the workers are stepped processes that continue only in their turn.

A schedule consists of *tokens*: `A1` is the first step of worker A, and `A!` is a *fault*, such as
a kill, that hits A between two steps. recording.py describes all kinds of tokens.

A *step* of a worker lasts until the event that begins its next step, or until the worker exits.
Usually, only the events that the scenario names begin a step.

What happens when a worker waits for a lock depends on the kind of steps:

* With named steps, the worker is *blocked*. After every step of another worker, the lab tries
  whether the blocked worker can continue.
* If every call is a step, the lab does not choose the worker until the lock is free.

A run is stuck if all workers that have not exited are waiting.
"""

import pickle
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..kit.contract.errors import InvalidValues
from ..kit.stepping import tracer
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.tracer import SteppedProcess
from .errors import UnexpectedOutcome
from .every_step import has_failed_to_create
from .judge import Judge
from .recording import (
    Event,
    EventOutcome,
    PlayedRun,
    Recording,
    Turn,
    Verdict,
    bad_schedule,
    parse_schedule,
    parse_token,
)
from .reduction import Choose
from .scenario import (
    FAULTS,
    INTERRUPT,
    KILL,
    LETTERS,
    POWER_CUT,
    Scenario,
    Step,
    TakenStep,
    is_right,
)
from .scratch import scratch_directory
from .stepped_threads import CannotRun, ThreadedProcess, ThreadWorker, unpickle_state
from .stepped_worker import EveryStepWorker, Worker

_BROKEN = "broken"
"""The note of the event that broke the invariant."""
_STUCK = "nobody can go on"
"""The note of the last event if all remaining workers wait permanently."""
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
    """The number of steps after which worker A is killed. None if it is not killed.

    This works only if every call is a step.
    """


def play(
    scenario: Scenario,
    variant_name: str,
    schedule: str = "",
    *,
    fork_server: ForkServer,
    worker_count: int | None = None,
    check_signals: Callable[[], None] = lambda: None,
    plan: RunPlan | None = None,
) -> PlayedRun:
    """Run a variant along a schedule, and return the recorded run.

    After the schedule, the workers run to their ends one after the other. A `plan` replaces the
    schedule. `check_signals` raises an error when the whole command has to end.
    """
    if plan is None:
        plan = RunPlan(schedule=schedule)
    worker_names = LETTERS[: worker_count or scenario.workers]
    if scenario.create_shared_memory is not None:
        return _play_coroutines(scenario, variant_name, worker_names, plan, fork_server)
    play_workers = _play_processes
    if scenario.threads:
        play_workers = _play_threads
    return play_workers(scenario, variant_name, worker_names, plan, fork_server, check_signals)


def _play_processes(
    scenario: Scenario,
    variant_name: str,
    worker_names: str,
    plan: RunPlan,
    fork_server: ForkServer,
    check_signals: Callable[[], None],
) -> PlayedRun:
    """Run workers that are processes, and return the recorded run."""
    variant = scenario.variants[variant_name]
    worker_class = EveryStepWorker if variant.stops_at_every_call else Worker
    with scratch_directory(variant) as (directory, environ), ExitStack() as exit_stack:
        workers = []
        for name in worker_names:
            process = SteppedProcess(
                ["-m", *variant.worker_command, name],
                watch=directory.parent,
                env=environ,
                cwd=directory,
                fork_server=fork_server,
            )
            exit_stack.enter_context(process)
            workers.append(worker_class(name, variant, process, check_signals))
        return Play(scenario, variant_name, workers, directory).follow(plan)


def _play_threads(
    scenario: Scenario,
    variant_name: str,
    worker_names: str,
    plan: RunPlan,
    fork_server: ForkServer,
    check_signals: Callable[[], None],
) -> PlayedRun:
    """Run workers that are threads of one process, and return the recorded run."""
    # The process of the threads prepares the shared data itself.
    variant = replace(scenario.variants[variant_name], prepare=lambda _directory: None)
    worker_class = ThreadWorker if variant.stops_at_every_call else Worker
    module, *arguments = variant.worker_command
    with scratch_directory(variant) as (directory, environ):
        threaded_process = ThreadedProcess(
            module,
            [*arguments, worker_names],
            fork_server=fork_server,
            env=environ,
            cwd=directory,
        )
        try:
            with threaded_process as process:
                # The process sends the shared state after each step.
                threaded_scenario = replace(
                    scenario, read_state=lambda _directory: unpickle_state(process.shared_state)
                )
                workers = []
                for name in worker_names:
                    thread = process.threads[name]
                    workers.append(worker_class(name, variant, thread, check_signals))
                return Play(threaded_scenario, variant_name, workers, directory).follow(plan)
        except CannotRun as error:
            surprise = f"{scenario.name}, {variant_name}: {error}"
            raise UnexpectedOutcome(surprises=[surprise]) from None


def _play_coroutines(
    scenario: Scenario,
    variant_name: str,
    worker_names: str,
    plan: RunPlan,
    fork_server: ForkServer,
) -> PlayedRun:
    """Run workers that are coroutines of one process, and return the recorded run.

    The process runs coroutines.py. Raise InvalidValues if the schedule is not possible.
    """
    variant = scenario.variants[variant_name]
    with scratch_directory(variant) as (directory, environ):
        program = ["-m", *variant.worker_command, plan.schedule, worker_names]
        process = fork_server.start(program, env=environ, cwd=directory)
        stdout, stderr = process.communicate()
    if not stdout:
        last_line = stderr.decode().strip().rpartition("\n")[2]
        surprise = f"{scenario.name}, {variant_name}: {last_line}"
        raise UnexpectedOutcome(surprises=[surprise])
    response = pickle.loads(stdout)  # noqa: S301 - our own process wrote it
    if isinstance(response, PlayedRun):
        return response
    # The process sends the mistakes in the schedule instead.
    mistakes = response
    raise InvalidValues(*mistakes)


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
        self.worker_a = workers[0]
        """The only worker that can be hit by a fault."""
        self.judge = Judge(scenario, variant_name, workers, directory)
        self.shared_state = self.judge.read_state()
        """The state of the shared data after the last step."""
        self.taken_tokens: list[str] = []
        """The tokens of the schedule so far."""
        self.turns: list[Turn] = []
        self.choices: list[list[str]] = []
        """The possible tokens for each of `taken_tokens`, including this token."""
        self.blocked_workers: list[Worker] = []
        """The blocked workers, in the order in which they were blocked."""
        self.events: list[Event] = []
        self.taken_steps: list[TakenStep] = []
        self.is_power_off = False
        self.kill_after: int | None = None
        """The number of steps after which A is killed, or None."""

    def follow(self, plan: RunPlan) -> PlayedRun:
        """Follow the plan until all workers have exited or are stuck. Return the recorded run.

        Raise InvalidValues if the schedule of the plan is not possible.
        """
        self.kill_after = plan.kill_after
        scheduled_tokens = parse_schedule(plan.schedule)
        self._start_workers(scheduled_tokens)
        # These faults are alternatives to the first token only: A has now passed its start.
        early_faults = self._faults_before_first_step()
        while True:
            possible = self._possible_tokens()
            position = len(self.taken_tokens)
            is_within_schedule = position < len(scheduled_tokens)
            if is_within_schedule:
                token = scheduled_tokens[position]
            elif possible:
                chosen = plan.choose(possible, self.turns)
                if chosen is None:
                    # A search gives the run up, because it would repeat an earlier one.
                    return self._finish(is_complete=False)
                token = chosen
            else:
                # All workers have exited or are stuck.
                return self._finish(is_complete=True)
            self._take(token, [*possible, *early_faults])
            early_faults = []

    def _start_workers(self, scheduled_tokens: Sequence[str]) -> None:
        """Run each worker to its first step.

        If the schedule begins with a fault before the first step of A, such as `A0!3`, take it.
        """
        waiting_workers = list(self.workers)
        if scheduled_tokens:
            first = parse_token(scheduled_tokens[0])
            hits_start_of_a = first.step == "A0" and first.fault
            if hits_start_of_a:
                possible_faults = [f"A{fault}" for fault in self._possible_faults()]
                self._take(scheduled_tokens[0], ["A0", *possible_faults])
                waiting_workers.remove(self.worker_a)
        for worker in waiting_workers:
            worker.run_to_next_step()
            if worker.is_over:
                self._record(worker, worker.current_step_name, "done")

    def _faults_before_first_step(self) -> list[str]:
        """Return the tokens that would hit A at an event before its first step."""
        tokens = []
        for fault in self._possible_faults():
            for events_before_fault in range(len(self.worker_a.stepped.past_events)):
                tokens.append(f"A0{fault}{events_before_fault}")
        return tokens

    def _possible_tokens(self) -> list[str]:
        """Return the tokens that can be taken now.

        These are the next step of each worker, such as `A2`, and the faults of A, such as `A!`.
        """
        remaining = self._remaining_workers()
        if self.kill_after is not None:
            return self._possible_tokens_with_kill(remaining)
        tokens = [_next_token(worker) for worker in remaining if worker.can_continue()]
        possible_faults = self._possible_faults()
        if self.worker_a not in remaining:
            # A has exited. The power can still fail when all workers have exited.
            has_power_cut = not remaining and POWER_CUT in possible_faults
            possible_faults = [POWER_CUT] if has_power_cut else []
        tokens += [f"A{fault}" for fault in possible_faults]
        return tokens

    def _remaining_workers(self) -> list[Worker]:
        """Return the workers that have not exited. If they run one by one, return only the next."""
        remaining = [worker for worker in self.workers if not worker.is_over]
        if self.variant.one_after_another:
            return remaining[:1]
        return remaining

    def _possible_tokens_with_kill(self, remaining: Sequence[Worker]) -> list[str]:
        """Return the tokens that can be taken now, if the plan kills A.

        After `kill_after` steps of A, the only possible token of A is its kill.
        """
        tokens = []
        for worker in remaining:
            if worker is self.worker_a and worker.steps_begun == self.kill_after:
                tokens.append(f"A{KILL}")
            elif worker.can_continue():
                tokens.append(_next_token(worker))
        return tokens

    def _possible_faults(self) -> list[str]:
        """Return the signs of the faults that can still hit A. At most one occurs in a run."""
        was_hit = any(event.is_fault for event in self.events)
        if was_hit:
            return []
        return list(self.variant.faults or "")

    def _take(self, token: str, possible: Sequence[str]) -> None:
        """Take one token: let its worker take a step, or let a fault hit the worker.

        Raise InvalidValues if the token is not possible now. Raise UnexpectedOutcome if the run
        has too many steps.
        """
        self._check_possible(token, possible)
        self._check_number_of_steps(token)
        self.taken_tokens.append(token)
        worker = self._worker_named(parse_token(token).worker)
        events_before = len(worker.stepped.past_events)
        self._execute(token, worker)
        events_in_step = len(worker.stepped.past_events) - events_before
        faults_within = self._faults_within_step(worker, token, events_in_step)
        self.choices.append([*possible, *faults_within])
        if isinstance(worker, EveryStepWorker):
            # No such worker is ever blocked: it is not chosen until it can continue.
            self._add_turn(worker, token, possible)
        else:
            self._resume_blocked_workers()

    def _execute(self, token: str, worker: Worker) -> None:
        """Let the worker take its step, or let the fault hit it, and record this."""
        parsed = parse_token(token)
        if parsed.events_before_fault is not None:
            # The fault comes within a step: for `A2!1`, after the first event of A2.
            position = self._run_part_of_step(worker, token, parsed.events_before_fault)
            self._inject_fault(worker, parsed.fault, position)
        elif parsed.fault:
            # The fault comes between two steps, such as `A!`.
            self._inject_fault(worker, parsed.fault, _describe_position(worker))
        else:
            self._take_step(worker)

    def _worker_named(self, name: str) -> Worker:
        """Return the worker with this name."""
        return next(worker for worker in self.workers if worker.name == name)

    def _check_possible(self, token: str, possible: Sequence[str]) -> None:
        """Raise InvalidValues if the token cannot be taken now."""
        parsed = parse_token(token)
        required = {token}
        if parsed.events_before_fault is not None:
            # The fault comes within a step. So both the step and the fault must be possible.
            required = {parsed.step, f"A{parsed.fault}"}
        if required <= set(possible):
            return
        # If every call is a step, a schedule may kill A anywhere. `possible` has only the kill
        # that the plan of a search asks for.
        is_kill = token == f"A{KILL}"
        if is_kill and self.variant.stops_at_every_call and not self.worker_a.is_over:
            return
        alternatives = ", ".join(possible) or "no more steps"
        raise bad_schedule(token, f"{token} is not possible there; possible are {alternatives}")

    def _check_number_of_steps(self, token: str) -> None:
        """Raise UnexpectedOutcome if this token is one step too many."""
        if len(self.taken_tokens) < _MOST_STEPS:
            return
        worker = parse_token(token).worker
        problem = (
            f"{worker} does not end: {_MOST_STEPS} steps were taken. Let worker() do less: "
            "2 rounds of a loop show the same mistakes as 1,000"
        )
        raise UnexpectedOutcome(surprises=[problem])

    def _faults_within_step(self, worker: Worker, token: str, events_in_step: int) -> list[str]:
        """Return the tokens that would have hit A within the step that it has just taken."""
        if worker is not self.worker_a:
            return []
        tokens = []
        for fault in self._possible_faults():
            for events_before_fault in range(1, events_in_step):
                tokens.append(f"{token}{fault}{events_before_fault}")
        return tokens

    def _add_turn(self, worker: EveryStepWorker, token: str, possible: Sequence[str]) -> None:
        """Add the last step to `turns`, and report its effects to the other workers."""
        turn = Turn(
            worker=worker.name,
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
        if worker.is_blocked:
            self._record(worker, step.name, "blocked")
            return
        is_lock_step = step.takes_lock or step.releases_lock
        if is_lock_step:
            has_lock = step.takes_lock and worker.has_succeeded()
            # An attempt that is followed by a wait has not got the lock.
            worker.holds = has_lock and not _is_about_to_wait(worker)
        self._record(worker, _describe_taken_step(worker, step), "done")

    def _run_part_of_step(self, worker: Worker, token: str, events: int) -> str:
        """Run the first events of the worker's next step. Return its position, for the picture.

        Before the first step, run events of the program's start. `events` is the number of events.
        """
        step = worker.begin_step()
        if step is not None:
            keeps_lock = worker.holds and not step.releases_lock
            worker.holds = step.takes_lock or keeps_lock
        worker.record_position()
        has_all_events = worker.do_events(events)
        next_event = worker.stepped.next_event
        if not has_all_events or next_event is None:
            raise bad_schedule(token, f"{token}: there are not so many events in that step")
        if step is None:
            return f"before {_name_of_call(next_event)}"
        return f"in {step.name}, before {_name_of_call(next_event)}"

    def _inject_fault(self, worker: Worker, fault: str, position: str) -> None:
        """Interrupt or kill the worker, or kill all workers with a power cut. Record it."""
        worker.record_position()
        if fault == INTERRUPT:
            worker.signal(signal.SIGTERM)
        elif fault == POWER_CUT:
            self.is_power_off = True
            for each in self.workers:
                each.kill()
        else:
            worker.kill()
        self._record(worker, f"{FAULTS[fault]} {position}", "struck")

    def _resume_blocked_workers(self) -> None:
        """Let blocked workers try to continue, in the order in which they were blocked."""
        while True:
            self._update_blocked_workers()
            resumed = self._resume_first_possible()
            if resumed is None:
                return
            step_name = resumed.current_step_name
            current_steps = [step for step in self.variant.steps if step.name == step_name]
            resumed.holds = any(step.takes_lock for step in current_steps)
            self._record(resumed, step_name, "resumed")
            # The step of this worker may let others continue, so try all of them again.

    def _update_blocked_workers(self) -> None:
        """Remove the workers that are no longer blocked. Add the others that are, at the end."""
        still_blocked = [worker for worker in self.blocked_workers if worker.is_blocked]
        for worker in self.workers:
            if worker.is_blocked and worker not in still_blocked:
                still_blocked.append(worker)
        self.blocked_workers = still_blocked

    def _resume_first_possible(self) -> Worker | None:
        """Let each blocked worker try to continue, until one can. Return it, or None."""
        for worker in self.blocked_workers:
            worker.take_step()
            if not worker.is_blocked:
                return worker
        return None

    def _record(self, worker: Worker, step_name: str, outcome: EventOutcome) -> None:
        """Record a step or a fault, with the shared state after it. Judge this state."""
        taken_step = TakenStep(
            worker=worker.name,
            state_before=self.shared_state,
            state_after=self._read_state(),
            lock_holders=self._lock_holders(),
            is_blocked=worker.is_blocked,
            is_fault=outcome == "struck",
            exit_result=worker.ended,
        )
        self.taken_steps.append(taken_step)
        self.shared_state = taken_step.state_after
        problems = self.judge.find_problems(self.taken_steps, self.shared_state, is_finished=False)
        note = worker.failure()
        if problems:
            note = _BROKEN
        self.events.append(self._describe_event(worker, step_name, outcome, note))

    def _read_state(self) -> Any:
        """Return the state of the shared data, which nothing can read while the power is off."""
        if self.is_power_off:
            return "(the power is off)"
        return self.judge.read_state()

    def _lock_holders(self) -> tuple[str, ...]:
        """Return the workers that hold the lock. A worker that has exited holds no lock."""
        return tuple(worker.name for worker in self.workers if worker.holds and not worker.is_over)

    def _describe_event(
        self, worker: Worker, step_name: str, outcome: EventOutcome, note: str | None
    ) -> Event:
        """Return the event for the last step or fault."""
        disk_states = {str(state) for state in self.judge.states_after_power_cut()}
        return Event(
            seq=len(self.events) + 1,
            worker=worker.name,
            number=worker.steps_begun,
            step=step_name,
            outcome=outcome,
            state=str(self.shared_state),
            holds=self._lock_holders(),
            waiting=tuple(each.name for each in self.workers if each.is_blocked),
            over=worker.is_over,
            note=note,
            at=worker.position.get("at"),
            private=worker.position.get("private"),
            on_disk=tuple(sorted(disk_states)) or None,
        )

    def _finish(self, *, is_complete: bool) -> PlayedRun:
        """Return the recorded run. Judge its end only if the run is complete."""
        reasons: list[str] = []
        if is_complete:
            reasons = self._judge_end()
        verdict: Verdict = "holds"
        reason = None
        if reasons:
            verdict = "broken"
            reason = reasons[0]
            self._note_problem_of_end()
        recording = Recording(
            scenario=self.scenario.name,
            variant=self.variant_name,
            workers=tuple(worker.name for worker in self.workers),
            shared=self.scenario.shared,
            schedule=" ".join(self.taken_tokens),
            verdict=verdict,
            reason=reason,
            also=tuple(reasons[1:]),
            events=tuple(self.events),
        )
        return PlayedRun(recording, self.choices, tuple(self.turns), is_complete)

    def _note_problem_of_end(self) -> None:
        """Replace the note of the last event: the problem was found only at the end of the run.

        Do nothing if the problem was found earlier, so that an earlier event is noted as the cause.
        """
        has_earlier_cause = any(event.note == _BROKEN for event in self.events)
        if not self.events or has_earlier_cause:
            return
        note = _BROKEN
        if self._stuck_workers():
            note = _STUCK
        self.events[-1] = replace(self.events[-1], note=note)

    def _stuck_workers(self) -> list[str]:
        """Return the workers that wait permanently, at the end of a run."""
        return [worker.name for worker in self.workers if not worker.is_over]

    def _judge_end(self) -> list[str]:
        """Judge the end of the run. Return a sentence for each problem of the whole run.

        Raise UnexpectedOutcome if a worker has exited without a step.
        """
        stuck = self._stuck_workers()
        # The judge collects the problems, also those of the steps before.
        if self.is_power_off:
            self.judge.find_problems_after_power_cut(self.taken_steps)
        elif not stuck:
            self.judge.find_problems(self.taken_steps, self.shared_state, is_finished=True)
        self._refuse_idle_workers()
        reasons = [*self._crashes(), *self.judge.problems]
        if stuck:
            verb = "wait" if len(stuck) > 1 else "waits"
            reasons.insert(0, f"{' and '.join(stuck)} {verb} for ever.")
        return self._expected_problem_first(reasons)

    def _expected_problem_first(self, reasons: Sequence[str]) -> list[str]:
        """Return the reasons, first those that contain the variant's expected problem.

        The first reason is the one that the picture shows.
        """
        expected = []
        others = []
        for reason in reasons:
            if self.variant.expected_problem in reason:
                expected.append(reason)
            else:
                others.append(reason)
        return expected + others

    def _crashes(self) -> list[str]:
        """Return a sentence for each crash of a worker, in a right variant.

        A wrong variant is expected to fail. Only its invariant decides whether a run broke.
        """
        if not is_right(self.variant_name):
            return []
        crashes = []
        for worker in self.workers:
            failure = worker.failure()
            if failure is not None and not _is_error_response(failure):
                crashes.append(f"{worker.name} {failure}.")
        return crashes

    def _refuse_idle_workers(self) -> None:
        """Raise UnexpectedOutcome if a worker has exited without a step.

        No schedule controls such a worker, so its scenario names the wrong steps. This does not
        hold for a worker that a fault has hit, or that the tool has refused with an error response.
        """
        hit_by_fault = {event.worker for event in self.events if event.is_fault}
        for worker in self.workers:
            is_idle = worker.is_over and worker.steps_begun == 0
            if not is_idle or worker.name in hit_by_fault:
                continue
            failure = worker.failure() or "it succeeded"
            if not _is_error_response(failure):
                problem = f"{worker.name} came to none of its steps ({failure})"
                surprise = f"{self.scenario.name}, {self.variant_name}: {problem}"
                raise UnexpectedOutcome(surprises=[surprise])


def _next_token(worker: Worker) -> str:
    """Return the token of the worker's next step, such as `A2`."""
    return f"{worker.name}{worker.steps_begun + 1}"


def _describe_taken_step(worker: Worker, step: Step) -> str:
    """Return the name of a step and, if it failed to create a file, the reason."""
    if not isinstance(worker, EveryStepWorker):
        # The lab knows the effects of a step only if every call is a step.
        return step.name
    # The call that uses files. The other events of the step belong to it.
    first_event = worker.step_events[0]
    if has_failed_to_create(first_event, worker.effects):
        return f"{step.name}: it exists"
    return step.name


def _is_about_to_wait(worker: Worker) -> bool:
    """Return whether the next step of the worker waits for a lock, so that it cannot have it."""
    next_step = worker.next_step
    return next_step is not None and next_step.waits_in_loop and not next_step.takes_lock


def _is_error_response(failure: str) -> bool:
    """Return whether a failure is an error response of the tool, and not a crash.

    Worker.failure() describes an error response as `got CODE`, and a crash as `failed: …`.
    """
    return failure.startswith("got ")


def _name_of_call(event: tracer.Event) -> str:
    """Return a short name for a call: the first word of an SQL statement, or the function."""
    statement = event.facts.get("statement", "")
    if statement:
        first_word, _, _ = statement.partition(" ")
        return str(first_word)
    return event.name.rpartition(".")[2]


def _describe_position(worker: Worker) -> str:
    """Return the position at which a fault hits a worker, such as `before rename`."""
    if worker.is_blocked:
        return "while it waits"
    if worker.next_step is not None:
        return f"before {worker.next_step.name}"
    return "after the end"
