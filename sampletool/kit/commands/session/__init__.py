"""List and remove sessions: the outputs and logs that earlier commands left behind."""
