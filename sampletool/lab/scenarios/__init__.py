"""One file each: the story, the naive way, tempting wrong fixes, the right way, and what must hold."""
