"""`make audits`: audit known programs, and write their scores into the page about audits.

A program is left out if it is not installed. It keeps its row in the page then.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "audit" / "audit.md"
RUNS = 8

_BEGIN = "<!-- audits: begin -->"
_END = "<!-- audits: end -->"
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class Program:
    """A program that sets a key and shows it again."""

    name: str
    version: str
    """The command that prints the version."""
    set_command: str
    get_command: str


PROGRAMS = (
    Program(
        "tool",
        version="tool --version",
        set_command="tool config set {key} {value}",
        get_command="tool config get {key}",
    ),
    Program(
        "git",
        version="git --version",
        set_command="git config --global x.{key} {value}",
        get_command="git config --global x.{key}",
    ),
    Program(
        "pip",
        version="pip --version",
        set_command="pip config --user set global.{key} {value}",
        get_command="pip config get global.{key}",
    ),
    Program(
        "npm",
        version="npm --version",
        set_command="npm config set //{key}/:_authToken={value}",
        get_command="sh -c 'cat $HOME/.npmrc' {key}",
    ),
    Program(
        "yarn",
        version="yarn --version",
        set_command="yarn config set {key} {value}",
        get_command="yarn config get {key}",
    ),
    Program(
        "dotenv",
        version="dotenv --version",
        set_command="dotenv -f settings.env set {key} {value}",
        get_command="dotenv -f settings.env get {key}",
    ),
    Program(
        "crudini",
        version="crudini --version",
        set_command="crudini --set file.ini section {key} {value}",
        get_command="crudini --get file.ini section {key}",
    ),
    Program(
        "aws",
        version="aws --version",
        set_command="aws configure set {key} {value}",
        get_command="aws configure get {key}",
    ),
    Program(
        "pdm",
        version="pdm --version",
        set_command="pdm config pypi.{key}.url {value}",
        get_command="pdm config pypi.{key}.url",
    ),
)


def main() -> None:
    """Audit each installed program, and replace the table in the page."""
    rows = _rows_in(PAGE.read_text())
    for program in PROGRAMS:
        if shutil.which(program.name) is None:
            sys.stdout.write(f"{program.name} is not installed.\n")
            continue
        row = _audit(program)
        sys.stdout.write(f"{row}\n")
        rows[program.name] = row
    _replace_table(rows)


def _audit(program: Program) -> str:
    """Return the row of a program."""
    command = ["tool", "audit", "--json", "--runs", str(RUNS)]
    command += ["--set", program.set_command, "--get", program.get_command]
    ran = subprocess.run(command, capture_output=True, check=False)
    response = json.loads(ran.stdout)
    shown = program.set_command.replace("|", "\\|")
    if not response["ok"]:
        return f"| `{shown}` | {_version(program)} | - | {response['error']['message']} |"
    data = response["data"]
    reasons = "; ".join(data["because"]) or "nothing was lost, and every conflict was structured"
    return f"| `{shown}` | {_version(program)} | {data['score']} | {reasons} |"


def _version(program: Program) -> str:
    ran = subprocess.run(program.version.split(), capture_output=True, text=True, check=False)
    match = _VERSION.search(ran.stdout + ran.stderr)
    return match[0] if match is not None else "unknown"


def _rows_in(page: str) -> dict[str, str]:
    """Return the rows of the table in the page, by the names of their programs."""
    table = page.partition(_BEGIN)[2].partition(_END)[0]
    rows = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            name = line.removeprefix("| `").split()[0]
            rows[name] = line
    return rows


def _replace_table(rows: dict[str, str]) -> None:
    page = PAGE.read_text()
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    header = "| command | version | score | why |\n| --- | --- | --- | --- |\n"
    lines = "".join(f"{row}\n" for row in rows.values())
    PAGE.write_text(f"{before}{_BEGIN}\n{header}{lines}{_END}{after}")


if __name__ == "__main__":
    main()
