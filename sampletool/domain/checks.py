"""Runs declared checks against built outputs, and says how each of them went."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sampletool.contract.errors import InvalidValues, Mistake
from sampletool.domain.running import Floor, Outcome, run_jobs
from sampletool.domain.workspace import Job
from sampletool.safety.children import Children


@dataclass(frozen=True)
class Check:
    name: str
    status: str
    note: str | None = None
    exit_status: int | None = None
    tail: str | None = None
    log: str | None = None


@dataclass
class Report:
    """The checks that are done; also the answer of a run that was stopped on the way."""

    checks: list[Check] = field(default_factory=list)
    total: int | None = None
    """How many there are; absent when it was stopped before that was known."""

    def lines(self) -> list[str]:
        told = []
        for check in self.checks:
            told.append(f"{check.name}: {check.status}")
            if check.status != "passed":
                told += [f"    {line}" for line in (check.note, *(check.tail or "").splitlines()[-10:]) if line]
                told += [f"    all of it: {check.log}"] if check.log else []
        return told if self.total != 0 else ["There are no checks in tool.toml."]

    @property
    def failed(self) -> list[str]:
        return [check.name for check in self.checks if check.status == "failed"]

    def as_junit(self) -> str:
        """The form that CI systems read."""
        from xml.sax.saxutils import escape, quoteattr

        cases = []
        for check in self.checks:
            said = escape((check.tail or check.note or "").translate(_UNPRINTABLE))
            failure = f"<failure message={quoteattr(check.note or 'failed')}>{said}</failure>"
            body = failure if check.status == "failed" else ""
            cases.append(f'  <testcase classname="tool" name={quoteattr(check.name)}>{body}</testcase>\n')
        head = f'<testsuite name="tool" tests="{len(self.checks)}" failures="{len(self.failed)}">'
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{"".join(cases)}</testsuite>\n'


_UNPRINTABLE = {number: None for number in range(32) if chr(number) not in "\t\n\r"}


def find_inputs(root: Path, checks: list[Job]) -> dict[str, list[str]]:
    """The declared inputs of each; everything that is missing is told at once."""
    found: dict[str, list[str]] = {}
    mistakes: list[Mistake] = []
    for check in checks:
        try:
            found[check.name] = check.find_inputs(root)
        except ValueError as error:
            mistakes.append(Mistake(f"check.{check.name}", "INVALID_VALUE", str(error)))
    if mistakes:
        raise InvalidValues(*mistakes, suggestion="Correct it; nothing was run.")
    return found


def run_checks(
    checks: list[Job],
    inputs_of: dict[str, list[str]],
    floor: Floor,
    children: Children,
    parallel: int,
    report: Report,
    tell: Callable[[Check, int], None],
) -> None:
    done: dict[str, Check] = {}

    def finish(outcome: Outcome) -> bool:
        ended = outcome.ended
        done[outcome.job.name] = check = Check(
            outcome.job.name,
            "passed" if outcome.succeeded else "failed",
            outcome.note or (f"exit status {ended.status}" if ended and ended.status else None),
            ended.status if ended and ended.status else None,
            (ended.tail or None) if ended else None,
            str(ended.log) if ended and ended.log else None,
        )
        report.checks[:] = [done[job.name] for job in checks if job.name in done]
        tell(check, len(done))
        return True

    report.total = len(checks)
    run_jobs(checks, inputs_of, floor, children, parallel, finish)
