"""The lists of mechanisms and of equivalent mutants are about the code as it is."""

from sampletool.kit.project import ROOT
from tests.kit.mutants.equivalent import read_equivalents
from tests.kit.mutants.guarantees import lists, read_mechanisms


def test_each_mechanism_is_in_the_code_once_and_has_tests_that_exist() -> None:
    faults = []
    for entry in read_mechanisms(lists(ROOT)):
        fault = entry.fault(ROOT)
        if fault:
            faults.append(f"{entry.function}: {entry.mechanism}: {fault}")

    assert faults == []


def test_each_equivalent_mutant_is_one_that_the_mutator_creates() -> None:
    faults = []
    for entry in read_equivalents(ROOT):
        fault = entry.fault(ROOT)
        if fault:
            faults.append(f"{entry.function}: {entry.before}: {fault}")

    assert faults == []
