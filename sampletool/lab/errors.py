"""The lab's own failures: an unknown scenario, or a verdict that is not good."""

from ..kit.contract.errors import ExitStatus, ToolError


class ScenarioNotFound(ToolError):
    """The lab has no such scenario."""

    code, exit_status = "SCENARIO_NOT_FOUND", ExitStatus.NOT_FOUND

    sentence = "There is no race {scenario!r}."
    advice = "To see the names of all races, run `{PROGRAM} lab list`."


class NoExercise(ToolError):
    """The lab has this scenario, but no exercise for it."""

    code, exit_status = "NO_EXERCISE", ExitStatus.NOT_FOUND
    sentence = "There is no exercise for {scenario!r}."
    advice = "`{PROGRAM} lab exercise lost-config-update` creates the first one."


class CannotTry(ToolError):
    """A file cannot be stepped through its schedules, because of its content."""

    code, exit_status = "CANNOT_TRY", ExitStatus.USAGE
    sentence = "{file} cannot be tried: {problem}."
    advice = (
        "Correct the file, then run the command again. "
        "For a file that works, run "
        "`{PROGRAM} lab exercise lost-config-update --output example.py`."
    )


class RaceFound(ToolError):
    """The invariant of a learner's file does not hold on every schedule."""

    code, exit_status = "RACE_FOUND", ExitStatus.PARTIAL
    sentence = "{file} is broken on schedule {schedule}: {reason}"
    advice = "To see it again, run `{PROGRAM} lab try {file}{options} --schedule '{schedule}'`."


class InvariantCannotFail(ToolError):
    """The invariant of a learner's file has nothing that could fail, so it judges nothing."""

    code, exit_status = "INVARIANT_CANNOT_FAIL", ExitStatus.PARTIAL
    sentence = (
        "The invariant of {file} cannot fail: "
        "it asserts nothing that could be false, and returns nothing."
    )
    advice = "Write `assert` before the comparison, or return a sentence that says what is broken."


class TooManySchedules(ToolError):
    """A learner's file has more schedules than are run. Those that were run hold."""

    code, exit_status = "TOO_MANY_SCHEDULES", ExitStatus.PARTIAL
    sentence = (
        "{file} has more than {schedules} schedules that make a difference. "
        "These {schedules} hold; the others were not run."
    )
    advice = "Let worker() take fewer steps: fewer files, fewer rounds of a loop."


class UnexpectedOutcome(ToolError):
    """The right variant broke, or a wrong variant could not be shown to break."""

    code, exit_status = "UNEXPECTED_OUTCOME", ExitStatus.PARTIAL
    sentence = "{surprises}."
    advice = (
        "If a right variant broke, its protection is missing. "
        "Replay the schedule to see what happens."
    )
