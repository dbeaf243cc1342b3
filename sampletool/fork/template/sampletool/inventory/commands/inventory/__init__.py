"""What is in the cupboard, which many may change at once."""
