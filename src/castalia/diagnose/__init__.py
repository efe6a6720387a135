"""Finding out what is wrong with a training, before it and while it runs."""

from castalia.diagnose.preflight import Check, preflight

__all__ = ["Check", "preflight"]
