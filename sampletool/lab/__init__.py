"""Race conditions to run, to look at, and to prove gone. Adding one is adding a file to scenarios/."""

TITLE = "The lab"
