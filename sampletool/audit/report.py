"""An audit as its reader gets it: the same facts as data, and as Markdown, to read and to paste."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sampletool.audit.advice import Advice
from sampletool.audit.verdict import Findings


@dataclass(frozen=True)
class FailureReport:
    """How many of the failures can be acted upon, by a program or by a person."""

    json_with_code: int
    say_when_to_retry: int
    name_holder: int


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
    markdown: str | None = None
    """The report to paste, where it was asked for."""

    def with_markdown(self) -> "Report":
        return replace(self, markdown="\n".join(self.lines()))

    def lines(self) -> list[str]:
        if self.probes is None:
            commands = (_code(str(words)) for words in (self.set_words, self.get_words))
            return ["Would run, without a shell:", *_items(commands)]
        told = [f"## {_code(self.command)}: {self.score} of 3", "", f"In short: {self.meaning}."]
        told += _items(self.because)
        told += ["", *_table(self.probes), "", _failures(self)]
        told += _items(_code(said) for said in _examples(self.probes))
        told += _items(self.inconclusive, "Inconclusive")
        told += _items(self.not_tested, "Not tested")
        if self.advice:
            told += _items(self.advice.rules, "Advice for callers")
            fence = _fence("\n".join(self.advice.loop), at_least=3)
            told += ["", f"{fence}sh", *self.advice.loop, fence]
        return told


def _items(items: Iterable[str] | None, title: str = "") -> list[str]:
    shown = [f"* {item}" for item in items or ()]
    heading = ["", f"### {title}"] if title else []
    return [*heading, "", *shown] if shown else []


def _table(findings: Findings) -> Iterator[str]:
    row = "| {:5} | {:>7} | {:>8} | {:>4} | {:>6} | {:>4} | {} |"
    yield row.format("probe", "claimed", "survived", "lost", "failed", "hung", "seen")
    yield "| ----- | ------: | -------: | ---: | -----: | ---: | ---- |"
    for probe in findings:
        tally = probe.tally
        counts = (tally.claimed, tally.survived, tally.silently_lost, tally.failed_loudly, tally.hung)
        yield row.format(probe.name, *counts, probe.seen)


def _failures(report: Report) -> str:
    if not report.failed_loudly or not report.failures:
        return "No run failed."
    failures = report.failures
    return (
        f"Of {report.failed_loudly} failures {failures.json_with_code} are JSON with a code, "
        f"{failures.say_when_to_retry} say when to retry, {failures.name_holder} name the holder."
    )


def _examples(findings: Findings) -> list[str]:
    """One of each kind, on one line."""
    kinds = {replace(kind, count=0, output=""): kind.output for kind in findings.failures}
    return [f"status {kind.exit_status}: {' '.join(output.split())}" for kind, output in kinds.items()]


def _code(text: str) -> str:
    """Somebody else's text as code, whatever it contains."""
    fence = _fence(text, at_least=1)
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _fence(text: str, at_least: int) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(at_least, longest + 1)
