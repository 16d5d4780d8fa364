"""The contents of version checksums."""
