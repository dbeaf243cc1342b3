"""Runs of scenarios as text: a picture of each, the verdict, and the rule to remember."""

from collections.abc import Iterator
from dataclasses import dataclass

from ....kit.contract.table import Painted
from ....kit.contract.text import GREEN, RED, between_words
from ....kit.program import PROGRAM
from ...draw import legend, terminal_width, timeline
from ...recording import Recording
from ...scenario import Scenario, find, is_right, names


@dataclass(frozen=True)
class Shown:
    """One scenario, as it was run."""

    scenario: str
    title: str
    rule: str
    runs: list[Recording]

    def lines(self) -> list[str]:
        """Return the whole story: the runs, the rule, and what else there is to run."""
        scenario = find(self.scenario)
        lines = [
            *paragraphs(f"{self.scenario}: {self.title}"),
            "",
            *paragraphs(scenario.story),
        ]
        for number, run in enumerate(self.runs):
            lines += ["", *self._run_lines(scenario, run, has_legend=number == 0)]
        lines += [
            "",
            *paragraphs(f"Rule: {self.rule}"),
            *paragraphs(f"It happened: {' '.join(scenario.happened)}"),
            *self._other_variants(scenario),
            f"All of its schedules: {PROGRAM} lab check {self.scenario}",
        ]
        return lines

    def _run_lines(self, scenario: Scenario, run: Recording, *, has_legend: bool) -> list[str]:
        width = terminal_width()
        lines = [
            *paragraphs(f"{run.variant}: {scenario.variants[run.variant].summary}"),
            "",
            *timeline(run, width),
            "",
        ]
        if has_legend:
            lines += [*legend(self.runs, width), ""]
        outcome = run.reason or scenario.promise
        return [*lines, *verdict(run, f"schedule {run.schedule}", outcome)]

    def _other_variants(self, scenario: Scenario) -> Iterator[str]:
        shown = {run.variant for run in self.runs}
        for variant_name, variant in scenario.variants.items():
            if is_right(variant_name) or variant_name in shown:
                continue
            yield from paragraphs(f"Tempting, and wrong: {variant.summary}")
            yield f"  {PROGRAM} lab run {self.scenario} --variant {variant_name}"

    def summary(self) -> list[str]:
        """Return the pictures of the broken runs, and the verdict of each run."""
        scenario = find(self.scenario)
        lines = [*paragraphs(f"{self.scenario}: {self.title}"), ""]
        for run in self.runs:
            if run.is_broken:
                lines += [*timeline(run, terminal_width()), ""]
            headline = f"{run.variant}: {scenario.variants[run.variant].summary}"
            lines += verdict(run, headline, run.reason or "")
        return [*lines, *paragraphs(f"Rule: {self.rule}")]


@dataclass(frozen=True)
class AllShown:
    """Several scenarios, each in short."""

    scenarios: list[Shown]

    def lines(self) -> list[str]:
        """Return the summary of each scenario, below a legend for all pictures."""
        broken = []
        for shown in self.scenarios:
            broken += [run for run in shown.runs if run.is_broken]
        lines = legend(broken, terminal_width())
        for shown in self.scenarios:
            lines += ["", *shown.summary()]
        number = len(names())
        if len(self.scenarios) < number:
            one = f"{PROGRAM} lab run lost-config-update shows one in full"
            others = f"{PROGRAM} lab run --all these and the others: {number}, in two minutes."
            lines += ["", *paragraphs(f"{one}, {others}")]
        return lines


def paragraphs(text: str, indent: str = "") -> list[str]:
    """Return each paragraph, wrapped to the width of the terminal."""
    lines = []
    for paragraph in text.strip().split("\n\n"):
        joined = " ".join(paragraph.split())
        lines += between_words(joined, terminal_width(), indent, indent)
    return lines


def verdict(run: Recording, headline: str, outcome: str) -> list[str]:
    """Return whether the run holds, and its outcome.

    If the run is the one that the variant explains, add the reason.
    """
    word, colour = "HOLDS", GREEN
    if run.is_broken:
        word, colour = "BROKEN", RED
    lines: list[str] = []
    for line in between_words(f"{word}  {headline}", terminal_width(), "  ", "  "):
        lines.append(Painted(line, colour))
    variant = find(run.scenario).variants[run.variant]
    is_explained = f"{run.schedule} ".startswith(f"{variant.schedule} ")
    if is_explained:
        outcome = f"{outcome} Why: {variant.explanation}"
    lines += paragraphs(outcome, "  ")
    for other in run.also:
        lines += paragraphs(f"Also: {other}", "  ")
    return lines
