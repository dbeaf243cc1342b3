"""What must be right: the same bytes in every tool that is built on it. Do not edit it; replace it by a newer one."""
