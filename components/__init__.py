"""One Pulumi component per operand; they declare what the plan says and decide nothing."""
