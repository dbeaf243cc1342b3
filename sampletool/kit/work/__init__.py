"""What long-running commands share."""
