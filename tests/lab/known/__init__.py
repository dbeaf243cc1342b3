"""Programs whose verdict is known. The test copies each to a Python file."""
