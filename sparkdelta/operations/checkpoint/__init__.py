"""Writing checkpoints."""
