"""What a wheel has besides the code: man pages, completion, and a page for agents.

hatchling loads this file when it builds a package. The tool itself writes the contents. Therefore
hatchling also installs the dependencies of the tool (`require-runtime-dependencies`).
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MAN_DIRECTORY = "man/man1"

_COMPLETION_FILES = {
    "bash": "bash-completion/completions/{program}",
    "zsh": "zsh/site-functions/_{program}",
    "fish": "fish/vendor_completions.d/{program}.fish",
}
"""Where each shell looks for completion, below a directory `share`."""

_FORK_ARCHIVE = "carried.tar.bz2"
"""A file in the part `fork`: what `tool fork` needs in addition to the code of the package."""


class Build(BuildHookInterface[Any]):
    """The hook that hatchling calls. It finds the class by its base class."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Create the files, and tell hatchling where they belong."""
        if version == "editable":
            return
        self._package = self.metadata.core.name
        (self._program,) = self.metadata.core.scripts
        self._created = TemporaryDirectory()
        self._archive_directory = TemporaryDirectory()
        share = Path(self._created.name)

        self._run_python("-m", f"{self._package}.kit.manual", str(share / _MAN_DIRECTORY))
        for shell, path in _COMPLETION_FILES.items():
            self._write(share / path.format(program=self._program), self._completion(shell))
        skill = share / self._program / "SKILL.md"
        self._write(skill, self._run_tool("manifest", "--skill"))

        for file in share.rglob("*"):
            if file.is_file():
                build_data["shared_data"][str(file)] = f"share/{file.relative_to(share)}"
        # An installed tool creates projects too.
        if Path(self.root, self._package, "fork").is_dir():
            archive = Path(self._archive_directory.name, _FORK_ARCHIVE)
            self._run_python("-m", f"{self._package}.fork.carried", str(archive))
            target = f"{self._package}/fork/{_FORK_ARCHIVE}"
            build_data["force_include"][str(archive)] = target

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files that `initialize` has created."""
        if version != "editable":
            self._created.cleanup()
            self._archive_directory.cleanup()

    def _completion(self, shell: str) -> str:
        """Return the completion script for a shell."""
        script = self._run_tool("--show-completion", shell)
        # zsh runs this file when TAB is pressed for the first time, and expects an answer to that
        # as well. The script for a start-up file of zsh only registers its function.
        return re.sub(r"^compdef (_\w+) .*$", r'\1 "$@"', script, flags=re.MULTILINE)

    def _write(self, file: Path, content: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def _run_tool(self, *args: str) -> str:
        return self._run_python("-m", self._package, *args)

    def _run_python(self, *args: str) -> str:
        """Run Python in the directory of the project, and return its output."""
        completed = subprocess.run(
            [sys.executable, *args],
            cwd=self.root,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return completed.stdout
