"""The tests of delta-spark that fail here, and why."""

FAILS: dict[str, str] = {}
