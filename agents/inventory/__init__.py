"""Agent that lists the accelerators of a node."""
