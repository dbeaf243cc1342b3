"""What runs left behind in their session directories."""
