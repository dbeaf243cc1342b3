"""`tool process` beside DuckDB's SUMMARIZE and csvkit's csvstat: time, peak memory, and whether they agree.

Everything is measured in one run, in turns, as whole commands. DuckDB and csvkit are installed into a temporary
environment of their own. csvstat takes minutes, so it has one turn.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

SIZE_BYTES = 60_000_000
ROUNDS = 7
LIMIT_MB = 60
SUMMARIZE = "import duckdb, sys; duckdb.execute(f\"SUMMARIZE SELECT * FROM read_csv('{sys.argv[1]}')\").fetchall()"
EXACT = """
import duckdb, json, sys
table = duckdb.read_csv(sys.argv[1])
facts = {}
for name, kind in zip(table.columns, map(str, table.types)):
    column = f'"{name}"'
    mean = f"avg({column})" if kind in ("BIGINT", "DOUBLE") else "NULL"
    query = f"count({column}), count(*), min({column}), max({column}), count(DISTINCT {column}), {mean}"
    facts[name] = table.aggregate(query).fetchall()[0]
print(json.dumps(facts, default=str))
"""


@dataclass(frozen=True)
class Run:
    seconds: float
    peak_mb: float
    """Of the largest of its processes."""


def generate(path: Path, size_bytes: int, quote: str = "") -> None:
    """Eight columns: two all different, two with many values, four with few; one of them often empty, and quoted."""
    rng = random.Random(20)
    cities = [f"City {n}" for n in range(300)]
    days = [(date(2015, 1, 1) + timedelta(days=n)).isoformat() for n in range(3650)]
    notes = ["", *(f"{quote}note {n} about {quote * 2}{cities[n % 300]}{quote * 3}" for n in range(2000))]
    size = 0
    with path.open("w") as file:
        size += file.write("id,customer,city,amount,score,day,active,note\n")
        number = 0
        while size < size_bytes:
            size += file.write(
                f"{number},customer{rng.randrange(200_000):06d}@example.org,{rng.choice(cities)},"
                f"{rng.uniform(0, 1000):.2f},{rng.gauss(50, 12):.6f},{rng.choice(days)},"
                f"{'true' if rng.random() < 0.5 else 'false'},{rng.choice(notes)}\n"
            )
            number += 1


def measure(argv: list[str], environ: dict[str, str]) -> Run:
    began = time.perf_counter()
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        peak = max(peak, *map(_peak_kib, [process.pid, *_children(process.pid)]))
        time.sleep(0.005)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{argv} failed: {process.stderr.read().decode()}")  # type: ignore[union-attr]
    return Run(seconds, peak / 1024)


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _peak_kib(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def best(runs: list[Run]) -> Run:
    """The fastest: whatever else the machine does only ever makes a run slower."""
    return Run(min(run.seconds for run in runs), max(run.peak_mb for run in runs))


def disagreements(profile: list[dict[str, Any]], exact: dict[str, list[Any]]) -> list[str]:
    """Where the profile differs from DuckDB's exact figures."""
    found = []
    for column in profile:
        count, rows, low, high, distinct, mean = exact[column["name"]]
        same = {
            "count": column["count"] == count,
            "empty": column["missing"] == rows - count,
            "min": str(column["min"]).lower() == str(low).lower(),
            "max": str(column["max"]).lower() == str(high).lower(),
            "mean": mean is None or math.isclose(column["mean"], mean, rel_tol=1e-9),
            "distinct": column.get("distinct", distinct) == distinct,
        }
        found += [f"{column['name']}.{fact}" for fact, agrees in same.items() if not agrees]
    return found


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="bench-process-") as name:
        scratch = Path(name)
        subprocess.run([sys.executable, "-m", "venv", scratch / "venv"], check=True)
        others = scratch / "venv" / "bin"
        subprocess.run([others / "python", "-m", "pip", "install", "-q", "duckdb", "csvkit"], check=True)
        return compare(scratch, str(others / "python"), str(others / "csvstat"))


