"""Measure what a command costs, and 100 changes at the same time.

A command is compared with a one-option Typer app, the changes with crudini.

The wheel is installed into two environments of its own, as a user would do it: one with the pins of
constraints.txt, and one with the newest Typer. The commands run with the interpreter and the
compiled bytecode of their environment, and so does crudini, which comes from PyPI. The two rows of
imports show how much of a command is not ours.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sampletool.kit.program import PACKAGE, PROGRAM, WORKSPACE_FILE

_ROOT = Path(__file__).parents[3]
_ROUNDS = 40
_WARM_UP_ROUNDS = 3
_BURST = 100
_BURST_ROUNDS = 5
_BUSY_LOOPS = 16
_AT_MOST = {"one-option Typer app": 1.0, "config get": 1.1, "config set": 1.6}
"""The highest ratio to the first row, with each version of Typer."""
_BURST_AT_MOST = 2.9

_PLAIN_APP = """
import typer

app = typer.Typer()


@app.command()
def hello(name: str = "world") -> None:
    print(f"Hello, {name}")
"""


class Cost(NamedTuple):
    """What one run of a command costs."""

    processor_ms: float
    """User and system time together."""
    wall_ms: float


def main() -> None:
    """Install the tool, and print both comparisons."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        scratch = Path(name)
        environ = {"PATH": os.environ["PATH"], "HOME": name, "LC_ALL": "C.UTF-8"}
        pinned = install_tool(scratch / "pinned", "--constraint", str(_ROOT / "constraints.txt"))
        show_calls(pinned, time_calls(pinned, scratch, environ))
        # Without the pins, pip installs the newest Typer, as it does for a user.
        newest = install_tool(scratch / "newest")
        show_calls(newest, time_calls(newest, scratch, environ))
        crudini = install_crudini(scratch / "crudini")
        show_bursts(pinned, crudini, scratch, environ)


def install_tool(directory: Path, *pip_options: str) -> Path:
    """Install the tool and the plain app, and return the directory of their commands.

    The script of the plain app is the same as the one that pip writes for the tool.
    """
    commands = create_environment(directory)
    pip_install(commands, *pip_options, str(_ROOT))
    library = next(directory.glob("lib/*/site-packages"))
    plain_app = library / "plain_app.py"
    plain_app.write_text(_PLAIN_APP)
    subprocess.run([commands / "python", "-m", "compileall", "-q", plain_app], check=True)
    script = (commands / PROGRAM).read_text()
    import_of_main = f"{PACKAGE}.__main__ import main"
    plain_script = script.replace(import_of_main, "plain_app import app as main")
    (commands / "plain-app").write_text(plain_script)
    (commands / "plain-app").chmod(0o755)
    return commands


def install_crudini(directory: Path) -> Path | None:
    """Install crudini, and return its command. Return None if it cannot be installed."""
    commands = create_environment(directory)
    try:
        pip_install(commands, "crudini")
    except subprocess.CalledProcessError:
        return None
    return commands / "crudini"


def create_environment(directory: Path) -> Path:
    """Create an empty environment, and return the directory of its commands."""
    base = Path(sys.base_prefix, "bin", "python3")
    subprocess.run([base, "-m", "venv", directory], check=True)
    return directory / "bin"


def pip_install(commands: Path, *arguments: str) -> None:
    """Install a package from PyPI, or from a directory, into an environment."""
    environ = dict(os.environ)
    # Otherwise, pip would not compile the modules.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        [commands / "python", "-m", "pip", "install", "--quiet", *arguments],
        env=environ,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def time_calls(commands: Path, scratch: Path, environ: dict[str, str]) -> dict[str, list[Cost]]:
    """Run each command many times in turn, and return the costs by the names of the rows."""
    (scratch / WORKSPACE_FILE).write_text("[settings]\nlevel = 1\n")
    calls: dict[str, Callable[[int], list[str | Path]]] = {
        "one-option Typer app": lambda n: [commands / "plain-app", "--name", str(n)],
        "bare interpreter": lambda _: [commands / "python", "-c", "pass"],
        "import typer": lambda _: [commands / "python", "-c", "import typer"],
        "import typer, filelock": lambda _: [commands / "python", "-c", "import typer, filelock"],
        "config get": lambda _: [commands / PROGRAM, "config", "get", "level"],
        "config set": lambda n: [commands / PROGRAM, "config", "set", "level", str(100 + n)],
    }
    taken: dict[str, list[Cost]] = {name: [] for name in calls}
    for number in range(-_WARM_UP_ROUNDS, _ROUNDS):
        for name, command_of in calls.items():
            cost = time_one(command_of(number), scratch, environ)
            if number >= 0:
                taken[name].append(cost)
    return taken


