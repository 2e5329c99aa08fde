"""The embedded cluster: a real control plane, real nodes in namespaces, kwok nodes beside them."""
