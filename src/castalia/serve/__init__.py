"""Saved models over HTTP: plain JSON, the Open Inference Protocol, OpenAI's API."""

from castalia.serve.server_app import ServeSettings, make_app, serve

__all__ = ["ServeSettings", "make_app", "serve"]
