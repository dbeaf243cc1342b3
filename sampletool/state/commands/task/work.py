"""Run a command for each task of a queue."""

import shutil
from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.errors import InvalidValues, Mistake, ProgramNotFound, ToolError
from ....kit.contract.expected import EXPECTED, to_tool_error
from ....kit.global_options import DryRunOption
from ....kit.safety.errors import DeadlineExceeded, Interrupted, SafetyError
from ...connect import connect_for_command
from ...errors import TasksFailed, TasksFailedElsewhere
from ...report import WorkReport
from ...values import check_arguments
from ...worker import Worker, WorkOptions
from .. import _store

spec = _store.changes(
    "task work mail --until-empty -- printenv TOOL_TASK_BODY",
    "task work mail --until-empty --jobs 4 --lease 2m -- cat",
    errors=(ProgramNotFound, TasksFailed),
    before=("task add mail 'to: ann' 'to: bob'",),
    idempotent=False,
    runs_what_it_is_given=True,
)._replace(locks=("session", "workers", "store"))

_MIN_LEASE_MS = 1000


ExpectedError = ToolError | SafetyError | OSError


def work(worker: Worker, *, until_empty: bool) -> WorkReport:
    """Work until no tasks are left, or until a signal or --timeout, and return what was done."""
    try:
        # Leaving this block terminates the commands that are still running.
        with worker.children:
            try:
                _take_turns(worker, until_empty=until_empty)
            finally:
                worker.prepare_to_leave()
    except EXPECTED as error:
        worker.give_all_back()
        if worker.is_settled:
            error = _without_uncertain_change(error)
        raise to_tool_error(error).with_data(worker.report(left=None)) from error
    return _report_empty_queue(worker)


def _take_turns(worker: Worker, *, until_empty: bool) -> None:
    """Take turns. Return when no tasks are left if `until_empty`, and never otherwise."""
    if until_empty:
        _count_earlier_failures(worker)
    has_shown_notice = False
    while True:
        worker.turn()
        if until_empty and _is_queue_empty(worker):
            return
        if worker.is_idle and not has_shown_notice:
            worker.context.progress(_waiting_notice(worker, until_empty))
            has_shown_notice = True
        worker.wait()


def _count_earlier_failures(worker: Worker) -> None:
    """Count the tasks that have failed already. If the store is unreachable, wait for it.

    Without this count, old failures would look like new ones.
    """
    has_counted = False
    while not has_counted:
        with worker.tolerate_outage():
            worker.count_earlier_failures()
            has_counted = True
        if not has_counted:
            worker.wait()


def _is_queue_empty(worker: Worker) -> bool:
    """Return whether no tasks are left. Return False also if the store is unreachable."""
    if not worker.is_idle:
        return False
    with worker.tolerate_outage():
        if not worker.has_tasks_left():
            return True
    return False


def _waiting_notice(worker: Worker, until_empty: bool) -> str:
    if until_empty:
        awaited = "for tasks that are claimed or delayed"
    else:
        awaited = "for new tasks. With --until-empty, the worker would exit now"
    return f"{worker.options.queue}: nothing to do. Waiting {awaited} (Ctrl-C stops the worker)"


def _report_empty_queue(worker: Worker) -> WorkReport:
    """Return the report of a worker whose queue is empty. Raise TasksFailed if tasks have failed.

    The tasks that other workers have failed count too.
    """
    failed = worker.find_failed_tasks()
    if failed is None:
        worker.context.warn(
            "NOT_COUNTED",
            "The store is unreachable, so it is unknown whether any tasks have failed.",
        )
        return worker.report(left=0)
    report = worker.report(left=0, failed=failed.count)
    if failed.count_elsewhere > 0:
        raise TasksFailedElsewhere(
            count=failed.count,
            elsewhere=failed.count_elsewhere,
            failed=failed.own_ids,
            data=report,
        )
    if failed.count > 0:
        raise TasksFailed(count=failed.count, failed=failed.own_ids, data=report)
    return report


def _without_uncertain_change(error: ExpectedError) -> ExpectedError:
    """Return the error without a change whose outcome was unknown, and is known now."""
    if isinstance(error, Interrupted):
        return Interrupted(error.signal_number)
    if isinstance(error, DeadlineExceeded):
        return DeadlineExceeded(error.seconds, error.waiting_for)
    return error


def command(
    ctx: typer.Context,
    queue: _store.QueueArgument,
    argv: Annotated[
        list[str],
        typer.Argument(
            metavar="-- ARGV...",
            help="Command to run, with its arguments. It runs without a shell.",
        ),
    ],
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=256,
            metavar="N",
            help="Run at most N commands at the same time.",
            show_default="the `jobs` setting, or one for each processor",
        ),
    ] = None,
    until_empty: Annotated[
        bool,
        typer.Option("--until-empty", help="Exit when all tasks in the queue are done or failed."),
    ] = False,
    lease: _store.LeaseOption = "60s",  # type: ignore[assignment]
    max_attempts: _store.MaxAttemptsOption = 5,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> WorkReport:
    """Run a command for each task in a queue.

    The worker runs until you stop it with Ctrl-C or a signal, or until --timeout is over. With
    --until-empty, it exits when there is nothing left to do.

    The command finds its task in the environment: TOOL_TASK_ID, TOOL_TASK_BODY, TOOL_TASK_FILE (the
    path of a JSON file) and TOOL_TASK_FENCE (a value for --fence). If the command exits with code
    0, the task is done. Otherwise it is tried again, after a delay that grows with each attempt.

    While a command runs, the worker renews the lease of its task. If the store cannot be reached,
    running commands continue until their leases expire. The output of each command is kept in the
    directory of the session.
    """
    # Check everything before a directory or a lock is created.
    check_arguments({"queue": queue})
    if lease < _MIN_LEASE_MS:
        problem = "a lease shorter than 1s cannot be renewed in time"
        raise InvalidValues(Mistake("--lease", "INVALID_VALUE", problem, f"{lease}ms"))
    program = shutil.which(argv[0])
    if program is None:
        raise ProgramNotFound(what="The command", command=argv[0])
    context: Context = ctx.obj
    if dry_run:
        return WorkReport(queue, left=connect_for_command(context, store).task_left(queue))
    options = WorkOptions(
        queue=queue,
        argv=[program, *argv[1:]],
        jobs=context.jobs() if jobs is None else jobs,
        lease_ms=lease,
        max_attempts=max_attempts,
        store_url=store,
    )
    worker = Worker(context, options)
    worker.end_orphaned_commands()
    return work(worker, until_empty=until_empty)
