"""Play one schedule for real: the workers are stepped processes, and each goes on only when it is its turn.

A *step* lasts from one named event of a worker to its next, or to its end. A worker that has to wait for a lock is
blocked: it is asked again after every step of another, and goes on by itself as soon as it can. When everybody who is
left waits, the run is stuck.
"""

import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from ..kit.contract.errors import InvalidValues
from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.stepping.fork_server import ForkServer
from ..kit.stepping.power_cut import states_after
from ..kit.stepping.tracer import SteppedProcess
from .errors import UnexpectedOutcome
from .recording import Event, Happened, Played, Recording, Verdict, bad_schedule, parse_schedule, parts_of
from .scenario import INTERRUPT, LETTERS, POWER_CUT, STRIKES, History, Moment, Scenario
from .scratch import scratch
from .stepped_worker import Worker

_BROKEN: Literal["broken"] = "broken"
_MOST_STEPS = 500


def play(
    scenario: Scenario,
    variant: str,
    schedule: str = "",
    *,
    fork_server: ForkServer,
    workers: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> Played:
    """Follow the schedule; where it ends, the first worker that can goes on, to the end of all of them.

    `check` raises when the whole call is to end.
    """
    way, letters = scenario.ways[variant], LETTERS[: workers or scenario.workers]
    with scratch(way) as (directory, environ), ExitStack() as stack:
        if scenario.world is not None:
            program = ["-m", *way.worker, schedule, letters]
            stdout, stderr = fork_server.start(program, env=environ, cwd=directory).communicate()
            if not stdout:
                said = stderr.decode().strip().rpartition("\n")[2]
                raise UnexpectedOutcome(surprises=[f"{scenario.name}, {variant}: {said}"])
            answer = pickle.loads(stdout)  # noqa: S301 - our own process wrote it
            if isinstance(answer, Played):
                return answer
            raise InvalidValues(*answer)
        start = partial(SteppedProcess, watch=directory.parent, env=environ, cwd=directory, fork_server=fork_server)
        stepped = [stack.enter_context(start(["-m", *way.worker, letter])) for letter in letters]
        players = [Worker(letter, way, process, check) for letter, process in zip(letters, stepped, strict=True)]
        return Play(scenario, variant, players, directory).follow(schedule)


class Play:
    """One run, with workers that have done nothing yet."""

    def __init__(self, scenario: Scenario, variant: str, workers: Sequence[Worker], directory: Path) -> None:
        self.scenario, self.way, self.variant = scenario, scenario.ways[variant], variant
        self.workers, self.first, self.directory = workers, workers[0], directory
        self.before = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
        self.now = self._look(directory)
        """What the shared thing held when it was last looked at."""
        self.taken: list[str] = []
        self.choices: list[list[str]] = []
        """What could have been done instead of each token that was taken, it included."""
        self.queue: list[Worker] = []
        """Those that wait, in the order in which they came."""
        self.events: list[Event] = []
        self.moments: list[Moment] = []
        self.found: dict[str, None] = {}
        """Every sentence of the invariant, in the order in which they came."""
        self.is_dark = False

    def follow(self, schedule: str) -> Played:
        """Do what the schedule says; where it ends, the first worker that can goes on, to the end of all of them."""
        wanted = parse_schedule(schedule)
        if wanted and parts_of(wanted[0])[0] == "A0" != wanted[0]:
            self._take(wanted[0], ["A0", *(f"A{strike}" for strike in self._strikes())])
        for worker in self.workers[len(self.taken) :]:
            worker.come_to_a_step()
            if worker.is_over:
                self._record(worker, worker.current, "done")
        begun = [f"A0{strike}{n}" for strike in self._strikes() for n in range(len(self.first.stepped.past))]
        while (possible := self._enabled()) or len(self.taken) < len(wanted):
            self._take(wanted[len(self.taken)] if len(self.taken) < len(wanted) else possible[0], possible + begun)
            begun = []
        return self._played()

    def _enabled(self) -> list[str]:
        left = [worker for worker in self.workers if not worker.is_over]
        if self.way.in_turn:
            left = left[:1]
        enabled = [f"{worker.letter}{worker.done + 1}" for worker in left if not worker.is_blocked]
        if self.first in left:
            return enabled + [f"A{strike}" for strike in self._strikes()]
        return [f"A{POWER_CUT}"] if not left and POWER_CUT in self._strikes() else enabled

    def _strikes(self) -> str:
        """What may still happen to the first worker."""
        has_struck = any(event.outcome == "struck" for event in self.events)
        return "" if has_struck else self.way.strikes or ""

    def _take(self, token: str, possible: list[str]) -> None:
        step, strike, events = parts_of(token)
        if not ({step, f"A{strike}"} if events else {token}) <= set(possible):
            there = ", ".join(possible) or "no more steps"
            raise bad_schedule(token, f"{token} is not possible there; possible are {there}")
        if len(self.taken) == _MOST_STEPS:
            raise UnexpectedOutcome(surprises=[f"{token[0]} does not end: {_MOST_STEPS} steps were taken"])
        self.taken.append(token)
        worker = next(worker for worker in self.workers if worker.letter == token[0])
        past = len(worker.stepped.past)
        if events:
            self._strike(worker, strike, self._go_into_its_step(worker, token, int(events)))
        elif strike:
            stands = "while it waits" if worker.is_blocked else f"before {worker.at.name}" if worker.at else ""
            self._strike(worker, strike, stands or "after the end")
        else:
            self._go_on(worker)
        within = range(1, len(worker.stepped.past) - past) if worker is self.first else ()
        self.choices.append([*possible, *(f"{token}{sign}{n}" for sign in self._strikes() for n in within)])
        self._ask_the_blocked()

    def _go_on(self, worker: Worker) -> None:
        step = worker.begin_step()
        assert step is not None
        worker.go_on()
        if not worker.is_blocked and (step.holds or step.frees):
            worker.holds = step.holds and not (worker.at is not None and worker.at.waits and not worker.at.holds)
        self._record(worker, step.name, "blocked" if worker.is_blocked else "done")

    def _go_into_its_step(self, worker: Worker, token: str, events: int) -> str:
        """To so many of the events of its next step, or of those before its first. Where it stands then."""
        step = worker.begin_step()
        if step is not None:
            worker.holds = step.holds or (worker.holds and not step.frees)
        worker.look_where()
        if not worker.do_events(events) or worker.stepped.at is None:
            raise bad_schedule(token, f"{token}: there are not so many events in that step")
        event = worker.stepped.at
        last = event.facts.get("statement", "").partition(" ")[0] or event.name.rpartition(".")[2]
        return f"{f'in {step.name}, ' if step else ''}before {last}"

    def _strike(self, worker: Worker, strike: str, at: str) -> None:
        worker.look_where()
        if strike == INTERRUPT:
            worker.signal(signal.SIGTERM)
        else:
            self.is_dark = strike == POWER_CUT
            for each in self.workers if self.is_dark else [worker]:
                each.kill()
        self._record(worker, f"{STRIKES[strike]} {at}", "struck")

    def _ask_the_blocked(self) -> None:
        """In the order in which they came, until nobody gets further."""
        self.queue = [*dict.fromkeys(worker for worker in (*self.queue, *self.workers) if worker.is_blocked)]
        for worker in self.queue:
            worker.go_on()
            if not worker.is_blocked:
                worker.holds = any(step.holds for step in self.way.steps if step.name == worker.current)
                self._record(worker, worker.current, "resumed")
                return self._ask_the_blocked()
        return None

    def _record(self, worker: Worker, step: str, outcome: Happened) -> None:
        worker.holds = worker.holds and not worker.is_over
        holds = tuple(each.letter for each in self.workers if each.holds)
        waiting = tuple(each.letter for each in self.workers if each.is_blocked)
        before, self.now = self.now, "(the power is off)" if self.is_dark else self._look(self.directory)
        did = (worker.letter, before, self.now, holds, worker.is_blocked, outcome == "struck", worker.ended)
        self.moments.append(Moment(*did))
        note = _BROKEN if self._judge(self.now, is_over=False) else worker.complaint()
        acts = (len(self.events) + 1, worker.letter, worker.done, step)
        on_disk = tuple(sorted({str(seen) for seen in self._look_at_disks()})) or None
        kept = {**worker.stood, "on_disk": on_disk}
        self.events.append(Event(*acts, outcome, str(self.now), holds, waiting, worker.is_over, note, **kept))

    def _look(self, directory: Path) -> Any:
        try:
            return self.scenario.look(directory)
        except EXPECTED as error:
            reason = getattr(error, "strerror", None) or to_tool_error(error).message
            return f"({reason.lower().rstrip('.')})"

    def _look_at_disks(self) -> Iterator[Any]:
        """What `look` sees in each state that the disk may have after a power cut at this moment."""
        if POWER_CUT not in (self.way.strikes or ""):
            return
        past = self.first.stepped.past
        possible = {frozenset(files.items()) for files in states_after(self.before, past, str(self.directory))}
        for files in sorted(possible, key=sorted):
            with TemporaryDirectory(dir=self.directory.parent) as disk:
                for name, content in files:
                    Path(disk, name).write_bytes(content)
                yield self._look(Path(disk))

    def _judge(self, now: Any, *, is_over: bool, prefix: str = "") -> bool:
        """Whether something is broken that was not before."""
        known, letters = len(self.found), [worker.letter for worker in self.workers]
        for reason in self.scenario.invariant(History(letters, self.moments, now, is_over)):
            self.found[prefix + reason] = None
        return len(self.found) > known

    def _played(self) -> Played:
        """With the last step marked, if no step could be named as the one that broke it."""
        reasons, events = self._reasons(), self.events
        if reasons and events and not any(event.note == _BROKEN for event in events):
            events[-1] = replace(events[-1], note="nobody can go on" if events[-1].waiting else _BROKEN)
        letters, also = tuple(worker.letter for worker in self.workers), tuple(reasons[1:])
        ended: tuple[Verdict, str | None] = (_BROKEN, reasons[0]) if reasons else ("holds", None)
        run = (self.scenario.name, self.variant, letters, self.scenario.shared, " ".join(self.taken))
        return Played(Recording(*run, *ended, also, tuple(events)), self.choices)

    def _reasons(self) -> list[str]:
        """All that is broken; what the story of this way is about comes first."""
        struck = {event.worker for event in self.events if event.outcome == "struck"}
        for worker in self.workers:
            said = worker.complaint() or "it succeeded"
            if worker.done == 0 and worker.is_over and worker.letter not in struck and not said.startswith("got "):
                none = f"{self.scenario.name}, {self.variant}: {worker.letter} came to none of its steps ({said})"
                raise UnexpectedOutcome(surprises=[none])
        stuck = [worker.letter for worker in self.workers if not worker.is_over]
        for now in self._look_at_disks() if self.is_dark else ():
            self._judge(now, is_over=True, prefix="After the power cut it is possible that ")
        if not stuck and not self.is_dark:
            self._judge(self.now, is_over=True)
        waits = [f"{' and '.join(stuck)} {'wait' if len(stuck) > 1 else 'waits'} for ever."] if stuck else []
        return sorted([*waits, *self.found], key=lambda reason: self.way.breaks not in reason)
