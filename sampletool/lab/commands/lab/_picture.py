"""Runs of scenarios as text: a picture of each, the verdict, and the rule to remember."""

from dataclasses import dataclass

from sampletool.lab.draw import Line, legend, painted, paragraph, plain, terminal_width, timeline
from sampletool.lab.recording import Recording, parse_schedule
from sampletool.lab.scenario import Scenario, find, is_right, module_of, names


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
        scenario, width = find(self.scenario), terminal_width()
        lines = [*self._heading(), *paragraph(module_of(self.scenario).__doc__ or "", width)]
        for run in self.runs:
            way = scenario.ways[run.variant]
            lines += [[], *paragraph(way.says, width, (f"{run.variant}: ", "bold")), [], *timeline(run, width), []]
            if run is self.runs[0]:
                lines += [*legend(self.runs, width), []]
            lines += paragraph(f"schedule {run.schedule}", width, _verdict(run), indent="  ")
            because = f" Why: {way.because}" if _follows(run, way.shows) else ""
            also = "".join(f"\n\nAlso: {reason}" for reason in run.also)
            lines += paragraph(f"{run.reason or scenario.promise}{because}{also}", width, indent="  ")
        lines += [[], *paragraph(self.rule, width, ("Rule: ", "bold"))]
        lines += paragraph(f"It happened: {scenario.happened[0]} {scenario.happened[1]}", width)
        return [*lines, *self._others(scenario, width)]

    def glimpse(self, width: int) -> list[Line]:
        """What goes wrong, and what does not."""
        ways = find(self.scenario).ways
        lines = self._heading()
        for run in self.runs:
            if run.is_broken:
                lines += [*timeline(run, width), []]
            lines += paragraph(f"{run.variant}: {ways[run.variant].says}", width, _verdict(run), indent="  ")
            lines += paragraph(f"{run.reason or ''} Why: {ways[run.variant].because}", width, indent="  ")
        return lines

    def _heading(self) -> list[Line]:
        return [*paragraph(self.title, terminal_width(), (f"{self.scenario}: ", "bold")), []]

    def _others(self, scenario: Scenario, width: int) -> list[Line]:
        """What else there is to run."""
        lines: list[Line] = []
        for variant, way in scenario.ways.items():
            if not is_right(variant) and variant not in {run.variant for run in self.runs}:
                lines += paragraph(way.says, width, ("Tempting, and wrong: ", "bold"))
                lines.append([(f"  tool lab run {self.scenario} --variant {variant}", "faint")])
        return [*lines, [("All of its schedules: ", "bold"), (f"tool lab prove {self.scenario}", "faint")]]


@dataclass(frozen=True)
class AllShown(Drawn):
    """Several scenarios, with a table at the end."""

    scenarios: list[Shown]

    def picture(self) -> list[Line]:
        width = terminal_width()
        lines = legend([run for shown in self.scenarios for run in shown.runs if run.is_broken], width)
        for shown in self.scenarios:
            lines += [[], *shown.glimpse(width), []]
        for shown in self.scenarios:
            verdicts = ", ".join(f"{run.variant} {run.verdict}" for run in shown.runs)
            lines += paragraph(f"{verdicts}. {shown.rule}", width, (f"{shown.scenario}: ", "bold"))
        if len(self.scenarios) < len(names()):
            more = "tool lab run lost-config-update shows one in full, tool lab run --all"
            lines += [[], *paragraph(f"{more} these and the others: {len(names())}, in two minutes.", width)]
        return lines


def _verdict(run: Recording) -> tuple[str, str]:
    return ("BROKEN  ", "bad") if run.is_broken else ("HOLDS  ", "good")


def _follows(run: Recording, schedule: str) -> bool:
    """Whether it began as the way is best shown: what explains that one explains this one."""
    return f"{run.schedule} ".startswith(f"{' '.join(parse_schedule(schedule))} ")
