"""Other command-line tools."""
