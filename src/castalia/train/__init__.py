"""The one loop, checkpoints and runs."""
