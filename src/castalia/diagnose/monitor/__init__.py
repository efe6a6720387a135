"""The monitor of any PyTorch training, from outside."""

from castalia.diagnose.monitor.loop_doctor import Doctor, watch

__all__ = ["Doctor", "watch"]
