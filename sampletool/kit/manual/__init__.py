"""The man pages: one for each command, and one for the whole tool.

`roff.py` writes the language of man pages, and `man_pages.py` decides what is on each page. To
write the pages into a directory, run `python -m acme.kit.manual DIRECTORY`.
"""
