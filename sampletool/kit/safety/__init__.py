"""One file for each way of touching the world, each safe when many calls do it at once."""
