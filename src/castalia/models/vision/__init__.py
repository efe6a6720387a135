"""Models of pictures."""

__all__: list[str] = []
