"""sampletool/audit/probes.py, on scripts that are known to be wrong or right"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.audit import probes as module
from sampletool.audit.failure import Failure
from sampletool.audit.probes import (
    Burst,
    InterruptionPoint,
    Kill,
    Stall,
    choose_interruption_points,
    probe_burst,
    probe_kill,
    probe_stall,
    start_together,
    start_until,
)
from sampletool.audit.trial import Attempt, Outcome, Tally, open_trial
from sampletool.kit.safety.signals import Signals
from tests.audit.support import candidate, eventually, is_gone, is_stopped


def is_stopped_or_gone(pid: int) -> bool:
    return is_stopped(pid) or is_gone(pid)


_FEW_POINTS = 4


_REFUSED = Failure(75, "BUSY", None, names_holder=False, output="BUSY: wait")
_TALLY = Tally(
    claimed=1,
    survived=1,
    silently_lost=0,
    failed_loudly=0,
    hung=0,
    failures=[],
    still_readable=True,
)


class FakeRun:
    """A run that notes what is done with it."""

    def __init__(self, *, can_be_stopped: bool = True) -> None:
        self.steps: list[str] = []
        self._can_be_stopped = can_be_stopped

    def stop(self, _signals: Signals) -> bool:
        self.steps.append("stop")
        return self._can_be_stopped

    def resume(self) -> None:
        self.steps.append("resume")

    def kill(self) -> None:
        self.steps.append("kill")


class FakeTrial:
    """A trial whose new runs have these outcomes. It notes how long it is waited for."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self.naps: list[float] = []
        self.finished: list[object] = []
        signals = SimpleNamespace(wait=self.naps.append, check=lambda: None)
        self.sandbox = SimpleNamespace(signals=signals)
        self._outcomes = iter(outcomes)

    def prepare(self) -> str:
        return "the first attempt"

    def start(self) -> str:
        return "another attempt"

    def finish(self, attempt: object) -> Outcome:
        self.finished.append(attempt)
        return next(self._outcomes) if attempt == "another attempt" else "claimed"

    def tally(self, first: object) -> Tally:
        assert first == "the first attempt"
        return _TALLY


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeTrial, list[FakeRun]], None]:
    """Return a function that lets the probes use a fake trial, and interrupt these runs."""

    def use(trial: FakeTrial, runs: list[FakeRun]) -> None:
        def runs_to_interrupt(_trial: object, first: object, _spread_count: int) -> list[Any]:
            assert first == "the first attempt"
            return [SimpleNamespace(run=run) for run in runs]

        monkeypatch.setattr(module, "open_trial", lambda *_arguments: nullcontext(trial))
        monkeypatch.setattr(module, "_runs_to_interrupt", runs_to_interrupt)

    return use


@pytest.mark.parametrize(
    ("outcomes", "stopped", "refused", "hung"),
    [
        (["claimed", "claimed", "claimed", "claimed"], 4, 0, 0),
        ([_REFUSED, "claimed", "claimed", "claimed"], 4, 1, 0),
        # Each of these takes long, and they do not differ.
        ([_REFUSED, "claimed", _REFUSED], 3, 2, 0),
        (["hung"], 1, 0, 1),
        (["claimed", "hung"], 2, 0, 1),
    ],
)
def test_runs_are_stopped_until_one_hangs_or_two_were_refused_meanwhile(
    signals: Signals,
    interrupted: Callable[[FakeTrial, list[FakeRun]], None],
    outcomes: list[Outcome],
    stopped: int,
    refused: int,
    hung: int,
) -> None:
    trial, runs = FakeTrial(outcomes), [FakeRun() for _ in range(4)]
    interrupted(trial, runs)

    stall = probe_stall(candidate("naive"), signals, 4)

    assert stall == Stall(
        stopped=stopped,
        refused_meanwhile=refused,
        hung_meanwhile=hung,
        tally=_TALLY,
    )
    used = [["stop", "resume"]] * stopped
    assert [run.steps for run in runs] == used + [[]] * (4 - stopped)
    assert len(trial.finished) == 2 * stopped


def test_if_a_run_is_over_before_it_is_stopped_no_other_one_is_started(
    signals: Signals,
    interrupted: Callable[[FakeTrial, list[FakeRun]], None],
) -> None:
    trial, run = FakeTrial([]), FakeRun(can_be_stopped=False)
    interrupted(trial, [run])

    stall = probe_stall(candidate("naive"), signals, 1)

    assert stall == Stall(stopped=0, refused_meanwhile=0, hung_meanwhile=0, tally=_TALLY)
    assert run.steps == ["stop", "resume"]
    assert len(trial.finished) == 1


def _busy(retry_after_seconds: float | None) -> Failure:
    return replace(_REFUSED, retry_after_seconds=retry_after_seconds)


