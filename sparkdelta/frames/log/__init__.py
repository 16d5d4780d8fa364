"""Rules over rows of actions: parsing, reconciliation, file keys, typed values, checksums."""
