"""Compare `tool process` with DuckDB's SUMMARIZE and csvkit's csvstat: time, memory, and figures.

Everything is measured in one run, in turns, as whole commands. DuckDB and csvkit are installed into
a temporary environment. csvstat takes minutes, so it has one turn.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

SIZE_BYTES = 60_000_000
ROUNDS = 7
MAX_PEAK_MB = 60
MIN_TIMES_FASTER_THAN_CSVSTAT = 100

_SUMMARIZE = """
import duckdb, sys
duckdb.execute(f"SUMMARIZE SELECT * FROM read_csv('{sys.argv[1]}')").fetchall()
"""

_EXACT_FIGURES = """
import duckdb, json, sys
table = duckdb.read_csv(sys.argv[1])
figures = {}
for name, kind in zip(table.columns, map(str, table.types)):
    column = f'"{name}"'
    mean = f"avg({column})" if kind in ("BIGINT", "DOUBLE") else "NULL"
    query = (
        f"count({column}), count(*), min({column}), max({column}), "
        f"count(DISTINCT {column}), {mean}"
    )
    figures[name] = table.aggregate(query).fetchall()[0]
print(json.dumps(figures, default=str))
"""


@dataclass(frozen=True)
class Run:
    """How long a command took."""

    seconds: float
    peak_mb: float
    """The largest memory of one of its processes."""


@dataclass(frozen=True)
class Comparison:
    """A way to run the tool, and how long it may take compared with DuckDB on the same file."""

    name: str
    file: Path
    jobs: int
    max_share_of_duckdb: float


# The data


def generate(path: Path, quote: str = "") -> None:
    """Write a file with eight columns: two all different, two with many values, four with few.

    The last column is often empty, and its values are in quotes, if `quote` is one.
    """
    numbers = random.Random(20)
    cities = [f"City {number}" for number in range(300)]
    first_day = date(2015, 1, 1)
    days = [(first_day + timedelta(days=number)).isoformat() for number in range(3650)]
    notes = [""]
    for number in range(2000):
        city = f"{quote * 2}{cities[number % 300]}{quote * 2}"
        notes.append(f"{quote}note {number} about {city}{quote}")
    size_bytes = 0
    row_count = 0
    with path.open("w") as file:
        size_bytes += file.write("id,customer,city,amount,score,day,active,note\n")
        while size_bytes < SIZE_BYTES:
            cells = [
                str(row_count),
                f"customer{numbers.randrange(200_000):06d}@example.org",
                numbers.choice(cities),
                f"{numbers.uniform(0, 1000):.2f}",
                f"{numbers.gauss(50, 12):.6f}",
                numbers.choice(days),
                numbers.choice(["true", "false"]),
                numbers.choice(notes),
            ]
            size_bytes += file.write(",".join(cells) + "\n")
            row_count += 1


# Measuring


def measure(command: Sequence[str], environ: Mapping[str, str]) -> Run:
    """Run a command to its end."""
    started_at = time.perf_counter()
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak_kib = 0
    while process.poll() is None:
        for pid in [process.pid, *children_of(process.pid)]:
            peak_kib = max(peak_kib, peak_kib_of(pid))
        time.sleep(0.005)
    seconds = time.perf_counter() - started_at
    if process.returncode != 0:
        raise RuntimeError(f"{command} failed")
    return Run(seconds, peak_kib / 1024)


def children_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def peak_kib_of(pid: int) -> int:
    """Return the largest memory that a process had so far."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0


def best(runs: Sequence[Run]) -> Run:
    """Return the fastest run: other work on this machine only makes a run slower."""
    return Run(min(run.seconds for run in runs), max(run.peak_mb for run in runs))


def differences(profile: list[dict[str, Any]], exact: dict[str, list[Any]]) -> list[str]:
    """Return the figures of the tool that differ from the exact figures of DuckDB."""
    found = []
    for column in profile:
        name = column["name"]
        count, rows, minimum, maximum, distinct, mean = exact[name]
        agreements = {
            "count": column["count"] == count,
            "missing": column["missing"] == rows - count,
            "min": str(column["min"]).lower() == str(minimum).lower(),
            "max": str(column["max"]).lower() == str(maximum).lower(),
            "mean": mean is None or math.isclose(column["mean"], mean, rel_tol=1e-9),
            "distinct": column.get("distinct", distinct) == distinct,
        }
        found += [f"{name}.{figure}" for figure, agrees in agreements.items() if not agrees]
    return found


# Comparing


def main() -> int:
    """Compare. Return 1 if something is not as it is meant to be."""
    with tempfile.TemporaryDirectory(prefix="bench-process-") as name:
        scratch = Path(name)
        subprocess.run([sys.executable, "-m", "venv", scratch / "venv"], check=True)
        programs = scratch / "venv" / "bin"
        pip = [str(programs / "python"), "-m", "pip", "install", "-q", "duckdb", "csvkit"]
        subprocess.run(pip, check=True)
        return compare(scratch, str(programs / "python"), str(programs / "csvstat"))


