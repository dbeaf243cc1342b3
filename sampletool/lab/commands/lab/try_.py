"""Step a learner's own function, and a copy of it, through every schedule."""

from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.text import between_words, counted
from ....kit.safety.atomic_file import read_regular
from ...draw import legend, terminal_width, timeline
from ...errors import CannotTry, RaceFound, TooManySchedules
from ...explore import Exploration, every_run
from ...recording import Recording
from ...tried import trying

spec = CommandSpec(
    effect="scratch",
    errors=(CannotTry, RaceFound, TooManySchedules),
    runs_what_it_is_given=True,
    examples=("lab try counter.py", 'lab try counter.py --schedule "A1 B1 A2 B2"'),
)
MOST_SCHEDULES = 1000
_LARGEST_BYTES = 2**20


@dataclass(frozen=True)
class Tried:
    file: str
    schedules: int
    bad: int
    is_complete: bool
    """All schedules that there are were run."""
    reasons: dict[str, int]
    run: Recording | None
    """One that is broken, as short as any; or the one that was asked for."""

    def lines(self) -> list[str]:
        lines = []
        if run := self.run:
            width = terminal_width()
            lines += [*timeline(run, width), "", *legend([run], width), "", f"schedule {run.schedule}"]
            lines += [*between_words(run.reason or "It holds.", width), ""]
        if self.is_complete or self.schedules > 1:
            more = "" if self.is_complete else "; there are more, which were not run"
            lines.append(f"{counted(self.schedules, 'schedule')}, {self.bad} bad{more}")
            lines += [f"  {number} x {reason}" for reason, number in self.reasons.items()]
        return lines


def try_out(context: Context, file: Path, schedule: str | None) -> Tried:
    """The schedule that is asked for; or all of them, or as many as are run at most."""
    with trying(file, context.signals.check) as follow:
        if schedule is None:
            # Closed before `follow` is: there may be more schedules, and its threads would wait for them.
            with closing(every_run(follow, context.progress)) as followed:
                runs = list(islice(followed, MOST_SCHEDULES + 1))
        else:
            runs = [follow(schedule).recording]
    found = Exploration(tuple(runs[:MOST_SCHEDULES]))
    common = next(iter(found.reasons), None)
    clearest = sorted(found.bad, key=lambda run: (run.reason != common, len(run.also), len(run.schedule), run.schedule))
    shown = next(iter(clearest), None)
    is_complete = schedule is None and len(runs) <= MOST_SCHEDULES
    drawn = shown if schedule is None else runs[0]
    tried = Tried(str(file), len(found.recordings), len(found.bad), is_complete, found.reasons, drawn)
    if shown is not None:
        raise RaceFound(data=tried, file=str(file), schedule=shown.schedule, reason=shown.reason)
    if schedule is None and not is_complete:
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
    read_regular(file.absolute(), _LARGEST_BYTES)
    return try_out(ctx.obj, file, schedule)
