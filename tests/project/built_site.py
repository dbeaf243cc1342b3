"""The site, built once for all tests of a run."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.project import ROOT


def built_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the site. Build it if no worker of this run has done so.

    A warning of Sphinx, such as a broken link, is an error.
    """
    directory = _directory_of_run(tmp_path_factory)
    site = directory / "site"
    is_complete = directory / "site-is-complete"
    with open(directory / "site-lock", "w") as lock_file:
        # A build takes more than 10 s of processor time, so the other workers wait for it.
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        if not is_complete.exists():
            _build(site)
            is_complete.touch()
    return site


def _directory_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the temporary directory that all workers of this run have in common."""
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The directory of a worker is inside the directory of the run.
        return directory.parent
    return directory


def _build(site: Path) -> None:
    options = ["-q", "-n", "-W", "--keep-going", "-b", "html"]
    completed = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
