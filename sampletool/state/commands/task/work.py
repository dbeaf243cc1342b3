"""Run a command for every task of a queue: claim, keep the lease, finish or give back."""

import shutil
from typing import Annotated

import typer

from ....kit.contract.errors import InvalidValues, Mistake, ProgramNotFound
from ....kit.contract.expected import EXPECTED, to_tool_error
from ....kit.global_options import DryRunOption
from ...connect import store_of
from ...errors import TasksFailed
from ...report import Worked
from ...values import check
from ...worker import Worker
from .. import _store

spec = _store.changes(
    "task work mail --until-empty -- printenv TOOL_TASK_BODY",
    "task work mail --until-empty --jobs 4 --lease 2m -- cat",
    errors=(ProgramNotFound, TasksFailed),
    before=("task add mail 'to: ann' 'to: bob'",),
    idempotent=False,
    runs_what_it_is_given=True,
)._replace(locks=("session", "workers", "store"))


def work(worker: Worker, *, until_empty: bool) -> Worked:
    """Until the queue is settled, or for ever: then a signal or --timeout ends it."""
    try:
        with worker.children:
            try:
                _work_on(worker, until_empty=until_empty)
            finally:
                worker.prepare_to_leave()
    except EXPECTED as error:
        worker.give_all_back()
        raise to_tool_error(error).with_data(worker.sum_up(None)) from error
    result = worker.sum_up(0)
    if worker.last_tries:
        raise TasksFailed(count=len(worker.last_tries), failed=sorted(worker.last_tries), data=result)
    return result


def _work_on(worker: Worker, *, until_empty: bool) -> None:
    has_said = False
    while True:
        worker.turn()
        if not worker.running and not worker.unreported:
            with worker.patiently():
                if until_empty and worker.store.task_left(worker.queue, 1) == 0:
                    return
            if not has_said:
                awaited = "tasks that are claimed or delayed" if until_empty else "tasks; --until-empty does not wait"
                worker.context.progress(f"{worker.queue}: nothing to do; waiting for {awaited} (Ctrl-C ends it)")
                has_said = True
        worker.wait()


def command(
    ctx: typer.Context,
    queue: _store.QueueArgument,
    argv: Annotated[list[str], typer.Argument(metavar="-- ARGV...", help="The command; no shell runs it.")],
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=256, metavar="N", help="How many at once.  [default: one for each processor]"),
    ] = None,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when all are done or failed.")] = False,
    lease: _store.LeaseOption = "60s",  # type: ignore[assignment]
    max_attempts: _store.MaxAttemptsOption = 5,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Worked:
    """Run a command for every task of a queue.

    Waits for more tasks, until a signal or --timeout ends it, unless --until-empty is given. The lease of a task is
    kept while its command runs. The command finds its task in TOOL_TASK_ID, TOOL_TASK_BODY and TOOL_TASK_FILE (JSON),
    and TOOL_TASK_FENCE for --fence. Exit status 0 finishes the task; any other gives it back, to be tried again after
    a growing delay. While the store is away commands go on as long as their leases. What commands write is kept in
    the session.
    """
    check(queue=queue)  # before anything is made
    if lease < 1000:
        raise InvalidValues(Mistake("--lease", "INVALID_VALUE", "a lease shorter than 1s cannot be kept", f"{lease}ms"))
    if (program := shutil.which(argv[0])) is None:
        raise ProgramNotFound(what="The command", command=argv[0])
    if dry_run:
        return Worked(queue, left=store_of(ctx.obj, store).task_left(queue))
    run = [program, *argv[1:]]
    worker = Worker(ctx.obj, store, queue, run, jobs or ctx.obj.jobs(), lease_ms=lease, max_attempts=max_attempts)
    worker.end_orphans()
    return work(worker, until_empty=until_empty)
