"""Format runs of scenarios as text: the timeline and verdict of each run, then the rule."""

from collections.abc import Iterator
from dataclasses import dataclass

from ....kit.contract.table import Painted
from ....kit.contract.text import GREEN, RED, between_words
from ....kit.program import PROGRAM
from ...draw import legend, terminal_width, timeline
from ...recording import Recording
from ...scenario import Scenario, find, is_right, names


@dataclass(frozen=True)
class ScenarioRuns:
    """The runs of one scenario."""

    scenario: str
    title: str
    rule: str
    runs: list[Recording]

    def lines(self) -> list[str]:
        """Return the story, the runs and the rule as text, with commands for other runs."""
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
        """Return one run as text: its timeline, the legend if requested, and the verdict."""
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
        """Yield lines about the wrong variants that were not run, with the commands to run them."""
        variants_run = {run.variant for run in self.runs}
        for variant_name, variant in scenario.variants.items():
            if is_right(variant_name) or variant_name in variants_run:
                continue
            yield from paragraphs(f"Tempting, and wrong: {variant.summary}")
            yield f"  {PROGRAM} lab run {self.scenario} --variant {variant_name}"

    def summary(self) -> list[str]:
        """Return the runs as a short text: the timelines of the broken runs, and all verdicts."""
        scenario = find(self.scenario)
        lines = [*paragraphs(f"{self.scenario}: {self.title}"), ""]
        for run in self.runs:
            if run.is_broken:
                lines += [*timeline(run, terminal_width()), ""]
            variant = scenario.variants[run.variant]
            headline = f"{run.variant}: {variant.summary}"
            problem = run.reason or ""
            lines += verdict(run, headline, problem)
        return [*lines, *paragraphs(f"Rule: {self.rule}")]


@dataclass(frozen=True)
class AllScenarioRuns:
    """The runs of several scenarios, each in short."""

    scenarios: list[ScenarioRuns]

    def lines(self) -> list[str]:
        """Return the summaries of the scenarios, below a legend for all timelines."""
        broken = []
        for scenario_runs in self.scenarios:
            broken += [run for run in scenario_runs.runs if run.is_broken]
        lines = legend(broken, terminal_width())
        for scenario_runs in self.scenarios:
            lines += ["", *scenario_runs.summary()]
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
    """Return a verdict as text: HOLDS or BROKEN with the headline, then the outcome.

    If the run follows the schedule of the variant, add the explanation of the variant.
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
