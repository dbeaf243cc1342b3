"""What every command promises: responses, errors and exit codes.

The modules open no file and start no process, and import only the standard library.
"""
