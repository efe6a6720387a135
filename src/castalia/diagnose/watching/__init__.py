"""Watching any PyTorch training from outside."""

from castalia.diagnose.watching.doctor import Doctor, watch

__all__ = ["Doctor", "watch"]
