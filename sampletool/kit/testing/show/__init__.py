"""Show the tool at work: this is what `make run` prints."""
