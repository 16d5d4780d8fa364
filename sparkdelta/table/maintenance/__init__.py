"""Log maintenance: version checksums, compaction, cleanup, checks, and the hooks after a commit."""
