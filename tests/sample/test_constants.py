"""The value of every constant of the sample part, and why it is this value."""

import os

from sampletool.kit.testing.constants import Constant, Limit, differences, option_differences

CONSTANTS = (
    Constant("commands.process._SHOWN_BYTES", 49_152, "more: the response is cut, and an input is missing in it"),
    Constant("csv_file.LONG_CELL", 200, "more: long cells fill the memory; less: results say little"),
    Constant("csv_file.MOST_COLUMNS", 4_096, "more: a file of the wrong kind fills the memory"),
    Constant("csv_file.PART_BYTES", 16_777_216, "another: results differ; less: a fork costs more than its part"),
    Constant("csv_file._BATCH_BYTES", 131_072, "more: memory of each worker; less: more turns of the loop"),
    Constant("csv_file._BLOCK_BYTES", 1_048_576, "less: more system calls; more: memory for nothing"),
    Constant("csv_file._LONGEST_RECORD_BYTES", 2_097_152, "more: a quote that never ends fills the memory"),
    Constant("output._LARGEST_BYTES", 67_108_864, "more: a large file at the path fills the memory"),
    Constant("output._LITTER_SECONDS", 3_600.0, "less: the file of a living writer is removed; more: litter stays"),
    Constant("profile._COUNTED_TOGETHER", 80_000, "more: wide files fill the memory"),
    Constant("profile._LARGEST", 1e140, "more: the square of a value is no number"),
    Constant("profile._MOST_COUNTED", 10_000, "more: a column of ids fills the memory; less: counts are unknown"),
    Constant("profile._SHOWN_VALUES", 5, "more: results are too long to read"),
    Constant(
        "publish._APPEND",
        os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
        "without O_APPEND: the journal is overwritten; without O_NOFOLLOW: a planted link is written through",
    ),
    Constant("publish._BLOCK_BYTES", 1_048_576, "less: more system calls; more: Ctrl-C is noticed late"),
    Constant("publish._DEEPEST", 100, "more: recursion may end the call"),
    Constant("publish._JOURNAL_BYTES", 1_073_741_824, "less: a large workspace cannot be read; more: memory"),
    Constant("publish._KEPT_SECONDS", 3_600, "less: a reader without a lock loses its files; more: the disk fills"),
    Constant("run._SHOWN_LINES", 10, "more: a failure hides the others"),
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
