"""The application: pages, the JSON behind them, and the command's server."""

from __future__ import annotations

import json
import math
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from castalia.errors import CastaliaError, InvalidData, InvalidParameter
from castalia.method.fit_result import PAGE
from castalia.studio.access_guard import AccessGuard
from castalia.studio.fit_start import FitStart
from castalia.studio.live_changes import change_events
from castalia.studio.run_comparison import compared
from castalia.studio.run_details import RunDetails
from castalia.studio.run_index import RunIndex
from castalia.studio.run_marks import Marks
from castalia.studio.try_form import TryForm
from castalia.studio.uploaded_file import MOST_UPLOADED
from castalia.train.runs import RunStore
from castalia.utils.imports import require
from castalia.utils.regular_files import read_regular

__all__ = ["StudioSettings", "make_studio", "open_studio"]

STATIC = resources.files("castalia.studio") / "static"
PAGES = {"/": "runs", "/run": "run", "/compare": "compare", "/start": "start"}
MOST_BYTES = 1_000_000  # of what a page sends
MOST_SENT = MOST_BYTES + 4 * MOST_UPLOADED // 3  # with a file, as base64
MOST_ROWS = 200  # of one page of the table
# The report of a run brings its own styles; it may show, and do nothing.
_REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, kw_only=True)
class StudioSettings:
    """How a studio runs.

    Attributes
    ----------
    token
        What opens it.
    beat
        Seconds between two looks for changes.
    home
        Folder whose files may be fitted.
    """

    token: str
    beat: float = 1.0
    home: Path = Path()


