"""A local page on the run store: runs side by side, one run with its causes, a form to try it."""

from castalia.studio.studio_app import StudioSettings, make_studio, open_studio

__all__ = ["StudioSettings", "make_studio", "open_studio"]
