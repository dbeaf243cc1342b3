"""What changing one key costs in a small settings file and in one of 10,000 keys, in processor time."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from sampletool.kit.program import PROGRAM, WORKSPACE_FILE

ROUNDS = 5
KEYS = 10_000
_AT_MOST_SECONDS = 1.5
_CHANGES: dict[str, Callable[[int], list[str]]] = {
    "update one of": lambda n: ["set", "key_5", str(n)],
    "add one to": lambda n: ["set", f"new_{n}", "1"],
    "unset one of": lambda n: ["unset", f"new_{n}"],
}


def main() -> None:
    tool = str(Path(sys.executable).with_name(PROGRAM))
    environ = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        environ |= {"HOME": scratch, "XDG_CONFIG_HOME": scratch, "XDG_STATE_HOME": scratch}
        print(f"processor time of one change, median of {ROUNDS}")
        for keys in (10, KEYS):
            text = "".join(f'key_{n} = "value {n}"\n' for n in range(keys))
            Path(scratch, WORKSPACE_FILE).write_text(f"[settings]\n{text}")
            for name, change in _CHANGES.items():
                taken = [
                    _seconds([tool, "config", *change(n)], scratch, environ) for n in range(ROUNDS)
                ]
                limit = f"  (at most {_AT_MOST_SECONDS:.2f} s)" if keys == KEYS else ""
                print(f"  {name:<13} {keys:>6} keys {statistics.median(taken):6.2f} s{limit}")
    print()


def _seconds(call: list[str], directory: str, environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(call, cwd=directory, env=environ, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
