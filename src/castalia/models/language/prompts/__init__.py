"""Tasks by prompting a fitted language model."""

__all__: list[str] = []
