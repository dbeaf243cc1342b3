"""The value of every constant of shared state, and why it is this value."""

from sampletool.kit.testing.constants import Constant, Limit, differences, option_differences

CONSTANTS = (
    Constant(
        "exchange._LOOK_SECONDS",
        0.05,
        "more: Ctrl-C is noticed late; less: waiting takes the processor",
    ),
    Constant(
        "exchange._PAUSE_SECONDS",
        0.05,
        "less: a server that starts is flooded; more: it is found late",
    ),
    Constant(
        "commands._almost_json.MAX_CHARACTERS",
        1_000,
        "more: an error is longer than a screen; less: a usual value is not corrected",
    ),
    Constant("commands._store._MAX_COMPLETIONS", 1_000, "more: a shell waits for its completion"),
    Constant("commands._values._MAX_DEPTH", 100, "more: recursion may end the call"),
    Constant(
        "commands._values._MAX_INPUT_BYTES",
        16_777_216,
        "less than a value in JSON with escapes may take",
    ),
    Constant("commands._values._MAX_SHOWN_CHARACTERS", 80, "more: an error repeats a whole value"),
    Constant(
        "commands.task.finish._MAX_STDIN_BYTES", 1_048_576, "more: a wrong file fills the memory"
    ),
    Constant("commands.task.add._MAX_MISTAKES", 20, "more: an error is longer than a screen"),
    Constant("commands.task.add._MAX_SHOWN_CHARACTERS", 80, "more: an error repeats a whole line"),
    Constant("commands.task.retry._TASKS_AT_ONCE", 500, "more: one step keeps all others out"),
    Constant(
        "commands.task.work._MIN_LEASE_MS", 1_000, "less: a lease expires before it can be renewed"
    ),
    Constant(
        "doctor._MAX_SKEW_MS", 2_000, "less: a busy machine fails; more: a wrong clock passes"
    ),
    Constant("errors._RETRY_AFTER_MS", 1_000, "less: callers flood a server that starts"),
    Constant(
        "errors.StoreUnavailable.retry_after_ms", 1_000, "less: callers flood a server that starts"
    ),
    Constant(
        "connect._CLEANUP_SECONDS",
        4.0,
        "less: claims are not given back; more: Ctrl-C seems to hang",
    ),
    Constant(
        "protocol.KEY_LIFETIME_MS", 86_400_000, "less: a retry of the next morning writes twice"
    ),
    Constant("protocol.MAX_INTEGER", 9_007_199_254_740_991, "more: JSON readers round it"),
    Constant(
        "sql_verbs._MAX_FREED_TASKS",
        500,
        "more: one claim keeps the others out; less: a burst of ends comes late",
    ),
    Constant(
        "sql._MAX_FORGOTTEN_RESULTS", 20, "more: one write takes long; less: expired keys pile up"
    ),
    Constant(
        "sql_verbs._MAX_SWEPT_VALUES",
        20,
        "more: one write takes long; less: expired values pile up",
    ),
    Constant("sqlite._BUSY_SECONDS", 0.05, "more: Ctrl-C is noticed late"),
    Constant("sqlite._LOG_PAGES", 250, "more: the log grows, and each flush with it"),
    Constant(
        "sqlite._APPLICATION_ID",
        0x746F6F6C,
        "another: the stores of older versions count as somebody else's",
    ),
    Constant("store.Store.task_claim(count)", 1, "more: a worker holds tasks that it cannot run"),
    Constant(
        "sql_verbs.MAX_EXIT_CODES", 20, "more: a task that always fails grows with each attempt"
    ),
    Constant("store.Store.task_retry_all(limit)", 500, "more: one step keeps all others out"),
    Constant("store.Store.task_clean(limit)", 500, "more: one step keeps all others out"),
    Constant(
        "retry_policy.MIN_SERVER_SECONDS",
        2.0,
        "less: a remote server is never reached with --lock-timeout 0",
    ),
    Constant(
        "retry_policy.DEFAULT_WAIT_SECONDS",
        10.0,
        "less: a short queue fails; more: callers think that the tool hangs",
    ),
    Constant(
        "update._FIRST_PAUSE_SECONDS",
        0.005,
        "less: a crowd collides again; more: two callers wait for nothing",
    ),
    Constant(
        "update._LONGEST_PAUSE_SECONDS",
        0.5,
        "less: a crowd collides again; more: an update takes minutes",
    ),
    Constant("update.update(attempts)", 10, "less: a crowd fails; more: it never ends"),
    Constant(
        "values.MAX_VALUE_BYTES", 8_388_608, "more: one value keeps a server from everybody else"
    ),
    Constant("values._LAST_MOMENT_MS", 253_402_300_799_999, "more: Python has no such year"),
    Constant("values._MAX_KEY_CHARACTERS", 1_000, "more: PostgreSQL cannot index it"),
    Constant(
        "values._MAX_NAME_CHARACTERS",
        200,
        "more: names of a task, verb and key do not fit into an index together",
    ),
    Constant(
        "worker.IDLE_SECONDS", 0.5, "less: idle workers load the store; more: a new task waits"
    ),
    Constant("worker._MAX_BODY_IN_ENVIRONMENT", 16_384, "more: a command cannot be started, E2BIG"),
    Constant(
        "worker._CANNOT_START_EXIT_CODE", 126, "0: a command that cannot be started counts as done"
    ),
    Constant(
        "worker._LONGEST_GRACE_SECONDS",
        5.0,
        "less: commands have no time to clean up before their lease ends",
    ),
    Constant(
        "worker._LEAVING_SECONDS",
        10.0,
        "less: a command may outlive its lease while the worker leaves",
    ),
    Constant(
        "retry_policy._MIN_SHARE",
        1 / 20,
        "more: --timeout is overrun; less: no time to hear what happened",
    ),
    Constant("worker._LONGEST_MARGIN_SECONDS", 10.0, "more: a long lease is given up too early"),
    Constant(
        "worker._LONGEST_DELAYS_MS",
        (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000),
        "less: a task that fails is tried in a loop; more: it waits for hours after an outage",
    ),
    Constant("worker._MAX_ID_IN_FILE_NAME", 150, "more: a file name is longer than 255 bytes"),
    Constant("worker._MAX_FAILURES", 100, "more: the response of a long run fills the memory"),
)

