"""Makes a project of your own out of this one: the kit, the parts that you choose, and an example to replace."""
