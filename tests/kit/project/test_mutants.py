"""The lists of changes for `make mutants` are about the code as it is."""

from tests.kit.mutants.changes import lists, read_changes
from tests.kit.trees import ROOT

_CHANGES = read_changes(lists(ROOT))


def test_each_change_applies() -> None:
    faults = [f"{change.list}: {change.mechanism}: {fault}" for change in _CHANGES if (fault := change.fault(ROOT))]

    assert faults == []


def test_few_mechanisms_have_no_test() -> None:
    assert sum(bool(change.unnoticed) for change in _CHANGES) <= 0.05 * len(_CHANGES)
