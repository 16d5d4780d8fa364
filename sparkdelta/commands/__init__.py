"""One user operation per file. Commands use `table` and below, and never each other."""
