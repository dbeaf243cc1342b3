"""Step a learner's own function, and a copy of it, through every schedule."""

# ruff: noqa: N999 - a command has the name of its file

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.file_errors import FileNotFound, UnsafePath
from sampletool.kit.contract.text import counted
from sampletool.lab.commands.lab._live import show_live
from sampletool.lab.commands.lab._picture import Drawn
from sampletool.lab.draw import Line, legend, paragraph, terminal_width, timeline
from sampletool.lab.errors import CannotTry, RaceFound, TooManySchedules
from sampletool.lab.explore import Exploration
from sampletool.lab.recording import Recording
from sampletool.lab.tried import YOURS, every_schedule, trying

spec = CommandSpec(
    effect="scratch",
    errors=(CannotTry, RaceFound, TooManySchedules),
    examples=("lab try counter.py", 'lab try counter.py --schedule "A1 B1 A2 B2"'),
)
MOST_SCHEDULES = 1000
_SILENCE_SECONDS = 0.5


@dataclass(frozen=True)
class Tried(Drawn):
    file: str
    schedules: int
    bad: int
    is_complete: bool
    """All schedules that there are were run."""
    reasons: dict[str, int]
    run: Recording | None
    """One that is broken, as short as any; or the one that was asked for."""

    def picture(self) -> list[Line]:
        lines: list[Line] = []
        if run := self.run:
            said = run.reason or "It holds."
            width = terminal_width()
            lines += [*timeline(run, width), [], *legend([run], width), []]
            lines += [*paragraph(f"schedule {run.schedule}", width), *paragraph(said, width), []]
        if self.schedules == 1 and not self.is_complete:
            return lines
        more = "" if self.is_complete else "; there are more, which were not run"
        found = f"{counted(self.schedules, 'schedule')}, {self.bad} bad"
        lines.append([(found, "bad" if self.bad else "good"), (more, "")])
        return lines + [[(f"  {number} x {reason}", "")] for reason, number in self.reasons.items()]


def try_all(context: Context, file: Path) -> Tried:
    """Every schedule, or as many as are run at most."""
    recordings: list[Recording] = []
    spoke_at = monotonic()
    runs = every_schedule(file, context.signals.check)
    for recording in islice(runs, MOST_SCHEDULES):
        recordings.append(recording)
        if monotonic() - spoke_at > _SILENCE_SECONDS:
            spoke_at = monotonic()
            context.emit({"event": "heartbeat", "done": len(recordings)})
            show_live(context, f"{counted(len(recordings), 'schedule')} so far")
    is_complete = next(runs, None) is None
    show_live(context, "")
    found = Exploration(str(file), YOURS, tuple(recordings))
    alike = [run for run in found.bad if run.reason == next(iter(found.reasons))]
    shown = min(alike, key=lambda run: (len(run.also), len(run.schedule), run.schedule), default=None)
    return Tried(str(file), len(recordings), len(found.bad), is_complete, found.reasons, shown)


def try_one(context: Context, file: Path, schedule: str) -> Tried:
    with trying(file, context.signals.check) as follow:
        run = follow(schedule).recording
    reasons = Exploration(str(file), YOURS, (run,)).reasons
    return Tried(str(file), 1, int(run.is_broken), False, reasons, run)


def judged(tried: Tried, file: Path, *, is_one: bool = False) -> Tried:
    if tried.run and tried.bad:
        raise RaceFound(data=tried, file=str(file), schedule=tried.run.schedule, reason=tried.run.reason)
    if not tried.is_complete and not is_one:
        raise TooManySchedules(data=tried, file=str(file), schedules=tried.schedules)
    return tried


def command(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file with worker(name) and invariant(), and perhaps prepare().")],
    schedule: Annotated[str | None, typer.Option(help='Only this one, such as "A1 B1 A2 B2".')] = None,
) -> Tried:
    """Step your own function through every schedule.

    worker("A") and worker("B") run in processes of their own, in an empty directory that prepare() has filled. Then
    invariant() looks at the directory: it asserts, or returns None or a sentence that says what is broken. The file is
    run as it is: try only what you would run yourself.
    """
    if not file.exists():
        raise FileNotFound(str(file.absolute()))
    if not file.is_file():
        raise UnsafePath(str(file.absolute()), "it is not a file")
    tried = try_all(ctx.obj, file) if schedule is None else try_one(ctx.obj, file, schedule)
    return judged(tried, file, is_one=schedule is not None)
