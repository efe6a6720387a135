"""What the method does with text: reading, passages, baselines, networks, samples."""