@pytest.mark.parametrize(
    ("outcomes", "killed", "is_blocked", "naps"),
    [
        (["claimed", "claimed"], 2, False, []),
        ([_busy(None), "claimed", "claimed"], 2, False, [0.5]),
        ([_busy(None), _busy(None), "claimed", "claimed"], 2, False, [0.5, 0.5]),
        ([_busy(None), _busy(None), _busy(None)], 1, True, [0.5, 0.5]),
        ([_busy(3.0), "claimed", "claimed"], 2, False, [3.0]),
        ([_busy(0.1), "claimed", "claimed"], 2, False, [0.5]),
        # No longer than a run may take.
        ([_busy(99.0), "claimed", "claimed"], 2, False, [10.0]),
        (["hung"], 1, True, []),
        (["claimed", "hung"], 2, True, []),
    ],
)
def test_after_a_kill_another_run_is_tried_up_to_three_times(
    signals: Signals,
    interrupted: Callable[[FakeTrial, list[FakeRun]], None],
    outcomes: list[Outcome],
    killed: int,
    is_blocked: bool,
    naps: list[float],
) -> None:
    trial, runs = FakeTrial(outcomes), [FakeRun(), FakeRun()]
    interrupted(trial, runs)

    kill = probe_kill(candidate("naive", deadline_seconds=10.0), signals, 2)

    assert kill == Kill(killed=killed, blocked_afterwards=is_blocked, tally=_TALLY)
    assert trial.naps == naps
    assert [run.steps for run in runs] == [["kill"]] * killed + [[]] * (2 - killed)


@pytest.mark.parametrize(
    ("at_once", "bursts", "most"),
    [([4], 1, 4), ([1, 2], 2, 2), ([0, 1, 0, 3], 4, 3), ([1] + [0] * 19, 20, 1)],
)
def test_bursts_are_repeated_until_two_runs_overlap_but_not_for_ever(
    signals: Signals,
    monkeypatch: pytest.MonkeyPatch,
    at_once: list[int],
    bursts: int,
    most: int,
) -> None:
    counts = chain(at_once, repeat(9))
    trial = FakeTrial([])
    finished: list[object] = []
    monkeypatch.setattr(trial, "finish_all", finished.append, raising=False)
    monkeypatch.setattr(module, "open_trial", lambda *_arguments: nullcontext(trial))
    monkeypatch.setattr(module, "max_concurrent", lambda _runs: next(counts))
    monkeypatch.setattr(
        module, "start_together", lambda _trial, runs: [SimpleNamespace(run=None)] * runs
    )

    burst = probe_burst(candidate("naive"), signals, runs=6)

    assert burst == Burst(bursts=bursts, runs=6, most_at_once=most, tally=_TALLY)
    assert len(finished) == bursts