def compare(scratch: Path, python: str, csvstat: str) -> int:
    data, quoted = scratch / "data.csv", scratch / "quoted.csv"
    generate(data, SIZE_BYTES)
    generate(quoted, SIZE_BYTES, '"')
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TOOL_"))}
    environ |= {"HOME": name_of(scratch / "home"), "TMPDIR": name_of(scratch / "tmp")}
    ours = environ | {"PYTHONPATH": str(Path(__file__).parents[3])}

    def tool(jobs: int, source: Path, output: Path) -> list[str]:
        output.unlink(missing_ok=True)
        return [
            sys.executable,
            "-m",
            "sampletool",
            "process",
            f"--input={source}",
            f"--output={output}",
            f"--jobs={jobs}",
        ]

    profile = scratch / "profile.json"
    files = {"": data, ", quoted": quoted}
    runs: dict[str, list[Run]] = {}
    measure(tool(1, data, profile), ours)
    for _ in range(ROUNDS):
        for kind, file in files.items():
            calls = {f"DuckDB{kind}": measure([python, "-c", SUMMARIZE, str(file)], environ)}
            for jobs in (1, 2):
                calls[f"{jobs}{kind}"] = measure(tool(jobs, file, profile), ours)
            for label, run in calls.items():
                runs.setdefault(label, []).append(run)
    duckdb, one, two, duckdb_quoted, one_quoted, two_quoted = map(best, runs.values())
    measure(tool(1, data, profile), ours)
    stat = measure([csvstat, str(data)], environ)
    exact = json.loads(
        subprocess.run([python, "-c", EXACT, data], env=environ, check=True, stdout=subprocess.PIPE).stdout
    )
    differing = disagreements(json.loads(profile.read_bytes())["columns"], exact)

    lines = [
        f"{data.stat().st_size / 1e6:.0f} MB, 8 columns; best of {ROUNDS}, whole commands, largest process",
        f"  {'DuckDB SUMMARIZE':26}{duckdb.seconds:8.2f} s {'':8}{duckdb.peak_mb:6.0f} MB",
        f"  {'DuckDB SUMMARIZE, quoted':26}{duckdb_quoted.seconds:8.2f} s {'':8}{duckdb_quoted.peak_mb:6.0f} MB",
        f"  {'csvstat':26}{stat.seconds:8.2f} s {'':8}{stat.peak_mb:6.0f} MB",
    ]
    checks = [("DuckDB and tool agree", not differing, ", ".join(differing))]
    for label, run, theirs, most in (
        ("1 worker", one, duckdb, 4.0),
        ("2 workers", two, duckdb, 2.0),
        ("1 worker, quoted", one_quoted, duckdb_quoted, 4.0),
        ("2 workers, quoted: it is not cut", two_quoted, duckdb_quoted, 4.0),
    ):
        times, faster = run.seconds / theirs.seconds, stat.seconds / run.seconds
        told = f"{run.seconds:8.2f} s {times:6.2f}x {run.peak_mb:6.0f} MB, csvstat takes {faster:.0f} times as long"
        lines.append(f"  {f'tool process, {label}'[:32]:32}{told}")
        checks.append((f"{label}: at most {most:g} times DuckDB", times <= most, f"{times:.2f}"))
        checks.append((f"{label}: each process under {LIMIT_MB} MB", run.peak_mb < LIMIT_MB, f"{run.peak_mb:.0f}"))
    faster = stat.seconds / two.seconds
    checks.append(
        ("2 workers, as it runs unasked here: at least 100 times faster than csvstat", faster >= 100, f"{faster:.0f}")
    )
    lines += [f"  {'ok  ' if holds else 'MISS'} {claim}{f': {told}' if told else ''}" for claim, holds, told in checks]
    print("\n".join(lines))
    return 0 if all(holds for _, holds, _ in checks) else 1


def name_of(directory: Path) -> str:
    directory.mkdir()
    return str(directory)


if __name__ == "__main__":
    sys.exit(main())
