"""A line of input -> an entry: what `logd send` understands."""
