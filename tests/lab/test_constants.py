"""The value of every constant of the lab, and why it is this value."""

from sampletool.kit.testing.constants import Constant, Limit, differences, option_differences

_LEFT_OUT = ("scenarios.",)
"""A scenario is a story: its numbers are its content, and its recorded runs pin them."""

CONSTANTS = (
    Constant("commands.lab.explore._LARGEST_BYTES", 67_108_864, "more: a large file at the path fills the memory"),
    Constant("commands.lab.try_.MOST_SCHEDULES", 1_000, "more: a call takes hours; less: a race is not found"),
    Constant("commands.lab.try_._LARGEST_BYTES", 1_048_576, "more: a file of the wrong kind fills the memory"),
    Constant("commands.lab.try_.MOST_BROKEN", 50, "more: a wrong program takes long; less: reasons are missed"),
    Constant("commands.lab.try_._CANDIDATES", 5, "less: the picture has more switches than needed"),
    Constant("draw.WIDTH", 80, "more: recorded pictures do not fit onto pages"),
    Constant("draw._GAP", 5, "less: lanes touch each other"),
    Constant("draw._LEAST_WIDTH", 40, "less: words do not fit into a lane"),
    Constant("draw._NARROWEST", 10, "less: words do not fit into a lane"),
    Constant("explore._AT_ONCE", 100, "more: all turns of a large scenario fill the memory; less: processes idle"),
    Constant("explore.MOST_SCHEDULES", 50, "more: a check takes minutes; less: it misses mistakes"),
    Constant(
        "commands.lab.exercise._MAX_BYTES", 1024 * 1024, "more: a huge file takes memory; less: a solution is too large"
    ),
    Constant("learner.BROKEN", 3, "1 or 2: a failure of Python counts as a broken invariant"),
    Constant("learner.CANNOT_JUDGE", 5, "the same as another exit code: a wrong file counts as a race"),
    Constant("learner.REFUSED", 4, "the same as another exit code: what is refused counts as a race"),
    Constant("learner._exit(exit_code)", 1, "0: a worker that is refused counts as a success"),
    Constant("luck._LONGEST_SECONDS", 10, "less: a busy machine counts as stuck; more: one stuck run holds it up"),
    Constant("ours.PATIENT_WAIT_SECONDS", 60.0, "less: a paused worker fails by its timeout, not by its schedule"),
    Constant("place._DIGEST_BYTES", 12, "less: two places may look the same, and a worker counts as waiting"),
    Constant("play._MOST_STEPS", 500, "more: a worker in a loop never ends; less: long ones cannot be played"),
    Constant("scenario.Scenario.workers", 2, "more: too many schedules to explore"),
    Constant("standing._LONGEST", 200, "more: a large value hides the others"),
    Constant("svg._LETTER", 7.9, "less: text leaves the picture"),
    Constant("svg._MARGIN", 16, "less: text touches the edge"),
    Constant("svg._ROW", 28, "less: lines overlap"),
    Constant("svg._WIDTH", 110, "more: the picture is too wide for a page"),
    Constant("tried.Bound.rounds", 1, "more: too many schedules to explore"),
    Constant("tried.Bound.workers", 2, "more: too many schedules to explore"),
    Constant("tried._LONGEST_LOOK", 40, "more: the picture is too wide for a terminal"),
    Constant("tried._PATIENCE_SECONDS", 10, "less: a busy machine counts as stuck; more: a loop holds it up"),
)

LIMITS = (
    Limit("lab list --limit", 1_000, 1, 10_000, "more: one response is too large; less: callers need many calls"),
    Limit("lab check --limit", 50, 1, 10_000, "less: a mistake is missed; more: a run takes long"),
    Limit("lab check --workers", None, 2, 3, "1: no race; more: too many schedules to explore"),
    Limit("lab prove --limit", 50, 1, 10_000, "less: a mistake is missed; more: a run takes long"),
    Limit("lab prove --workers", None, 2, 3, "1: no race; more: too many schedules to explore"),
    Limit("lab run --runs", 60, 1, 10_000, "less: luck says nothing; more: a call takes hours"),
    Limit("lab run --workers", None, 1, 8, "more: there are only so many letters"),
)


def test_every_constant_of_the_part_has_the_value_that_the_table_says() -> None:
    assert differences("lab", CONSTANTS, _LEFT_OUT) == []


def test_every_limit_of_an_option_is_what_the_table_says() -> None:
    assert option_differences("lab", LIMITS) == []
