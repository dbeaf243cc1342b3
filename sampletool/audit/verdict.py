"""From what was seen to a score, and to what it rests on. Nothing is run here.

0  something was silently lost or corrupted
1  nothing lost, but conflicts fail without structure or a hint when to retry, or hang, or a stale lock stays
2  conflicts are told in structure, nothing hangs, nothing stays locked
3  as 2, and seen in runs that really overlapped
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sampletool.audit.burst import Burst
from sampletool.audit.failure import Failure
from sampletool.audit.kill import Kill
from sampletool.audit.stall import Stall
from sampletool.kit.contract.duration import say_duration

MEANINGS = (
    "it silently loses or corrupts data: never run two at once",
    "it loses nothing that it reported as done, but callers have to work around how it fails",
    "conflicts are told in structure and nothing stays locked, but not everything could be seen",
    "it may run in parallel: everybody was served, or told in structure when to retry",
)

NEVER_TESTED = (
    "a power cut: kill -9 loses nothing that the kernel has already taken",
    "network file systems, and several machines",
    "readers while a writer writes",
    "changes of the same key, and every moment and interleaving that did not happen here",
)


class Findings(NamedTuple):
    burst: Burst
    stall: Stall
    kill: Kill

    @property
    def failures(self) -> list[Failure]:
        return [kind for probe in self for kind in probe.tally.failures]


@dataclass(frozen=True)
class Verdict:
    score: int
    meaning: str
    because: list[str]
    inconclusive: list[str]
    not_tested: list[str]


def judge(findings: Findings, deadline_seconds: float) -> Verdict:
    losses, faults = list(_losses(findings)), list(_faults(findings, deadline_seconds))
    inconclusive = [probe.inconclusive for probe in findings if probe.inconclusive is not None]
    if losses:
        score = 0
    elif faults:
        score = 1
    else:
        score = 2 if inconclusive else 3
    return Verdict(score, MEANINGS[score], losses + faults, inconclusive, [*_not_met(findings), *NEVER_TESTED])


def _losses(findings: Findings) -> Iterator[str]:
    for probe in findings:
        tally = probe.tally
        if tally.silently_lost:
            yield f"{probe.name}: {tally.silently_lost} of {tally.claimed} changes reported as done cannot be read back"
        if not tally.still_readable:
            yield f"{probe.name}: what was stored before it cannot be read any more"


def _faults(findings: Findings, deadline_seconds: float) -> Iterator[str]:
    failures = findings.failures
    total = sum(kind.count for kind in failures)
    if plain := sum(kind.count for kind in failures if kind.code is None):
        yield f"{plain} of {total} failures are not JSON with a code"
    if hopeless := sum(kind.count for kind in failures if not kind.says_when_to_retry):
        yield f"{hopeless} of {total} failures do not say when to retry"
    for probe in findings:
        if probe.tally.hung:
            yield f"{probe.name}: {probe.tally.hung} did not end within {say_duration(deadline_seconds)}"
    if findings.kill.blocked_afterwards:
        yield "kill: after kill -9 of one run no other succeeded: a stale lock, or a broken file, blocks"


def _not_met(findings: Findings) -> Iterator[str]:
    if not findings.failures:
        yield "how a conflict is told: no run failed"
    if not (findings.stall.refused_meanwhile or findings.stall.hung_meanwhile):
        yield "waiting for a stopped holder: no stopped run stood in another's way"
