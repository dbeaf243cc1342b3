"""Write files for programs beside the HTML pages: the pages as Markdown, and llms.txt."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from docs.site.pages import source_file
from docs.site.sidebar import DOCS, all_pages, children, groups
from sampletool.kit.program import DOCUMENTATION

_COMMENT = re.compile(r"[ ]?<!--.*?-->", re.DOTALL)


def export(app: Any, error: Exception | None) -> None:
    """Write the files after the site was built. `play.py` of a part can add more."""
    if error is not None:
        return
    site = Path(app.outdir)
    for page in ["index", *all_pages()]:
        copy = site / f"{page}.md"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(_COMMENT.sub("", source_file(page).read_text()))
    (site / "llms.txt").write_text(_llms_txt())
    for file in sorted(DOCS.glob("*/play.py")):
        import_module(f"docs.{file.parent.name}.play").add_to_site(site)


def _llms_txt() -> str:
    """Return a list of the pages as Markdown, in the form of https://llmstxt.org."""
    title, description = describe("index")
    lines = [f"# {title}", "", f"> {description}"]
    for caption, entries in groups().items():
        lines += ["", f"## {caption}", ""]
        for entry in entries:
            for page in [entry, *children().get(entry, [])]:
                title, description = describe(page)
                lines.append(f"- [{title}]({DOCUMENTATION}{page}.md): {description}")
    return "\n".join(lines) + "\n"


def describe(page: str) -> tuple[str, str]:
    """Return the title of a page, and its first paragraph as plain text."""
    text = _COMMENT.sub("", source_file(page).read_text())
    title, _, rest = text.partition("\n")
    for block in rest.split("\n\n"):
        paragraph = block.strip()
        is_paragraph = paragraph[:1].isalnum() or paragraph[:1] in ("*", "`", "[")
        if is_paragraph and not paragraph.startswith("* "):
            return title.removeprefix("# "), _plain(paragraph)
    return title.removeprefix("# "), ""


def _plain(markdown: str) -> str:
    """Return a paragraph without links and emphasis, on one line."""
    without_links = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    without_emphasis = without_links.replace("**", "").replace("`", "")
    return " ".join(without_emphasis.split())
