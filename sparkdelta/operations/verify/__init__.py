"""Verification of a table against its log, and its repair."""
