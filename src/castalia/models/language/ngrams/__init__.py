"""Language models that count n-grams, their smoothing and interpolation."""

__all__: list[str] = []
