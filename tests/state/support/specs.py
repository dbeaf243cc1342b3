"""What each command of shared state promises in its spec. Agents rely on it before they run one."""

from dataclasses import dataclass, fields
from importlib import import_module

from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.library_errors import kind_of

READING_ERRORS = {
    "STATE_TOO_NEW",
    "STORE_UNSAFE",
    "STORE_MISCONFIGURED",
    "STORE_UNAVAILABLE",
    "STORE_AUTH_FAILED",
    "EXTRA_NOT_INSTALLED",
}
CHANGING_ERRORS = READING_ERRORS | {"IDEMPOTENCY_KEY_REUSED", "LEASE_LOST", "TASK_NOT_FOUND"}


@dataclass(frozen=True)
class Promises:
    """The promises of one command."""

    changes_store: bool
    own_errors: frozenset[str] = frozenset()
    """The codes of the errors that other commands of its kind do not have."""

    is_idempotent: bool = True
    prints_value: bool = False
    has_destroyed: bool = False
    """Whether the spec says what users cannot get back."""

    stdin_arguments: tuple[str, ...] = ()
    locks: tuple[str, ...] = ("store",)
    runs_commands: bool = False
    examples: int = 1
    preparing_commands: int = 0


PROMISES = {
    "counter add": Promises(
        changes_store=True,
        own_errors=frozenset({"COUNTER_RANGE"}),
        is_idempotent=False,
        prints_value=True,
        examples=2,
    ),
    "counter get": Promises(changes_store=False),
    "counter list": Promises(changes_store=False),
    "state get": Promises(
        changes_store=False,
        own_errors=frozenset({"KEY_NOT_FOUND"}),
        examples=2,
        preparing_commands=1,
    ),
    "state list": Promises(changes_store=False, examples=2),
    "state set": Promises(
        changes_store=True,
        own_errors=frozenset({"VERSION_CONFLICT"}),
        is_idempotent=False,
        has_destroyed=True,
        stdin_arguments=("value",),
        examples=3,
    ),
    "state unset": Promises(
        changes_store=True,
        own_errors=frozenset({"VERSION_CONFLICT"}),
        has_destroyed=True,
        examples=2,
        preparing_commands=2,
    ),
    "task add": Promises(
        changes_store=True,
        own_errors=frozenset({"TASK_CONFLICT"}),
        is_idempotent=False,
        prints_value=True,
        stdin_arguments=("from_file",),
        examples=3,
    ),
    "task cancel": Promises(
        changes_store=True,
        own_errors=frozenset({"TASK_ENDED", "NOT_ALL_CANCELLED"}),
        examples=2,
        preparing_commands=1,
    ),
    "task claim": Promises(
        changes_store=True,
        is_idempotent=False,
        prints_value=True,
        examples=2,
        preparing_commands=1,
    ),
    "task clean": Promises(changes_store=True, has_destroyed=True, examples=2),
    "task finish": Promises(
        changes_store=True,
        stdin_arguments=("claim",),
        examples=2,
        preparing_commands=2,
    ),
    "task list": Promises(changes_store=False, examples=3),
    "task release": Promises(changes_store=True, preparing_commands=2),
    "task renew": Promises(changes_store=True, is_idempotent=False, preparing_commands=2),
    "task retry": Promises(
        changes_store=True,
        own_errors=frozenset({"TASK_NOT_FAILED"}),
        examples=2,
        preparing_commands=3,
    ),
    "task show": Promises(
        changes_store=False,
        own_errors=frozenset({"TASK_NOT_FOUND"}),
        preparing_commands=1,
    ),
    "task stats": Promises(changes_store=False, examples=2),
    "task work": Promises(
        changes_store=True,
        own_errors=frozenset({"COMMAND_NOT_FOUND", "TASKS_FAILED"}),
        is_idempotent=False,
        locks=("session", "workers", "store"),
        runs_commands=True,
        examples=2,
        preparing_commands=1,
    ),
}


def wrong_promises(group: str) -> list[str]:
    """Return a line for each promise in the specs of this group that is not the one above."""
    wrong = []
    for command, expected in PROMISES.items():
        if command.split()[0] != group:
            continue
        actual = _promises_of(_spec_of(command))
        for field in fields(Promises):
            value = getattr(actual, field.name)
            if value != getattr(expected, field.name):
                wrong.append(f"{command}: {field.name} is {value}")
    return wrong


def _spec_of(command: str) -> CommandSpec:
    module = import_module(f"sampletool.state.commands.{command.replace(' ', '.')}")
    spec: CommandSpec = module.spec
    return spec


def _promises_of(spec: CommandSpec) -> Promises:
    changes_store = spec.effect == "store"
    errors_of_kind = CHANGING_ERRORS if changes_store else READING_ERRORS
    codes = {kind_of(error).code for error in spec.errors}
    # A missing error of the kind is a difference, too.
    own_errors = codes ^ errors_of_kind
    return Promises(
        changes_store=changes_store,
        own_errors=frozenset(own_errors),
        is_idempotent=spec.idempotent,
        prints_value=spec.prints_value,
        has_destroyed=spec.destroys != "",
        stdin_arguments=spec.stdin_arguments,
        locks=spec.locks,
        runs_commands=spec.runs_what_it_is_given,
        examples=len(spec.examples),
        preparing_commands=len(spec.before),
    )
