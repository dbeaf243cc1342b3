"""Give a claimed task back."""

import typer

from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _options
from sampletool.state.commands._values import ClaimChanged
from sampletool.state.opening import store_of

spec = _options.changes_store("task release ann 1 --delay 30s", before=_options.A_CLAIM)


def command(
    ctx: typer.Context,
    task: _options.TaskArgument,
    generation: _options.GenerationArgument = None,
    delay: _options.DelayOption = "0",  # type: ignore[assignment]
    store: _options.StoreOption = None,
    dry_run: DryRunOption = False,
) -> ClaimChanged:
    """Give a claimed task back, unfinished.

    Then anybody may claim it; after its last allowed attempt it is failed instead.
    """
    claim = _options.read_claim(task, generation)
    return ClaimChanged(*claim, store_of(ctx.obj, store).task_release(*claim, delay_ms=delay))
