"""sampletool/audit/verdict.py"""

from dataclasses import replace
from typing import Any

import pytest

from sampletool.audit.advice import advise
from sampletool.audit.failure import Failure
from sampletool.audit.probes import Burst, Kill, Stall
from sampletool.audit.report import FailureReport, Findings, Report
from sampletool.audit.trial import Tally
from sampletool.audit.verdict import MEANINGS, judge
from sampletool.kit.testing.failing import outcome_of
from tests.audit.support import candidate

_GOOD = Tally(
    claimed=4,
    survived=4,
    silently_lost=0,
    failed_loudly=0,
    hung=0,
    failures=[],
    still_readable=True,
)
_NO_FAILURE = "how a conflict is reported: no run failed"
_NO_WAITING = "waiting for a stopped holder: no stopped run was in the way of another one"
_TOLD = Failure(75, code="BUSY", retry_after_seconds=1.0, names_holder=True, output="BUSY: wait")


def _judge(
    *,
    burst: Tally = _GOOD,
    stall: Tally = _GOOD,
    kill: Tally = _GOOD,
    most_at_once: int = 4,
    stopped: int = 4,
    killed: int = 4,
    refused: int = 0,
    hung: int = 0,
    blocked: bool = False,
) -> Report:
    findings = Findings(
        burst=Burst(bursts=1, runs=4, most_at_once=most_at_once, tally=burst),
        stall=Stall(stopped=stopped, refused_meanwhile=refused, hung_meanwhile=hung, tally=stall),
        kill=Kill(killed=killed, blocked_afterwards=blocked, tally=kill),
    )
    verdict = outcome_of(lambda: judge(candidate("naive"), findings))
    assert isinstance(verdict, Report), repr(verdict)
    return verdict


def _with(*failures: Failure) -> Tally:
    return replace(_GOOD, failed_loudly=len(failures), failures=list(failures))


def test_everybody_served_is_the_best_score() -> None:
    verdict = _judge()

    assert verdict.score == 3
    assert verdict.meaning == MEANINGS[3]
    assert verdict.because == []
    assert verdict.inconclusive == []
    assert verdict.advice is None


def test_a_structured_answer_with_a_time_to_retry_is_as_good_as_served() -> None:
    verdict = _judge(burst=_with(_TOLD), refused=1)

    assert (verdict.because, verdict.score) == ([], 3)


@pytest.mark.parametrize(
    ("facts", "score", "because"),
    [
        (
            {"kill": replace(_GOOD, survived=3, silently_lost=1)},
            0,
            ["kill: 1 of 4 changes that were reported as done cannot be read back"],
        ),
        (
            {"stall": replace(_GOOD, still_readable=False)},
            0,
            ["stall: what was stored before it cannot be read any more"],
        ),
        (
            {"burst": _with(_TOLD, replace(_TOLD, code=None, count=2))},
            1,
            ["2 of 3 failures are not JSON with a code"],
        ),
        (
            {"stall": _with(_TOLD, replace(_TOLD, retry_after_seconds=None))},
            1,
            ["1 of 2 failures do not say when to retry"],
        ),
        ({"stall": replace(_GOOD, hung=1)}, 1, ["stall: 1 did not exit within 10s"]),
        (
            {"kill": _with(_TOLD), "blocked": True},
            1,
            ["kill: after one run was killed, no other succeeded: a stale lock or a broken file"],
        ),
        # A loss outweighs everything, and faults are reported as well.
        (
            {
                "burst": replace(_GOOD, survived=2, silently_lost=2, still_readable=False),
                "stall": replace(_GOOD, hung=1),
                "most_at_once": 1,
            },
            0,
            [
                "burst: 2 of 4 changes that were reported as done cannot be read back",
                "burst: what was stored before it cannot be read any more",
                "stall: 1 did not exit within 10s",
            ],
        ),
    ],
)
def test_the_score_has_its_reasons_with_the_losses_first(
    facts: dict[str, Any],
    score: int,
    because: list[str],
) -> None:
    verdict = _judge(**facts)

    assert (verdict.because, verdict.score) == (because, score)
    assert verdict.meaning == MEANINGS[score]


def test_the_numbers_are_those_of_all_probes_together() -> None:
    without_holder = replace(_TOLD, names_holder=False, code=None, count=4)
    burst = Tally(
        claimed=1,
        survived=10,
        silently_lost=100,
        failed_loudly=1000,
        hung=10_000,
        failures=[replace(_TOLD, count=2), without_holder],
        still_readable=True,
    )
    stall = Tally(
        claimed=2,
        survived=20,
        silently_lost=200,
        failed_loudly=2000,
        hung=20_000,
        failures=[replace(_TOLD, retry_after_seconds=None, count=8)],
        still_readable=True,
    )

    verdict = _judge(burst=burst, stall=stall, kill=burst)

    numbers = (verdict.claimed, verdict.survived, verdict.silently_lost)
    assert numbers == (4, 40, 400)
    assert (verdict.failed_loudly, verdict.hung) == (4000, 40_000)
    assert verdict.failures == FailureReport(
        json_with_code=12,
        say_when_to_retry=12,
        name_holder=12,
    )


def test_the_report_has_the_commands_the_findings_and_advice_that_fits() -> None:
    audited = candidate("naive")
    verdict = _judge(kill=replace(_GOOD, survived=3, silently_lost=1), blocked=True)

    assert verdict.command == audited.set_command.to_shell()
    assert verdict.set_words == list(audited.set_command.words)
    assert verdict.get_words == list(audited.get_command.words)
    assert verdict.probes is not None
    assert verdict.probes.kill.tally.survived == 3
    assert verdict.advice == advise(0, audited.set_command, blocked_after_kill=True)


def test_what_could_not_be_seen_keeps_from_the_best_score() -> None:
    one_by_one, not_stopped, not_killed = (
        _judge(most_at_once=1),
        _judge(stopped=0),
        _judge(killed=0),
    )

    assert [one_by_one.score, not_stopped.score, not_killed.score] == [2, 2, 2]
    assert one_by_one.inconclusive == ["burst: in 1 bursts, no two runs were seen to overlap"]
    assert not_stopped.inconclusive == ["stall: no run could be stopped before it was over"]
    assert not_killed.inconclusive == ["kill: no run could be killed before it was over"]


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        ({}, [_NO_FAILURE, _NO_WAITING]),
        ({"burst": _with(_TOLD)}, [_NO_WAITING]),
        ({"burst": _with(_TOLD), "refused": 1}, []),
        ({"burst": _with(_TOLD), "hung": 1}, []),
    ],
)
def test_what_did_not_occur_and_what_is_never_tested_is_said(
    facts: dict[str, Any],
    missing: list[str],
) -> None:
    assert _judge(**facts).not_tested == [
        *missing,
        "a power cut: kill -9 loses nothing that the kernel has already taken",
        "network file systems, and several machines",
        "readers while a writer writes",
        "changes of the same key, and moments and orders that did not occur in this audit",
    ]
