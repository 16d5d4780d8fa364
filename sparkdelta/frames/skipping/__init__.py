"""Data skipping: the files that may hold rows matching a predicate."""
