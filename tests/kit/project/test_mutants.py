"""The lists of mechanisms and of equivalent mutants are about the code as it is."""

from tests.kit.mutants.equivalent import read_equivalents
from tests.kit.mutants.guarantees import lists, read_mechanisms
from tests.kit.trees import ROOT


def test_each_mechanism_is_in_the_code_once_and_has_tests_that_exist() -> None:
    mechanisms = read_mechanisms(lists(ROOT))

    faults = [
        f"{mechanism.function}: {mechanism.mechanism}: {mechanism.fault(ROOT)}"
        for mechanism in mechanisms
    ]

    assert [fault for fault in faults if not fault.endswith(": ")] == []


def test_each_equivalent_mutant_is_one_that_the_mutator_makes() -> None:
    faults = [
        f"{entry.function}: {entry.before}: {entry.fault(ROOT)}" for entry in read_equivalents(ROOT)
    ]

    assert [fault for fault in faults if not fault.endswith(": ")] == []
