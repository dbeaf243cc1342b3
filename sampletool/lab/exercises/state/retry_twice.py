"""Exercise: a client sends its order a second time, because the first response is late.

Change worker() until `tool lab try` finds no broken schedule. A and B are two attempts of one
request, so the order must be booked once.
"""

from pathlib import Path

ORDERS = Path("orders")
REQUEST = "order-17"


def prepare() -> None:
    """Create an empty list of orders."""
    ORDERS.touch()


def worker(name: str) -> None:
    """Book the order, unless another attempt has booked it."""
    done = Path(f"{REQUEST}.done")
    if not done.exists():
        book()
        done.touch()


def book() -> None:
    """Add the order to the list."""
    with ORDERS.open("a") as orders:
        orders.write(f"{REQUEST}\n")


def invariant() -> None:
    """Check that the order is booked once."""
    booked = ORDERS.read_text().splitlines()
    assert booked == [REQUEST], f"the order is booked {len(booked)} times."
