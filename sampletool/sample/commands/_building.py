"""What `tool build` and `tool test` share: what the workspace declares, and bringing its targets up to date."""

from sampletool.kit.context import Context
from sampletool.kit.program import WORKSPACE_FILE
from sampletool.kit.safety.toml_file import read_toml, resolve
from sampletool.sample.build_plan import Planned, plan
from sampletool.sample.building import Build, build_targets
from sampletool.sample.commands._shop import Shop, keeping, telling
from sampletool.sample.errors import BuildFailed
from sampletool.sample.needs import with_needs
from sampletool.sample.output_store import OutputStore
from sampletool.sample.workspace import Jobs, read_jobs


def read_workspace(context: Context) -> Jobs:
    context.settings.must_be_right("jobs", "lock_timeout")
    return read_jobs(read_toml(resolve(context.workspace / WORKSPACE_FILE)).document)


def build(context: Context, shop: Shop, jobs: Jobs, names: list[str], result: Build) -> None:
    """Bring these targets, and what they need, up to date. The result tells how far it came, also if it is stopped."""
    try:
        with keeping(result):
            planned = plan_targets(context, jobs, shop.store, names)
            with telling(context, "target", len(planned)) as tell:
                build_targets(planned, shop.store, shop.floor, shop.children, context.jobs(), result, tell)
            if result.effect == "updated":
                shop.store.prune()
    finally:
        shop.store.close()
    if result.failed:
        raise BuildFailed(result.failed, result)


def plan_targets(context: Context, jobs: Jobs, store: OutputStore, names: list[str]) -> dict[str, Planned]:
    return plan(context.workspace, with_needs(jobs.targets, names), store)
