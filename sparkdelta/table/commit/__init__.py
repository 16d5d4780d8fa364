"""Transactions, conflict detection, and the lines of a commit."""
