"""What a call costs beside a one-option Typer app, and a hundred changes at once beside crudini.

The wheel is installed into an environment of its own with the pins of constraints.txt, as a user would, and runs with
that environment's interpreter and compiled bytecode. The two rows of imports say how much of a call is not ours.
"""

import os
import shutil
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
_BURST = 100
_BURST_ROUNDS = 5
_BUSY_LOOPS = 16
_AT_MOST = {"one-option Typer app": 1.0, "config get": 1.0, "config set": 1.25}
_BURST_AT_MOST = 2.3

_PLAIN_APP = """
import typer

app = typer.Typer()


@app.command()
def hello(name: str = "world") -> None:
    print(f"Hello, {name}")
"""


class Cost(NamedTuple):
    processor_ms: float
    """User and system time together."""
    wall_ms: float


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        scratch = Path(name)
        installed = install(scratch)
        environ = {"PATH": os.environ["PATH"], "HOME": name, "LC_ALL": "C.UTF-8"}
        show_calls(time_calls(installed, scratch, environ))
        show_bursts(installed, scratch, environ)


def install(scratch: Path) -> Path:
    """The directory of the installed commands: the tool, and beside it the plain app behind the same kind of script."""
    environ = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    base = Path(sys.base_prefix, "bin", "python3")
    subprocess.run([base, "-m", "venv", scratch / "env"], env=environ, check=True)
    commands = scratch / "env" / "bin"
    pip: list[str | Path] = [
        commands / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        _ROOT / "constraints.txt",
        _ROOT,
    ]
    subprocess.run(pip, env=environ, stderr=subprocess.DEVNULL, check=True)
    library = next((scratch / "env").glob("lib/*/site-packages"))
    (library / "plain_app.py").write_text(_PLAIN_APP)
    subprocess.run(
        [commands / "python", "-m", "compileall", "-q", library / "plain_app.py"],
        env=environ,
        check=True,
    )
    script = (
        (commands / PROGRAM)
        .read_text()
        .replace(f"{PACKAGE}.__main__ import main", "plain_app import app as main")
    )
    (commands / "plain-app").write_text(script)
    (commands / "plain-app").chmod(0o755)
    return commands


def time_calls(commands: Path, scratch: Path, environ: dict[str, str]) -> dict[str, list[Cost]]:
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
    for n in range(-3, _ROUNDS):
        for name, call in calls.items():
            cost = time_one(call(n), scratch, environ)
            if n >= 0:
                taken[name].append(cost)
    return taken


def time_one(argv: list[str | Path], cwd: Path, environ: dict[str, str]) -> Cost:
    began = time.perf_counter()
    process = subprocess.Popen(argv, cwd=cwd, env=environ, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_ms = (time.perf_counter() - began) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, argv
    return Cost((used.ru_utime + used.ru_stime) * 1000, wall_ms)


def show_calls(taken: dict[str, list[Cost]]) -> None:
    medians = {
        name: Cost(*map(statistics.median, zip(*costs, strict=True)))
        for name, costs in taken.items()
    }
    plain = next(iter(medians.values()))
    print(
        f"{f'median of {_ROUNDS}':<22} {'processor ms':>12} {'ratio':>6} {'wall ms':>8} "
        f"{'ratio':>6} {'at most':>8}"
    )
    for name, cost in medians.items():
        ratios = cost.processor_ms / plain.processor_ms, cost.wall_ms / plain.wall_ms
        print(
            f"{name:<22} {cost.processor_ms:12.1f} {ratios[0]:6.2f} {cost.wall_ms:8.1f} "
            f"{ratios[1]:6.2f}"
            f" {_AT_MOST.get(name, ''):>8}"
        )
    print()


def show_bursts(commands: Path, scratch: Path, environ: dict[str, str]) -> None:
    """A hundred changes of different keys of one file, started together."""
    crudini = shutil.which("crudini")
    theirs: list[float] = []
    ours: list[Burst] = []
    for _ in range(_BURST_ROUNDS):
        ours.append(burst_of_ours(commands, scratch, environ))
        if crudini:
            theirs.append(burst_of_crudini(crudini, scratch, environ))
    print(
        f"{f'{_BURST} changes at once':<22} {'seconds':>12} {'ratio':>6} {'failed':>8} "
        f"{'lost':>6} {'at most':>8}"
    )
    unit = statistics.median(theirs) if theirs else None
    print(f"{'crudini':<22} {unit:12.2f} {1:6.2f}" if unit else f"{'crudini':<22} is not installed")
    show_burst("config set", ours, unit, _BURST_AT_MOST)
    with busy_loops():
        show_burst(
            f"beside {_BUSY_LOOPS} busy loops",
            [burst_of_ours(commands, scratch, environ)],
            None,
            "",
        )
    print()


def show_burst(name: str, bursts: list["Burst"], unit: float | None, at_most: float | str) -> None:
    seconds = statistics.median(burst.seconds for burst in bursts)
    ratio = f"{seconds / unit:.2f}" if unit else ""
    failed, lost = sum(burst.failed for burst in bursts), sum(burst.lost for burst in bursts)
    print(f"{name:<22} {seconds:12.2f} {ratio:>6} {failed:8} {lost:6} {at_most:>8}")


class Burst(NamedTuple):
    seconds: float
    failed: int
    lost: int
    """Acknowledged, and not in the file."""


def burst_of_ours(commands: Path, scratch: Path, environ: dict[str, str]) -> Burst:
    file = scratch / WORKSPACE_FILE
    file.write_text("[settings]\n")
    calls: list[list[str | Path]] = [
        [commands / PROGRAM, "config", "set", f"k{n}", str(n)] for n in range(_BURST)
    ]
    seconds, statuses = run_together(calls, scratch, environ)
    text = file.read_text()
    lost = [n for n, status in enumerate(statuses) if status == 0 and f"k{n} = {n}\n" not in text]
    return Burst(seconds, sum(status != 0 for status in statuses), len(lost))


def burst_of_crudini(crudini: str, scratch: Path, environ: dict[str, str]) -> float:
    (scratch / "crudini.ini").write_text("[settings]\n")
    calls: list[list[str | Path]] = [
        [crudini, "--set", "crudini.ini", "settings", f"k{n}", str(n)] for n in range(_BURST)
    ]
    return run_together(calls, scratch, environ)[0]


def run_together(
    calls: list[list[str | Path]], cwd: Path, environ: dict[str, str]
) -> tuple[float, list[int]]:
    began = time.perf_counter()
    processes = [
        subprocess.Popen(call, cwd=cwd, env=environ, stdout=subprocess.DEVNULL) for call in calls
    ]
    statuses = [process.wait() for process in processes]
    return time.perf_counter() - began, statuses


@contextmanager
def busy_loops() -> Iterator[None]:
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(_BUSY_LOOPS)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    main()
