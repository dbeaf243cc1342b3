"""The value of every constant of the lab, and why it is this value."""

from sampletool.kit.testing.constants import Constant, Limit, differences, option_differences

_LEFT_OUT = ("scenarios.",)
"""A scenario is a story: its numbers are its content, and its recorded runs pin them."""

CONSTANTS = (
    Constant(
        "commands.lab.exercise._MAX_BYTES",
        1024 * 1024,
        "more: a huge file takes memory; less: a solution is too large",
    ),
    Constant(
        "commands.lab.explore._LARGEST_BYTES",
        67_108_864,
        "more: a large file at the path fills the memory",
    ),
    Constant(
        "commands.lab.try_.MOST_BROKEN",
        50,
        "more: a wrong program takes long; less: reasons are missed",
    ),
    Constant(
        "commands.lab.try_.MOST_SCHEDULES",
        1_000,
        "more: a run takes hours; less: a race is not found",
    ),
    Constant("commands.lab.try_._CANDIDATES", 5, "less: the picture has more switches than needed"),
    Constant(
        "commands.lab.try_._LARGEST_BYTES",
        1_048_576,
        "more: a file of the wrong kind fills the memory",
    ),
    Constant("draw._STDERR", 2, "another: the width is not that of the terminal"),
    Constant("draw._STDIN", 0, "another: the width is not that of the terminal"),
    Constant("draw.WIDTH", 80, "more: recorded pictures do not fit onto pages"),
    Constant(
        "draw._EMPTY_COLUMN_WIDTH", 4, "less: a lane without text is too narrow for its letter"
    ),
    Constant("draw._GAP_WIDTH", 5, "less: lanes touch each other"),
    Constant("draw._MIN_COLUMN_WIDTH", 10, "less: words do not fit into a lane"),
    Constant("draw._MIN_TERMINAL_WIDTH", 40, "less: words do not fit into a lane"),
    Constant(
        "exercises.unlinked_lock.JOBS",
        {"A": 2, "B": 1},
        "1 for A: no worker uses the lock file again; 2 for B: the search takes minutes",
    ),
    Constant("explore.MOST_SCHEDULES", 50, "more: a check takes minutes; less: it misses mistakes"),
    Constant("explore._BATCH_SIZE", 100, "more: all turns of a large scenario fill the memory"),
    Constant("learner._MOST_CPU_SECONDS", 1, "less: a worker that computes counts as a loop"),
    Constant("learner_threads._LONGEST_LINE", 40, "more: a step does not fit into its lane"),
    Constant(
        "luck._MAX_SECONDS",
        10,
        "less: a busy machine counts as stuck; more: one stuck run holds it up",
    ),
    Constant(
        "production_lock.PATIENT_WAIT_SECONDS", 60.0, "less: a paused worker fails by its timeout"
    ),
    Constant("outcome.BAD_FILE", 6, "the same as another exit code: the wrong function is blamed"),
    Constant("outcome.BROKEN", 3, "1 or 2: a failure of Python counts as a broken invariant"),
    Constant(
        "outcome.CANNOT_JUDGE", 5, "the same as another exit code: a wrong file counts as a race"
    ),
    Constant("outcome.FAILED", 1, "0: a failure counts as a success"),
    Constant("outcome.Outcome.exit_code", 0, "else: a success counts as a failure"),
    Constant(
        "outcome.REFUSED", 4, "the same as another exit code: what is refused counts as a race"
    ),
    Constant(
        "place._DIGEST_BYTES",
        12,
        "less: two places may look the same, and a worker counts as waiting",
    ),
    Constant(
        "play._MOST_STEPS",
        500,
        "more: a worker in a loop never ends; less: long ones cannot be played",
    ),
    Constant("position._MAX_VALUE_CHARACTERS", 200, "more: a large value hides the others"),
    Constant("reduction._REPORTED_NUMBER", 100, "less: a short search reports its progress"),
    Constant("scenario.Scenario.workers", 2, "more: too many schedules to explore"),
    Constant("stepped_threads._PATIENCE_SECONDS", 120, "less: a busy machine counts as stuck"),
    Constant("svg._BASELINE", 18, "else: text leaves its row"),
    Constant("svg._CHARACTER_WIDTH", 7.9, "less: text leaves the picture"),
    Constant("svg._LINE_CHARACTERS", 110, "more: the picture is too wide for a page"),
    Constant("svg._MARGIN", 16, "less: text touches the edge"),
    Constant("svg._ROW_HEIGHT", 28, "less: lines overlap"),
    Constant(
        "stepped_lock._DEEPEST_SEARCH",
        3,
        "less: a lock in an object has no name; more: a step takes long",
    ),
    Constant(
        "threads._MOST_INSTRUCTIONS", 100_000, "less: a worker that computes counts as a loop"
    ),
    Constant("threads._LEAST_CPU_SECONDS", 0.1, "more: a busy machine counts as waiting"),
    Constant(
        "threads._PATIENCE_SECONDS",
        10,
        "less: a busy machine counts as stuck; more: a loop holds it up",
    ),
    Constant("stepped_lock.SteppedLock.acquire(timeout)", -1, "threading.Lock has this default"),
    Constant("tried.Bound.rounds", 1, "more: too many schedules to explore"),
    Constant("tried.Bound.workers", 2, "more: too many schedules to explore"),
    Constant("tried._MAX_CONTENT_CHARACTERS", 200, "more: the picture is too wide for a terminal"),
    Constant(
        "tried._PATIENCE_SECONDS",
        10,
        "less: a busy machine counts as stuck; more: a loop holds it up",
    ),
)

LIMITS = (
    Limit(
        "lab list --limit",
        1_000,
        1,
        10_000,
        "more: one response is too large; less: more pages are needed",
    ),
    Limit("lab check --limit", 50, 1, 10_000, "less: a mistake is missed; more: a run takes long"),
    Limit("lab check --workers", None, 2, 3, "1: no race; more: too many schedules to explore"),
    Limit("lab prove --limit", 50, 1, 10_000, "less: a mistake is missed; more: a run takes long"),
    Limit("lab prove --workers", None, 2, 3, "1: no race; more: too many schedules to explore"),
    Limit("lab run --runs", 60, 1, 10_000, "less: luck says nothing; more: a run takes hours"),
    Limit("lab run --workers", None, 1, 8, "more: there are only so many letters"),
)


def test_every_constant_of_the_part_has_the_value_that_the_table_says() -> None:
    assert differences("lab", CONSTANTS, _LEFT_OUT) == []


def test_every_limit_of_an_option_is_what_the_table_says() -> None:
    assert option_differences("lab", LIMITS) == []
