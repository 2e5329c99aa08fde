"""Pod specs as typed dicts, one module per kind of operand. Pulumi is only a source of types."""
