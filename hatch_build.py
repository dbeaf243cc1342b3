"""What a package has beside the code: its addresses, a README whose links work on an index, the man page, completion.

The address is REPOSITORY, in the package's `__init__.py`, and nowhere else. In the clone README's links are relative.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = r"(!\[[^\]]*\]\()(?!https?:|#)([^)]+\))"
_LINK = r"(\]\()(?!https?:|#)([^)]+\))"
_COMPLETION = {
    "bash": "bash-completion/completions/{}",
    "zsh": "zsh/site-functions/_{}",
    "fish": "fish/vendor_completions.d/{}.fish",
}


def _package(root: str) -> Path:
    """The directory that the kit lies in."""
    (start,) = Path(root).glob("*/kit/start.py")
    return start.parents[1]


def _name(root: str, name: str) -> str:
    """What the package calls itself: PROGRAM, REPOSITORY, __version__."""
    (value,) = re.findall(rf'^{name} = "(.+)"$', (_package(root) / "__init__.py").read_text(), re.M)
    return str(value)


def _when_loaded(script: str) -> str:
    """zsh runs the file at the first TAB, and wants the answer to that one too."""
    return re.sub(r"^compdef (_\w+) .*$", r'\1 "$@"', script, flags=re.M)


def _roff(text: str) -> str:
    """As it is: no backslash, and no dot or quote at the beginning of a line, is an instruction."""
    return re.sub(r"^(?=[.'])", r"\\&", text.replace("\\", r"\e"), flags=re.M).replace("-", r"\-")


class Metadata(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        address, version = _name(self.root, "REPOSITORY"), _name(self.root, "__version__")
        tag = "main" if "dev" in version else f"v{version}"
        readme = re.sub(_PICTURE, rf"\1{address}/raw/{tag}/\2", Path(self.root, "README.md").read_text())
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": re.sub(_LINK, rf"\1{address}/blob/{tag}/\2", readme),
        }
        metadata["urls"] = {
            "Repository": address,
            "Issues": f"{address}/issues",
            "Documentation": f"{address}/blob/{tag}/docs/index.md",
            "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
        }


class Build(BuildHookInterface[Any]):
    """For a wheel: the tool itself says what the man page and the shells' files contain."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        program = _name(self.root, "PROGRAM")
        self._made = TemporaryDirectory()
        files = {
            f"man/man1/{program}.1": self._manual(program),
            f"{program}/SKILL.md": self._said("manifest", "--skill"),
            f"{program}/llms.txt": self._llms(program),
        }
        for shell, place in _COMPLETION.items():
            files[place.format(program)] = _when_loaded(self._said("--show-completion", shell))
        for place, content in files.items():
            file = Path(self._made.name, Path(place).name)
            file.write_text(content)
            build_data["shared_data"][str(file)] = f"share/{place}"
        package = _package(self.root)
        if (package / "fork").is_dir():  # it makes projects, also from a wheel: of the tests and pages too
            beside = [*Path(self.root, "docs").glob("[!_]*"), Path(self.root, "tests")]
            for path in (*beside, *(Path(self.root, name) for name in ("constraints.txt", ".gitignore", "LICENSE"))):
                place = f"{package.name}/fork/carried/{path.relative_to(self.root)}"
                build_data["force_include"][str(path)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._made.cleanup()

    def _said(self, *args: str) -> str:
        command = [sys.executable, "-m", _package(self.root).name, *args]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout

    def _llms(self, program: str) -> str:
        """What a model should read first, and every page of the documentation by its address."""
        pages = f"{self.metadata.core.urls['Repository']}/blob/main/docs/"
        links = re.findall(r"^\* (\[.+\])\((?!\.\.)([^)]+)\)", Path(self.root, "docs", "index.md").read_text(), re.M)
        listed = "".join(f"- {title}({pages}{place})\n" for title, place in links)
        about = f"> {self.metadata.core.description}\n\nCall `{program} manifest --skill` for how to call it."
        return f"# {_package(self.root).name}\n\n{about}\n\n## Docs\n\n{listed}"

    def _manual(self, program: str) -> str:
        """What the manifest says of each command."""
        described = json.loads(self._said("manifest", "--all", "--json"))["data"]
        about = f"{program} - {self.metadata.core.description}\n"
        sections = {"NAME": about, "SYNOPSIS": self._said("--help")}
        for command in described["commands"]:
            flags = {", ".join(option["flags"]): option["help"] for option in command["options"]}
            options = "".join(f"  {flag:<24} {text}\n" for flag, text in flags.items())
            examples = "".join(f"  {example}\n" for example in command["examples"])
            text = f"{command['summary']}\n\n  {command['usage']}\n\n{options}\nExamples:\n{examples}"
            sections[f"{program} {command['command']}"] = text
        statuses = (f"  {number:>3}  {name}\n" for number, name in described["exit_statuses"].items())
        sections["EXIT STATUS"] = "".join(statuses)
        body = "".join(f".SH {_roff(title)}\n.nf\n{_roff(text)}.fi\n" for title, text in sections.items())
        return f'.TH {program} 1 "" "{program} {_name(self.root, "__version__")}"\n{body}'
