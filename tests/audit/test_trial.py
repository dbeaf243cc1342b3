"""sampletool/audit/trial.py"""

import os
import sys
import tempfile

import pytest

from sampletool.audit.errors import FailsAlone
from sampletool.audit.failure import Failure
from sampletool.audit.trial import open_trial
from sampletool.kit.safety.signals import Signals
from tests.audit.support import candidate, candidate_of, eventually, processes_of


def _scratch() -> list[str]:
    return os.listdir(tempfile.gettempdir())


def test_who_does_not_end_in_time_is_ended_and_has_hung(signals: Signals) -> None:
    with open_trial(candidate("endless", deadline_seconds=2.0), signals) as trial:
        before = trial.prepare()

        outcomes = trial.finish_all([trial.start(), trial.start()])

        tally = trial.tally(before)
        assert outcomes == ["hung", "hung"]
        assert (tally.claimed, tally.hung, tally.still_readable) == (0, 2, True)
        assert eventually(lambda: processes_of(trial.sandbox.directory) == [])


def test_a_loss_is_seen_and_so_is_a_failure(signals: Signals) -> None:
    script = 'import os, sys; sys.exit(os.path.exists("full"))'
    text = f"{sys.executable} -I -S -c '{script}' {{key}} {{value}}"
    with open_trial(candidate_of(text, "cat absent"), signals) as trial:
        lost = trial.start()
        trial.finish(lost)
        (trial.sandbox.directory / "work" / "full").touch()

        failure = trial.finish(trial.start())

        tally = trial.tally(lost)
        assert isinstance(failure, Failure)
        assert (tally.claimed, tally.survived, tally.silently_lost, tally.failed_loudly) == (
            1,
            0,
            1,
            1,
        )
        assert not tally.still_readable


def test_a_value_in_the_output_of_a_reader_that_failed_does_not_count(signals: Signals) -> None:
    with open_trial(
        candidate_of("sh -c 'echo $1 >> all' sh {key}{value}", "sh -c 'cat all; exit 1'"), signals
    ) as trial:
        attempt = trial.start()
        trial.finish(attempt)

        assert trial.tally(attempt).silently_lost == 1


def test_a_reader_may_show_everything_at_once(signals: Signals) -> None:
    with open_trial(
        candidate_of("sh -c 'echo $1 >> all' sh {key}={value}", "cat all"), signals
    ) as trial:
        before = trial.prepare()
        trial.finish_all([trial.start(), trial.start()])

        assert trial.tally(before).survived == 2


@pytest.mark.parametrize(
    ("set_text", "get_text", "deadline_seconds", "complaint"),
    [
        (
            "sh -c 'echo no such table >&2; exit 3' {key} {value}",
            "true",
            60,
            "failed with exit code 3. Its output: no such table",
        ),
        ("true {key} {value}", "echo {key}", 60, "did not show the value that had just been set"),
        ("sh -c 'sleep 600' {key} {value}", "true", 0.2, "did not exit within 200ms"),
        ("true {key} {value}", "sleep 600", 0.2, "did not exit within 200ms"),
    ],
)
def test_a_command_that_does_not_work_alone_cannot_be_audited(
    set_text: str, get_text: str, deadline_seconds: float, complaint: str, signals: Signals
) -> None:
    with (
        pytest.raises(FailsAlone) as refused,
        open_trial(candidate_of(set_text, get_text, deadline_seconds), signals) as trial,
    ):
        trial.prepare()

    assert complaint in refused.value.message
    assert _scratch() == []


def test_a_value_that_another_run_has_overwritten_is_lost(signals: Signals) -> None:
    """The reader succeeds, and shows a value. Only comparing it reveals that it is another one."""
    with open_trial(candidate_of("sh -c 'echo $0 > last' {value}", "cat last"), signals) as trial:
        before = trial.prepare()
        for _ in range(3):
            trial.finish(trial.start())

        tally = trial.tally(before)

    assert (tally.claimed, tally.survived, tally.silently_lost) == (3, 1, 2)
    assert not tally.still_readable


def test_a_reader_that_shows_another_value_cannot_be_audited(signals: Signals) -> None:
    candidate = candidate_of("true {key} {value}", "echo another")
    with open_trial(candidate, signals) as trial, pytest.raises(FailsAlone, match="did not show"):
        trial.prepare()
