"""The report of an audit, as data for programs and as Markdown for people.

People paste reports into public places, such as bug trackers. So passwords are removed from the
commands and from the output of the tool.
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
    """The results of the three probes."""

    burst: Burst
    stall: Stall
    kill: Kill

    @property
    def probes(self) -> dict[str, Burst | Stall | Kill]:
        """The result of each probe, by the name of the probe."""
        return {"burst": self.burst, "stall": self.stall, "kill": self.kill}

    @property
    def tallies(self) -> dict[str, Tally]:
        """The counts of each probe, by the name of the probe."""
        return {name: probe.tally for name, probe in self.probes.items()}

    @property
    def failures(self) -> list[Failure]:
        """The failed runs of all three probes, grouped by kind within each probe."""
        failures = []
        for tally in self.tallies.values():
            failures += tally.failures
        return failures


@dataclass(frozen=True)
class FailureReport:
    """How helpful the errors of the audited tool are: how many failures contain which facts."""

    json_with_code: int
    """How many are JSON with an error code, which a program can check."""
    say_when_to_retry: int
    name_holder: int
    """How many say which process or user holds the lock."""

    def summary(self, total: int) -> str:
        """Return the counts as a sentence. `total` is the number of all failures."""
        return (
            f"Of {total} failures, {self.json_with_code} are JSON with a code, "
            f"{self.say_when_to_retry} say when to retry, and {self.name_holder} name the holder."
        )


@dataclass(frozen=True)
class Report:
    """The result of an audit, or a forecast of one.

    A forecast, for `--dry-run`, contains only the commands: all other members are None.
    """

    command: str
    """The command that sets a key, as a line that can be pasted into a shell."""
    set_words: list[str]
    get_words: list[str]
    score: int | None = None
    meaning: str | None = None
    because: list[str] | None = None
    """The reasons for the score, if it is below 2."""
    claimed: int | None = None
    survived: int | None = None
    silently_lost: int | None = None
    failed_loudly: int | None = None
    hung: int | None = None
    failures: FailureReport | None = None
    probes: Annotated[Findings | None, UNTRUSTED] = None
    inconclusive: list[str] | None = None
    """The probes that could not show anything, each with the reason."""
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
        """Return lines about the failed runs: how helpful their errors are, and what they say."""
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
        # Markdown shows a line that begins with four spaces as code.
        loop = [f"    {line}" for line in self.advice.loop]
        rules = _bullet_list(self.advice.rules, heading="Advice for callers")
        return [*rules, "", "The loop:", "", *loop]


def forecast(candidate: Candidate) -> Report:
    """Return the report for `--dry-run`, which contains only the commands."""
    return Report(
        command=redact(candidate.set_command.to_shell()),
        set_words=_redacted_words(candidate.set_command),
        get_words=_redacted_words(candidate.get_command),
    )


def _redacted_words(command: CommandLine) -> list[str]:
    return [redact(word) for word in command.words]


def _bullet_list(items: Sequence[str] | None, heading: str = "") -> list[str]:
    """Return the lines of a list in Markdown, after an empty line and the heading.

    Without items, return no lines at all, so that no heading stands alone.
    """
    if not items:
        return []
    lines = [""]
    if heading:
        lines += [f"### {heading}", ""]
    lines += [f"* {item}" for item in items]
    return lines


def _probe_table(findings: Findings) -> list[str]:
    """Return the lines of a Markdown table that has a row for each probe."""
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
    """Return a text as inline code in Markdown. It may come from the audited tool."""
    if "`" not in text:
        return f"`{text}`"
    # The code ends at the first row of as many backticks as it began with. So the rows around the
    # text have to be longer than all rows of backticks inside the text.
    longest_row = max(len(backticks) for backticks in re.findall("`+", text))
    fence = "`" * (longest_row + 1)
    return f"{fence} {text} {fence}"
