"""The tests with the lowest and the newest of every dependency, on every Python that is there: `make matrix`.

With `--commands` only the kit's command tests: they meet Typer in everything that it does for us. The environments lie
in .venv/matrix, and are made anew when what they are made of has changed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_ENVIRONMENTS = _ROOT / ".venv" / "matrix"
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_TOOLS = ("pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "jsonschema")
_COMMAND_TESTS = ("tests/kit/commands", "tests/kit/test_app.py", "tests/kit/test_command_folder.py")


def pythons() -> Iterator[tuple[str, str]]:
    """Those on the PATH, and those of pyenv."""
    for version in _PYTHONS:
        of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        for python in filter(None, (shutil.which(f"python{version}"), *map(str, of_pyenv))):
            ask = [python, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
            said = subprocess.run(ask, capture_output=True, text=True, check=False)
            if said.stdout.strip() == version:
                yield version, python
                break


def requirements(project: str, *, lowest: bool) -> list[str]:
    """What the project needs: exactly the lowest version that it allows, or the newest."""
    needed = tomllib.loads(project)["project"]["dependencies"]
    return [re.sub(r">=([^,]+).*", r"==\1", each) if lowest else each for each in needed]


def environment(python: str, name: str, needed: list[str]) -> Path:
    """With these packages and what runs tests; made anew only when they are others."""
    place = _ENVIRONMENTS / name
    wanted = hashlib.sha256("\n".join([python, *needed]).encode()).hexdigest()
    ready = place / ".ready"
    if not ready.exists() or ready.read_text() != wanted:
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(place)], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *needed], check=True)
        ready.write_text(wanted)
    return place / "bin" / "python"


def main(args: list[str]) -> int:
    project = (_ROOT / "pyproject.toml").read_text()
    pins = dict(line.split("==", 1) for line in (_ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    tools = [f"{tool}=={pins[tool].partition(' ')[0]}" for tool in _TOOLS]
    tests = _COMMAND_TESTS if "--commands" in args else ("tests/kit",)
    failed = []
    for version, python in pythons():
        for kind in ("lowest", "newest"):
            name = f"{version}-{kind}"
            needed = [*requirements(project, lowest=kind == "lowest"), *tools]
            ran = subprocess.run(
                [environment(python, name, needed), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
                cwd=_ROOT,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
                check=False,
            )
            sys.stdout.write(f"{name}: {'ok' if ran.returncode == 0 else 'FAILED'}\n")
            sys.stdout.flush()
            failed += [name] if ran.returncode else []
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
