"""The log's upkeep after a commit: checksums, compaction, cleanup, manifests."""
