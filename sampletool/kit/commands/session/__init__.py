"""List and remove sessions, which hold the outputs of earlier commands."""
