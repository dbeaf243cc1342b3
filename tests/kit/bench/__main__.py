"""`make bench [ONLY=name]`: every comparison, or one."""

import sys
from importlib import import_module
from pkgutil import iter_modules

import tests.kit.bench

for module in iter_modules(tests.kit.bench.__path__):
    if not module.name.startswith("_") and (len(sys.argv) == 1 or module.name in sys.argv[1:]):
        import_module(f"tests.kit.bench.{module.name}").main()
