"""The public functions, `DeltaTable` and its builders, and the command line."""
