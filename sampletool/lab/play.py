"""Play one schedule for real: the workers are stepped processes, and each goes on only when it is its turn.

A *step* lasts from one named event of a worker to its next, or to its end. A worker that has to wait for a lock is
blocked: it is asked again after every step of another, and goes on by itself as soon as it can. When everybody who is
left waits, the run is stuck.
"""

import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from sampletool.kit.contract.errors import InvalidValues, ToolError
from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.kit.stepping.power_cut import Files, states_after
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.lab.errors import UnexpectedOutcome
from sampletool.lab.recording import (
    Event,
    Happened,
    Played,
    Recording,
    Verdict,
    bad_schedule,
    parse_schedule,
    strike_within,
)
from sampletool.lab.scenario import INTERRUPT, KILL, LETTERS, POWER_CUT, STRIKES, History, Moment, Scenario, Way, find
from sampletool.lab.scratch import scratch
from sampletool.lab.stepped_worker import Worker

_BROKEN: Literal["broken"] = "broken"
_MOST_STEPS = 500


def play(
    name: str,
    variant: str,
    schedule: str = "",
    *,
    workers: int | None = None,
    fork_server: ForkServer | None = None,
    check: Callable[[], None] = lambda: None,
) -> Played:
    """Follow the schedule; where it ends, the first worker that can goes on, to the end of all of them.

    `check` raises when the whole call is to end.
    """
    scenario = find(name)
    way = scenario.ways[variant]
    letters = LETTERS[: workers or scenario.workers]
    with scratch(way) as (directory, environ), ExitStack() as stack:
        server = fork_server or stack.enter_context(ForkServer([], environ))
        if scenario.world is not None:
            program = ["-m", "sampletool.lab.coroutines", name, variant, schedule, letters]
            stdout, stderr = server.start(None, program, environ, directory).communicate()
            if not stdout:
                raise UnexpectedOutcome([f"{name}, {variant}: {stderr.decode().strip().rpartition(chr(10))[2]}"], None)
            told = pickle.loads(stdout)  # noqa: S301 - our own process wrote it
            if isinstance(told, Played):
                return told
            raise InvalidValues(*told)
        players = []
        for letter in letters:
            program = way.argv(name, variant, letter)
            stepped = SteppedProcess(program, watch=directory.parent, env=environ, cwd=directory, fork_server=server)
            players.append(Worker(letter, way, stack.enter_context(stepped), check))
        return follow_with(players, name, variant, schedule, directory)


def follow_with(workers: Sequence[Worker], name: str, variant: str, schedule: str, directory: Path) -> Played:
    """With workers that have done nothing yet."""
    scenario = find(name)
    before = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    playing = _Play(name, variant, scenario, scenario.ways[variant], directory, workers, before)
    playing.follow(parse_schedule(schedule))
    return playing.played()


