"""What every command promises: answers, errors, exit statuses. Pure: no file, no process, stdlib only."""
