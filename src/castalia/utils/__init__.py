"""Small tools without knowledge of the rest; they import nothing of ours but ``errors``."""
