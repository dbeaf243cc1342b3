"""Who needs whom: an order in which everything comes behind what it needs."""

from graphlib import CycleError, TopologicalSorter

from sampletool.sample.job import Job


def in_order(jobs: dict[str, Job]) -> tuple[dict[str, Job], list[str]]:
    """The jobs in the order of their needs; and the rings of those that need themselves in the end."""
    needs = {name: job.needs for name, job in jobs.items()}
    rings: list[str] = []
    while True:
        try:
            return {name: jobs[name] for name in TopologicalSorter(needs).static_order()}, rings
        except CycleError as error:
            ring = error.args[1][:0:-1]  # from a job to what it needs; the first is also the last
            first = min(range(len(ring)), key=lambda at: list(jobs).index(ring[at]))
            rings.append(" -> ".join([*ring[first:], *ring[: first + 1]]))
            needs = {name: () if name in ring else others for name, others in needs.items()}


def with_needs(jobs: dict[str, Job], wanted: list[str]) -> list[Job]:
    """The wanted ones and all that they need, each behind what it needs, as the jobs already are."""
    found: set[str] = set()
    left = list(wanted)
    for name in left:
        if name not in found:
            found.add(name)
            left += jobs[name].needs  # also walked
    return [job for name, job in jobs.items() if name in found]
