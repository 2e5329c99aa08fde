"""Custom resources of the stack: their shapes as models, their definitions as YAML next to them."""
