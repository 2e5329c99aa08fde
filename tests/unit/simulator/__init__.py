"""Unit tests of the simulated NPUs; none of them needs root."""
