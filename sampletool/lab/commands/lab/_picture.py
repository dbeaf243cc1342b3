"""Runs of scenarios as text: a picture of each, the verdict, and the rule to remember."""

from dataclasses import dataclass

from ....kit.contract.table import Painted
from ....kit.contract.text import GREEN, RED, between_words
from ....kit.program import PROGRAM
from ...draw import legend, terminal_width, timeline
from ...recording import Recording
from ...scenario import find, is_right, names


@dataclass(frozen=True)
class Shown:
    """One scenario, as it was run."""

    scenario: str
    title: str
    rule: str
    runs: list[Recording]

    def lines(self) -> list[str]:
        scenario, width = find(self.scenario), terminal_width()
        lines = [*paragraphs(f"{self.scenario}: {self.title}"), "", *paragraphs(scenario.story)]
        for run in self.runs:
            lines += [
                "",
                *paragraphs(f"{run.variant}: {scenario.ways[run.variant].says}"),
                "",
                *timeline(run, width),
                "",
            ]
            if run is self.runs[0]:
                lines += [*legend(self.runs, width), ""]
            lines += verdict(run, f"schedule {run.schedule}", run.reason or scenario.promise)
        lines += [
            "",
            *paragraphs(f"Rule: {self.rule}"),
            *paragraphs(f"It happened: {' '.join(scenario.happened)}"),
        ]
        for variant, way in scenario.ways.items():
            if not is_right(variant) and variant not in {run.variant for run in self.runs}:
                lines += paragraphs(f"Tempting, and wrong: {way.says}")
                lines.append(f"  {PROGRAM} lab run {self.scenario} --variant {variant}")
        return [*lines, f"All of its schedules: {PROGRAM} lab check {self.scenario}"]

    def glimpse(self) -> list[str]:
        """What goes wrong, and what does not."""
        lines = [*paragraphs(f"{self.scenario}: {self.title}"), ""]
        for run in self.runs:
            lines += [*timeline(run, terminal_width()), ""] if run.is_broken else []
            lines += verdict(
                run,
                f"{run.variant}: {find(self.scenario).ways[run.variant].says}",
                run.reason or "",
            )
        return [*lines, *paragraphs(f"Rule: {self.rule}")]


@dataclass(frozen=True)
class AllShown:
    """Several scenarios, in short."""

    scenarios: list[Shown]

    def lines(self) -> list[str]:
        lines = legend(
            [run for shown in self.scenarios for run in shown.runs if run.is_broken],
            terminal_width(),
        )
        for shown in self.scenarios:
            lines += ["", *shown.glimpse()]
        if len(self.scenarios) < len(names()):
            more = (
                f"{PROGRAM} lab run lost-config-update shows one in full, {PROGRAM} lab run --all"
            )
            lines += [
                "",
                *paragraphs(f"{more} these and the others: {len(names())}, in two minutes."),
            ]
        return lines


def paragraphs(text: str, indent: str = "") -> list[str]:
    """As wide as the terminal: between words, also if a word is longer than a line."""
    parts = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    return [
        line for part in parts for line in between_words(part, terminal_width(), indent, indent)
    ]


def verdict(run: Recording, headline: str, said: str) -> list[str]:
    """And why, where the run is the one that is explained."""
    word, colour = ("BROKEN", RED) if run.is_broken else ("HOLDS", GREEN)
    lines = between_words(f"{word}  {headline}", terminal_width(), "  ", "  ")
    shown: list[str] = [Painted(line, colour) for line in lines]
    way = find(run.scenario).ways[run.variant]
    because = f" Why: {way.because}" if f"{run.schedule} ".startswith(f"{way.shows} ") else ""
    for text in (f"{said}{because}", *(f"Also: {other}" for other in run.also)):
        shown += paragraphs(text, "  ")
    return shown
