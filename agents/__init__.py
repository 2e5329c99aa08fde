"""Programs that run on nodes and in the cluster. They never import pulumi."""
