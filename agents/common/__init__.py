"""What several agents need: host paths, exit codes."""
