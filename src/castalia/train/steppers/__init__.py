"""Faster ways to take the plain step, one a file; ``choice`` says which is taken when."""
