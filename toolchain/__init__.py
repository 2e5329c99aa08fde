"""How the engine, the cluster's programs and the embedded cluster are had on a plain machine."""
