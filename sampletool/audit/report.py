"""An audit as its reader gets it: the same facts as data, and as Markdown, to read and to paste."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .advice import Advice
from .failure import Failure, grouped
from .probes import Burst, Kill, Stall
from .store import Candidate

COUNTS = ("claimed", "survived", "silently_lost", "failed_loudly", "hung")
"""What is counted of each probe, and of all together."""


class Findings(NamedTuple):
    burst: Burst
    stall: Stall
    kill: Kill

    @property
    def failures(self) -> list[Failure]:
        return [kind for probe in self for kind in probe.tally.failures]


class FailureReport(NamedTuple):
    """How many of the failures can be acted upon, by a program or by a person."""

    json_with_code: int
    say_when_to_retry: int
    name_holder: int

    def say(self, total: int) -> str:
        return (
            f"Of {total} failures {self.json_with_code} are JSON with a code, "
            f"{self.say_when_to_retry} say when to retry, {self.name_holder} name the holder."
        )


@dataclass(frozen=True)
class Report:
    """A forecast has only what would be run."""

    command: str
    """What sets a key, on one line for people."""
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
    probes: Findings | None = None
    inconclusive: list[str] | None = None
    not_tested: list[str] | None = None
    advice: Advice | None = None

    def lines(self) -> list[str]:
        if self.probes is None:
            commands = (_code(str(words)) for words in (self.set_words, self.get_words))
            return ["Would run, without a shell:", *_items(commands)]
        lines = [f"## {_code(self.command)}: {self.score} of 3", "", f"In short: {self.meaning}."]
        lines += _items(self.because)
        failed = self.failures.say(self.failed_loudly) if self.failures and self.failed_loudly else "No run failed."
        lines += ["", *_table(self.probes), "", failed]
        lines += _items(_code(kind.say()) for kind in grouped(self.probes.failures))
        lines += _items(self.inconclusive, "Inconclusive")
        lines += _items(self.not_tested, "Not tested")
        if self.advice:
            lines += _items(self.advice.rules, "Advice for callers")
            lines += ["", "The loop:", "", *(f"    {line}" for line in self.advice.loop)]
        return lines


def forecast(candidate: Candidate) -> Report:
    set_command, get_command, _ = candidate
    return Report(set_command.show(), [*set_command.words], [*get_command.words])


def _items(items: Iterable[str] | None, title: str = "") -> list[str]:
    shown = [f"* {item}" for item in items or ()]
    heading = ["", f"### {title}"] if title else []
    return [*heading, "", *shown] if shown else []


def _table(findings: Findings) -> Iterator[str]:
    row = "| {:5} | {:>7} | {:>8} | {:>4} | {:>6} | {:>4} | {} |"
    yield row.format("probe", "claimed", "survived", "lost", "failed", "hung", "seen")
    yield "| ----- | ------: | -------: | ---: | -----: | ---: | ---- |"
    for name, probe in findings._asdict().items():
        counts = [getattr(probe.tally, count) for count in COUNTS]
        yield row.format(name, *counts, probe.seen())


def _code(text: str) -> str:
    """Foreign text as code, whatever it contains."""
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(map(len, re.findall("`+", text))))
    return f"{fence} {text} {fence}"
