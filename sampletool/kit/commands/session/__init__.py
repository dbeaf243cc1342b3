"""List and remove sessions, the outputs and logs of earlier commands."""
