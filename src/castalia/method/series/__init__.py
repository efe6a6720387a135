"""What the method knows of series and sequences: reading them, and their baselines."""
