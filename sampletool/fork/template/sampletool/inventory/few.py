"""`tool inventory check` runs this as a process of its own.

It writes the items with too few pieces into a file.
"""

import sys
import tomllib
from pathlib import Path


def few_of(stock: dict[str, int], least: int) -> list[str]:
    return [item for item, pieces in sorted(stock.items()) if pieces < least]


if __name__ == "__main__":
    file, least, report = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    stock = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
    report.write_text("".join(f"{item}\n" for item in few_of(stock, least)), "utf-8")
