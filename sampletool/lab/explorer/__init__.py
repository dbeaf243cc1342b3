"""The lab in a browser: the reader chooses who goes next, and walks through recorded runs."""
