"""The lists of changes for `make mutants` are about the code as it is."""

import pytest

from tests.kit.mutants.changes import Change, lists, read_changes
from tests.kit.trees import ROOT

_CHANGES = read_changes(lists(ROOT))


@pytest.mark.parametrize("change", _CHANGES, ids=lambda change: f"{change.list}:{change.mechanism}".replace(" ", "-"))
def test_each_change_applies(change: Change) -> None:
    assert change.fault(ROOT) == ""


def test_few_mechanisms_have_no_test() -> None:
    assert sum(bool(change.unnoticed) for change in _CHANGES) <= 0.05 * len(_CHANGES)
