"""What of the lab `make mutants` tries: the mechanisms that the scenarios name."""
