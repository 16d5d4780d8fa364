"""`DeltaTable`, its builders, and the public functions that need several operations."""
