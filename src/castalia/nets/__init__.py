"""Architectures: plain ``torch.nn`` modules, one file each, usable without the rest."""
