"""What `tool build` and `tool test` share: what the workspace declares, and bringing its targets up to date."""

from sampletool.commands._shop import Shop, keeping, telling
from sampletool.domain.errors import BuildFailed
from sampletool.domain.workspace import Jobs, read_jobs
from sampletool.safety.parsed import remember
from sampletool.safety.places import WORKSPACE_FILE
from sampletool.safety.toml_file import read_toml, resolve
from sampletool.wiring import Wiring
from sampletool.work.build_plan import Planned, plan
from sampletool.work.building import Build, build_targets
from sampletool.work.needs import with_needs
from sampletool.work.output_store import OutputStore


def read_workspace(wiring: Wiring, *, alone: bool = False) -> Jobs:
    wiring.settings.must_be_right("jobs", "lock_timeout")
    text = read_toml(resolve(wiring.workspace / WORKSPACE_FILE))
    jobs = read_jobs(text.document)
    if alone:
        remember(text.path, text.text, text.document)
    return jobs


def build(wiring: Wiring, shop: Shop, jobs: Jobs, names: list[str], result: Build) -> None:
    """Bring these targets, and what they need, up to date. The result tells how far it came, also if it is stopped."""
    try:
        with keeping(result):
            planned = plan_targets(wiring, jobs, shop.store, names)
            with telling(wiring, "target", len(planned)) as tell:
                build_targets(planned, shop.store, shop.floor, shop.children, wiring.jobs(), result, tell)
            if result.effect == "updated":
                shop.store.prune()
    finally:
        shop.store.close()
    if result.failed:
        raise BuildFailed(result.failed, result)


def plan_targets(wiring: Wiring, jobs: Jobs, store: OutputStore, names: list[str]) -> dict[str, Planned]:
    return plan(wiring.workspace, with_needs(jobs.targets, names), store)
