"""Race conditions to run, to look at and to check. To add one, add a file to scenarios/."""

TITLE = "The lab"
