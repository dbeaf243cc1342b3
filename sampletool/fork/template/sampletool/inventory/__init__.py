"""Keep an inventory: an example to replace."""
