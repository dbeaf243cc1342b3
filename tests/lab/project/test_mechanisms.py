"""The mechanisms that the scenarios name: without one, `lab check` reports what breaks.

Few are tried here, all of them by `make mutants`.
"""

import shutil
from pathlib import Path

import pytest

from sampletool.kit.testing.scale import SOAK
from sampletool.kit.testing.tool import Tool
from sampletool.lab.scenario import PACKAGE, Mutation, find_scenario, scenario_names

from ..mutants.derived import mechanism_of, mechanisms
from ..mutants.proof import says_why

TRIED = [("planted-link", find_scenario("planted-link").mechanisms[0])]
"""The fastest ones: each needs a copy of the package, and interpreters that load it."""
if SOAK:
    TRIED += [
        (name, find_scenario(name).mechanisms[0]) for name in ("lost-config-update", "stale-lock")
    ]
    TRIED.append(("torn-write", find_scenario("torn-write").mechanisms[1]))


def test_every_scenario_names_its_mechanisms_and_make_mutants_has_them_all() -> None:
    assert all(find_scenario(name).mechanisms for name in scenario_names())
    assert len(mechanisms()) == sum(
        len(find_scenario(name).mechanisms) for name in scenario_names()
    )


@pytest.mark.parametrize(("name", "mechanism"), TRIED, ids=[name for name, _ in TRIED])
def test_without_its_mechanism_the_proof_fails_and_says_why(
    name: str, mechanism: Mutation, tool: Tool, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    # With its bytecode: to compile it anew takes longer than the proof.
    shutil.copytree(PACKAGE, copy / "sampletool", ignore=shutil.ignore_patterns("*.pyc.*"))
    mutant = mechanism_of(name, mechanism).mutant(PACKAGE.parent)
    (copy / "sampletool" / mutant.file).write_text(mutant.content)

    ran = tool("lab", "check", name, PYTHONPATH=str(copy))

    assert says_why(ran, [mechanism]), ran.text
