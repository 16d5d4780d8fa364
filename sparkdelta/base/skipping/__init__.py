"""Data skipping: selection of the files that may contain rows matching a predicate."""
