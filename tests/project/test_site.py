"""The site: built from the pages that are there, with links that lead somewhere, and nothing from another machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site.sidebar import DOCS, sidebar

pytest.importorskip("sphinx", reason="Sphinx is not installed: make .venv/.testable")
_LOADED = re.compile(r'<(script|img|iframe|link)\b[^>]*? (src|href)="(https?:)?//|url\(["\']?(https?:)?//|@import')
"""What a browser would ask another machine for. A link that a reader has to follow is none."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-b", "html", str(DOCS), str(target)]
    built = subprocess.run(build, cwd=DOCS.parent, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return target


def test_every_page_stands_in_the_sidebar_once() -> None:
    listed = [page for pages in sidebar().values() for page in pages]
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("[!_]*/**/*.md")}

    assert sorted(listed) == sorted(pages)


def test_the_site_asks_no_other_machine_for_anything_and_can_be_searched_from_disk(site: Path) -> None:
    files = [file for file in site.rglob("*") if file.suffix in (".html", ".css")]
    loading = {str(file.relative_to(site)) for file in files if _LOADED.search(file.read_text())}

    assert loading == set()
    assert "Search.setIndex" in (site / "searchindex.js").read_text()


def test_the_page_of_the_kit_is_on_the_site_and_links_lead_to_it(site: Path) -> None:
    page = (site / "kit" / "how-to.html").read_text()
    links = re.findall(r'href="([^"]*how-to\.html)[^"]*">', (site / "kit" / "library.html").read_text())

    assert "sampletool/stock/__init__.py" in page
    assert 'id="add-an-error"' in page
    assert "how-to.html" in links
