"""`tool inventory check` runs this as a process of its own: it prints the items with too few pieces."""

import sys
import tomllib
from pathlib import Path

file, least = Path(sys.argv[1]), int(sys.argv[2])
stock = tomllib.loads(file.read_text()) if file.exists() else {}
sys.stdout.write("".join(f"{item}\n" for item, pieces in sorted(stock.items()) if pieces < least))
