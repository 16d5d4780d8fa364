"""The rows and data files that an operation adds to a table or removes from it."""
