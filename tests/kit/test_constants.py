"""The value of every constant of the kit, and why it is this value."""

import os

from sampletool.kit.testing.constants import Constant, Limit, differences, option_differences

_LEFT_OUT = ("contract.errors.ExitStatus.", "testing.")
"""tests/kit/contract/test_errors.py has the exit codes. Constants of tests need no reason."""

CONSTANTS = (
    Constant("commands._bug_report._MAX_CRASH_REPORTS", 5, "more: old crashes hide the last one"),
    Constant("commands._bug_report._MAX_ENVIRONMENT_BYTES", 24_576, "more: a report over 64 KiB"),
    Constant("commands._probes._MAX_LISTED", 10, "more: hundreds of locks fill the response"),
    Constant(
        "commands._bug_report._MAX_VALUE_CHARACTERS", 200, "more: one variable fills the report"
    ),
    Constant(
        "commands.config._editor._GRACE_SECONDS",
        5.0,
        "less: an editor cannot save its recovery file",
    ),
    Constant("contract.excerpt.MAX_LISTED_CHARACTERS", 200, "more: a page of a list is too long"),
    Constant(
        "commands.config.set._MAX_STDIN_BYTES",
        1_048_576,
        "less: a large value is not read before it is refused",
    ),
    Constant(
        "commands.config.set._SIMILAR",
        0.75,
        "less: other keys count as misspelled; more: no key does",
    ),
    Constant("commands.lock.list._MAX_HOLDERS", 10, "more: one shared lock fills a page"),
    Constant("commands.log._MAX_CHARACTERS", 200, "more: a page of the log is too long"),
    Constant("commands.log._MAX_SUBJECTS", 10, "more: a page of the log is too long"),
    Constant("commands.status._MAX_LOCKS", 10, "more: a status is no small response"),
    Constant("contract.response.MAX_LIST_BYTES", 49_152, "more: a response is over 64 KiB"),
    Constant("contract.response.count_fitting(max_bytes)", 49_152, "see MAX_LIST_BYTES"),
    Constant("settings.toml_key.MAX_SHOWN_KEY_CHARACTERS", 1000, "more: one key fills a page"),
    Constant(
        "commands.session.clean._MAX_LISTED", 100, "more: the response of a large clean is too long"
    ),
    Constant("context._MAX_WARNING_BYTES", 8_192, "more: with a page, a response over 64 KiB"),
    Constant(
        "context.NO_WAIT_SECONDS",
        0.0,
        "more: a command waits for a holder that may run for minutes",
    ),
    Constant(
        "context.PATIENT_WAIT_SECONDS",
        10.0,
        "less: a short queue fails; more: callers think that the tool hangs",
    ),
    Constant(
        "contract.duration._MAX_SECONDS",
        3_153_600_000,
        "more: the clock and the poll call overflow",
    ),
    Constant("contract.duration._MAX_YEARS", 100, "more: the clock and the poll call overflow"),
    Constant(
        "contract.errors.INTERRUPTED",
        (129, 130, 131, 143),
        "others: scripts do not see which signal it was",
    ),
    Constant("contract.errors.SIGNAL_BASE", 128, "others: scripts do not see which signal it was"),
    Constant(
        "contract.errors._MAX_PATH_CHARACTERS",
        4096,
        "less: a program cannot open the file of an error",
    ),
    Constant("contract.errors._MAX_MISTAKE_BYTES", 32_768, "more: an error is over 64 KiB"),
    Constant("contract.errors.USUAL_RETRY_MS", 1_000, "less: callers flood a server that starts"),
    Constant(
        "contract.errors._MAX_MISTAKES", 100, "more: a response of megabytes for one command line"
    ),
    Constant(
        "contract.errors._MAX_LISTED", 10, "more: a message of hundreds of names hides its sentence"
    ),
    Constant(
        "contract.errors.did_you_mean(nearness)",
        0.6,
        "less: every word is near; more: no typing error is",
    ),
    Constant(
        "contract.help_page._MAX_NAME_WIDTH",
        34,
        "more: no room for the meaning; less: each takes two lines",
    ),
    Constant(
        "contract.help_page._MAX_WIDTH",
        110,
        "more: lines of help are too long to read on a wide terminal",
    ),
    Constant("contract.library_errors._MAX_HOLDERS", 10, "more: hundreds of readers in one error"),
    Constant("contract.lock_held._MAX_NAMED_PROCESSES", 10, "more: a message of hundreds of pids"),
    Constant(
        "contract.lock_held._MAX_JITTER",
        1.25,
        "1: a crowd comes back together; more: callers wait for nothing",
    ),
    Constant(
        "contract.lock_held._MIN_RETRY_MS",
        250,
        "less: callers poll; more: short holds cost a long wait",
    ),
    Constant(
        "contract.lock_held._MIN_RETRY_MS_IF_USUAL_IS_UNKNOWN",
        12_000,
        "less: three tries do not outlast a hold of 60 s",
    ),
    Constant(
        "contract.lock_held._MAX_RETRY_MS_IF_USUAL_IS_UNKNOWN",
        60_000,
        "less: three tries do not outlast a hold of 60 s; more: a caller sleeps for minutes",
    ),
    Constant(
        "contract.lock_held._RETRY_FACTOR_IF_USUAL_IS_UNKNOWN",
        5,
        "less: three tries do not outlast a hold of 60 s",
    ),
    Constant(
        "contract.lock_held._MAX_RETRY_MS",
        30_000,
        "more: a caller sleeps long after the lock is free",
    ),
    Constant(
        "contract.lock_held._MIN_PROPOSED_TIMEOUT_SECONDS",
        30,
        "less: too short a wait for most builds",
    ),
    Constant(
        "contract.lock_held._MIN_PROPOSED_TIMEOUT_SECONDS_IF_USUAL_IS_UNKNOWN",
        120,
        "less: a caller who follows the hint waits in vain for a build of a minute",
    ),
    Constant("pages._MAX_POSITION_DIGITS", 18, "more: Python and the stores refuse the number"),
    Constant("pages.MAX_LIMIT", 10_000, "more: one page floods the context of an agent"),
    Constant("work.progress._HEARTBEAT_SECONDS", 1.0, "more: a slow command seems to hang"),
    Constant("work.progress._REDRAW_SECONDS", 0.1, "less: a terminal flickers"),
    Constant("work.progress._BAR_CHARACTERS", 30, "more: no room for what is running"),
    Constant("work.progress._STDERR", 2, "1: the response is mixed with the live line"),
    Constant("work.retries._MAX_DOUBLINGS", 30, "1023: the largest number is exceeded"),
    Constant("work.retries.RetryPolicy.max_attempts", 5, "more: a person waits for minutes"),
    Constant("work.retries.RetryPolicy.first_pause_seconds", 0.5, "less: no time to restart"),
    Constant(
        "work.retries.RetryPolicy.longest_pause_seconds",
        30.0,
        "more: a needless wait",
    ),
    Constant(
        "work.workers._READ_BYTES", 1_048_576, "less: more system calls; more: memory for nothing"
    ),
    Constant(
        "work.workers._LONGEST_WAIT_SECONDS",
        0.2,
        "more: heartbeats are late",
    ),
    Constant(
        "work.workers._SECONDS_BETWEEN_LOOKS",
        0.2,
        "more: they outlive it",
    ),
    Constant("contract.table._NARROWEST_COLUMN", 8, "less: cells of a few characters say nothing"),
    Constant("contract.text.MAX_ECHOED_CHARACTERS", 200, "more: a pasted file fills the message"),
    Constant(
        "contract.text.MAX_SENTENCE_CHARACTERS", 1000, "less: a path or a command to copy is cut"
    ),
    Constant("contract.text._NARROWEST_TEXT", 20, "less: one word on each line"),
    Constant("manual.roff._LINE_CHARACTERS", 80, "more: `mandoc -Tlint` warns of each longer line"),
    Constant("safety.atomic_file.FOR_ALL", 0o666, "less: the umask of the user does not decide"),
    Constant(
        "safety.atomic_file._CREATE_FLAGS",
        os.O_WRONLY | os.O_CREAT | os.O_EXCL,
        "without O_EXCL: a planted file is written to",
    ),
    Constant(
        "safety.atomic_file._MAX_STEM_BYTES", 200, "more: a temporary name is longer than 255 bytes"
    ),
    Constant("safety.atomic_file.opened(new_mode)", 0o600, "more: others read what is new"),
    Constant(
        "safety.atomic_file.replace(new_mode)",
        0o600,
        "more: others read settings that may hold a secret",
    ),
    Constant(
        "call_log.MAX_FILE_BYTES",
        4_194_304,
        "more: `log` reads for seconds; less: it forgets today",
    ),
    Constant("call_log.append(max_bytes)", 4_194_304, "see call_log.MAX_FILE_BYTES"),
    Constant("call_log._MAX_LISTED_ITEMS", 20, "more: a line for a list takes kilobytes"),
    Constant(
        "call_log._MAX_READ_CHARACTERS",
        1000,
        "less: a password in a URL is cut in half and not hidden",
    ),
    Constant(
        "call_log._MAX_SUBJECT_CHARACTERS", 200, "more: a line with a pasted file takes kilobytes"
    ),
    Constant(
        "completion._MAX_SECONDS",
        1.0,
        "more: the shell seems to hang; less: a busy machine offers nothing",
    ),
    Constant("places._ROOT_UID", 0, "others: the settings of an administrator are refused"),
    Constant(
        "start._OLDEST_PYTHON",
        (3, 11),
        "less: an old Python prints a traceback instead of an error",
    ),
    Constant(
        "start._PRECONDITION", 4, "others: it is not the exit code of ExitStatus.PRECONDITION"
    ),
    Constant(
        "safety.children.GRACE_SECONDS",
        5.0,
        "less: no time to clean up; more: Ctrl-C seems to hang",
    ),
    Constant(
        "safety.children.LOST_EXIT_CODE", 255, "0: a child whose end was lost counts as a success"
    ),
    Constant(
        "safety.children.TAIL_BYTES", 4_096, "more: outputs of many jobs do not fit into a response"
    ),
    Constant(
        "safety.children._MAX_CHUNKS",
        16,
        "more: a child that writes without end starves the others",
    ),
    Constant(
        "safety.children._CHUNK_BYTES", 65_536, "less: more system calls; more: memory for nothing"
    ),
    Constant(
        "safety.children._DEATH_SECONDS",
        2.0,
        "less: a slow death counts as a survivor; more: the end hangs",
    ),
    Constant(
        "safety.child_log.MAX_LOG_BYTES",
        64 * 1024 * 1024,
        "less: what went wrong is missing; more: a child that prints without end fills the disk",
    ),
    Constant(
        "safety.child_log._FIRST_PART_BYTES",
        32 * 1024 * 1024,
        "less: how the child began is missing; more: there is no room for how it ended",
    ),
    Constant(
        "safety.child_log._LAST_PART_BYTES",
        16 * 1024 * 1024,
        "less: how the child ended is missing; more: the last part is moved more often",
    ),
    Constant(
        "safety.child_log._COPIED_BYTES", 1024 * 1024, "less: more system calls; more: memory"
    ),
    Constant(
        "safety.child_log._LOG_FLAGS",
        os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
        (
            "with O_APPEND: the last part cannot be moved; without O_NOFOLLOW: a planted link is "
            "written through"
        ),
    ),
    Constant("safety.child_log._LOG_MODE", 0o600, "more: others read the output of a child"),
    Constant(
        "safety.children._RECHECK_SECONDS",
        1.0,
        "more: a signal that is only recorded is obeyed late",
    ),
    Constant(
        "safety.children._POLL_SECONDS",
        0.02,
        "less: waiting takes the processor; more: each end comes late",
    ),
    Constant(
        "safety.lock.Lock.exclusively(timeout_seconds)", 10.0, "see context.PATIENT_WAIT_SECONDS"
    ),
    Constant("safety.lock.Lock.shared(timeout_seconds)", 10.0, "see context.PATIENT_WAIT_SECONDS"),
    Constant(
        "safety.lock._OPEN_FLAGS",
        os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
        "without O_NONBLOCK: a planted FIFO blocks; without O_CLOEXEC: any child keeps the lock",
    ),
    Constant(
        "safety.lock._NEW_FILE_MODE",
        0o600,
        "more: other users can hold the lock, or change the record",
    ),
    Constant(
        "safety.lock._NOTICE_SECONDS",
        0.5,
        "less: short waits are reported; more: a person sees nothing",
    ),
    Constant(
        "safety.lock._SHORT_HOLD_SECONDS",
        0.25,
        "less: a reader that comes is refused; more: 0 waits that long",
    ),
    Constant(
        "safety.lock._WRITABLE_BY_OTHERS", 0o022, "less: others write; more: refused for nothing"
    ),
    Constant(
        "safety.lock_owners._OPEN_FLAGS",
        os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
        "without O_NOFOLLOW: a planted link is read; without O_NONBLOCK: a FIFO blocks `lock list`",
    ),
    Constant(
        "safety.lock_owners._ATTEMPTS",
        3,
        "less: a lock that changes hands has no owner; more: errors come late",
    ),
    Constant(
        "safety.lock_owners._SECONDS_BETWEEN_ATTEMPTS", 0.005, "less: all looks see one instant"
    ),
    Constant("safety.lock_owners._UNKNOWN_PID", 0, "the kernel's own number"),
    Constant(
        "safety.lock_record._BLOCK_BYTES",
        1_024,
        "another: no version reads the records of the others",
    ),
    Constant(
        "safety.lock_record._CHECKSUM_BYTES", 9, "8 hexadecimal digits and a space: see _checksum()"
    ),
    Constant("safety.lock_record._NEWLINE_BYTES", 1, "the length of a newline"),
    Constant(
        "safety.lock_record._OPEN_FLAGS",
        os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
        (
            "without O_NOFOLLOW: a planted link is read; without O_NONBLOCK: a FIFO blocks "
            "every reader"
        ),
    ),
    Constant(
        "safety.lock_record._RECORD_OFFSET",
        1,
        "0: Windows locks this byte, and nobody could read the record",
    ),
    Constant(
        "safety.lock_record._VERSION", 1, "another: the holders of an older version have no names"
    ),
    Constant(
        "safety.orphans._GRACE_SECONDS",
        2.0,
        "less: no time to clean up; more: `lock release` seems to hang",
    ),
    Constant("safety.orphans._POLL_SECONDS", 0.02, "more: a second signal is noticed late"),
    Constant(
        "safety.private_directory._WRITABLE_BY_OTHERS",
        0o022,
        "less: others write; more: refused for nothing",
    ),
    Constant(
        "safety.private_directory.PRIVATE_MODE",
        0o700,
        "more: others read sessions, or plant files in them",
    ),
    Constant(
        "safety.processes._BOOT_ID_CHARACTERS",
        8,
        "less: two boots look alike; another: no record is believed",
    ),
    Constant(
        "safety.session._CLOCK_TOLERANCE_SECONDS",
        60.0,
        "less: a use on a file server counts as a wrong clock",
    ),
    Constant(
        "safety.session._MAX_ATTEMPTS",
        6,
        "less: two cleaners make a call fail; more: it never ends",
    ),
    Constant(
        "safety.signals._ECHO_SECONDS",
        0.5,
        "less: the echo of Ctrl-C kills children; more: nobody can",
    ),
    Constant(
        "safety.signals._LONGEST_SLEEP_SECONDS",
        86_400.0,
        "over 24.8 days: poll() raises OverflowError",
    ),
    Constant(
        "safety.signals._STALLED_SECONDS",
        0.25,
        "less: a slow reader loses output; more: a dead one delays",
    ),
    Constant(
        "work.blocking._LONGEST_WAIT_SECONDS",
        1.0,
        "less: wakes up for nothing; more: a signal is seen late",
    ),
    Constant("stdin._BLOCK_BYTES", 1_048_576, "less: more system calls; more: memory for nothing"),
    Constant("stdin._LONGEST_WAIT_SECONDS", 60.0, "less: waiting takes the processor"),
    Constant("stdin._MEBIBYTE", 1_048_576, "others: the error names another limit"),
    Constant(
        "safety.toml_file._ALL_WRITE_BITS",
        0o222,
        "less: a file that a group may write to counts as read-only",
    ),
    Constant("safety.toml_file._MAX_DEPTH", 150, "more: recursion may end the call"),
    Constant(
        "safety.toml_file.editing_toml(timeout_seconds)", 10.0, "see context.PATIENT_WAIT_SECONDS"
    ),
    Constant(
        "safety.toml_limits.MAX_KEY_PARTS", 100, "more: the time to parse grows with the square"
    ),
    Constant(
        "safety.toml_limits.MAX_TOML_BYTES", 262_144, "more: hostile files take seconds to parse"
    ),
    Constant(
        "settings.toml_cost._MAX_PARSE_COST", 1_000_000, "more: an edit takes longer than 8 s"
    ),
    Constant(
        "settings.toml_edit._MAX_EDITED_PARTS", 50, "more: a key that cannot be removed again"
    ),
    Constant("stdout.STDERR", 2, "the number that every system gives it"),
    Constant("stdout.STDOUT", 1, "the number that every system gives it"),
    Constant(
        "settings.kinds.MAX_PATTERN_CHARACTERS",
        200,
        "more: a slow pattern keeps a command busy, and no signal ends it",
    ),
    Constant("settings.toml_key._MAX_DEPTH", 100, "more: recursion may end the call"),
    Constant(
        "settings.toml_key._LARGEST_EXACT_INTEGER",
        9_007_199_254_740_991,
        "more: JSON readers round it",
    ),
    Constant("stdout._USUAL_WIDTH", 80, "more: lines wrap where no width is known"),
    Constant(
        "stepping.child._OUTPUT_LOST_EXIT_CODE",
        120,
        "another: a forked process differs from a fresh one",
    ),
    Constant(
        "stepping.fork_server_main._MAX_DESCRIPTORS",
        32,
        "less: a process gets not all of its descriptors",
    ),
    Constant(
        "stepping.fork_server_main._WAKEUP_BYTES",
        4_096,
        "less: more rounds after many signals; 0: no end",
    ),
    Constant(
        "stepping.forked_process.FILE",
        -4,
        "-1 to -3: it means PIPE, STDOUT or DEVNULL of subprocess",
    ),
    Constant(
        "stepping.forked_process._CHUNK_BYTES", 65_536, "less: more system calls for each output"
    ),
    Constant("folder_exchange._AT_FDCWD", -100, "another: paths are relative to a descriptor"),
    Constant("folder_exchange._RENAME_EXCHANGE", 2, "another: one of the folders is overwritten"),
    Constant("folder_exchange._RENAME_SWAP", 2, "another: one of the folders is overwritten"),
    Constant("stepping.forked_process._EXIT_REPORT_BYTES", 32, "less: a long exit code is cut"),
    Constant("stepping.effects._MAX_LINKS", 40, "less: a file that the kernel finds is missed"),
    Constant(
        "stepping.reported_calls.ReportedCalls._replace(path_arguments)",
        1,
        "more: a number counts as a descriptor",
    ),
    Constant(
        "stepping.tracee._AuditEvent.path_arguments", 1, "more: other arguments count as paths"
    ),
    Constant(
        "stepping.tracer.SteppedProcess.run_until(times)", 1, "more: it passes by the first event"
    ),
    Constant(
        "stepping.tracer._PATIENCE_SECONDS",
        30,
        "less: a busy machine fails; more: a stuck worker holds it up",
    ),
    Constant(
        "kit_source.MAX_BYTES",
        104_857_600,
        "more: an archive fills the memory; less: no project fits",
    ),
)

_PAGE = "more: one response is too large; less: callers need many calls"

LIMITS = (
    Limit("config get --max-chars", None, 1, None, "0: the value would always be left out"),
    Limit("config list --limit", 100, 1, 10_000, _PAGE),
    Limit("lock list --limit", 100, 1, 10_000, _PAGE),
    Limit("log --limit", 100, 1, 10_000, _PAGE),
    Limit(
        "log --since",
        "7d",
        None,
        None,
        "less: last week is not shown; more: old calls hide the new ones",
    ),
    Limit("manifest --limit", 100, 1, 10_000, _PAGE),
    Limit("session list --limit", 100, 1, 10_000, _PAGE),
)


def test_every_constant_of_the_kit_has_the_value_that_the_table_says() -> None:
    assert differences("kit", CONSTANTS, _LEFT_OUT) == []


def test_every_limit_of_an_option_of_the_kit_is_what_the_table_says() -> None:
    assert option_differences("kit", LIMITS) == []
