"""Who holds which lock, and what to do about a holder that has died."""