POSTGRES = (
    Constant("postgres.Link.wait(interval)", 0.1, "more: Ctrl-C is noticed late"),
    Constant("postgres._ADVISORY_CLASS", 0x746F6F6C, "another: versions do not exclude each other"),
    Constant("postgres._CONNECT_MIN_SECONDS", 2, "less: libpq takes 2 instead"),
    Constant(
        "postgres._GRACE_SECONDS", 0.5, "less: the driver gives up before the server says why"
    ),
    Constant(
        "postgres._IDLE_MS",
        2_000,
        "less: a busy machine loses transactions; more: a paused client blocks all",
    ),
)

REDIS = (
    Constant(
        "redis._HANDSHAKE_SECONDS", 1.0, "more: a server without TLS keeps the caller waiting"
    ),
    Constant("redis._LOOK_SECONDS", 0.05, "more: Ctrl-C is noticed late"),
    Constant(
        "redis._MAX_TASKS_AT_ONCE", 1_000, "more: one script keeps the server from everybody else"
    ),
    Constant("redis._SOCKET_SECONDS", 3600.0, "less: the driver gives up, and not the deadline"),
    Constant("redis._SCHEMA", 3, "less: an older version writes what this one cannot read"),
)

_PAGE = "more: one response is too large; less: callers need many calls"
_LEASE = "less: a command that pauses loses its task; more: nobody takes over from a dead worker"

LIMITS = (
    Limit("counter add amount", 1, None, None, "another: counting counts wrong"),
    Limit("counter list --limit", 100, 1, 10_000, _PAGE),
    Limit("state get --max-chars", None, 1, None, "0: the value would always be left out"),
    Limit("state list --limit", 100, 1, 10_000, _PAGE),
    Limit("state set --if-version", None, 0, None, "0 means that there must be none"),
    Limit("state unset --if-version", None, 0, None, "0 means that there must be none"),
    Limit("task add --delay", "0", None, None, "more: a task waits that nobody has put off"),
    Limit("task add --max-attempts", None, 0, None, "more: a task fails that nobody has limited"),
    Limit("task claim --count", 1, 1, 1_000, "more: a script keeps the server from everybody else"),
    Limit("task claim --lease", "60s", None, None, _LEASE),
    Limit("task claim --max-attempts", 0, 0, None, "more: a task fails that nobody has limited"),
    Limit("task list --limit", 100, 1, 10_000, _PAGE),
    Limit("task release --delay", "0", None, None, "more: a task waits that nobody has put off"),
    Limit("task renew --lease", "60s", None, None, _LEASE),
    Limit("task show --max-chars", None, 1, None, "0: the values would always be left out"),
    Limit("task work --jobs", None, 1, 256, "more: the machine has no processes left"),
    Limit("task work --lease", "60s", None, None, _LEASE),
    Limit(
        "task work --max-attempts",
        5,
        0,
        None,
        "less: one outage fails tasks; more: a broken one is tried for days",
    ),
)


def test_every_constant_of_the_part_has_the_value_that_the_table_says() -> None:
    assert differences("state", CONSTANTS, ("postgres.", "redis.")) == []


def test_every_constant_of_a_backend_has_the_value_that_the_table_says() -> None:
    others = tuple(row.name for row in CONSTANTS)

    assert differences("state", (*POSTGRES, *REDIS), others) == []


def test_every_limit_of_an_option_is_what_the_table_says() -> None:
    assert option_differences("state", LIMITS) == []
