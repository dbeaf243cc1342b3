"""`make docs`: what every generator of this folder writes."""

from importlib import import_module
from pkgutil import iter_modules

import docs.generate

for module in iter_modules(docs.generate.__path__):
    if not module.name.startswith("_"):
        import_module(f"docs.generate.{module.name}").main()
