"""The operations on a table, a room each."""
