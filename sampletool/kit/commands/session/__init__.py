"""List and remove sessions, the outputs of earlier commands."""
