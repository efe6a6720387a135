"""The page of one run, for as long as whoever started it keeps standard input open."""

import os
import sys
from pathlib import Path

from castalia.errors import CastaliaError
from castalia.studio.studio_app import open_studio

if __name__ == "__main__":
    folder, run = sys.argv[1:]
    try:
        open_studio(
            Path(folder),
            say=lambda address: os.write(1, f"{address}\n".encode()),
            run=run,
            until=sys.stdin.read,
        )
    except CastaliaError as error:
        sys.exit(" ".join(str(error).split()))
