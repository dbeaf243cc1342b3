"""Runs of scenarios as text: a picture of each, the verdict, and the rule to remember."""

from dataclasses import dataclass

from sampletool.kit.contract.table import Painted
from sampletool.kit.contract.text import GREEN, RED, between_words
from sampletool.lab.draw import legend, terminal_width, timeline
from sampletool.lab.recording import Recording
from sampletool.lab.scenario import Scenario, find, is_right, names


@dataclass(frozen=True)
class Shown:
    """One scenario, as it was run."""

    scenario: str
    title: str
    rule: str
    runs: list[Recording]

    def lines(self) -> list[str]:
        scenario, width = find(self.scenario), terminal_width()
        told = [*self._title(width), *paragraphs(scenario.story, width)]
        for run in self.runs:
            way = scenario.ways[run.variant]
            told += ["", *paragraphs(f"{run.variant}: {way.says}", width), "", *timeline(run, width), ""]
            if run is self.runs[0]:
                told += [*legend(self.runs, width), ""]
            is_as_shown = f"{run.schedule} ".startswith(f"{way.shows} ")  # what explains that one explains this one
            because = f" Why: {way.because}" if is_as_shown else ""
            told += verdict(run, f"schedule {run.schedule}", width)
            for reason in (f"{run.reason or scenario.promise}{because}", *(f"Also: {other}" for other in run.also)):
                told += paragraphs(reason, width, "  ")
        told += ["", *paragraphs(f"Rule: {self.rule}", width)]
        told += paragraphs(f"It happened: {scenario.happened[0]} {scenario.happened[1]}", width)
        return [*told, *self._others(scenario, width)]

    def glimpse(self, width: int) -> list[str]:
        """What goes wrong, and what does not."""
        ways = find(self.scenario).ways
        told = self._title(width)
        for run in self.runs:
            if run.is_broken:
                told += [*timeline(run, width), ""]
            told += verdict(run, f"{run.variant}: {ways[run.variant].says}", width)
            told += paragraphs(f"{run.reason or ''} Why: {ways[run.variant].because}", width, "  ")
        return [*told, *paragraphs(f"Rule: {self.rule}", width)]

    def _title(self, width: int) -> list[str]:
        return [*paragraphs(f"{self.scenario}: {self.title}", width), ""]

    def _others(self, scenario: Scenario, width: int) -> list[str]:
        """What else there is to run."""
        told: list[str] = []
        for variant, way in scenario.ways.items():
            if not is_right(variant) and variant not in {run.variant for run in self.runs}:
                told += paragraphs(f"Tempting, and wrong: {way.says}", width)
                told.append(f"  tool lab run {self.scenario} --variant {variant}")
        return [*told, f"All of its schedules: tool lab prove {self.scenario}"]


@dataclass(frozen=True)
class AllShown:
    """Several scenarios, in short."""

    scenarios: list[Shown]

    def lines(self) -> list[str]:
        width = terminal_width()
        told = legend([run for shown in self.scenarios for run in shown.runs if run.is_broken], width)
        for shown in self.scenarios:
            told += ["", *shown.glimpse(width)]
        if len(self.scenarios) < len(names()):
            more = "tool lab run lost-config-update shows one in full, tool lab run --all"
            told += ["", *paragraphs(f"{more} these and the others: {len(names())}, in two minutes.", width)]
        return told


def paragraphs(text: str, width: int, indent: str = "") -> list[str]:
    """Between words, also if a word is longer than a line."""
    parts = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    return [line for part in parts for line in between_words(part, width, indent, indent)]


def verdict(run: Recording, text: str, width: int) -> list[str]:
    word, colour = ("BROKEN", RED) if run.is_broken else ("HOLDS", GREEN)
    return [Painted(line, colour) for line in between_words(f"{word}  {text}", width, "  ", "  ")]
