"""The value of every constant of the sample part, and why it is this value."""

import os

from sampletool.kit.testing.constants import Constant, Limit, differences, option_differences

CONSTANTS = (
    Constant("csv_file.MAX_COLUMNS", 1000, "more: a file of the wrong kind fills the memory"),
    Constant(
        "csv_file.MAX_PART_BYTES",
        1_048_576,
        "another: results differ; more: memory of each worker; less: forks cost more than parts",
    ),
    Constant(
        "profile._MAX_DISTINCT",
        80_000,
        "more: columns of ids fill the memory; less: counts are unknown",
    ),
    Constant("profile._MAX_FREQUENT", 5, "more: results are too long to read"),
    Constant("profile._MAX_NUMBER", 1e200, "more: a sum is infinite"),
    Constant(
        "profile.MAX_VALUE_CHARACTERS",
        200,
        "more: long cells fill the memory; less: results say little",
    ),
    Constant(
        "output._MAX_RESULT_BYTES", 67_108_864, "more: a large file at the path fills the memory"
    ),
    Constant(
        "output._LITTER_SECONDS",
        3_600.0,
        "less: the file of a living writer is removed; more: litter stays",
    ),
    Constant(
        "journal._APPEND_FLAGS",
        os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
        (
            "without O_APPEND: the journal is overwritten; without O_NOFOLLOW: a planted link is "
            "written through"
        ),
    ),
    Constant(
        "digests._BLOCK_BYTES", 1_048_576, "less: more system calls; more: Ctrl-C is noticed late"
    ),
    Constant("digests._MAX_CACHE_BYTES", 268_435_456, "more: a planted file fills the memory"),
    Constant(
        "digests._MIN_UNCHANGED_SECONDS",
        2.0,
        "less: two changes in one tick of a clock are one; FAT has ticks of 2 s",
    ),
    Constant(
        "publish._DIRECTORY_FLAGS",
        os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
        "without O_NOFOLLOW: a planted link is written through",
    ),
    Constant("trees._MAX_DEPTH", 100, "more: recursion may end the call"),
    Constant(
        "journal._MAX_JOURNAL_BYTES",
        1_073_741_824,
        "less: a large workspace cannot be read; more: memory",
    ),
    Constant(
        "publish._KEPT_SECONDS",
        3_600,
        "less: a reader without a lock loses its files; more: the disk fills",
    ),
    Constant("build_lock._FILES_OF_JOB", 3, "less: a log cannot be opened, which ends the run"),
    Constant(
        "build_lock._RESERVED_FILES",
        40,
        "less: an input cannot be opened, which ends the run; more: fewer jobs",
    ),
    Constant("job_result._SHOWN_LINES", 10, "more: a failure hides the others"),
)

_JOBS = "0: nothing would ever run"

LIMITS = (
    Limit("build --jobs", None, 1, None, _JOBS),
    Limit("process --jobs", None, 1, None, _JOBS),
    Limit("test --jobs", None, 1, None, _JOBS),
)


def test_every_constant_of_the_part_has_the_value_that_the_table_says() -> None:
    assert differences("sample", CONSTANTS) == []


def test_every_limit_of_an_option_is_what_the_table_says() -> None:
    assert option_differences("sample", LIMITS) == []
