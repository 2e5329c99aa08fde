"""Shell scripts that are put into ConfigMaps, kept as files so that they can be read and run."""
