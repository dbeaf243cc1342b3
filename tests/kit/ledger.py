"""A tiny project outside of the kit's package, in which each rule holds, or is broken on purpose.

It has the program `led-ger` and the part `books`.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sampletool.kit.program import KIT, KIT_DIRECTORY
from sampletool.kit.project import ROOT
from sampletool.kit.testing.trees import FEW_PLUGINS

FILES = {
    "ledger/__init__.py": '"""Keep accounts."""\n\nPROGRAM = "led-ger"\n__version__ = "7.1"\n',
    "ledger/__main__.py": (
        f'"""Run the kit."""\n\nfrom {KIT}.start import main\n\nmain(package="ledger")\n'
    ),
    "ledger/books/__init__.py": '"""Keep books."""\n',
    "ledger/books/commands/__init__.py": '"""Books."""\n',
    "ledger/books/commands/page/__init__.py": '"""Manage pages."""\n',
    "ledger/books/settings.py": (
        '"""Define the settings."""\n\n'
        'SETTINGS = {"pages": {"kind": "count", "default": "5", "help": "Pages of a book."}}\n'
    ),
    "tests/__init__.py": "",
    "tests/conftest.py": (
        '"""Run the tests of a program that depends on the kit."""\n\n'
        'import os\n\nos.environ["KIT_PACKAGE"] = "ledger"\n\n'
        f'pytest_plugins = ["{KIT}.testing.plugin"]\n'
    ),
    "pyproject.toml": (
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
        'addopts = ["--import-mode=importlib", "--strict-markers"]\n'
        'pythonpath = ["."]\nfilterwarnings = ["error"]\ntimeout = 300\n'
    ),
    ".gitignore": "__pycache__/\n",
    "README.md": (
        "# Ledger\n\nSee [the pages](docs/index.md) and `ledger/books`.\n\n"
        "```console\n$ led-ger page add\nadded\n```\n"
    ),
    "docs/books/guide.md": "# Guide\n\nSee `tests/books/test_page_add.py`.\n",
    "docs/reference/index.md": "",
}

_generated_pages: dict[str, str] = {}
"""The pages of the project. To generate them takes longer than most tests, so it is done once."""

_COMMAND = '''"""{about}"""

from dataclasses import dataclass

import typer

from {kit}.contract.command_spec import CommandSpec
{imports}
spec = CommandSpec({spec})


@dataclass(frozen=True)
class Result:
    """A result."""

    text: str

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [self.text]


def command(ctx: typer.Context{parameters}) -> Result:
    """{about}"""
    context = ctx.obj
    {body}
    return Result("added")
'''


def command_file(
    about: str = "Add something.",
    *,
    spec: str,
    imports: str = "",
    parameters: str = "",
    body: str = "context.warn",
) -> str:
    """Return a command file. By default, it breaks no rule."""
    return _COMMAND.format(
        about=about,
        kit=KIT,
        spec=spec,
        imports=imports,
        parameters=parameters,
        body=body,
    )


@dataclass(frozen=True)
class RulesRun:
    """What `pytest --rules` has printed about a project."""

    exit_code: int
    output: str
    failures: dict[str, str]
    """The failure of each rule that is broken, by the name of its test."""


class Ledger:
    """The project in a directory."""

    def __init__(self, directory: Path) -> None:
        """Write a project in which all rules hold."""
        self.directory = directory
        self.environ = {
            **os.environ,
            "KIT_PACKAGE": "ledger",
            "PYTHONPATH": f"{directory}:{ROOT}",
        }
        self.write(FILES)
        self.add_command("page/add", command_file(spec='effect="nothing", examples=("page add",)'))
        if not _generated_pages:
            self.run_module(f"{KIT}.testing.pages")
            for page in (directory / "docs").rglob("*.md"):
                _generated_pages[str(page.relative_to(directory))] = page.read_text()
        self.write(_generated_pages)

    def write(self, files: dict[str, str]) -> None:
        """Write files, by their paths in the project."""
        for name, content in files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def add_command(self, name: str, content: str, *, is_tested: bool = True) -> None:
        """Write the file of a command, such as `page/add`, and a test that runs it."""
        self.write({f"ledger/books/commands/{name.replace('-', '_')}.py": content})
        if is_tested:
            words = ", ".join(f'"{word}"' for word in name.split("/"))
            test = f"def test_it(tool):\n    assert tool({words}).data == {{'text': 'added'}}\n"
            self.write({f"tests/books/test_{name.replace('/', '_')}.py": test})

    def take_kit_over(self) -> None:
        """Copy the kit into the package, as in a project that does not depend on the kit's."""
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(KIT_DIRECTORY, self.directory / "ledger" / "kit", ignore=ignored)
        (self.directory / "ledger" / "kit" / "CHECKSUMS").touch()
        for file in self.directory.rglob("*.py"):
            if "kit" not in file.relative_to(self.directory).parts:
                file.write_text(file.read_text().replace(KIT, "ledger.kit"))

    def run_rules(self, *options: str) -> RulesRun:
        """Run the rules, and return what they found."""
        completed = self.run_pytest("--rules", *options)
        parts = re.split(r"^_+ (test_\w+)\S* _+$", completed.stdout, flags=re.MULTILINE)
        failures: dict[str, str] = {}
        for name, failure in zip(parts[1::2], parts[2::2], strict=True):
            failures[name] = failures.get(name, "") + failure
        return RulesRun(completed.returncode, completed.stdout + completed.stderr, failures)

    def run_pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pytest in the project."""
        options = ["-q", "-p", "no:cacheprovider", *FEW_PLUGINS]
        return self._run("pytest", *options, *arguments)

    def run_module(self, *arguments: str) -> str:
        """Run `python -m` with these arguments, and return what it prints. It must succeed."""
        completed = self._run(*arguments)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.directory,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
