"""Training loops in the styles of three people, by an author who had not read the rules."""
