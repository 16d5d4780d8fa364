"""The files of a log: listing, segments, lines."""
