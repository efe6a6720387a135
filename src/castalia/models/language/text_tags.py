"""What scikit-learn is to know of estimators whose rows are texts."""

from __future__ import annotations

from typing import Any

__all__ = ["ReadsTexts"]


class ReadsTexts:
    """Mixin, left of the task: X is texts, and scikit-learn leaves their checks to the adapter."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags
