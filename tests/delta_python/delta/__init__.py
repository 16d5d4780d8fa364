"""The name of delta-spark's Python package, for its own tests alone; never shipped."""
