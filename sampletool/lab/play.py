"""Play one schedule for real: the workers are stepped processes that continue only in their turn.

A *step* lasts from one event of a worker to its next, or to its end. Usually, only the events that
the scenario names are steps. If every call is a step, a worker that would wait for a lock is not
chosen until the lock is free. Otherwise it is *blocked*: it is asked again after every step of
another worker, and continues by itself as soon as it can. If all workers that are left wait, the
run is stuck.
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
    Happened,
    Played,
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
    Way,
    is_right,
)
from .scratch import scratch
from .stepped_threads import CannotRun, ThreadedProcess, ThreadWorker, read_look
from .stepped_worker import EveryStepWorker, Worker

_BROKEN = "broken"
_MOST_STEPS = 500


def choose_first(possible: Sequence[str], _turns: Sequence[Turn]) -> str:
    """Choose the first worker that can continue."""
    return possible[0]


@dataclass(frozen=True, kw_only=True)
class Course:
    """The course that a run takes: a schedule, and what happens where it ends."""

    schedule: str = ""
    choose: Choose = choose_first
    """Decides how the run continues after the schedule."""
    kill_after: int | None = None
    """After so many of its steps, the first worker is killed. Only if every call is a step."""


def play(
    scenario: Scenario,
    variant: str,
    schedule: str = "",
    *,
    fork_server: ForkServer,
    workers: int | None = None,
    check: Callable[[], None] = lambda: None,
    course: Course | None = None,
) -> Played:
    """Follow the schedule, or the course. After it, each worker runs to its end, in order.

    `check` raises an error when the whole command has to end.
    """
    if course is None:
        course = Course(schedule=schedule)
    way = scenario.ways[variant]
    letters = LETTERS[: workers or scenario.workers]
    if scenario.threads:
        return _play_threads(scenario, variant, letters, course, fork_server, check)
    if scenario.world is not None:
        return _play_coroutines(scenario, variant, letters, course, fork_server)
    with scratch(way) as (directory, environ), ExitStack() as stack:
        players = []
        for letter in letters:
            stepped = SteppedProcess(
                ["-m", *way.worker, letter],
                watch=directory.parent,
                env=environ,
                cwd=directory,
                fork_server=fork_server,
            )
            stack.enter_context(stepped)
            players.append(_worker_class(way)(letter, way, stepped, check))
        return Play(scenario, variant, players, directory).follow(course)


def _worker_class(way: Way) -> type[Worker]:
    if way.takes_every_step:
        return EveryStepWorker
    return Worker


def _play_threads(
    scenario: Scenario,
    variant: str,
    letters: str,
    course: Course,
    fork_server: ForkServer,
    check: Callable[[], None],
) -> Played:
    """Play with workers that are threads of one process. It prepares what they share."""
    way = replace(scenario.ways[variant], prepare=lambda _directory: None)
    module, *arguments = way.worker
    with scratch(way) as (directory, environ):
        threaded_process = ThreadedProcess(
            module,
            [*arguments, letters],
            fork_server=fork_server,
            env=environ,
            cwd=directory,
        )
        try:
            with threaded_process as process:
                seen = replace(scenario, look=lambda _directory: read_look(process.shared))
                players: list[Worker] = []
                for letter in letters:
                    worker_class = ThreadWorker if way.takes_every_step else Worker
                    players.append(worker_class(letter, way, process.threads[letter], check))
                return Play(seen, variant, players, directory).follow(course)
        except CannotRun as error:
            surprise = f"{scenario.name}, {variant}: {error}"
            raise UnexpectedOutcome(surprises=[surprise]) from None


def _play_coroutines(
    scenario: Scenario,
    variant: str,
    letters: str,
    course: Course,
    fork_server: ForkServer,
) -> Played:
    """Let coroutines.py play the schedule in a process of its own."""
    way = scenario.ways[variant]
    with scratch(way) as (directory, environ):
        program = ["-m", *way.worker, course.schedule, letters]
        process = fork_server.start(program, env=environ, cwd=directory)
        stdout, stderr = process.communicate()
    if not stdout:
        last_line = stderr.decode().strip().rpartition("\n")[2]
        surprise = f"{scenario.name}, {variant}: {last_line}"
        raise UnexpectedOutcome(surprises=[surprise])
    response = pickle.loads(stdout)  # noqa: S301 - our own process wrote it
    if isinstance(response, Played):
        return response
    raise InvalidValues(*response)


class Play:
    """One run, with workers that have done nothing yet."""

    def __init__(
        self,
        scenario: Scenario,
        variant: str,
        workers: Sequence[Worker],
        directory: Path,
    ) -> None:
        self.scenario = scenario
        self.variant = variant
        self.way = scenario.ways[variant]
        self.workers = workers
        self.first = workers[0]
        self.directory = directory
        self.before = {
            path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()
        }
        self.now = self._look(directory)
        """What the shared thing held when it was last looked at."""
        self.taken: list[str] = []
        self.turns: list[Turn] = []
        self.choices: list[list[str]] = []
        """What could have been done instead of each token that was taken, with that token."""
        self.queue: list[Worker] = []
        """The blocked workers, in the order in which they were blocked."""
        self.events: list[Event] = []
        self.moments: list[Moment] = []
        self.found: dict[str, None] = {}
        """Every sentence of the invariant, in the order in which they came."""
        self.is_dark = False
        """Whether the power was cut."""
        self.kill_after: int | None = None

    def follow(self, course: Course) -> Played:
        """Do what the course says, to the end of all workers."""
        self.kill_after = course.kill_after
        wanted = parse_schedule(course.schedule)
        if wanted:
            self._strike_before_first_step(wanted[0])
        for worker in self.workers[len(self.taken) :]:
            worker.come_to_a_step()
            if worker.is_over:
                self._record(worker, worker.current, "done")
        strikes_at_start = self._strikes_before_first_step()
        while True:
            possible = self._enabled()
            token: str | None = None
            is_complete = True
            if len(self.taken) < len(wanted):
                token = wanted[len(self.taken)]
            elif possible:
                token = course.choose(possible, self.turns)
                is_complete = token is not None
            if token is None:
                return self._played(is_complete)
            self._take(token, possible + strikes_at_start)
            strikes_at_start = []

    def _strike_before_first_step(self, token: str) -> None:
        """Take a token such as `A0!3`, which strikes A before it comes to its first step."""
        step, strike, _ = parts_of(token)
        if step == "A0" and strike:
            strikes = [f"A{each}" for each in self._strikes()]
            self._take(token, ["A0", *strikes])

    def _strikes_before_first_step(self) -> list[str]:
        """Return the tokens that would strike A at an event before its first step."""
        tokens = []
        for strike in self._strikes():
            for number in range(len(self.first.stepped.past)):
                tokens.append(f"A0{strike}{number}")
        return tokens

    def _enabled(self) -> list[str]:
        """Return the tokens that can be taken now."""
        remaining = self._remaining_workers()
        if self.kill_after is not None:
            return self._enabled_with_kill(remaining)
        enabled = [_next_token(worker) for worker in remaining if worker.can_go_on()]
        if self.first in remaining:
            enabled += [f"A{strike}" for strike in self._strikes()]
        elif not remaining and POWER_CUT in self._strikes():
            enabled.append(f"A{POWER_CUT}")
        return enabled

    def _remaining_workers(self) -> list[Worker]:
        """Return the workers that have not ended. If they go in turn, return only the next one."""
        remaining = [worker for worker in self.workers if not worker.is_over]
        if self.way.in_turn:
            return remaining[:1]
        return remaining

    def _enabled_with_kill(self, remaining: Sequence[Worker]) -> list[str]:
        """Return the tokens that can be taken. After its last step, A can only be killed."""
        enabled = []
        for worker in remaining:
            if worker is self.first and worker.done == self.kill_after:
                enabled.append(f"A{KILL}")
            elif worker.can_go_on():
                enabled.append(_next_token(worker))
        return enabled

    def _strikes(self) -> str:
        """Return what may still happen to the first worker."""
        if any(event.outcome == "struck" for event in self.events):
            return ""
        return self.way.strikes or ""

    def _take(self, token: str, possible: Sequence[str]) -> None:
        """Take one token. Raise InvalidValues if it is not possible here."""
        self._check_possible(token, possible)
        if len(self.taken) == _MOST_STEPS:
            problem = (
                f"{token[0]} does not end: {_MOST_STEPS} steps were taken. Let worker() do less: "
                "2 rounds of a loop show the same mistakes as 1,000"
            )
            raise UnexpectedOutcome(surprises=[problem])
        self.taken.append(token)
        worker = next(worker for worker in self.workers if worker.letter == token[0])
        events_before = len(worker.stepped.past)
        _, strike, events = parts_of(token)
        if events:
            at = self._go_into_its_step(worker, token, int(events))
            self._strike(worker, strike, at)
        elif strike:
            self._strike(worker, strike, _where(worker))
        else:
            self._go_on(worker)
        events_done = len(worker.stepped.past) - events_before
        self.choices.append([*possible, *self._strikes_within(worker, token, events_done)])
        if isinstance(worker, EveryStepWorker):
            self._note_turn(worker, token, possible)
        else:
            self._ask_the_blocked()

    def _check_possible(self, token: str, possible: Sequence[str]) -> None:
        step, strike, events = parts_of(token)
        needed = {token}
        if events:
            # It strikes A within a step, so both the step and the strike have to be possible.
            needed = {step, f"A{strike}"}
        if needed <= set(possible):
            return
        is_kill = token == f"A{KILL}"
        if is_kill and self.way.takes_every_step and not self.first.is_over:
            return
        alternatives = ", ".join(possible) or "no more steps"
        raise bad_schedule(token, f"{token} is not possible there; possible are {alternatives}")

    def _strikes_within(self, worker: Worker, token: str, events: int) -> list[str]:
        """Return the tokens that would strike A within the step that it has taken."""
        if worker is not self.first:
            return []
        tokens = []
        for strike in self._strikes():
            for number in range(1, events):
                tokens.append(f"{token}{strike}{number}")
        return tokens

    def _note_turn(self, worker: EveryStepWorker, token: str, possible: Sequence[str]) -> None:
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
                other.see_changes(worker.effects)

    def _go_on(self, worker: Worker) -> None:
        step = worker.begin_step()
        assert step is not None
        worker.go_on()
        if not worker.is_blocked and (step.holds or step.frees):
            comes_to_wait = worker.at is not None and worker.at.waits and not worker.at.holds
            worker.holds = step.holds and worker.has_succeeded() and not comes_to_wait
        self._record(worker, step.name, "blocked" if worker.is_blocked else "done")

    def _go_into_its_step(self, worker: Worker, token: str, events: int) -> str:
        """Take part of the next step, or of what comes before the first. Return where it stands.

        `events` is how many events it does.
        """
        step = worker.begin_step()
        if step is not None:
            worker.holds = step.holds or (worker.holds and not step.frees)
        worker.look_where()
        if not worker.do_events(events) or worker.stepped.at is None:
            raise bad_schedule(token, f"{token}: there are not so many events in that step")
        event = worker.stepped.at
        statement = event.facts.get("statement", "").partition(" ")[0]
        last = statement or event.name.rpartition(".")[2]
        if step is None:
            return f"before {last}"
        return f"in {step.name}, before {last}"

    def _strike(self, worker: Worker, strike: str, at: str) -> None:
        worker.look_where()
        if strike == INTERRUPT:
            worker.signal(signal.SIGTERM)
        else:
            self.is_dark = strike == POWER_CUT
            struck = self.workers if self.is_dark else [worker]
            for each in struck:
                each.kill()
        self._record(worker, f"{STRIKES[strike]} {at}", "struck")

    def _ask_the_blocked(self) -> None:
        """Let blocked workers continue that can, in the order in which they were blocked."""
        blocked = [worker for worker in (*self.queue, *self.workers) if worker.is_blocked]
        self.queue = list(dict.fromkeys(blocked))
        for worker in self.queue:
            worker.go_on()
            if not worker.is_blocked:
                current_steps = [step for step in self.way.steps if step.name == worker.current]
                worker.holds = any(step.holds for step in current_steps)
                self._record(worker, worker.current, "resumed")
                # What it did may let others continue.
                self._ask_the_blocked()
                return

    def _record(self, worker: Worker, step: str, outcome: Happened) -> None:
        worker.holds = worker.holds and not worker.is_over
        holds = tuple(each.letter for each in self.workers if each.holds)
        waiting = tuple(each.letter for each in self.workers if each.is_blocked)
        before = self.now
        self.now = "(the power is off)" if self.is_dark else self._look(self.directory)
        moment = Moment(
            worker=worker.letter,
            before=before,
            after=self.now,
            alone=holds,
            is_blocked=worker.is_blocked,
            is_struck=outcome == "struck",
            ended=worker.ended,
        )
        self.moments.append(moment)
        has_broken = self._judge(self.now, is_over=False)
        on_disk = sorted({str(seen) for seen in self._look_at_disks()})
        event = Event(
            seq=len(self.events) + 1,
            worker=worker.letter,
            number=worker.done,
            step=step,
            outcome=outcome,
            state=str(self.now),
            holds=holds,
            waiting=waiting,
            over=worker.is_over,
            note=_BROKEN if has_broken else worker.complaint(),
            at=worker.stood.get("at"),
            private=worker.stood.get("private"),
            on_disk=tuple(on_disk) or None,
        )
        self.events.append(event)

    def _look(self, directory: Path) -> Any:
        """Return what the shared thing holds, or why it cannot be read."""
        try:
            return self.scenario.look(directory)
        except EXPECTED as error:
            reason = getattr(error, "strerror", None)
            if reason is None:
                reason = to_tool_error(error).message
            return f"({reason.lower().rstrip('.')})"

    def _look_at_disks(self) -> Iterator[Any]:
        """Yield what `look` sees in each state that the disk may have after a power cut now."""
        if POWER_CUT not in (self.way.strikes or ""):
            return
        different_states = {frozenset(files.items()) for files in self._disks()}
        for files in sorted(different_states, key=sorted):
            with TemporaryDirectory(dir=self.directory.parent) as disk:
                for name, content in files:
                    Path(disk, name).write_bytes(content)
                yield self._look(Path(disk))

    def _disks(self) -> Iterator[Files]:
        """Yield each state that the disk may have after a power cut now."""
        for event in self.first.stepped.past:
            is_inside = os.path.dirname(event.path) == str(self.directory)
            if is_inside and event.name in NOT_MODELLED:
                problem = f"what {event.name} leaves after a power cut is not known"
                surprise = f"{self.scenario.name}, {self.variant}: {problem}"
                raise UnexpectedOutcome(surprises=[surprise])
        yield from states_after(self.before, self.first.stepped.past, str(self.directory))

    def _judge(self, now: Any, *, is_over: bool, prefix: str = "") -> bool:
        """Return whether something is broken that was not before."""
        known = len(self.found)
        history = History(
            letters=[worker.letter for worker in self.workers],
            moments=self.moments,
            now=now,
            is_over=is_over,
            directory=self.directory,
            disks=self._disks,
        )
        for reason in self.scenario.invariant(history):
            self.found[prefix + reason] = None
        return len(self.found) > known

    def _played(self, is_complete: bool) -> Played:
        """Return the recording of the run."""
        reasons = self._reasons() if is_complete else []
        if reasons:
            self._mark_last_event()
        verdict: Verdict = "broken" if reasons else "holds"
        recording = Recording(
            scenario=self.scenario.name,
            variant=self.variant,
            workers=tuple(worker.letter for worker in self.workers),
            shared=self.scenario.shared,
            schedule=" ".join(self.taken),
            verdict=verdict,
            reason=reasons[0] if reasons else None,
            also=tuple(reasons[1:]),
            events=tuple(self.events),
        )
        return Played(recording, self.choices, tuple(self.turns), is_complete)

    def _mark_last_event(self) -> None:
        """Mark the last event as the one that broke something, unless another one is marked."""
        if not self.events or any(event.note == _BROKEN for event in self.events):
            return
        note = _BROKEN
        if any(not worker.is_over for worker in self.workers):
            note = "nobody can go on"
        self.events[-1] = replace(self.events[-1], note=note)

    def _reasons(self) -> list[str]:
        """Return all that is broken, beginning with what the story of this variant is about."""
        stuck = [worker.letter for worker in self.workers if not worker.is_over]
        if self.is_dark:
            for now in self._look_at_disks():
                prefix = "After the power cut it is possible that "
                self._judge(now, is_over=True, prefix=prefix)
        elif not stuck:
            self._judge(self.now, is_over=True)
        self._refuse_idle_workers()
        reasons = [*self._crashes(), *self.found]
        if stuck:
            verb = "wait" if len(stuck) > 1 else "waits"
            reasons.insert(0, f"{' and '.join(stuck)} {verb} for ever.")
        return sorted(reasons, key=lambda reason: self.way.breaks not in reason)

    def _crashes(self) -> list[str]:
        """Return which workers of a right variant crashed, whatever the invariant says."""
        if not is_right(self.variant):
            return []
        crashes = []
        for worker in self.workers:
            complaint = worker.complaint() or ""
            if complaint.startswith("failed: "):
                crashes.append(f"{worker.letter} {complaint}.")
        return crashes

    def _refuse_idle_workers(self) -> None:
        """Raise UnexpectedOutcome if a worker came to its end without a step."""
        struck = {event.worker for event in self.events if event.outcome == "struck"}
        for worker in self.workers:
            if worker.done > 0 or not worker.is_over or worker.letter in struck:
                continue
            complaint = worker.complaint() or "it succeeded"
            if not complaint.startswith("got "):
                problem = f"{worker.letter} came to none of its steps ({complaint})"
                surprise = f"{self.scenario.name}, {self.variant}: {problem}"
                raise UnexpectedOutcome(surprises=[surprise])


def _next_token(worker: Worker) -> str:
    return f"{worker.letter}{worker.done + 1}"


def _where(worker: Worker) -> str:
    """Return where a worker is struck."""
    if worker.is_blocked:
        return "while it waits"
    if worker.at is not None:
        return f"before {worker.at.name}"
    return "after the end"
