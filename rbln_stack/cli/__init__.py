"""The console program `rbln-stack`."""
