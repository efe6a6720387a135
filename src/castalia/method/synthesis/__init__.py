"""Models that draw rows and images: fitted, judged, and what they draw written to files."""

from castalia.method.synthesis.sample_files import draw_samples
from castalia.method.synthesis.synthesis_run import synthesise

__all__ = ["draw_samples", "synthesise"]
