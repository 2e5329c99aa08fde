"""Agent that says whether the stack is ready: the writer of the status objects."""
