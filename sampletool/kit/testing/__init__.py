"""For tests: run the tool as a user would, check its responses, and hold locks meanwhile."""
