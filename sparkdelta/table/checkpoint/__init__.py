"""Writing checkpoints: contents, layout, sidecars and the hint that names the newest."""
