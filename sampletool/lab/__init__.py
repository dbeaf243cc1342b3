"""Run, watch and check race conditions. To add a race, add a file to scenarios/."""

TITLE = "The lab"
