"""The console script, and `python -m` of this package: all of it is in the kit."""

from .kit.start import main

if __name__ == "__main__":
    import sys

    sys.exit(main())
