"""The report of an audit: the same facts as data, and as Markdown to read and to paste.

People paste it into public places. So it contains no passwords.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from ..kit.contract.response import UNTRUSTED
from ..kit.contract.text import redact
from .advice import Advice
from .command_line import CommandLine
from .failure import Failure, grouped
from .probes import Burst, Kill, Stall
from .store import Candidate, Tally

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
    """The result of an audit. A forecast only has the commands."""

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
        """Return the Markdown."""
        if self.probes is None:
            commands = [_code(str(words)) for words in (self.set_words, self.get_words)]
            return ["Would run, without a shell:", *_items(commands)]
        lines = [f"## {_code(self.command)}: {self.score} of 3", "", f"In short: {self.meaning}."]
        lines += _items(self.because)
        lines += ["", *_table(self.probes), "", self._failures_line()]
        lines += _items(_code(kind.summary()) for kind in grouped(self.probes.failures))
        lines += _items(self.inconclusive, title="Inconclusive")
        lines += _items(self.not_tested, title="Not tested")
        if self.advice is not None:
            lines += _items(self.advice.rules, title="Advice for callers")
            lines += ["", "The loop:", ""]
            lines += [f"    {line}" for line in self.advice.loop]
        return lines

    def _failures_line(self) -> str:
        if self.failures is None or not self.failed_loudly:
            return "No run failed."
        return self.failures.summary(self.failed_loudly)


def forecast(candidate: Candidate) -> Report:
    """Return the report of an audit that has not begun."""
    return Report(
        command=redact(candidate.set_command.show()),
        set_words=_words_to_show(candidate.set_command),
        get_words=_words_to_show(candidate.get_command),
    )


def _words_to_show(command: CommandLine) -> list[str]:
    return [redact(word) for word in command.words]


def _items(items: Iterable[str] | None, title: str = "") -> list[str]:
    """Return a list in Markdown, with an empty line and a heading before it."""
    lines = [f"* {item}" for item in items or ()]
    if not lines:
        return []
    if title:
        return ["", f"### {title}", "", *lines]
    return ["", *lines]


def _table(findings: Findings) -> list[str]:
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


def _code(text: str) -> str:
    """Return a foreign text as code, whatever it contains."""
    if "`" not in text:
        return f"`{text}`"
    longest = max(len(backticks) for backticks in re.findall("`+", text))
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"
