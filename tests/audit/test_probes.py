"""sampletool/audit/probes.py, on scripts that are known to be wrong or right"""

from functools import partial

import pytest

from sampletool.audit.probes import (
    Moment,
    choose_moments,
    probe_burst,
    probe_kill,
    probe_stall,
    start_together,
    start_until,
)
from sampletool.audit.trial import Attempt, open_trial
from sampletool.kit.safety.signals import Signals
from tests.audit.support import candidate, eventually, is_gone, is_stopped


def is_stopped_or_gone(pid: int) -> bool:
    return is_stopped(pid) or is_gone(pid)


_FEW_MOMENTS = 4


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
    stall = probe_stall(candidate("naive"), signals, _FEW_MOMENTS)

    assert stall.stopped > 0
    assert stall.tally.silently_lost > 0 or not stall.tally.still_readable


def test_who_is_stopped_with_a_lock_stands_in_the_way(signals: Signals) -> None:
    stall = probe_stall(candidate("lockfile"), signals, _FEW_MOMENTS)

    assert stall.refused_meanwhile + stall.hung_meanwhile > 0
    assert stall.tally.silently_lost == stall.tally.hung == 0


def test_another_that_waits_for_a_stopped_one_hangs(signals: Signals) -> None:
    stall = probe_stall(candidate("waiting", deadline_seconds=2.0), signals, _FEW_MOMENTS)

    assert stall.hung_meanwhile == 1
    assert stall.tally.silently_lost == 0


def test_a_kernel_lock_is_free_after_kill_9(signals: Signals) -> None:
    kill = probe_kill(candidate("waiting"), signals, _FEW_MOMENTS)

    assert kill.killed > 0
    assert not kill.blocked_afterwards
    assert kill.tally.still_readable


def test_a_lock_file_blocks_everybody_after_kill_9(signals: Signals) -> None:
    kill = probe_kill(candidate("lockfile"), signals, _FEW_MOMENTS)

    assert kill.killed > 0
    assert kill.blocked_afterwards
    assert kill.tally.still_readable


def test_who_says_when_to_come_back_after_kill_9_is_asked_again_then(signals: Signals) -> None:
    kill = probe_kill(candidate("lease"), signals, moments=0)

    assert kill.tally.failed_loudly > 0
    assert not kill.blocked_afterwards


def test_moments_are_spread_over_a_run_and_follow_its_changes_more_of_them_for_a_quick_tool() -> (
    None
):
    slow, quick = choose_moments(2, usual_seconds=1.0), choose_moments(2, usual_seconds=0.01)

    assert [moment.fraction for moment in slow if not moment.changes] == [0.25, 0.75]
    assert [moment.changes for moment in slow if moment.changes] == [1, 2, 3, 4]
    assert len(quick) == 5 * len(slow)


def test_the_moment_after_a_change_comes_when_the_change_is_there(signals: Signals) -> None:
    with open_trial(candidate("lockfile"), signals) as trial:
        usual_seconds = trial.prepare().run.elapsed_seconds

        attempt = start_until(Moment(changes=1), trial, usual_seconds)

        assert attempt is not None
        assert (trial.sandbox.directory / "home" / "settings.lock").exists()
        trial.finish(attempt)


def test_a_moment_that_never_comes_is_given_up(signals: Signals) -> None:
    with open_trial(candidate("lockfile"), signals) as trial:
        before = trial.prepare()

        attempt = start_until(Moment(changes=99), trial, before.run.elapsed_seconds)

        assert attempt is None
        assert trial.tally(before).claimed == 1
