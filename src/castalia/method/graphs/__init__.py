"""What the method does with graphs."""
