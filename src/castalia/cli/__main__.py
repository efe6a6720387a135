"""``python -m castalia.cli``."""

from castalia.cli.app import main

main()
