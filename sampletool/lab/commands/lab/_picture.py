"""Runs of scenarios as text: a picture of each, the verdict, and the rule to remember."""

import textwrap
from dataclasses import dataclass

from sampletool.lab.draw import Line, painted, plain, timeline
from sampletool.lab.recording import Recording, parse_schedule
from sampletool.lab.scenario import Scenario, find, is_right, module_of

_WIDTH = 100


class Drawn:
    """A result that is a picture, with colour where that is wanted."""

    def picture(self) -> list[Line]:
        raise NotImplementedError

    def lines(self) -> list[str]:
        return plain(self.picture())

    def painted_lines(self) -> list[str]:
        return painted(self.picture())


@dataclass(frozen=True)
class Shown(Drawn):
    """One scenario, as it was run."""

    scenario: str
    title: str
    rule: str
    runs: list[Recording]

    def picture(self) -> list[Line]:
        scenario = find(self.scenario)
        lines = [*self._heading(), *_paragraph(module_of(self.scenario).__doc__ or "")]
        for run in self.runs:
            way = scenario.ways[run.variant]
            lines += [[], [(f"{run.variant}: ", "bold"), (way.says, "")], [], *timeline(run), []]
            lines.append([("  ", ""), _verdict(run), (f"  schedule {run.schedule}", "")])
            because = f" Why: {way.because}" if _follows(run, way.shows) else ""
            lines += _paragraph(f"{run.reason or scenario.promise}{because}", indent="  ")
        lines += [[], [("Rule: ", "bold"), (self.rule, "")]]
        lines += _paragraph(f"It happened: {scenario.happened[0]} {scenario.happened[1]}")
        return [*lines, *self._others(scenario)]

    def glimpse(self) -> list[Line]:
        """What goes wrong, and what does not."""
        ways = find(self.scenario).ways
        lines = self._heading()
        for run in self.runs:
            if run.is_broken:
                lines += [*timeline(run), []]
            lines.append([("  ", ""), _verdict(run), (f"  {run.variant}: {ways[run.variant].says}", "")])
            lines += _paragraph(f"{run.reason or ''} Why: {ways[run.variant].because}", indent="  ")
        return lines

    def _heading(self) -> list[Line]:
        return [[(f"{self.scenario}: {self.title}", "bold")], []]

    def _others(self, scenario: Scenario) -> list[Line]:
        """What else there is to run."""
        lines: list[Line] = []
        for variant, way in scenario.ways.items():
            if not is_right(variant) and variant not in {run.variant for run in self.runs}:
                lines.append([("Tempting, and wrong: ", "bold"), (way.says, "")])
                lines.append([(f"  tool lab run {self.scenario} --variant {variant}", "faint")])
        return [*lines, [("All of its schedules: ", "bold"), (f"tool lab prove {self.scenario}", "faint")]]


@dataclass(frozen=True)
class AllShown(Drawn):
    """Every scenario, with a table at the end."""

    scenarios: list[Shown]

    def picture(self) -> list[Line]:
        lines: list[Line] = []
        for shown in self.scenarios:
            lines += [*shown.glimpse(), [], []]
        width = max(len(shown.scenario) for shown in self.scenarios) + 2
        lines.append([("scenario".ljust(width), "bold"), ("naive   fixed   rule", "bold")])
        for shown in self.scenarios:
            verdicts = [("broken  ", "bad") if run.is_broken else ("holds   ", "good") for run in shown.runs]
            lines.append([(shown.scenario.ljust(width), ""), *verdicts, (shown.rule, "")])
        return lines


def _verdict(run: Recording) -> tuple[str, str]:
    return ("BROKEN", "bad") if run.is_broken else ("HOLDS", "good")


def _follows(run: Recording, schedule: str) -> bool:
    """Whether it began as the way is best shown: what explains that one explains this one."""
    return f"{run.schedule} ".startswith(f"{' '.join(parse_schedule(schedule))} ")


def _paragraph(text: str, indent: str = "") -> list[Line]:
    wrapper = textwrap.TextWrapper(
        _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [[(line, "")] for part in text.strip().split("\n\n") for line in wrapper.wrap(" ".join(part.split()))]
