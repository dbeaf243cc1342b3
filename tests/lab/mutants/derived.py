"""The mechanisms of the scenarios, for `make mutants`.

If one is missing, `tool lab check` prints the reason that the page of the race gives.
"""

from sampletool.lab.scenario import Mutation, find_scenario, scenario_names
from tests.kit.mutants.guarantees import Mechanism

PROOF = "tests/lab/mutants/proof.py::test_the_right_way_is_proved"


def mechanisms() -> list[Mechanism]:
    """Return the mechanisms of all scenarios, as if they were read from a TOML file."""
    return [
        mechanism_of(name, removal)
        for name in scenario_names()
        for removal in find_scenario(name).mechanisms
    ]


def mechanism_of(name: str, removal: Mutation) -> Mechanism:
    """Return one mechanism of a scenario, with the test that notices if it is missing."""
    return Mechanism(
        function=removal.function,
        pattern=removal.original_code,
        instead=removal.replacement_code,
        mechanism=f"{name}: {removal.summary}",
        guarantee="",
        tests=(f"{PROOF}[{name}]",),
    )
