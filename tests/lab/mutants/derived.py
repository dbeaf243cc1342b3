"""The mechanisms of the scenarios, for `make mutants`: without one, `tool lab check` gives the reason on the page."""

from sampletool.lab.scenario import Removal, find, names
from tests.kit.mutants.guarantees import Mechanism

PROOF = "tests/lab/mutants/proof.py::test_the_right_way_is_proved"


def mechanisms() -> list[Mechanism]:
    """Return those of all scenarios, as a list of TOML has them."""
    return [mechanism_of(name, removal) for name in names() for removal in find(name).mechanisms]


def mechanism_of(name: str, removal: Removal) -> Mechanism:
    return Mechanism(
        function=removal.function,
        pattern=removal.pattern,
        instead=removal.instead,
        mechanism=f"{name}: {removal.says}",
        guarantee="",
        tests=(f"{PROOF}[{name}]",),
    )
