"""What this sample happens to do: replace it with what your tool does."""
