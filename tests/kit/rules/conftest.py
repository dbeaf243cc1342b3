"""The project that the tests of the rules change."""

from pathlib import Path

import pytest

from tests.kit.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Return a project in which all rules hold."""
    return Ledger(tmp_path / "project")
