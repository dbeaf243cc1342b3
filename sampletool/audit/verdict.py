"""From what was seen to a score, and to what it rests on. Nothing is run here.

0  something was silently lost or corrupted
1  nothing lost, but conflicts fail without structure or a hint when to retry, or hang, or a stale lock stays
2  conflicts are structured answers, nothing hangs, nothing stays locked
3  as 2, and seen in runs that really overlapped
"""

from collections.abc import Iterator
from dataclasses import replace

from ..kit.contract.duration import say_duration
from .advice import advise
from .report import COUNTS, FailureReport, Findings, Report, forecast
from .store import Candidate

MEANINGS = (
    "it silently loses or corrupts data: never run two at once",
    "it loses nothing that it reported as done, but callers have to work around how it fails",
    "conflicts are structured answers and nothing stays locked, but not everything could be seen",
    "it may run in parallel: every run was served, or got a structured answer that says when to retry",
)

NEVER_TESTED = (
    "a power cut: kill -9 loses nothing that the kernel has already taken",
    "network file systems, and several machines",
    "readers while a writer writes",
    "changes of the same key, and every moment and interleaving that did not happen here",
)


def judge(candidate: Candidate, findings: Findings) -> Report:
    failures = FailureReport(
        json_with_code=sum(kind.count for kind in findings.failures if kind.code is not None),
        say_when_to_retry=sum(kind.count for kind in findings.failures if kind.retry_after_seconds is not None),
        name_holder=sum(kind.count for kind in findings.failures if kind.names_holder),
    )
    losses, faults = list(_losses(findings)), list(_faults(findings, failures, candidate.deadline_seconds))
    inconclusive = list(_inconclusive(findings))
    if losses:
        score = 0
    elif faults:
        score = 1
    else:
        score = 2 if inconclusive else 3
    return replace(
        forecast(candidate),
        score=score,
        meaning=MEANINGS[score],
        because=losses + faults,
        **{count: sum(getattr(probe.tally, count) for probe in findings) for count in COUNTS},
        failures=failures,
        probes=findings,
        inconclusive=inconclusive,
        not_tested=[*_not_met(findings), *NEVER_TESTED],
        advice=advise(score, candidate.set_command, blocked_after_kill=findings.kill.blocked_afterwards),
    )


def _losses(findings: Findings) -> Iterator[str]:
    for name, probe in findings._asdict().items():
        tally = probe.tally
        if tally.silently_lost:
            yield f"{name}: {tally.silently_lost} of {tally.claimed} changes reported as done cannot be read back"
        if not tally.still_readable:
            yield f"{name}: what was stored before it cannot be read any more"


def _faults(findings: Findings, failures: FailureReport, deadline_seconds: float) -> Iterator[str]:
    total = sum(kind.count for kind in findings.failures)
    if plain := total - failures.json_with_code:
        yield f"{plain} of {total} failures are not JSON with a code"
    if hopeless := total - failures.say_when_to_retry:
        yield f"{hopeless} of {total} failures do not say when to retry"
    for name, probe in findings._asdict().items():
        if probe.tally.hung:
            yield f"{name}: {probe.tally.hung} did not end within {say_duration(deadline_seconds)}"
    if findings.kill.blocked_afterwards:
        yield "kill: after kill -9 of one run no other succeeded: a stale lock, or a broken file, blocks"


def _inconclusive(findings: Findings) -> Iterator[str]:
    if findings.burst.most_at_once < 2:
        yield f"burst: in {findings.burst.bursts} bursts no two runs were seen to overlap"
    if not findings.stall.stopped:
        yield "stall: no run could be stopped before it was over"
    if not findings.kill.killed:
        yield "kill: no run could be killed before it was over"


def _not_met(findings: Findings) -> Iterator[str]:
    if not findings.failures:
        yield "how a conflict is answered: no run failed"
    if not (findings.stall.refused_meanwhile or findings.stall.hung_meanwhile):
        yield "waiting for a stopped holder: no stopped run stood in another's way"
