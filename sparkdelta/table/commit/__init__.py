"""Committing: transactions, conflict detection, and the lines of a commit."""
