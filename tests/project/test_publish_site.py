""".github/publish-site.sh: each release has a folder of its own in the branch gh-pages."""

import os
import subprocess
from pathlib import Path

import pytest

from sampletool.kit.project import ROOT

_SCRIPT = ROOT / ".github" / "publish-site.sh"


class Repository:
    """A bare repository in the place of the one on GitHub."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "repository.git"
        self._site = directory / "site"
        self._site.mkdir()
        subprocess.run(["git", "init", "--quiet", "--bare", str(self._directory)], check=True)

    def publish(self, name: str, page: str) -> str:
        """Publish a site with one page for a branch or a tag. Return what the script prints."""
        (self._site / "index.html").write_text(page)
        env = {
            **os.environ,
            "GITHUB_REF_NAME": name,
            "GITHUB_REPOSITORY": "sampletool/sampletool",
            "GITHUB_TOKEN": "not needed here",
            "PUBLISH_REMOTE": str(self._directory),
        }
        command = ["bash", str(_SCRIPT), str(self._site)]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    def read(self, path: str) -> str:
        """Return a file of the branch gh-pages."""
        show = ["git", "-C", str(self._directory), "show", f"gh-pages:{path}"]
        return subprocess.run(show, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_new_release_leaves_the_pages_of_the_former_release_where_they_are(
    repository: Repository,
) -> None:
    repository.publish("v0.3.0", "three")
    repository.publish("v0.4.0", "four")

    assert repository.read("v0.3.0/index.html") == "three"
    assert repository.read("v0.4.0/index.html") == "four"


def test_the_front_page_leads_to_the_newest_release_or_to_main_without_one(
    repository: Repository,
) -> None:
    repository.publish("main", "newest commit")
    without_release = repository.read("index.html")
    repository.publish("v0.10.0", "ten")
    repository.publish("v0.9.1", "nine")
    with_releases = repository.read("index.html")

    assert "url=main/index.html" in without_release
    assert "url=v0.10.0/index.html" in with_releases


def test_publishing_the_same_site_again_changes_nothing(repository: Repository) -> None:
    repository.publish("main", "one")

    assert repository.publish("main", "one") == "The site has not changed.\n"
    assert repository.publish("main", "two") == ""
    assert repository.read("main/index.html") == "two"