def time_one(argv: list[str | Path], cwd: Path, environ: dict[str, str]) -> Cost:
    """Run a command, and return its cost."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, cwd=cwd, env=environ, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_ms = (time.perf_counter() - began) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, argv
    return Cost((used.ru_utime + used.ru_stime) * 1000, wall_ms)


def show_calls(commands: Path, taken: dict[str, list[Cost]]) -> None:
    """Print the median of each row, and its ratio to the first row."""
    medians = {}
    for name, costs in taken.items():
        medians[name] = Cost(
            processor_ms=statistics.median(cost.processor_ms for cost in costs),
            wall_ms=statistics.median(cost.wall_ms for cost in costs),
        )
    plain = next(iter(medians.values()))
    print(f"With Typer {typer_version(commands)}:")
    title = f"median of {_ROUNDS}"
    print(
        f"{title:<22} {'processor ms':>12} {'ratio':>6} {'wall ms':>8} {'ratio':>6} {'at most':>8}"
    )
    for name, cost in medians.items():
        processor_ratio = cost.processor_ms / plain.processor_ms
        wall_ratio = cost.wall_ms / plain.wall_ms
        print(
            f"{name:<22} {cost.processor_ms:12.1f} {processor_ratio:6.2f} "
            f"{cost.wall_ms:8.1f} {wall_ratio:6.2f} {_AT_MOST.get(name, ''):>8}"
        )
    print()


def typer_version(commands: Path) -> str:
    """Return the version of Typer in an environment."""
    program = "from importlib.metadata import version; print(version('typer'))"
    ran = subprocess.run([commands / "python", "-c", program], capture_output=True, check=True)
    return ran.stdout.decode().strip()


def show_bursts(
    commands: Path, crudini: Path | None, scratch: Path, environ: dict[str, str]
) -> None:
    """Print how long 100 changes of different keys of one file take, started together."""
    theirs: list[float] = []
    ours: list[Burst] = []
    for _ in range(_BURST_ROUNDS):
        ours.append(burst_of_ours(commands, scratch, environ))
        if crudini is not None:
            theirs.append(burst_of_crudini(crudini, scratch, environ))
    title = f"{_BURST} changes at once"
    print(f"{title:<22} {'seconds':>12} {'ratio':>6} {'failed':>8} {'lost':>6} {'at most':>8}")
    unit = None
    if theirs:
        unit = statistics.median(theirs)
        print(f"{'crudini':<22} {unit:12.2f} {1:6.2f}")
    else:
        print(f"{'crudini':<22} could not be installed")
    show_burst("config set", ours, unit, _BURST_AT_MOST)
    with busy_loops():
        burst = burst_of_ours(commands, scratch, environ)
        show_burst(f"with {_BUSY_LOOPS} busy loops", [burst], unit=None, at_most="")
    print()


def show_burst(name: str, bursts: list["Burst"], unit: float | None, at_most: float | str) -> None:
    """Print the median duration, its ratio to that of crudini, and the failures of all bursts."""
    seconds = statistics.median(burst.seconds for burst in bursts)
    ratio = ""
    if unit is not None:
        ratio = f"{seconds / unit:.2f}"
    failed = sum(burst.failed for burst in bursts)
    lost = sum(burst.lost for burst in bursts)
    print(f"{name:<22} {seconds:12.2f} {ratio:>6} {failed:8} {lost:6} {at_most:>8}")


class Burst(NamedTuple):
    """The result of 100 changes at the same time."""

    seconds: float
    failed: int
    lost: int
    """The changes that were reported as saved, and are not in the file."""


def burst_of_ours(commands: Path, scratch: Path, environ: dict[str, str]) -> Burst:
    """Make the changes with our tool."""
    file = scratch / WORKSPACE_FILE
    file.write_text("[settings]\n")
    calls: list[list[str | Path]] = []
    for number in range(_BURST):
        calls.append([commands / PROGRAM, "config", "set", f"k{number}", str(number)])
    seconds, exit_codes = run_together(calls, scratch, environ)
    text = file.read_text()
    failed = 0
    lost = 0
    for number, exit_code in enumerate(exit_codes):
        if exit_code != 0:
            failed += 1
        elif f"k{number} = {number}\n" not in text:
            lost += 1
    return Burst(seconds=seconds, failed=failed, lost=lost)


def burst_of_crudini(crudini: Path, scratch: Path, environ: dict[str, str]) -> float:
    """Make the changes with crudini, and return how many seconds they take."""
    (scratch / "crudini.ini").write_text("[settings]\n")
    calls: list[list[str | Path]] = []
    for number in range(_BURST):
        calls.append([crudini, "--set", "crudini.ini", "settings", f"k{number}", str(number)])
    seconds, _ = run_together(calls, scratch, environ)
    return seconds


def run_together(
    calls: list[list[str | Path]],
    cwd: Path,
    environ: dict[str, str],
) -> tuple[float, list[int]]:
    """Start all commands, and return after how many seconds all have exited, and how."""
    began = time.perf_counter()
    processes = []
    for call in calls:
        process = subprocess.Popen(call, cwd=cwd, env=environ, stdout=subprocess.DEVNULL)
        processes.append(process)
    exit_codes = [process.wait() for process in processes]
    return time.perf_counter() - began, exit_codes


@contextmanager
def busy_loops() -> Iterator[None]:
    """Keep every processor busy until the block ends."""
    loops = []
    for _ in range(_BUSY_LOOPS):
        loops.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    main()
