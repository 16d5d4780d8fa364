"""The base class of delta-spark's own tests."""
