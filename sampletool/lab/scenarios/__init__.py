"""The races, one file each: the story, the bug, wrong fixes, the fix, and what must hold."""
