"""`python -m sampletool.kit.testing.show`: print all demonstrations."""

from .demonstration import main

main()
