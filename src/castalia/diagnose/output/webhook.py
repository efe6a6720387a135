"""Findings as messages to a web address, from a thread: a slow server never holds a training up."""

from __future__ import annotations

import json
import queue
import threading
import urllib.request
from typing import Any

from castalia.diagnose.finding_record import Finding
from castalia.errors import InvalidParameter

__all__ = ["Webhook"]

SECONDS = 5.0  # for one message, and for what is left at the end


class Webhook:
    """Posts findings as JSON; ``text`` is a line that chat services show as it is.

    Parameters
    ----------
    url
        An http or https address.
    subject
        What is watched, such as the script's name.

    Attributes
    ----------
    faults
        Why messages were not delivered.
    """

    def __init__(self, url: str, subject: str = "") -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidParameter(f"doctor: `--webhook` must be an http(s) address; got {url!r}.")
        self.url, self.subject = url, subject
        self.faults: list[str] = []
        self._posted: set[tuple[str, str | None]] = set()
        self._queue: queue.Queue[bytes | None] = queue.Queue()
        self._thread = threading.Thread(target=self._deliver, daemon=True)
        self._thread.start()

    def post(self, found: Finding) -> None:
        """Queue a finding, unless it was sent before."""
        if (found.code, found.where) in self._posted:
            return
        self._posted.add((found.code, found.where))
        self._queue.put(json.dumps(self._message(found), allow_nan=False).encode())

    def close(self) -> None:
        """Wait a little for what is queued."""
        self._queue.put(None)
        self._thread.join(SECONDS)

    def _message(self, found: Finding) -> dict[str, Any]:
        place = f" ({found.source})" if found.source else ""
        return {
            "text": f"{self.subject}: {found}{place}",
            "subject": self.subject,
            "code": found.code,
            "name": found.name,
            "severity": found.severity,
            "confidence": found.confidence,
            "summary": found.summary,
            "remedy": str(found.remedy),
            "source": str(found.source) if found.source else None,
        }

    def _deliver(self) -> None:
        while (body := self._queue.get()) is not None:
            kind = {"Content-Type": "application/json"}
            request = urllib.request.Request(self.url, body, kind)  # noqa: S310 - checked above
            try:
                with urllib.request.urlopen(request, timeout=SECONDS):  # noqa: S310
                    pass
            except (OSError, ValueError) as error:
                self.faults.append(str(error))
