"""Play one schedule for real: the workers are processes on the stage, and each goes on only when it is its turn.

A *step* lasts from one named event of a worker to its next, or to its end. A worker that has to wait for a lock is
blocked: it is asked again after every step of another, and goes on by itself as soon as it can. When everybody who is
left waits, the run is stuck.
"""

import json
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from sampletool.contract.errors import ToolError
from sampletool.lab.cast import Worker
from sampletool.lab.coroutines import play_coroutines
from sampletool.lab.recording import Event, Played, Recording, misfit, parse_schedule, say_schedule
from sampletool.lab.scenario import INTERRUPT, KILL, LETTERS, POWER_CUT, STRIKES, Outcome, find
from sampletool.lab.scratch import PACKAGE_ROOT, program_of, scratch
from sampletool.lab.verdict import UnexpectedOutcome
from sampletool.stage import director
from sampletool.stage.crash_model import Files, states_after
from sampletool.stage.troupe import Troupe

Check = Callable[[], None]
"""Raises when the whole call is to end."""


def play(
    name: str,
    variant: str,
    schedule: str = "",
    *,
    workers: int | None = None,
    package_root: Path = PACKAGE_ROOT,
    troupe: Troupe | None = None,
    check: Check = lambda: None,
) -> Played:
    """Follow the schedule; where it ends, the first worker that can goes on, to the end of all of them."""
    scenario = find(name)
    way = scenario.ways[variant]
    if scenario.world is not None:
        return play_coroutines(name, variant, schedule, workers=workers, package_root=package_root)
    with scratch(scenario, way, package_root) as (directory, environ), ExitStack() as stack:
        before = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
        cast = [
            Worker(
                letter,
                way,
                stack.enter_context(
                    director.Actor(
                        program_of(name, variant, letter),
                        watch=directory.parent,
                        env=environ,
                        cwd=directory,
                        troupe=troupe,
                    )
                ),
                check,
            )
            for letter in LETTERS[: workers or scenario.workers]
        ]
        return _Play(name, variant, directory, cast, before, check).follow(schedule)


