"""The mechanisms of the scenarios, for `make mutants`: without one, `tool lab prove` gives the reason on the page."""

from dataclasses import dataclass
from pathlib import Path

from sampletool.lab.scenario import PACKAGE, Removal, find, names
from tests.kit.mutants.guarantees import Mechanism
from tests.kit.mutants.source import Mutant, PatternError

PROOF = "tests/lab/mutants/proof.py::test_the_right_way_is_proved"


@dataclass(frozen=True)
class ScenarioMechanism(Mechanism):
    """One that a scenario names by its text, which its page shows."""

    def mutant(self, tree: Path) -> Mutant:
        text = (tree / PACKAGE.name / self.file).read_text()
        if text.count(self.pattern) != 1:
            raise PatternError(f"the text is in {self.file} {text.count(self.pattern)} times: {self.pattern}")
        return Mutant(
            file=self.file,
            function="",
            line=text[: text.index(self.pattern)].count("\n") + 1,
            operator="without",
            before=" ".join(self.pattern.split()),
            after=" ".join(self.instead.split()),
            content=text.replace(self.pattern, self.instead),
        )


def mechanisms() -> list[Mechanism]:
    """Return those of all scenarios, as a list of TOML has them."""
    return [_of_scenario(name, removal) for name in names() for removal in find(name).mechanisms]


def _of_scenario(name: str, removal: Removal) -> Mechanism:
    return ScenarioMechanism(
        function=removal.file,
        pattern=removal.line,
        instead=removal.instead,
        mechanism=f"{name}: {removal.says}",
        guarantee="",
        tests=(f"{PROOF}[{name}]",),
    )
