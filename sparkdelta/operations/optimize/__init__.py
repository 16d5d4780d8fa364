"""OPTIMIZE and REORG."""
