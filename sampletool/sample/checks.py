"""Runs declared checks against built outputs, and says how each of them went."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.places import private_directory
from sampletool.sample.job import Done, Job
from sampletool.sample.running import Floor, Outcome, run_jobs


@dataclass
class Report:
    """The checks that are done; also the answer of a run that was stopped on the way."""

    checks: list[Done] = field(default_factory=list)
    total: int | None = None
    """How many there are; absent when it was stopped before that was known."""

    def lines(self) -> list[str]:
        if self.total == 0:
            return ["There are no checks in tool.toml."]
        return [line for check in self.checks for line in check.lines()]

    @property
    def failed(self) -> list[str]:
        return [check.name for check in self.checks if check.status == "failed"]

    def as_junit(self) -> str:
        """The form that CI systems read."""
        from xml.sax.saxutils import escape, quoteattr

        cases = []
        for check in self.checks:
            note, said = (
                _NOT_IN_XML.sub("", text) for text in (check.note or "failed", check.tail or check.note or "")
            )
            failure = f"<failure message={quoteattr(note)}>{escape(said)}</failure>"
            body = failure if check.status == "failed" else ""
            cases.append(f'  <testcase classname="tool" name={quoteattr(check.name)}>{body}</testcase>\n')
        head = f'<testsuite name="tool" tests="{len(self.checks)}" failures="{len(self.failed)}">'
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{"".join(cases)}</testsuite>\n'


_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_JUNIT = re.compile(rb"<\?xml[^>]*>\s*<testsuite")


def is_junit(path: Path) -> bool:
    """Whether it begins as such a report does, ours or another's; or is empty, as a temporary file is at first."""
    with path.open("rb") as file:
        head = file.read(1024)
    return not head or _JUNIT.match(head) is not None


def find_inputs(root: Path, checks: list[Job]) -> dict[str, list[str]]:
    """The declared inputs of each; everything that is missing is told at once."""
    found: dict[str, list[str]] = {}
    mistakes: list[Mistake] = []
    for check in checks:
        try:
            found[check.name] = check.find_inputs(root)
        except ValueError as error:
            mistakes.append(Mistake(f"check.{check.name}", "INVALID_VALUE", f"{check.name}: {error}"))
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
    tell: Callable[[Done, int], None],
) -> None:
    """`tell` hears of each that is done, and how many are."""
    done: dict[str, Done] = {}

    def finish(outcome: Outcome) -> bool:
        done[outcome.job.name] = check = outcome.told("passed" if outcome.succeeded else "failed")
        report.checks[:] = [done[job.name] for job in checks if job.name in done]
        tell(check, len(done))
        return True

    report.total = len(checks)
    # A check may have the name of a target; what it needs are targets.
    scratch = private_directory(floor.scratch / "+checks")
    own = floor._replace(scratch=scratch, logs=lambda: private_directory(floor.logs() / "checks"))
    run_jobs(checks, inputs_of, own, children, parallel, finish, need_each_other=False)
