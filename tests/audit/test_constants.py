"""The value of every constant of the audit, and why it is this value."""

from sampletool.kit.testing.constants import Constant, Limit, differences, option_differences

CONSTANTS = (
    Constant(
        "commands.audit._RUNS_PER_INTERRUPTION",
        4,
        "more: stops and kills miss the moment; less: an audit takes long",
    ),
    Constant(
        "serialized_run._MAX_RESPONSE_BYTES",
        65_536,
        "less: a long last line is cut, and is no JSON",
    ),
    Constant("serialized_run._FIRST_PAUSE_SECONDS", 0.1, "less: the program is called in a loop"),
    Constant(
        "serialized_run._MAX_PAUSE_SECONDS",
        60,
        "more: a wrong hint holds the lock for hours",
    ),
    Constant("failure.Failure.count", 1, "0: failures of one kind are not counted"),
    Constant("failure._MAX_RETRY_NUMBER", 1e9, "more: a time of day counts as a duration"),
    Constant("failure._MAX_SHOWN_CHARACTERS", 400, "more: one failure hides the others"),
    Constant(
        "failure.parse_failure(max_depth)",
        4,
        "less: nested errors are not understood; more: facts of other things",
    ),
    Constant("probes._REST_SECONDS", 0.5, "less: children of a killed run have no time to end"),
    Constant("probes._CHANGES", 4, "less: the later changes of a run are never interrupted"),
    Constant("probes._ENOUGH_REFUSALS", 2, "more: each costs as long as the tool waits"),
    Constant(
        "probes._LOOKS_PER_RUN",
        1_000,
        "less: moments are missed; more: looking slows the runs down",
    ),
    Constant(
        "probes._MAX_BURSTS", 20, "less: quick tools never overlap; more: an audit takes long"
    ),
    Constant(
        "probes._MAX_REPETITIONS",
        8,
        "more: an audit takes long; less: few moments of quick tools are met",
    ),
    Constant(
        "probes._MAX_USUAL_TIMES",
        3,
        "less: a busy machine skips moments; more: a moment that never comes costs time",
    ),
    Constant("probes._MORE_SECONDS", 0.5, "less: a busy machine skips moments"),
    Constant("probes._QUICK_SECONDS", 0.05, "less: few moments of quick tools are met"),
    Constant("probes._ATTEMPTS_AFTER_KILL", 3, "less: a lock that is freed late counts as stale"),
    Constant(
        "run._END_SECONDS",
        2.0,
        "less: a busy machine fails; more: a run that cannot be ended holds it up",
    ),
    Constant(
        "run._MAX_OUTPUT_BYTES",
        65_536,
        "more: a loud tool fills the memory; less: its error is cut",
    ),
    Constant("run._POLL_SECONDS", 0.001, "more: a run is stopped late, behind its moment"),
    Constant("sandbox._MIN_NAP_SECONDS", 0.0005, "less: looking uses the processor that runs need"),
    Constant("serialized_run._SIGNAL_BASE", 128, "another: not what a shell reports"),
    Constant("sandbox._MAX_NAP_SECONDS", 0.02, "more: two runs are not seen at the same moment"),
)

LIMITS = (
    Limit(
        "audit --deadline",
        "30s",
        None,
        None,
        "less: a slow tool counts as hung; more: a hung one takes long",
    ),
    Limit(
        "audit --runs", 32, 2, 256, "1: nothing overlaps; more: the machine has no processes left"
    ),
    Limit(
        "run-safely --retries",
        5,
        0,
        1_000,
        "less: a busy lock fails; more: a stuck one is tried for ever",
    ),
    Limit(
        "run-safely --until",
        "1m",
        None,
        None,
        "less: a busy lock fails; more: the caller thinks that it hangs",
    ),
)


def test_every_constant_of_the_part_has_the_value_that_the_table_says() -> None:
    assert differences("audit", CONSTANTS) == []


def test_every_limit_of_an_option_is_what_the_table_says() -> None:
    assert option_differences("audit", LIMITS) == []
