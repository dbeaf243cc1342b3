"""An audit as its reader gets it: the same facts as data, as text for a person, as Markdown to paste."""

import re
from dataclasses import dataclass, replace
from typing import Any

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
        return replace(self, markdown="\n".join(_told(self, is_markdown=True)))

    def lines(self) -> list[str]:
        return _told(self, is_markdown=False) if self.markdown is None else self.markdown.split("\n")


def _told(report: Report, *, is_markdown: bool) -> list[str]:
    code = _code if is_markdown else str
    if report.probes is None:
        words = [code(str(words)) for words in (report.set_words, report.get_words)]
        return ["Would run, without a shell:", *_items("", words, is_markdown)]
    title = f"{code(report.command)}: {report.score} of 3"
    told = [f"## {title}", "", f"In short: {report.meaning}."] if is_markdown else [title, f"  {report.meaning}"]
    told += _items("", report.because, is_markdown)
    told += ["", *_table(report.probes, is_markdown), "", _failures(report)]
    told += _items("", [code(said) for said in _examples(report.probes)], is_markdown)
    told += _items("Inconclusive", report.inconclusive, is_markdown)
    told += _items("Not tested", report.not_tested, is_markdown)
    if report.advice:
        loop = report.advice.loop
        fence = _fence("\n".join(loop), at_least=3)
        told += _items("Advice for callers", report.advice.rules, is_markdown)
        told += ["", *([f"{fence}sh", *loop, fence] if is_markdown else [f"  {line}" for line in loop])]
    return told


def _items(title: str, items: list[str] | None, is_markdown: bool) -> list[str]:
    if not items:
        return []
    heading = ["", f"### {title}" if is_markdown else f"{title}:"] if title else []
    gap, bullet = ([""], "*") if is_markdown else ([], "  -")
    return [*heading, *gap, *(f"{bullet} {item}" for item in items)]


def _table(findings: Findings, is_markdown: bool) -> list[str]:
    rows: list[tuple[Any, ...]] = [("probe", "claimed", "survived", "lost", "failed", "hung", "seen")]
    for probe in findings.all:
        tally = probe.tally
        counts = (tally.claimed, tally.survived, tally.silently_lost, tally.failed_loudly, tally.hung)
        rows.append((probe.name, *counts, probe.seen))
    if is_markdown:
        head, *body = [f"| {' | '.join(map(str, row))} |" for row in rows]
        return [head, "| --- | ---: | ---: | ---: | ---: | ---: | --- |", *body]
    return ["{:6}{:>9}{:>10}{:>6}{:>8}{:>6}  {}".format(*row) for row in rows]


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
