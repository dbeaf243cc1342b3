"""One audit: the three probes, each in a store of its own, and the report on them."""

from collections.abc import Callable
from dataclasses import replace

from sampletool.audit.advice import advise
from sampletool.audit.burst import probe_burst
from sampletool.audit.kill import probe_kill
from sampletool.audit.report import FailureReport, Report
from sampletool.audit.stall import probe_stall
from sampletool.audit.store import Candidate
from sampletool.audit.verdict import Findings, judge
from sampletool.kit.safety.signals import Signals

_RUNS_PER_MOMENT = 4
_COUNTS = ("claimed", "survived", "silently_lost", "failed_loudly", "hung")


def forecast(candidate: Candidate) -> Report:
    set_command, get_command = candidate.set_command, candidate.get_command
    return Report(set_command.show(), list(set_command.words), list(get_command.words))


def audit(candidate: Candidate, signals: Signals, runs: int, say: Callable[[str], None]) -> Report:
    """Takes as long as it takes: `say` is told what is being done."""
    by_time = max(2, runs // _RUNS_PER_MOMENT)
    say(f"burst: {runs} runs at once ...")
    burst = probe_burst(candidate, signals, runs)
    say("stall: one run stopped, another beside it, again and again ...")
    stall = probe_stall(candidate, signals, by_time)
    say("kill: one run killed, another after it, again and again ...")
    findings = Findings(burst, stall, probe_kill(candidate, signals, by_time))
    verdict = judge(findings, candidate.deadline_seconds)
    return replace(
        forecast(candidate),
        **vars(verdict),
        **{count: sum(getattr(probe.tally, count) for probe in findings) for count in _COUNTS},
        failures=FailureReport(
            json_with_code=sum(kind.count for kind in findings.failures if kind.code is not None),
            say_when_to_retry=sum(kind.count for kind in findings.failures if kind.says_when_to_retry),
            name_holder=sum(kind.count for kind in findings.failures if kind.names_holder),
        ),
        probes=findings,
        advice=advise(verdict.score, candidate.set_command, blocked_after_kill=findings.kill.blocked_afterwards),
    )
