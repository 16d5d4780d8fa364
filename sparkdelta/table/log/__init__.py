"""Reading the log: listing, segments, checkpoints, replayed state and time travel."""
