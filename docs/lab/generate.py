"""Fill the generated blocks of the lab's pages, from the scenarios and from new recordings.

A person writes the pages. A page marks each block that code fills:

    <!-- fill: picture naive -->
    ...
    <!-- end -->

Everything between the two comments is replaced, also within a line. `blocks.py` has the kinds of
blocks. Next to each page are two generated files: the recordings of every schedule (NAME.json),
for the explorer, and a picture of the bug and the fix (NAME.svg).

`python -m docs.lab.generate` writes all of them, and `python -m docs.lab.generate NAME...` only
those of some scenarios. Their content depends neither on the time nor on the machine.
"""

import json
import re
import sys
from functools import partial
from pathlib import Path

from docs.lab.blocks import Blocks, ScenarioBlocks, index_rows
from sampletool.kit.stepping.fork_server import ForkServer
from sampletool.lab.explore import explore_variant
from sampletool.lab.explorer.scenario_data import scenario_data
from sampletool.lab.play import play
from sampletool.lab.scenario import FIXED, NAIVE, find_scenario, module_of, scenario_names
from sampletool.lab.scratch import fork_server_for
from sampletool.lab.svg import svg

LABS = Path(__file__).parent

_BLOCK = re.compile(r"(<!-- fill: (?P<what>[^\n]*?) -->).*?(<!-- end -->)", re.DOTALL)


class UnknownBlock(ValueError):
    """A page asks for a block that does not exist."""


def generate(name: str, fork_server: ForkServer) -> dict[str, str]:
    """Return the page of a scenario with its blocks filled, and its two other files, by file name.

    Raise FileNotFoundError if nobody has written the page yet.
    """
    scenario = find_scenario(name)
    follow = partial(play, scenario, fork_server=fork_server)
    shown_runs = {}
    explorations = {}
    for variant_name, variant in scenario.variants.items():
        shown_runs[variant_name] = follow(variant_name, variant.schedule).recording
        explorations[variant_name] = explore_variant(partial(follow, variant_name))
    blocks = ScenarioBlocks(scenario, shown_runs, explorations)
    path = path_of(name)
    return {
        f"{path}.md": fill((LABS / f"{path}.md").read_text(), blocks),
        f"{path}.svg": svg([shown_runs[NAIVE], shown_runs[FIXED]]),
        f"{path}.json": json.dumps(scenario_data(scenario, explorations), separators=(",", ":"))
        + "\n",
    }


def fill(page: str, blocks: Blocks) -> str:
    """Return the page with the current content in each block. Raise UnknownBlock."""

    def filled(match: re.Match[str]) -> str:
        begin, end = match[1], match[3]
        content = blocks.content_of(match["what"])
        if content is None:
            raise UnknownBlock(f"{blocks.scenario.name}: there is no block {match['what']!r}")
        return f"{begin}{content}{end}"

    return _BLOCK.sub(filled, page)


def path_of(name: str) -> str:
    """Return the path of a page below docs/lab, without its suffix.

    The page of a race about another part is in a folder with the name of that part, as its
    scenario is. So the page goes when the part is removed.
    """
    folder = Path(module_of(name).__file__).parent.name
    return name if folder == "scenarios" else f"{folder}/{name}"


def index() -> str:
    """Return the index of the races with its tables filled."""
    page = (LABS / "index.md").read_text()
    rows = "\n".join(index_rows(path_of))
    return _BLOCK.sub(lambda match: f"{match[1]}\n\n{rows}\n\n{match[3]}", page)


def main() -> None:
    """Write the files of all scenarios, or of those that the arguments name."""
    chosen = sys.argv[1:] or scenario_names()
    with fork_server_for(*chosen) as fork_server:
        for name in chosen:
            for file, content in generate(name, fork_server).items():
                (LABS / file).write_text(content)
    (LABS / "index.md").write_text(index())


if __name__ == "__main__":
    main()