def compare(scratch: Path, python: str, csvstat: str) -> int:
    """Run all of them in turns, and print how they compare."""
    plain, quoted = scratch / "plain.csv", scratch / "quoted.csv"
    generate(plain)
    generate(quoted, quote='"')
    comparisons = [
        Comparison("1 worker", plain, jobs=1, max_share_of_duckdb=4.0),
        Comparison("2 workers", plain, jobs=2, max_share_of_duckdb=2.0),
        Comparison("1 worker, quoted", quoted, jobs=1, max_share_of_duckdb=4.0),
        Comparison("2 workers, quoted", quoted, jobs=2, max_share_of_duckdb=4.0),
    ]
    environ = environ_of(scratch)
    tool_environ = {**environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    output = scratch / "profile.json"
    # The first run writes the bytecode.
    measure(process_command(plain, 1, output), tool_environ)

    duckdb_runs: dict[Path, list[Run]] = {plain: [], quoted: []}
    tool_runs: dict[str, list[Run]] = {comparison.name: [] for comparison in comparisons}
    for _ in range(ROUNDS):
        for file, runs in duckdb_runs.items():
            runs.append(measure([python, "-c", _SUMMARIZE, str(file)], environ))
        for comparison in comparisons:
            command = process_command(comparison.file, comparison.jobs, output)
            tool_runs[comparison.name].append(measure(command, tool_environ))
    csvstat_run = measure([csvstat, str(plain)], environ)
    measure(process_command(plain, 1, output), tool_environ)
    exact = subprocess.run(
        [python, "-c", _EXACT_FIGURES, plain], env=environ, check=True, stdout=subprocess.PIPE
    )
    found = differences(json.loads(output.read_bytes())["columns"], json.loads(exact.stdout))

    megabytes = plain.stat().st_size / 1e6
    print(f"{megabytes:.0f} MB, 8 columns; best of {ROUNDS}, whole commands, largest process")
    print_run("DuckDB SUMMARIZE", best(duckdb_runs[plain]))
    print_run("DuckDB SUMMARIZE, quoted", best(duckdb_runs[quoted]))
    print_run("csvstat", csvstat_run)
    checks = [check("DuckDB and the tool agree", not found, ", ".join(found))]
    for comparison in comparisons:
        run = best(tool_runs[comparison.name])
        print_run(f"tool process, {comparison.name}", run)
        checks += checks_of(comparison, run, best(duckdb_runs[comparison.file]))
    times_faster = csvstat_run.seconds / best(tool_runs["2 workers"]).seconds
    checks.append(
        check(
            f"2 workers: at least {MIN_TIMES_FASTER_THAN_CSVSTAT} times as fast as csvstat",
            times_faster >= MIN_TIMES_FASTER_THAN_CSVSTAT,
            f"{times_faster:.0f}",
        )
    )
    return 0 if all(checks) else 1


def checks_of(comparison: Comparison, run: Run, duckdb: Run) -> list[bool]:
    """Return whether a run is fast and small enough."""
    share = run.seconds / duckdb.seconds
    limit = comparison.max_share_of_duckdb
    name = comparison.name
    return [
        check(f"{name}: at most {limit:g} times DuckDB", share <= limit, f"{share:.2f}"),
        check(
            f"{name}: each process under {MAX_PEAK_MB} MB",
            run.peak_mb < MAX_PEAK_MB,
            f"{run.peak_mb:.0f}",
        ),
    ]


def check(claim: str, holds: bool, figure: str) -> bool:
    """Print whether a claim holds, and return it."""
    verdict = "ok  " if holds else "MISS"
    print(f"  {verdict} {claim} {figure}".rstrip())
    return holds


def print_run(name: str, run: Run) -> None:
    print(f"  {name:<34}{run.seconds:8.2f} s {run.peak_mb:6.0f} MB")


def process_command(file: Path, jobs: int, output: Path) -> list[str]:
    """Return the command that profiles a file. Remove its output, which it would not replace."""
    output.unlink(missing_ok=True)
    tool = [sys.executable, "-m", "sampletool"]
    return [*tool, "process", f"--input={file}", f"--output={output}", f"--jobs={jobs}"]


def environ_of(scratch: Path) -> dict[str, str]:
    """Return an environment without variables of Python and of the tool, with new directories."""
    environ = {}
    for name, value in os.environ.items():
        if not name.startswith(("PYTHON", "TOOL_")):
            environ[name] = value
    for variable, directory in {"HOME": scratch / "home", "TMPDIR": scratch / "tmp"}.items():
        directory.mkdir()
        environ[variable] = str(directory)
    return environ


if __name__ == "__main__":
    sys.exit(main())
