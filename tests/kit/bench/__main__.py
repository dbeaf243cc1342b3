"""`make bench [ONLY=name]`: every comparison of the kit and of the parts, or one."""

import sys
from importlib import import_module
from pathlib import Path

_TESTS = Path(__file__).parents[2]

for file in sorted(_TESTS.glob("*/bench/[!_]*.py")):
    if len(sys.argv) == 1 or file.stem in sys.argv[1:]:
        import_module(f"tests.{file.parents[1].name}.bench.{file.stem}").main()
