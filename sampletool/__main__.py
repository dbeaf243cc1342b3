"""The console script, and `python -m` of this package: all of it is in the kit."""

from .kit.start import main as run


def main() -> int:
    """Run the command in `sys.argv`."""
    return run(package="sampletool")


if __name__ == "__main__":
    import sys

    sys.exit(main())
