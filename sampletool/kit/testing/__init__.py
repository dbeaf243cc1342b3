"""What tests share: running the tool as a user would, and starting many together."""
