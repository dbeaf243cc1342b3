"""Changes that take one mechanism out of the code, and what tries whether a test notices."""
