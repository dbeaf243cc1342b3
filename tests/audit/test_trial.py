"""sampletool/audit/trial.py"""

import os
import re
import sys
import tempfile
from typing import Any

import pytest

from sampletool.audit.errors import FailsAlone
from sampletool.audit.failure import Failure
from sampletool.audit.trial import Tally, Trial, open_trial
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.failing import outcome_of
from tests.audit.support import candidate, candidate_of, eventually, processes_of


class FakeRun:
    """A run that exits with a given code, or never if this is None."""

    def __init__(self, pid: int, exit_code: int | None, stdout: str) -> None:
        self.pid = pid
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = f"held by pid {pid}"
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True


class FakeSandbox:
    """A sandbox for `set KEY VALUE` and `get KEY`, whose runs exit with these codes in turn."""

    def __init__(self, *exit_codes: int | None) -> None:
        self.runs: list[FakeRun] = []
        self.waits: list[float] = []
        self._exit_codes = list(exit_codes)
        self.store: dict[str, str] = {}

    def launch(self, words: list[str]) -> FakeRun:
        assert self._exit_codes, "no other run should start"
        exit_code = self._exit_codes.pop(0)
        if words[0] == "set" and exit_code == 0:
            self.store[words[1]] = words[2]
        stdout = self.store.get(words[1], "") if words[0] == "get" else ""
        self.runs.append(FakeRun(len(self.runs), exit_code, stdout))
        return self.runs[-1]

    def wait_for(self, runs: list[FakeRun], seconds: float) -> bool:
        self.waits.append(seconds)
        return all(run.exit_code is not None for run in runs)

    def output_of(self, run: FakeRun) -> str:
        return f"output of {run.pid}"


def fake_trial(sandbox: FakeSandbox) -> Trial:
    fake: Any = sandbox
    return Trial(candidate_of("set {key} {value}", "get {key}", deadline_seconds=7.0), fake)


def test_each_attempt_is_counted_once_by_what_it_reported_and_what_can_be_read() -> None:
    # prepare() sets and reads, then four attempts, then the first one and two more are read back.
    sandbox = FakeSandbox(*(0, 0), *(0, 0, 75, None), *(0, 0, 0))
    trial = fake_trial(sandbox)
    first = trial.prepare()
    attempts = [trial.start() for _ in range(4)]
    outcomes = outcome_of(lambda: trial.finish_all(attempts))
    del sandbox.store[attempts[1].key]

    tally = outcome_of(lambda: trial.tally(first))

    failure = Failure(75, None, None, names_holder=False, output="output of 4")
    assert outcomes == ["claimed", "claimed", failure, "hung"]
    assert tally == Tally(
        claimed=2,
        survived=1,
        silently_lost=1,
        failed_loudly=1,
        hung=1,
        failures=[failure],
        still_readable=True,
    )
    assert [run.pid for run in sandbox.runs if run.is_killed] == [5]
    assert set(sandbox.waits) == {7.0}


def test_only_the_pid_of_another_run_names_a_holder() -> None:
    sandbox = FakeSandbox(0, 75)
    trial = fake_trial(sandbox)
    trial.start()
    attempt = trial.start()

    own = trial.finish(attempt)
    attempt.run.stderr = "held by pid 0"  # type: ignore[misc]
    other = trial.finish(attempt)

    assert isinstance(own, Failure)
    assert isinstance(other, Failure)
    assert (own.names_holder, other.names_holder) == (False, True)


def test_after_a_reader_that_hung_no_other_one_is_started() -> None:
    """Each would take as long as the deadline."""
    sandbox = FakeSandbox(*(0, 0), *(0, 0), None)
    trial = fake_trial(sandbox)
    first = trial.prepare()
    trial.finish_all([trial.start(), trial.start()])

    tally = trial.tally(first)

    assert (tally.claimed, tally.survived, tally.still_readable) == (2, 0, False)
    assert len(sandbox.runs) == 5
    assert sandbox.runs[-1].is_killed


def test_each_attempt_has_a_key_and_a_value_of_its_own_that_no_tool_takes_for_a_number() -> None:
    trial = fake_trial(FakeSandbox(0, 0))

    one, two = trial.start(), trial.start()

    assert len({one.key, one.value, two.key, two.value}) == 4
    assert re.fullmatch("k[0-9a-f]{12}", one.key)
    assert re.fullmatch("v[0-9a-f]{16}", one.value)


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
