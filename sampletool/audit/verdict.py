"""The score of a tool, which is computed from the findings of the probes.

0  The tool silently lost or corrupted something.
1  The tool lost nothing. But some errors are not JSON with a code or do not say when to retry, or
   runs hung, or no run succeeded after one was killed.
2  The tool has none of these faults, but some of the probes could not test anything.
3  The tool has none of these faults, and all probes could test it.
"""

from collections.abc import Iterator
from dataclasses import replace

from ..kit.contract.duration import say_duration
from .advice import advise
from .failure import Failure
from .report import FailureReport, Findings, Report, forecast
from .trial import Candidate

MEANINGS = (
    "it silently loses or corrupts data, so never run two at the same time",
    "it loses nothing that it reported as done, but callers have to work around how it fails",
    "its errors are structured and nothing stays locked, but not everything could be tested",
    "several can run at once: every run succeeded, or got a structured error that says when to "
    "retry",
)  # fmt: skip

NEVER_TESTED = (
    "a power cut: kill -9 loses nothing that the kernel has already taken",
    "network file systems, and several machines",
    "readers while a writer writes",
    "changes of the same key, and moments and orders that did not occur in this audit",
)


def judge(candidate: Candidate, findings: Findings) -> Report:
    """Return the report of an audit, with the score and the reasons for it."""
    failure_report = _count_failures(findings.failures)
    losses = list(_losses(findings))
    faults = list(_faults(findings, failure_report, candidate.deadline_seconds))
    inconclusive = list(_inconclusive(findings))
    score = _score(losses, faults, inconclusive)
    tallies = findings.tallies.values()
    return replace(
        forecast(candidate),
        score=score,
        meaning=MEANINGS[score],
        because=losses + faults,
        claimed=sum(tally.claimed for tally in tallies),
        survived=sum(tally.survived for tally in tallies),
        silently_lost=sum(tally.silently_lost for tally in tallies),
        failed_loudly=sum(tally.failed_loudly for tally in tallies),
        hung=sum(tally.hung for tally in tallies),
        failures=failure_report,
        probes=findings,
        inconclusive=inconclusive,
        not_tested=[*_describe_missing_situations(findings), *NEVER_TESTED],
        advice=advise(
            score,
            candidate.set_command,
            blocked_after_kill=findings.kill.blocked_afterwards,
        ),
    )


def _count_failures(failures: list[Failure]) -> FailureReport:
    """Count the failures that have an error code, say when to retry, or name the holder."""
    with_code = 0
    with_hint = 0
    with_holder = 0
    for failure in failures:
        if failure.code is not None:
            with_code += failure.count
        if failure.retry_after_seconds is not None:
            with_hint += failure.count
        if failure.names_holder:
            with_holder += failure.count
    return FailureReport(
        json_with_code=with_code,
        say_when_to_retry=with_hint,
        name_holder=with_holder,
    )


def _score(losses: list[str], faults: list[str], inconclusive: list[str]) -> int:
    """Return the score, as the module docstring defines it."""
    if losses:
        return 0
    if faults:
        return 1
    if inconclusive:
        return 2
    return 3


def _losses(findings: Findings) -> Iterator[str]:
    """Yield a sentence about each probe in which the tool silently lost or corrupted values."""
    for name, tally in findings.tallies.items():
        if tally.silently_lost:
            lost = f"{tally.silently_lost} of {tally.claimed} changes"
            yield f"{name}: {lost} that were reported as done cannot be read back"
        if not tally.still_readable:
            yield f"{name}: what was stored before it cannot be read any more"


def _faults(
    findings: Findings,
    failure_report: FailureReport,
    deadline_seconds: float,
) -> Iterator[str]:
    """Yield a sentence about each fault that the callers of the tool have to work around."""
    total = sum(failure.count for failure in findings.failures)
    without_code = total - failure_report.json_with_code
    if without_code > 0:
        yield f"{without_code} of {total} failures are not JSON with a code"
    without_hint = total - failure_report.say_when_to_retry
    if without_hint > 0:
        yield f"{without_hint} of {total} failures do not say when to retry"
    for name, tally in findings.tallies.items():
        if tally.hung:
            yield f"{name}: {tally.hung} did not exit within {say_duration(deadline_seconds)}"
    if findings.kill.blocked_afterwards:
        yield "kill: after one run was killed, no other succeeded: a stale lock or a broken file"


def _inconclusive(findings: Findings) -> Iterator[str]:
    """Yield a sentence about each probe that could not test anything."""
    if findings.burst.most_at_once < 2:
        yield f"burst: in {findings.burst.bursts} bursts, no two runs were seen to overlap"
    if not findings.stall.stopped:
        yield "stall: no run could be stopped before it was over"
    if not findings.kill.killed:
        yield "kill: no run could be killed before it was over"


def _describe_missing_situations(findings: Findings) -> Iterator[str]:
    """Yield a sentence about each situation that the probes tried to cause without success."""
    if not findings.failures:
        yield "how a conflict is reported: no run failed"
    if not (findings.stall.refused_meanwhile or findings.stall.hung_meanwhile):
        yield "waiting for a stopped holder: no stopped run was in the way of another one"
