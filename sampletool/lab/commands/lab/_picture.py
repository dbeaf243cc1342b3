"""Format runs of scenarios as text: the timeline and verdict of each run, then the rule."""

from collections.abc import Iterator
from dataclasses import dataclass

from ....kit.contract.table import Painted
from ....kit.contract.text import GREEN, RED, between_words
from ....kit.program import PROGRAM
from ...draw import legend, terminal_width, timeline
from ...recording import Recording
from ...scenario import Scenario, find_scenario, is_right, scenario_names


@dataclass(frozen=True)
class ScenarioRuns:
    """The runs of one scenario."""

    scenario: str
    title: str
    rule: str
    runs: list[Recording]

    def lines(self) -> list[str]:
        """Return the story, the runs and the rule as text, with commands for other runs."""
        scenario = find_scenario(self.scenario)
        lines = [
            *wrap_paragraphs(f"{self.scenario}: {self.title}"),
            "",
            *wrap_paragraphs(scenario.story),
        ]
        for number, run in enumerate(self.runs):
            lines += ["", *self._run_lines(scenario, run, has_legend=number == 0)]
        lines += [
            "",
            *wrap_paragraphs(f"Rule: {self.rule}"),
            *wrap_paragraphs(f"It happened: {' '.join(scenario.happened)}"),
            *self._other_variants(scenario),
            f"All of its schedules: {PROGRAM} lab check {self.scenario}",
        ]
        return lines

    def _run_lines(self, scenario: Scenario, run: Recording, *, has_legend: bool) -> list[str]:
        """Return one run as text: its timeline, the legend if requested, and the verdict."""
        width = terminal_width()
        variant = scenario.variants[run.variant]
        lines = [
            *wrap_paragraphs(f"{run.variant}: {variant.summary}"),
            "",
            *timeline(run, width),
            "",
        ]
        if has_legend:
            lines += [*legend(self.runs, width), ""]
        # A run that holds shows what the scenario promises.
        result = run.reason or scenario.promise
        return [*lines, *verdict_lines(run, f"schedule {run.schedule}", result)]

    def _other_variants(self, scenario: Scenario) -> Iterator[str]:
        """Yield lines about the wrong variants that were not run, with the commands to run them."""
        variants_run = {run.variant for run in self.runs}
        for variant_name, variant in scenario.variants.items():
            if is_right(variant_name) or variant_name in variants_run:
                continue
            yield from wrap_paragraphs(f"Tempting, and wrong: {variant.summary}")
            yield f"  {PROGRAM} lab run {self.scenario} --variant {variant_name}"

    def summary(self) -> list[str]:
        """Return the runs as a short text: the timelines of the broken runs, and all verdicts."""
        scenario = find_scenario(self.scenario)
        lines = [*wrap_paragraphs(f"{self.scenario}: {self.title}"), ""]
        for run in self.runs:
            if run.is_broken:
                lines += [*timeline(run, terminal_width()), ""]
            variant = scenario.variants[run.variant]
            headline = f"{run.variant}: {variant.summary}"
            lines += verdict_lines(run, headline, result=run.reason or "")
        return [*lines, *wrap_paragraphs(f"Rule: {self.rule}")]


@dataclass(frozen=True)
class AllScenarioRuns:
    """The runs of several scenarios, each in short."""

    scenarios: list[ScenarioRuns]

    def lines(self) -> list[str]:
        """Return the summaries of the scenarios, below a legend for all timelines."""
        lines = legend(self._drawn_runs(), terminal_width())
        for scenario_runs in self.scenarios:
            lines += ["", *scenario_runs.summary()]
        has_all_scenarios = len(self.scenarios) == len(scenario_names())
        if not has_all_scenarios:
            lines += ["", *self._next_commands()]
        return lines

    def _drawn_runs(self) -> list[Recording]:
        """Return the runs whose timelines are drawn: the broken runs of each scenario."""
        drawn_runs = []
        for scenario_runs in self.scenarios:
            drawn_runs += [run for run in scenario_runs.runs if run.is_broken]
        return drawn_runs

    def _next_commands(self) -> list[str]:
        """Return the commands that show more: one of these scenarios in full, or all scenarios."""
        number_of_scenarios = len(scenario_names())
        hint = (
            f"{PROGRAM} lab run --all these and the others: {number_of_scenarios}, in two minutes."
        )
        # A project may have removed all scenarios that run by default.
        if self.scenarios:
            example = self.scenarios[0].scenario
            hint = f"{PROGRAM} lab run {example} shows one in full, {hint}"
        return wrap_paragraphs(hint)


def wrap_paragraphs(text: str, indent: str = "") -> list[str]:
    """Return the lines of each paragraph, indented and wrapped to the width of the terminal."""
    lines = []
    for paragraph in text.strip().split("\n\n"):
        one_line = " ".join(paragraph.split())
        lines += between_words(one_line, terminal_width(), first_indent=indent, other_indent=indent)
    return lines


def verdict_lines(run: Recording, headline: str, result: str) -> list[str]:
    """Return a verdict as text: HOLDS or BROKEN with the headline, then the result.

    If the run follows the schedule of the variant, add the explanation of the variant.
    """
    verdict, colour = "HOLDS", GREEN
    if run.is_broken:
        verdict, colour = "BROKEN", RED
    lines: list[str] = []
    for line in between_words(f"{verdict}  {headline}", terminal_width(), "  ", "  "):
        lines.append(Painted(line, colour))
    variant = find_scenario(run.scenario).variants[run.variant]
    # The schedule of a run goes on to its end, where the schedule of a variant may stop before.
    follows_schedule = f"{run.schedule} ".startswith(f"{variant.schedule} ")
    if follows_schedule:
        result = f"{result} Why: {variant.explanation}"
    lines += wrap_paragraphs(result, "  ")
    for other_problem in run.also:
        lines += wrap_paragraphs(f"Also: {other_problem}", "  ")
    return lines
