"""Create a tool of your own: the kit, the parts that you choose, and an example to replace."""

TITLE = "Fork"
