"""Stack config: the closed, typed tree and how it is loaded."""
