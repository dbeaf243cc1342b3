"""How much the lists of tools cost: their sizes in bytes, and in tokens of about four bytes."""

from sampletool.kit.part_discovery import part_names
from sampletool.mcp.selection import OFFERED_BY_DEFAULT
from sampletool.mcp.tools import Tool, load_tools
from tests.mcp.sizes import MAX_DEFAULT_BYTES, list_bytes

_BYTES_PER_TOKEN = 4


def main() -> None:
    """Print a table."""
    print(f"{'tools/list':<28} {'tools':>6} {'bytes':>8} {'tokens':>8} {'at most':>8}")
    _print_row("tool mcp", load_tools(), str(MAX_DEFAULT_BYTES))
    for part in ("kit", *part_names()):
        tools = load_tools(only=[part])
        if tools and part in OFFERED_BY_DEFAULT:
            _print_row(f"tool mcp --only {part}", tools)
    _print_row("tool mcp --all", load_tools(offer_all=True))
    print()


def _print_row(command: str, tools: dict[str, Tool], limit: str = "") -> None:
    size = list_bytes(tools)
    tokens = round(size / _BYTES_PER_TOKEN)
    print(f"{command:<28} {len(tools):>6} {size:>8} {tokens:>8} {limit:>8}")
