"""The rows of checkpoints: their contents, their layout, and the ranges of sidecars."""
