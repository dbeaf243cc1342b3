"""`make docs`: what the `generate.py` of each folder beside this one writes."""

from importlib import import_module
from pathlib import Path

for file in sorted(Path(__file__).parents[1].glob("*/generate.py")):
    import_module(f"docs.{file.parent.name}.generate").main()
