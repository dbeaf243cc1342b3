"""Build, test and process."""
