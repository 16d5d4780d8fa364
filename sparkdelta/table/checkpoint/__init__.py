"""Reading checkpoints: their footers, layout and sidecars."""
