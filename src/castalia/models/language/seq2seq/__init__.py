"""Texts to texts: translators, and T5 and BART."""

__all__: list[str] = []
