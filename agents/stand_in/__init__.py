"""Stands where the agents of the operands will: it waits for files and publishes files."""
