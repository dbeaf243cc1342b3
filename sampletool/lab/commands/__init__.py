"""Learn how race conditions happen."""
