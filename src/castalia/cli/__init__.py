"""The command line. It parses and prints; the work is done by the packages below."""

from castalia.cli.app import app, main

__all__ = ["app", "main"]
