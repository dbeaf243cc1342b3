"""Run other command-line tools at the same time, and find out whether they can stand it."""
