"""Simulated NPUs: what a node of the embedded cluster shows in place of real hardware."""
