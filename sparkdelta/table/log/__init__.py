"""The replay of a log: commits, reconciled state, time travel."""
