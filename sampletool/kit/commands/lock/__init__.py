"""See who holds which lock, and free a stuck one."""
