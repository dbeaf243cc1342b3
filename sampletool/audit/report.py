"""The report of an audit: the same facts as data, and as Markdown to read and to paste.

People paste it into public places. So it contains no passwords.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ..kit.contract.response import UNTRUSTED
from ..kit.contract.text import redact
from .advice import Advice
from .command_line import CommandLine
from .failure import Failure, group_failures
from .probes import Burst, Kill, Stall
from .trial import Candidate, Tally

_COLUMNS = ("claimed", "survived", "lost", "failed", "hung")


@dataclass(frozen=True)
class Findings:
    """What the three probes have found."""

    burst: Burst
    stall: Stall
    kill: Kill

    @property
    def probes(self) -> dict[str, Burst | Stall | Kill]:
        """The probes by their names."""
        return {"burst": self.burst, "stall": self.stall, "kill": self.kill}

    @property
    def tallies(self) -> dict[str, Tally]:
        """The tally of each probe."""
        return {name: probe.tally for name, probe in self.probes.items()}

    @property
    def failures(self) -> list[Failure]:
        """The failures of all probes."""
        failures = []
        for tally in self.tallies.values():
            failures += tally.failures
        return failures


@dataclass(frozen=True)
class FailureReport:
    """How many failures a program or a person can act upon."""

    json_with_code: int
    say_when_to_retry: int
    name_holder: int

    def summary(self, total: int) -> str:
        """Return one sentence."""
        return (
            f"Of {total} failures, {self.json_with_code} are JSON with a code, "
            f"{self.say_when_to_retry} say when to retry, and {self.name_holder} name the holder."
        )


@dataclass(frozen=True)
class Report:
    """The result of an audit. Of a forecast, only the first three members are not None."""

    command: str
    """The command that sets a key."""
    set_words: list[str]
    get_words: list[str]
    score: int | None = None
    meaning: str | None = None
    because: list[str] | None = None
    claimed: int | None = None
    survived: int | None = None
    silently_lost: int | None = None
    failed_loudly: int | None = None
    hung: int | None = None
    failures: FailureReport | None = None
    probes: Annotated[Findings | None, UNTRUSTED] = None
    inconclusive: list[str] | None = None
    not_tested: list[str] | None = None
    advice: Advice | None = None

    def lines(self) -> list[str]:
        """Return the report as Markdown."""
        if self.probes is None:
            return self._forecast_lines()
        lines = [f"## {_inline_code(self.command)}: {self.score} of 3"]
        lines += ["", f"In short: {self.meaning}."]
        lines += _bullet_list(self.because)
        lines += ["", *_probe_table(self.probes)]
        lines += self._failure_lines(self.probes)
        lines += _bullet_list(self.inconclusive, heading="Inconclusive")
        lines += _bullet_list(self.not_tested, heading="Not tested")
        lines += self._advice_lines()
        return lines

    def _forecast_lines(self) -> list[str]:
        commands = [_inline_code(str(words)) for words in (self.set_words, self.get_words)]
        return ["Would run, without a shell:", *_bullet_list(commands)]

    def _failure_lines(self, findings: Findings) -> list[str]:
        """Return how many runs failed and how useful their errors are, then each kind of error."""
        failed_run_count = self.failed_loudly
        usefulness = self.failures
        if usefulness is None or not failed_run_count:
            return ["", "No run failed."]
        error_summaries = []
        for error in group_failures(findings.failures):
            error_summaries.append(_inline_code(error.summary()))
        return ["", usefulness.summary(failed_run_count), *_bullet_list(error_summaries)]

    def _advice_lines(self) -> list[str]:
        if self.advice is None:
            return []
        # Four spaces make a line code.
        loop = [f"    {line}" for line in self.advice.loop]
        rules = _bullet_list(self.advice.rules, heading="Advice for callers")
        return [*rules, "", "The loop:", "", *loop]


def forecast(candidate: Candidate) -> Report:
    """Return the report of an audit that has not begun. It has only the commands."""
    return Report(
        command=redact(candidate.set_command.to_shell()),
        set_words=_redacted_words(candidate.set_command),
        get_words=_redacted_words(candidate.get_command),
    )


def _redacted_words(command: CommandLine) -> list[str]:
    return [redact(word) for word in command.words]


def _bullet_list(items: Sequence[str] | None, heading: str = "") -> list[str]:
    """Return a list in Markdown, with an empty line and the heading before it.

    Return no lines if there are no items, not even the heading.
    """
    if not items:
        return []
    lines = [""]
    if heading:
        lines += [f"### {heading}", ""]
    lines += [f"* {item}" for item in items]
    return lines


def _probe_table(findings: Findings) -> list[str]:
    """Return a table in Markdown, with a row for each probe."""
    row = "| {:5} | {:>7} | {:>8} | {:>4} | {:>6} | {:>4} | {} |"
    lines = [
        row.format("probe", *_COLUMNS, "seen"),
        "| ----- | ------: | -------: | ---: | -----: | ---: | ---- |",
    ]
    for name, probe in findings.probes.items():
        tally = probe.tally
        counts = (
            tally.claimed,
            tally.survived,
            tally.silently_lost,
            tally.failed_loudly,
            tally.hung,
        )
        lines.append(row.format(name, *counts, probe.summary()))
    return lines


def _inline_code(text: str) -> str:
    """Return a foreign text as code in Markdown, whatever it contains."""
    if "`" not in text:
        return f"`{text}`"
    # Text with backticks needs a delimiter of more backticks than any row of them in the text.
    longest_row = max(len(backticks) for backticks in re.findall("`+", text))
    fence = "`" * (longest_row + 1)
    return f"{fence} {text} {fence}"
