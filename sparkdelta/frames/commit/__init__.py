"""Actions of a commit: log lines, fresh row ids, and conflicts with other commits."""
