"""The lab's own failures: no such scenario; or it did not end as it has to: its mechanism is gone, or it is wrong."""

from ..kit.contract.errors import ExitStatus, ToolError


class ScenarioNotFound(ToolError):
    """The lab has no such scenario."""

    code, exit_status = "SCENARIO_NOT_FOUND", ExitStatus.NOT_FOUND

    sentence = "There is no scenario {scenario!r}."
    advice = "`{PROGRAM} lab list` shows the scenarios."


class NoExercise(ToolError):
    """The lab has this scenario, but no exercise for it."""

    code, exit_status = "NO_EXERCISE", ExitStatus.NOT_FOUND
    sentence = "There is no exercise for {scenario!r}."
    advice = "`{PROGRAM} lab exercise lost-config-update` creates the first one."


class CannotTry(ToolError):
    """A file cannot be stepped through its schedules, because of what is in it."""

    code, exit_status = "CANNOT_TRY", ExitStatus.USAGE
    sentence = "{file} cannot be tried: {problem}."
    advice = "A file to try has worker(name), invariant(), and perhaps prepare(); docs/lab/try.md shows one."


class RaceFound(ToolError):
    """The invariant of a file that was tried does not hold on every schedule."""

    code, exit_status = "RACE_FOUND", ExitStatus.PARTIAL
    sentence = "{file} is broken on schedule {schedule}: {reason}"
    advice = "To see it again, run `{PROGRAM} lab try {file} --schedule '{schedule}'`."


class TooManySchedules(ToolError):
    """A file that is tried has more schedules than are run. Those that were run hold."""

    code, exit_status = "TOO_MANY_SCHEDULES", ExitStatus.PARTIAL
    sentence = "{file} has more than {schedules} schedules. These {schedules} hold; the others were not run."
    advice = "Let worker() take fewer steps: fewer files, fewer rounds of a loop."


class UnexpectedOutcome(ToolError):
    """The right way broke, or a wrong one could not be shown to break."""

    code, exit_status = "UNEXPECTED_OUTCOME", ExitStatus.PARTIAL
    sentence = "{surprises}."
    advice = "If a right way broke, what protects it is not there any more; replay the schedule to see it."