class Studio:
    """What the routes share: the store, its index, readers of single runs."""

    def __init__(self, store: RunStore, settings: StudioSettings) -> None:
        self.store, self.settings = store, settings
        self.index = RunIndex(store)
        self.details = RunDetails(self.index)
        self.form, self.fits = TryForm(), FitStart(settings.home, store.root)

    # -- what is read ----------------------------------------------------------------------

    def runs(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return one page of the table."""
        found = self.index.page(
            asked.get("search", ""),
            asked.get("sort", "updated"),
            asked.get("down", "1") == "1",
            asked.get("status", ""),
            asked.get("archived", "") == "1",
            _whole(asked, "offset", 0, 10**9),
            _whole(asked, "limit", 50, MOST_ROWS),
        )
        return found | {"tags": self.index.tags(), "folder": str(self.store.root.resolve())}

    def run(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return one run."""
        return self.details.of(asked.get("run", ""))

    def curve(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return one curve."""
        ends = [asked.get("first"), asked.get("last")]
        span = (
            None if None in ends else tuple(_whole(asked, e, 0, 2**62) for e in ("first", "last"))
        )
        return self.details.curve(
            asked.get("run", ""),
            asked.get("part", ""),
            asked.get("key", ""),
            span,  # type: ignore[arg-type]
            max(_whole(asked, "width", 800, 4_000), 10),
            asked.get("quick") == "1",
        )

    def compare(self, asked: Any) -> dict[str, Any]:
        """Return several runs beside each other."""
        return compared(self.details, asked.getlist("run"))

    def schema(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return the form of a run's model."""
        return self.form.schema(self.index.find(asked.get("run", "")))

    def files(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return files to fit."""
        return self.fits.files(asked.get("folder", ""))

    def profile(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return the columns of a file."""
        return self.fits.profile(asked.get("path", ""))

    def started(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return what became of a fit."""
        return self.fits.state(_whole(asked, "number", 0, 10**9))

    # -- what is changed -------------------------------------------------------------------

    def mark(self, body: Any) -> dict[str, Any]:
        """Keep tags, note and archive of a run."""
        row = self.index.find(str(body.get("run", "")))
        row.marks = Marks.of(body)
        row.marks.write(row.folder)
        return self.index.shown(row)

    def predict(self, body: Any) -> dict[str, Any]:
        """Answer a row, a text, an image or a series with the model of a run."""
        return self.form.answer(self.index.find(str(body.get("run", ""))), body)

    def why(self, body: Any) -> dict[str, Any]:
        """Say why a model answers as it does."""
        return self.form.why(self.index.find(str(body.get("run", ""))), body)

    def start(self, body: Any) -> dict[str, Any]:
        """Start a fit."""
        return self.fits.start(body)


def make_studio(
    store: RunStore, settings: StudioSettings, closed: Callable[[], bool] = lambda: False
) -> Any:
    """Return the ASGI application on a store of runs.

    Parameters
    ----------
    store
        The runs.
    settings
        Its token.
    closed
        Whether the server is about to end, so that pages are followed no longer.
    """
    require("starlette", caller="studio", extra="studio")
    from starlette.applications import Starlette
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    studio = Studio(store, settings)
    shell = (STATIC / "shell.html").read_text(encoding="utf-8")

    def page(request: Any) -> Any:
        words = shell.replace("{page}", PAGES[request.url.path])
        return Response(words, media_type="text/html")

    def report(request: Any) -> Any:
        row = studio.index.find(request.query_params.get("run", ""))
        try:
            content = read_regular(row.folder / PAGE)
        except OSError:
            return Response("studio: this run has no report yet.", 404, media_type="text/plain")
        headers = {"content-security-policy": _REPORT_POLICY}
        return Response(content, headers=headers, media_type="text/html")

    async def live(request: Any) -> Any:
        async def left() -> bool:
            return closed() or await request.is_disconnected()

        events = change_events(studio.index, settings.beat, left)
        return StreamingResponse(events, media_type="text/event-stream")

    gets = (
        studio.runs, studio.run, studio.curve, studio.compare,
        studio.schema, studio.files, studio.profile, studio.started,
    )  # fmt: skip
    posts = (studio.mark, studio.why, studio.start)
    routes = [
        *(Route(path, page) for path in PAGES),
        *(Route(f"/api/{work.__name__}", _reader(work)) for work in gets),
        *(Route(f"/api/{work.__name__}", _writer(work), methods=["POST"]) for work in posts),
        Route("/api/predict", _writer(studio.predict, MOST_SENT), methods=["POST"]),
        Route("/api/live", live),
        Route("/report", _guarded(report)),
        Mount("/static", StaticFiles(directory=str(STATIC))),
    ]
    app = Starlette(routes=routes)
    app.state.studio = studio
    return AccessGuard(app, settings.token)


def _whole(asked: Mapping[str, str], name: str, usual: int, most: int) -> int:
    text = asked.get(name, "")
    if not text:
        return usual
    if not (text.isascii() and text.isdigit()) or int(text) > most:
        raise InvalidData(f"studio: `{name}` must be a whole number up to {most}; got {text!r}.")
    return int(text)


def _guarded(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Turn an error into its sentence."""

    def guarded(request: Any) -> Any:
        try:
            return work(request)
        except CastaliaError as error:
            return _answer({"error": " ".join(str(error).split())}, 422)

    return guarded


def _reader(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Answer a question; Starlette runs it in a thread of its own."""
    return _guarded(lambda request: _answer(work(request.query_params)))


def _writer(work: Callable[[Any], Any], most: int = MOST_BYTES) -> Callable[[Any], Any]:
    """Read a body of JSON and do what it asks, in a thread of its own."""

    async def written(request: Any) -> Any:
        from starlette.concurrency import run_in_threadpool

        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                return _answer({"error": f"studio: at most {most:,} bytes."}, 413)
            parts.append(part)
        try:
            body = json.loads(b"".join(parts))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            return _answer({"error": "studio: the body must be a JSON object."}, 422)
        return await run_in_threadpool(_guarded(lambda body: _answer(work(body))), body)

    return written


def _answer(content: Any, status: int = 200) -> Any:
    from starlette.responses import Response

    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(content), ensure_ascii=False, allow_nan=False)
    return Response(text, status, media_type="application/json")


def _finite(value: Any) -> Any:
    """Return plain values with null for numbers that JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def open_studio(
    folder: Path,
    port: int = 0,
    show: bool = True,
    say: Callable[[str], object] = lambda words: None,
    run: str = "",
    until: Callable[[], object] | None = None,
) -> None:
    """Serve the studio on this machine until Ctrl-C.

    Parameters
    ----------
    folder
        Of the runs.
    port
        Where to listen; 0: one that is free.
    show
        Whether to open a browser.
    say
        Receives the address.
    run
        Whose page to open; all runs without one.
    until
        Called in a thread of its own; the studio closes when it returns.
    """
    uvicorn = require("uvicorn", caller="studio", extra="studio")
    settings = StudioSettings(token=secrets.token_urlsafe(24))
    with socket.socket() as listener, RunStore(folder) as store:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise InvalidParameter(
                f"studio: port {port} must be free; {error.strerror}. `--port 0` takes a free one."
            ) from error
        page = "run?" + urlencode({"run": run}) + "&" if run else "?"
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/{page}token={settings.token}"
        say(address)
        if show:
            webbrowser.open(address)
        app = make_studio(store, settings, lambda: server.should_exit)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=3
        )
        server = uvicorn.Server(config)
        if until is not None:
            threading.Thread(target=_close_after, args=(until, server), daemon=True).start()
        with suppress(KeyboardInterrupt):  # how a studio is closed
            server.run(sockets=[listener])


def _close_after(until: Callable[[], object], server: Any) -> None:
    until()
    server.should_exit = True