@pytest.mark.parametrize(
    ("point", "polls"),
    [
        (InterruptionPoint(), 1),
        (InterruptionPoint(fraction=0.5), 6),
        (InterruptionPoint(changes=1), 3),
        (InterruptionPoint(changes=2), 5),
        (InterruptionPoint(fraction=0.5, changes=1), 6),
    ],
)
def test_a_run_is_yielded_when_it_has_run_long_enough_and_has_made_enough_changes(
    point: InterruptionPoint,
    polls: int,
) -> None:
    """The usual run takes 1 s. This one is polled every 0.1 s, and changes files twice."""
    states = iter([{}, {}, {}, {"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}, {"a": 2}])
    steps: list[float] = []
    trial = StartedTrial(states, steps)

    attempt: object = start_until(point, trial, usual_seconds=1.0)  # type: ignore[arg-type]

    assert attempt is trial.attempt
    assert len(steps) == polls
    assert trial.finished == []


class StartedTrial:
    """A trial with one run, whose files have these states one after the other."""

    def __init__(self, states: Iterator[object], steps: list[float]) -> None:
        self.finished: list[object] = []
        self.attempt = SimpleNamespace(run=self)
        self.sandbox = SimpleNamespace(
            file_states=lambda: next(states),
            signals=SimpleNamespace(wait=self._wait, check=lambda: None),
        )
        self.naps: list[float] = []
        self._steps = steps

    def start(self) -> object:
        return self.attempt

    def finish(self, attempt: object) -> None:
        self.finished.append(attempt)

    def poll(self) -> bool:
        assert len(self._steps) < 100, "it waits without a limit"
        self._steps.append(self.elapsed_seconds)
        return False

    @property
    def elapsed_seconds(self) -> float:
        return len(self._steps) / 10 - 0.1

    def _wait(self, seconds: float) -> None:
        self.naps.append(seconds)


def test_a_point_that_does_not_come_is_given_up_after_three_times_the_usual_time() -> None:
    steps: list[float] = []
    trial = StartedTrial(repeat({}), steps)

    point = InterruptionPoint(changes=1)
    attempt = start_until(point, trial, usual_seconds=0.2)  # type: ignore[arg-type]

    assert attempt is None
    assert trial.finished == [trial.attempt]
    # 3 * 0.2 s and half a second
    assert steps[-1] == pytest.approx(1.1, abs=0.11)
    assert set(trial.naps) == {0.2 / 1000}


def test_a_burst_loses_changes_of_who_reads_and_writes_back(signals: Signals) -> None:
    burst = probe_burst(candidate("naive"), signals, runs=6)

    assert burst.most_at_once > 1
    assert burst.tally.claimed + burst.tally.failed_loudly == 6
    assert burst.tally.silently_lost > 0


def test_no_run_of_a_burst_begins_before_all_have_been_loaded(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 6
    with open_trial(candidate("clock"), signals) as trial:
        start = trial.start

        def start_late() -> Attempt:
            """Begin a run when each run before it is stopped, or over if nothing stops it."""
            for run in trial.sandbox.runs:
                assert eventually(partial(is_stopped_or_gone, run.pid))
            return start()

        monkeypatch.setattr(trial, "start", start_late)
        attempts = start_together(trial, runs)
        trial.finish_all(attempts)

        began = [
            float((trial.sandbox.directory / "home" / attempt.key).read_text())
            for attempt in attempts
        ]

    resumed_at = min(attempt.run.running_since for attempt in attempts)
    assert sum(moment > resumed_at for moment in began) > runs / 2, (
        "a few may get ahead on a busy machine"
    )


def test_in_a_burst_a_loud_failure_is_no_loss(signals: Signals) -> None:
    burst = probe_burst(candidate("lockfile"), signals, runs=6)

    assert burst.tally.silently_lost == 0
    assert burst.tally.still_readable
    assert burst.tally.failed_loudly > 0
    assert burst.tally.claimed == burst.tally.survived == 6 - burst.tally.failed_loudly


def test_who_is_stopped_between_reading_and_writing_overwrites_what_another_wrote(
    signals: Signals,
) -> None:
    stall = probe_stall(candidate("naive"), signals, _FEW_POINTS)

    assert stall.stopped > 0
    assert stall.tally.silently_lost > 0 or not stall.tally.still_readable


def test_who_is_stopped_with_a_lock_stands_in_the_way(signals: Signals) -> None:
    stall = probe_stall(candidate("lockfile"), signals, _FEW_POINTS)

    assert stall.refused_meanwhile + stall.hung_meanwhile > 0
    assert stall.tally.silently_lost == stall.tally.hung == 0


def test_another_that_waits_for_a_stopped_one_hangs(signals: Signals) -> None:
    stall = probe_stall(candidate("waiting", deadline_seconds=2.0), signals, _FEW_POINTS)

    assert stall.hung_meanwhile == 1
    assert stall.tally.silently_lost == 0


def test_a_kernel_lock_is_free_after_kill_9(signals: Signals) -> None:
    kill = probe_kill(candidate("waiting"), signals, _FEW_POINTS)

    assert kill.killed > 0
    assert not kill.blocked_afterwards
    assert kill.tally.still_readable


def test_a_lock_file_blocks_everybody_after_kill_9(signals: Signals) -> None:
    kill = probe_kill(candidate("lockfile"), signals, _FEW_POINTS)

    assert kill.killed > 0
    assert kill.blocked_afterwards
    assert kill.tally.still_readable


def test_who_says_when_to_come_back_after_kill_9_is_asked_again_then(signals: Signals) -> None:
    kill = probe_kill(candidate("lease"), signals, spread_count=0)

    assert kill.tally.failed_loudly > 0
    assert not kill.blocked_afterwards


def test_points_are_spread_over_a_run_and_follow_its_changes_more_of_them_for_a_quick_tool() -> (
    None
):
    slow, quick = (
        choose_interruption_points(2, usual_seconds=1.0),
        choose_interruption_points(2, usual_seconds=0.01),
    )

    after_changes = [InterruptionPoint(changes=changes) for changes in (1, 2, 3, 4)]
    assert slow == [
        InterruptionPoint(fraction=0.25),
        InterruptionPoint(fraction=0.75),
        *after_changes,
    ]
    assert quick[10:] == after_changes * 5
    assert [point.fraction for point in quick[:10]] == pytest.approx(
        [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]
    )
    assert len(choose_interruption_points(2, usual_seconds=0.001)) == 8 * len(slow)


def test_the_point_after_a_change_comes_when_the_change_is_there(signals: Signals) -> None:
    with open_trial(candidate("lockfile"), signals) as trial:
        usual_seconds = trial.prepare().run.elapsed_seconds

        attempt = start_until(InterruptionPoint(changes=1), trial, usual_seconds)

        assert attempt is not None
        assert (trial.sandbox.directory / "home" / "settings.lock").exists()
        trial.finish(attempt)


def test_a_point_that_never_comes_is_given_up(signals: Signals) -> None:
    with open_trial(candidate("lockfile"), signals) as trial:
        before = trial.prepare()

        attempt = start_until(InterruptionPoint(changes=99), trial, before.run.elapsed_seconds)

        assert attempt is None
        assert trial.tally(before).claimed == 1
