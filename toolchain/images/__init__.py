"""Container images without a registry and without a container engine."""
