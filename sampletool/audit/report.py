"""An audit as its reader gets it: the same facts as data, as text for a person, as Markdown to paste."""

import re
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
    runs: int
    deadline_ms: int
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
        return replace(self, markdown="\n".join(_markdown(self)))

    def lines(self) -> list[str]:
        return self.markdown.split("\n") if self.markdown is not None else _text(self)


def _text(report: Report) -> list[str]:
    if report.probes is None:
        return ["Would run, without a shell:", *(f"  {words}" for words in (report.set_words, report.get_words))]
    told = [f"{report.command}: {report.score} of 3", f"  {report.meaning}"]
    told += [f"  - {why}" for why in report.because or []]
    told += ["", f"{'':6}{'claimed':>9}{'survived':>10}{'lost':>6}{'failed':>8}{'hung':>6}"]
    for probe in report.probes.all:
        tally = probe.tally
        told.append(
            f"{probe.name:6}{tally.claimed:>9}{tally.survived:>10}{tally.silently_lost:>6}{tally.failed_loudly:>8}"
            f"{tally.hung:>6}  {probe.seen}"
        )
    told += ["", _failures(report), *(f"  {said}" for said in _examples(report))]
    told += _list("Inconclusive:", report.inconclusive) + _list("Not tested:", report.not_tested)
    if report.advice:
        told += [*_list("Advice for callers:", report.advice.rules), "", *(f"  {line}" for line in report.advice.loop)]
    return told


def _markdown(report: Report) -> list[str]:
    if report.probes is None:
        return [
            "Would run, without a shell:",
            "",
            *(f"* {_code(str(w))}" for w in (report.set_words, report.get_words)),
        ]
    told = [f"## {_code(report.command)}: {report.score} of 3", "", f"In short: {report.meaning}."]
    told += _list("", report.because, bullet="*")
    told += ["", "| probe | claimed | survived | silently lost | failed loudly | hung | seen |"]
    told += ["| --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    for probe in report.probes.all:
        tally = probe.tally
        counts = (tally.claimed, tally.survived, tally.silently_lost, tally.failed_loudly, tally.hung)
        told.append(f"| {' | '.join([probe.name, *map(str, counts), probe.seen])} |")
    told += ["", _failures(report)]
    told += _list("", [_code(said) for said in _examples(report)], bullet="*")
    told += _list("### Inconclusive", report.inconclusive, bullet="*")
    told += _list("### Not tested", report.not_tested, bullet="*")
    if report.advice:
        fence = _fence("\n".join(report.advice.loop), at_least=3)
        told += _list("### Advice for callers", report.advice.rules, bullet="*")
        told += ["", f"{fence}sh", *report.advice.loop, fence]
    return told


def _failures(report: Report) -> str:
    if not report.failed_loudly or not report.failures:
        return "No run failed."
    failures = report.failures
    return (
        f"Of {report.failed_loudly} failures {failures.json_with_code} are JSON with a code, "
        f"{failures.say_when_to_retry} say when to retry, {failures.name_holder} name the holder."
    )


def _examples(report: Report) -> list[str]:
    """One of each kind, on one line."""
    assert report.probes is not None
    kinds = {replace(kind, count=0, output=""): kind.output for kind in report.probes.failures}
    return [f"status {kind.exit_status}: {' '.join(output.split())}" for kind, output in kinds.items()]


def _list(title: str, items: list[str] | None, bullet: str = "  -") -> list[str]:
    if not items:
        return []
    heading = ["", title] if title else []
    return [*heading, *([""] if bullet == "*" else []), *(f"{bullet} {item}" for item in items)]


def _code(text: str) -> str:
    """Somebody else's text as code, whatever it contains."""
    fence = _fence(text, at_least=1)
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _fence(text: str, at_least: int) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(at_least, longest + 1)
