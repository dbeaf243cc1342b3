"""Give a claimed task back."""

from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands._options import (
    A_CLAIM,
    GenerationArgument,
    StoreOption,
    TaskArgument,
    changes_store,
    parse_ms,
    read_claim,
)
from sampletool.state.commands._values import Settled
from sampletool.state.opening import store_of

spec = changes_store("task release ann 1 --delay 30s", before=A_CLAIM)


class Released(Settled):
    now = "given back"


def command(
    ctx: typer.Context,
    task: TaskArgument,
    generation: GenerationArgument = None,
    delay: Annotated[
        int, typer.Option(metavar="DURATION", parser=parse_ms, help="How long nobody may claim it.")
    ] = "0",  # type: ignore[assignment]
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Released:
    """Give a claimed task back, unfinished.

    Then anybody may claim it; after its last allowed attempt it is failed instead.
    """
    context: Context = ctx.obj
    claim = read_claim(task, generation)
    effect = store_of(context, store).task_release(claim.task, claim.generation, delay_ms=delay)
    return Released(claim.task, claim.generation, effect)
