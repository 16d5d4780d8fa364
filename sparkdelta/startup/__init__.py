"""Start of the interpreters of ``sparkdelta run``; its directory is put on their path."""
