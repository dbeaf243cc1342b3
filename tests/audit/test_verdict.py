"""sampletool/audit/verdict.py"""

from dataclasses import replace

from sampletool.audit.failure import Failure
from sampletool.audit.probes import Burst, Kill, Stall
from sampletool.audit.report import Findings, Report
from sampletool.audit.trial import Tally
from sampletool.audit.verdict import MEANINGS, judge
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
    blocked: bool = False,
) -> Report:
    findings = Findings(
        burst=Burst(bursts=1, runs=4, most_at_once=most_at_once, tally=burst),
        stall=Stall(stopped=stopped, refused_meanwhile=refused, hung_meanwhile=0, tally=stall),
        kill=Kill(killed=killed, blocked_afterwards=blocked, tally=kill),
    )
    return judge(candidate("naive"), findings)


def _with(*failures: Failure) -> Tally:
    return replace(_GOOD, failed_loudly=len(failures), failures=list(failures))


def test_everybody_served_is_the_best_score_and_what_no_failure_showed_is_said() -> None:
    verdict = _judge()

    assert verdict.score == 3
    assert verdict.meaning == MEANINGS[3]
    assert verdict.because == []
    assert any("how a conflict is reported" in item for item in verdict.not_tested or ())


def test_a_structured_answer_with_a_time_to_retry_is_as_good_as_served() -> None:
    verdict = _judge(burst=_with(_TOLD), refused=1)

    assert verdict.score == 3
    assert not any("how a conflict is reported" in item for item in verdict.not_tested or ())
    assert not any("stopped holder" in item for item in verdict.not_tested or ())


def test_one_lost_change_outweighs_everything() -> None:
    assert _judge(kill=replace(_GOOD, survived=3, silently_lost=1)).score == 0


def test_what_was_there_before_counts_too() -> None:
    assert _judge(kill=replace(_GOOD, still_readable=False)).score == 0


def test_a_failure_without_a_code_or_without_a_hint_is_a_fault() -> None:
    assert _judge(burst=_with(_TOLD, replace(_TOLD, code=None))).score == 1
    assert _judge(stall=_with(_TOLD, replace(_TOLD, retry_after_seconds=None))).score == 1


def test_hanging_is_a_fault_and_so_is_a_lock_that_stays() -> None:
    assert _judge(stall=replace(_GOOD, hung=1)).score == 1
    assert _judge(kill=_with(_TOLD), blocked=True).score == 1


def test_what_could_not_be_seen_keeps_from_the_best_score() -> None:
    for verdict in (_judge(most_at_once=1), _judge(stopped=0), _judge(killed=0)):
        assert verdict.score == 2
        assert len(verdict.inconclusive or ()) == 1


def test_a_loss_is_a_loss_even_if_no_overlap_was_seen() -> None:
    assert _judge(burst=replace(_GOOD, survived=3, silently_lost=1), most_at_once=1).score == 0
