"""What plays and explores in these tests."""

from collections.abc import Iterator
from functools import partial

import pytest

from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.lab.explore import Exploration, explore_variant
from sampletool.lab.play import play
from sampletool.lab.recording import Recording
from sampletool.lab.scenario import find_scenario, scenario_names
from sampletool.lab.scratch import fork_server_for


class Lab:
    def __init__(self, fork_server: ForkServer) -> None:
        self.fork_server = fork_server

    def play(self, name: str, variant: str, schedule: str = "") -> Recording:
        return play(find_scenario(name), variant, schedule, fork_server=self.fork_server).recording

    def explore(self, name: str, variant: str, workers: int | None = None) -> Exploration:
        return explore_variant(
            partial(
                play,
                find_scenario(name),
                variant,
                fork_server=self.fork_server,
                worker_count=workers,
            )
        )


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """One for all: to start a fork server takes longer than many schedules."""
    with fork_server_for(*scenario_names()) as fork_server:
        yield Lab(fork_server)
