"""Give a claimed task back."""

from typing import NamedTuple

import typer

from sampletool.kit.contract.answer import Effect
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _options
from sampletool.state.opening import store_of

spec = _options.changes_store("task release ann 1 --delay 30s", before=_options.A_CLAIM)


class Released(NamedTuple):
    id: str
    generation: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.id}: given back ({self.effect})"]


def command(
    ctx: typer.Context,
    task: _options.TaskArgument,
    generation: _options.GenerationArgument = None,
    delay: _options.DelayOption = "0",  # type: ignore[assignment]
    store: _options.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Released:
    """Give a claimed task back, unfinished.

    Then anybody may claim it; after its last allowed attempt it is failed instead.
    """
    claim = _options.read_claim(task, generation)
    effect = store_of(ctx.obj, store).task_release(claim.task, claim.generation, delay_ms=delay)
    return Released(claim.task, claim.generation, effect)