@dataclass
class _Play:
    name: str
    variant: str
    scenario: Scenario
    way: Way
    directory: Path
    workers: Sequence[Worker]
    before: Files
    now: Any = None
    """What the shared thing held when it was last looked at."""
    taken: list[str] = field(default_factory=list)
    choices: list[list[str]] = field(default_factory=list)
    """What could have been done instead of each token that was taken, it included."""
    queue: list[Worker] = field(default_factory=list)
    """Those that wait, in the order in which they came."""
    events: list[Event] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    found: dict[str, None] = field(default_factory=dict)
    """Every sentence of the invariant, in the order in which they came."""
    is_dark: bool = False

    def follow(self, wanted: list[str]) -> None:
        """Do what the schedule says; where it ends, the first worker that can goes on, to the end of all of them."""
        self.now = self._look(self.directory)
        at_the_beginning = self._begin(wanted)
        while possible := self._enabled():
            token = wanted[len(self.taken)] if len(self.taken) < len(wanted) else possible[0]
            within = strike_within(token)
            if not ({within[0], token[0] + within[1]} if within else {token}) <= set(possible):
                raise bad_schedule(token, f"{token} is not possible there; possible are {', '.join(possible)}")
            if len(self.taken) == _MOST_STEPS:
                raise UnexpectedOutcome([f"{token[0]} does not end: {_MOST_STEPS} steps were taken"], None)
            self.taken.append(token)
            self.choices.append([*possible, *self._do(token), *at_the_beginning])
            at_the_beginning = []
        for token in wanted[len(self.taken) :]:
            raise bad_schedule(token, f"{token} is not possible there; possible are no more steps")

    def played(self) -> Played:
        """With the last step marked, if no step could be named as the one that broke it."""
        reasons, events = self._reasons(), self.events
        if reasons and events and not any(event.note == _BROKEN for event in events):
            events[-1] = replace(events[-1], note="nobody can go on" if events[-1].waiting else _BROKEN)
        letters, also = tuple(worker.letter for worker in self.workers), tuple(reasons[1:])
        ended: tuple[Verdict, str | None] = (_BROKEN, reasons[0]) if reasons else ("holds", None)
        seen = (self.scenario.shared, " ".join(self.taken))
        return Played(Recording(self.name, self.variant, letters, *seen, *ended, also, tuple(events)), self.choices)

    def _enabled(self) -> list[str]:
        left = [worker for worker in self.workers if not worker.is_over]
        if self.scenario.in_turn:
            left = left[:1]
        enabled = [f"{worker.letter}{worker.done + 1}" for worker in left if not worker.is_blocked]
        first = self.workers[0]
        if first in left:
            enabled += [first.letter + strike for strike in self._strikes()]
        elif not left and POWER_CUT in self._strikes():
            enabled = [first.letter + POWER_CUT]
        return enabled

    def _strikes(self) -> str:
        """What may still happen to the first worker."""
        has_struck = any(event.outcome == "struck" for event in self.events)
        return "" if has_struck else self.way.strikes or ""

    def _begin(self, wanted: list[str]) -> list[str]:
        """To the first step of each worker. On its way the first may be struck, or could have been: these tokens."""
        first = self.workers[0]
        for token in wanted[:1]:
            if (within := strike_within(token)) and within[0] == "A0" and within[1] in self._strikes():
                self.taken, self.choices = [token], [[]]
                self._strike_within(first, token)
        for worker in self.workers[len(self.taken) :]:
            worker.come_to_a_step()
            self.queue += [worker] * worker.is_blocked
            if worker.is_over:
                self._record(worker, worker.current, "done")
        return [f"A0{strike}{n}" for strike in self._strikes() for n in range(len(first.stepped.past))]

    def _do(self, token: str) -> list[str]:
        """What could have struck within it."""
        worker = next(worker for worker in self.workers if worker.letter == token[0])
        strikes, within = self._strikes(), []
        past = len(worker.stepped.past) if strikes else 0
        if token[1:] in STRIKES:
            wait_or_step = "while it waits" if worker.is_blocked else f"before {worker.at.name}" if worker.at else None
            self._strike(worker, token[1:], wait_or_step or "after the end")
        elif strike_within(token):
            self._strike_within(worker, token)
        else:
            step = worker.at
            assert step is not None
            worker.done += 1
            worker.current = step.name
            worker.go_on()
            if worker.is_blocked:
                self.queue.append(worker)
            elif step.holds or step.frees:
                worker.holds = step.holds and not (worker.at is not None and worker.at.waits and not worker.at.holds)
            self._record(worker, step.name, "blocked" if worker.is_blocked else "done")
            for strike in strikes if worker is self.workers[0] else "":
                within += [f"{token}{strike}{n}" for n in range(1, len(worker.stepped.past) - past)]
        self._ask_the_blocked()
        return within

    def _strike_within(self, worker: Worker, token: str) -> None:
        """After some of the events of its next step, or of those before its first."""
        found = strike_within(token)
        assert found is not None
        step, worker.at = worker.at, None
        if step is not None:
            worker.done += 1
            worker.current = step.name
            worker.holds = step.holds or (worker.holds and not step.frees)
        worker.look_where()
        if not worker.begin_step(found[2]):
            raise bad_schedule(token, f"{token}: there are not so many events in that step")
        event = worker.stepped.at
        assert event is not None
        last = event.facts.get("statement", "").partition(" ")[0] or event.name.rpartition(".")[2]
        self._strike(worker, found[1], f"{f'in {step.name}, ' if step else ''}before {last}")

    def _strike(self, worker: Worker, strike: str, at: str) -> None:
        worker.look_where()
        if strike == INTERRUPT:
            worker.signal(signal.SIGTERM)
            self.queue = [each for each in self.queue if each is not worker] + [worker] * worker.is_blocked
        elif strike == KILL:
            worker.stepped.kill()
        elif strike == POWER_CUT:
            self.is_dark = True
            for each in self.workers:
                each.stepped.kill()
        self._record(worker, f"{STRIKES[strike]} {at}", "struck")

    def _ask_the_blocked(self) -> None:
        """In the order in which they came, until nobody gets further."""
        moved = True
        while moved and not self.is_dark:
            moved = False
            for worker in list(self.queue):
                if worker.is_over:
                    self.queue.remove(worker)
                    continue
                worker.go_on()
                if not worker.is_blocked:
                    self.queue.remove(worker)
                    worker.holds = any(step.holds for step in self.way.steps if step.name == worker.current)
                    self._record(worker, worker.current, "resumed")
                    moved = True

    def _record(self, worker: Worker, step: str, outcome: Happened) -> None:
        worker.holds = worker.holds and not worker.is_over
        holds = tuple(each.letter for each in self.workers if each.holds)
        waiting = tuple(each.letter for each in self.workers if each.is_blocked)
        before, self.now = self.now, "(dark)" if self.is_dark else self._look(self.directory)
        did = (worker.letter, step, before, self.now, holds, worker.is_blocked, outcome == "struck")
        self.moments.append(Moment(*did, worker.status, worker.answer))
        note = _BROKEN if self._judge(self.now, is_over=False) else worker.complaint()
        acts = (len(self.events) + 1, worker.letter, worker.done, step)
        on_disk = tuple(sorted({str(seen) for seen in self._look_at_disks()})) or None
        kept = {**worker.stood, "on_disk": on_disk}
        self.events.append(Event(*acts, outcome, str(self.now), holds, waiting, worker.is_over, note, **kept))

    def _look(self, directory: Path) -> Any:
        try:
            return self.scenario.look(directory)
        except (OSError, ToolError) as error:
            return f"({(getattr(error, 'strerror', None) or str(error)).lower().rstrip('.')})"

    def _look_at_disks(self) -> Iterator[Any]:
        """What `look` sees in each state that the disk may have after a power cut at this moment."""
        if POWER_CUT not in (self.way.strikes or ""):
            return
        past = self.workers[0].stepped.past
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

    def _reasons(self) -> list[str]:
        """All that is broken; what the story of this way is about comes first."""
        struck = {event.worker for event in self.events if event.outcome == "struck"}
        for worker in self.workers:
            said = worker.complaint() or "it succeeded"
            if worker.done == 0 and worker.is_over and worker.letter not in struck and not said.startswith("told "):
                came_to_none = f"{self.name}, {self.variant}: {worker.letter} came to none of its steps ({said})"
                raise UnexpectedOutcome([came_to_none], None)
        stuck = [worker.letter for worker in self.workers if not worker.is_over]
        for now in self._look_at_disks() if self.is_dark else ():
            self._judge(now, is_over=True, prefix="After the power cut it is possible that ")
        if not stuck and not self.is_dark:
            self._judge(self.now, is_over=True)
        waits = [f"{' and '.join(stuck)} {'wait' if len(stuck) > 1 else 'waits'} for ever."] if stuck else []
        return sorted([*waits, *self.found], key=lambda reason: self.way.breaks not in reason)
