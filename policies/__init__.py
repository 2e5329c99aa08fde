"""The CrossGuard policy pack."""
