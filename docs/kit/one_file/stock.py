"""Count the items in stock. The counts are in stock.json, in the current directory.

Many processes can change the file at the same time, and each can be killed at any moment. No
clean-up code has to run after that: the kernel releases the lock of a process that dies, and
stock.json changes only by a rename, which happens completely or not at all.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from filelock import Timeout, UnixFileLock

STOCK = Path("stock.json")
TEMPORARY = Path("stock.json.tmp")
# The lock is a file of its own: each write replaces stock.json, and a lock on the old file does
# not stop a process that opens the new one. Never delete the lock file, for the same reason.
LOCK = Path("stock.json.lock")
STOP_SIGNALS = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}

app = typer.Typer(help="Count the items in stock.")


@app.command()
def add(
    name: str,
    amount: Annotated[int, typer.Option(min=1, help="Number of items to add.")] = 1,
    lock_timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for the lock.")] = 10,
) -> None:
    """Add items to the stock."""
    with changing_stock(lock_timeout) as stock:
        stock[name] = stock.get(name, 0) + amount
    # The lock is released before this. If nobody reads our output, only this process has to wait.
    try:
        typer.echo(f"{name}: {stock[name]}")
    except (OSError, UnicodeError) as error:
        sys.exit(f"Error: The change was saved, but the count cannot be printed: {error}")


@app.command("list")
def list_stock() -> None:
    """List the items in stock."""
    # Reading needs no lock: stock.json is always the complete old file or the complete new one.
    for name, amount in sorted(read_stock().items()):
        typer.echo(f"{name}: {amount}")


@contextmanager
def changing_stock(lock_timeout: float) -> Iterator[dict[str, int]]:
    """Yield the stock, and save it if the block succeeds. Raise Timeout if the lock stays held."""
    # Fail on a file system without kernel locks. filelock's fallback stays locked after kill -9.
    with UnixFileLock(LOCK, timeout=lock_timeout, fallback_to_soft=False):
        # Read after taking the lock: another process may have changed the file while we waited.
        stock = read_stock()
        yield stock
        # Until here, Ctrl-C kills us at once, which is safe: nothing is written yet. During the
        # write, the kernel holds signals back, so no temporary file stays behind.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            write_stock(stock)
        finally:
            # A signal that came during the write kills us here.
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def read_stock() -> dict[str, int]:
    """Return the number of items by name. Raise ValueError if the file contains something else."""
    if not STOCK.exists():
        return {}
    stock = json.loads(STOCK.read_bytes())
    if not isinstance(stock, dict) or not all(type(amount) is int for amount in stock.values()):
        raise ValueError('expected numbers by name, such as {"screw": 20}')
    return stock


def write_stock(stock: dict[str, int]) -> None:
    """Replace the file. Readers, and a power cut, see the old file or the new one, never half."""
    # A killed process may have left this file. We hold the lock, so no other process uses it.
    TEMPORARY.unlink(missing_ok=True)
    try:
        # "x" creates a new file. "w" would follow a symbolic link and overwrite its target.
        with TEMPORARY.open("x") as file:
            if STOCK.exists():
                shutil.copymode(STOCK, TEMPORARY)
            json.dump(stock, file, indent=2)
            file.flush()
            # Without this, a power cut after the rename can leave an empty stock.json.
            os.fsync(file.fileno())
        TEMPORARY.replace(STOCK)
    finally:
        # If the disk is full, remove the incomplete file. After the rename, it does not exist.
        TEMPORARY.unlink(missing_ok=True)
    # The rename changes the directory. Without this, a power cut can undo it after we reported it.
    try:
        directory = os.open(STOCK.parent, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
    except OSError as error:
        sys.exit(f"Error: The change was saved, but a power cut can undo it: {error}")


def main() -> None:
    """Run a command, and turn errors into messages and exit codes."""
    # Python turns Ctrl-C into a KeyboardInterrupt between any two lines. Let it kill us instead, as
    # SIGTERM does: then a shell loop stops, too. If it is ignored (nohup, &), it stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        app()
    except Timeout:
        typer.echo(f"Error: Another process holds {LOCK}. Nothing was changed.", err=True)
        typer.echo(f"Try again. This lists the processes that have it open: fuser {LOCK}", err=True)
        sys.exit(os.EX_TEMPFAIL)
    except ValueError as error:
        sys.exit(f"Error: {STOCK} is not valid: {error}. Nothing was changed.")
    except OSError as error:
        sys.exit(f"Error: {error}. Nothing was changed.")


if __name__ == "__main__":
    main()
