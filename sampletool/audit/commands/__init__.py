"""The commands of this part: a file is a command, a folder is a group."""
