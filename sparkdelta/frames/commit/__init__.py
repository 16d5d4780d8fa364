"""The rows of a commit: its lines, fresh row ids, and conflicts with another commit."""
