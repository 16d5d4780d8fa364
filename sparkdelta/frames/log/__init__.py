"""Actions of the log: parsing, reconciliation, file keys, typed values, checksums."""