class _Play:
    def __init__(
        self, name: str, variant: str, directory: Path, cast: Sequence[Worker], before: Files, check: Check
    ) -> None:
        self._name, self._variant = name, variant
        self._scenario = find(name)
        self._way = self._scenario.ways[variant]
        self._directory = directory
        self._cast = cast
        self._queue: list[Worker] = []
        self._events: list[Event] = []
        self._before = before
        self._power_cut: str | None = None
        self._is_dark = False
        self._check = check

    def follow(self, schedule: str) -> Played:
        wanted = parse_schedule(schedule)
        taken: list[str] = []
        choices: list[tuple[str, ...]] = []
        for worker in self._cast:
            worker.come_to_a_step()
            self._queue += [worker] * worker.is_blocked
        while enabled := self._enabled():
            self._check()
            token = wanted.pop(0) if wanted else enabled[0]
            if token not in enabled:
                raise misfit(schedule, token, enabled)
            choices.append(tuple(enabled))
            taken.append(token)
            self._do(token)
        if wanted:
            raise misfit(schedule, wanted[0], ())
        reason = self._verdict()
        recording = Recording(
            self._name,
            self._variant,
            tuple(worker.letter for worker in self._cast),
            self._scenario.shared,
            say_schedule(taken),
            "broken" if reason else "holds",
            reason,
            tuple(self._events),
        )
        return Played(recording.marked(), tuple(choices))

    def _enabled(self) -> list[str]:
        left = [worker for worker in self._cast if not worker.is_over]
        if self._scenario.in_turn:
            left = left[:1]
        enabled = [f"{worker.letter}{worker.done + 1}" for worker in left if not worker.is_blocked]
        first = self._cast[0]
        if any(event.outcome == "struck" for event in self._events):
            return enabled
        strikes = self._scenario.strikes_of(self._way)
        if first in left and not first.is_blocked:
            enabled += [first.letter + strike for strike in strikes]
        elif not left and POWER_CUT in strikes:
            enabled = [first.letter + POWER_CUT]
        return enabled

    def _do(self, token: str) -> None:
        worker = next(worker for worker in self._cast if worker.letter == token[0])
        if token[1:] in STRIKES:
            self._strike(worker, token[1:])
        else:
            assert worker.at is not None
            step = worker.at
            worker.done += 1
            worker.current = step.name
            worker.go_on()
            if worker.is_blocked:
                self._queue.append(worker)
            elif step.holds or step.frees:
                worker.holds = step.holds and not (worker.at is not None and worker.at.waits and not worker.at.holds)
            self._record(worker, step.name, "blocked" if worker.is_blocked else "done")
        self._ask_the_blocked()

    def _strike(self, worker: Worker, strike: str) -> None:
        at = f"before {worker.at.name}" if worker.at else "after the end"
        if strike == INTERRUPT:
            worker.signal(signal.SIGTERM)
            if worker.is_blocked:
                self._queue.append(worker)
        elif strike == KILL:
            worker.actor.kill()
        elif strike == POWER_CUT:
            self._power_cut = self._see_power_cut(worker)
            self._is_dark = True
            for each in self._cast:
                each.actor.kill()
        self._record(worker, f"{STRIKES[strike]} {at}", "struck")

    def _see_power_cut(self, worker: Worker) -> str | None:
        """What may be broken then. Of several things that may, always the same one is told."""
        judge = self._scenario.after_power_cut
        assert judge is not None
        was_told = worker.ended is not None and worker.ended.status == 0
        possible = states_after(self._before, worker.actor.past, str(self._directory))
        reasons = {reason for files in possible if (reason := judge(files, was_told))}
        return min(reasons, key=lambda reason: (len(reason), reason), default=None)

    def _ask_the_blocked(self) -> None:
        """In the order in which they came, until nobody gets further."""
        moved = True
        while moved and not self._is_dark:
            moved = False
            for worker in list(self._queue):
                if worker.is_over:
                    self._queue.remove(worker)
                    continue
                worker.go_on()
                if not worker.is_blocked:
                    self._queue.remove(worker)
                    step = next(step for step in self._way.steps if step.name == worker.current)
                    worker.holds = step.holds
                    self._record(worker, worker.current, "resumed")
                    moved = True

    def _record(self, worker: Worker, step: str, outcome: str) -> None:
        before = self._events[-1].state if self._events else ""
        state = "(dark)" if self._is_dark else self._look()
        note = self._power_cut
        if self._scenario.damage is not None and outcome in ("done", "resumed"):
            note = self._scenario.damage(worker.letter, before, state)
        alone = [each.letter for each in self._cast if each.holds and not each.is_over]
        if len(alone) > 1:
            note = f"{' and '.join(alone)} are both alone"
        if worker.is_over:
            worker.holds = False
            note = note or worker.complaint()
        self._events.append(
            Event(
                len(self._events) + 1,
                worker.letter,
                worker.done,
                step,
                outcome,  # type: ignore[arg-type]
                state,
                tuple(each.letter for each in self._cast if each.holds),
                tuple(each.letter for each in self._cast if each.is_blocked),
                worker.is_over,
                note,
            )
        )

    def _look(self) -> str:
        try:
            return self._scenario.look(self._directory)
        except (OSError, ToolError) as error:
            return f"({(getattr(error, 'strerror', None) or str(error)).lower().rstrip('.')})"

    def _verdict(self) -> str | None:
        if self._is_dark:
            return self._power_cut
        stuck = [worker.letter for worker in self._cast if not worker.is_over]
        if stuck:
            return f"{' and '.join(stuck)} {'wait' if len(stuck) > 1 else 'waits'} for ever."
        struck = {event.worker for event in self._events if event.outcome == "struck"}
        for worker in self._cast:
            said = worker.complaint() or "it succeeded"
            if worker.done == 0 and worker.letter not in struck and not said.startswith("told "):
                surprise = f"{self._name}, {self._variant}: {worker.letter} came to none of its steps ({said})"
                raise UnexpectedOutcome([surprise], None)
        ended = {worker.letter: worker.ended for worker in self._cast if worker.ended is not None}
        answers = {}
        for letter, end in ended.items():
            with suppress(ValueError):
                answers[letter] = json.loads(end.stdout)
        statuses = {letter: end.status for letter, end in ended.items()}
        letters = [worker.letter for worker in self._cast]
        crowd = next((event.holds for event in self._events if len(event.holds) > 1), ())
        waited = sorted({event.worker for event in self._events if event.outcome == "blocked"})
        return self._scenario.check(Outcome(self._directory, letters, statuses, answers, waited, crowd))
